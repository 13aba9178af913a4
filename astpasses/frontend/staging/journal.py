"""Writes to objects, remembered so that they can be undone, found, and joined.

In: a place that is about to be written. Out: `Location`s that read and write it, and a journal that rolls
back.
"""

from __future__ import annotations

import abc
import types
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..rewrite.plain import NoAttribute, Undefined
from ..values.objects import Shared
from ..values.staged_values import Box

MISSING = Undefined(None)


class Location(abc.ABC):
    """A place: a box's content, an item, an attribute, a closure cell."""

    kind: str
    span: Any = None
    internal = False

    def __init__(self, owner: Any):
        self.owner = owner

    def key(self) -> Hashable:
        """Equal for equal places."""
        return (self.kind, id(self.owner))

    @abc.abstractmethod
    def read(self) -> Any:
        """What is there, or MISSING."""

    def stored(self) -> Any:
        """What `write` must put there to undo a store."""
        return self.read()

    @abc.abstractmethod
    def write(self, value: Any) -> None:
        """Put a value there (MISSING removes the place) without making a note."""

    @abc.abstractmethod
    def describe(self) -> str:
        """The place in a few words, for messages."""


class BoxLocation(Location):
    kind = "box"

    def read(self) -> Any:
        return self.owner.atom

    def write(self, value: Any) -> None:
        self.owner.atom = value
        self.owner.version += 1
        self.owner.known = None

    def describe(self) -> str:
        return "an array"


class ItemLocation(Location):
    def __init__(self, container: Any, index: Any):
        self.owner, self.index = container, index

    def key(self) -> Hashable:
        return ("item", id(self.owner), self.index)

    def read(self) -> Any:
        try:
            return self.owner[self.index]
        except (KeyError, IndexError):
            return MISSING

    def write(self, value: Any) -> None:
        if value is not MISSING:
            self.owner[self.index] = value
        elif isinstance(self.owner, dict):  # a list had another length: it is put back as a whole
            self.owner.pop(self.index, None)

    def describe(self) -> str:
        return f"item {self.index!r} of a {type(self.owner).__name__}"


class AttributeLocation(Location):
    def __init__(self, target: Any, name: str):
        self.owner, self.name = target, name

    def key(self) -> Hashable:
        return ("attribute", id(self.owner), self.name)

    def read(self) -> Any:
        value = getattr(self.owner, self.name, MISSING)
        return NoAttribute(type(self.owner).__name__, self.name) if value is MISSING else value

    def stored(self) -> Any:
        own = getattr(self.owner, "__dict__", None)
        if own is None or self.name in own or isinstance(self.owner, type):
            return self.read()
        described = getattr(type(self.owner), self.name, None)
        return self.read() if hasattr(type(described), "__set__") else MISSING

    def write(self, value: Any) -> None:
        plain = type if isinstance(self.owner, type) else object  # past what the user's class does on stores
        if isinstance(value, Undefined):
            is_slot = isinstance(getattr(type(self.owner), self.name, None), types.MemberDescriptorType)
            if self.name in getattr(self.owner, "__dict__", {}) or is_slot and hasattr(self.owner, self.name):
                plain.__delattr__(self.owner, self.name)
        else:
            plain.__setattr__(self.owner, self.name, value)

    def describe(self) -> str:
        return f"attribute {self.name!r} of a {type(self.owner).__name__}"


class CellLocation(Location):
    kind = "cell"

    def __init__(self, cell: types.CellType, name: str):
        self.owner, self.name = cell, name

    def read(self) -> Any:
        try:
            return self.owner.cell_contents
        except ValueError:
            return MISSING

    def write(self, value: Any) -> None:
        if value is MISSING:
            del self.owner.cell_contents
        else:
            self.owner.cell_contents = value

    def describe(self) -> str:
        return f"the variable {self.name!r}"


class StructureLocation(Location):
    """A list, dict or set whose shape changes (append, pop, new keys): remembered as a whole."""

    kind = "structure"

    def read(self) -> Any:
        return self.owner.copy()

    def write(self, value: Any) -> None:
        if isinstance(self.owner, list):
            self.owner[:] = value
        else:
            self.owner.clear()
            self.owner.update(value)

    def describe(self) -> str:
        return f"the length of a {type(self.owner).__name__}"


@contextmanager
def noticed(journal: Journal, values: Iterable[Any]) -> Iterator[None]:
    """Around a call of a C function: what it does to containers among its arguments is a write like any."""
    places = [StructureLocation(v) for v in values if type(v) in (list, dict, set)]
    before = [place.read() for place in places]
    yield
    for place, old in zip(places, before):
        new = place.read()
        if len(new) != len(old) or any(a is not b for a, b in zip(_items(new), _items(old))):
            place.write(old)
            journal.note(place)
            place.write(new)


def _items(container: Any) -> list:
    pairs = container.items() if type(container) is dict else zip(container)
    return [part for pair in pairs for part in pair]


class KeptLocation(Location):
    """That a list holds a copy of an array."""

    kind, internal = "kept", True

    def __init__(self, box: Box, kept: dict[int, Box]):
        self.owner, self.kept = box, kept

    def read(self) -> Any:
        return id(self.owner) in self.kept

    def write(self, value: Any) -> None:
        if not value:
            self.kept.pop(id(self.owner), None)

    def describe(self) -> str:
        return "an array that a list holds"


class Journal:
    """Notes of (location, what was there before), in order."""

    def __init__(
        self,
        place: Callable[[], Any],
        before: Callable[[Location], None],
        reachable: Callable[[Collection[int]], set[int]],
    ) -> None:
        self.place, self.before = place, before
        self.places: Counter[Hashable] = Counter()
        self.notes: list[tuple[Location, Any]] = []
        self.shared = Shared(reachable)
        self.containers: set[int] = set()  # of the arguments

    def note(self, location: Location, again: bool = False) -> None:
        """To be called before a write. `again`: of what the sides of a branch, or a loop's body, have written
        already; whom that concerns was asked there."""
        if not again and location.owner in self.shared:
            self.shared.refuse(location.owner, self.place())
        if location.span is None and not isinstance(location, BoxLocation):
            location.span = self.place()
        if not location.internal:
            self.before(location)
        self.notes.append((location, location.stored()))
        self.places[location.key()] += 1

    def keep(self, location: Location) -> None:
        """Note a place of which only the form is about to change, not what it means."""
        location.span = location.span or self.place()
        self.notes.append((location, location.read()))

    def mark(self) -> int:
        return len(self.notes)

    def undo(self, mark: int) -> None:
        """Put everything back that was written since `mark`."""
        while len(self.notes) > mark:
            location, old = self.notes.pop()
            location.write(old)
            key = location.key()
            self.places[key] -= 1
            if not self.places[key]:
                del self.places[key]

    def forget(self, made: Callable[[Any], bool]) -> None:
        """Leave out what was written while objects were made that now are the arguments."""
        self.notes = [note for note in self.notes if not made(note[0].owner)]
        self.places = Counter(location.key() for location, _ in self.notes)

    def since(self, mark: int) -> list[Location]:
        """The places written since `mark`, each once, in the order of their first writing."""
        found: dict[Hashable, Location] = {}
        for location, _ in self.notes[mark:]:
            if location.internal:
                continue
            found.setdefault(location.key(), location)
        return list(found.values())
