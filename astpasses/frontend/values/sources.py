"""How to read a captured value again: from a global, a closure cell, an item or attribute of another source.

In: where a value was found while staging. Out: `read()` gives what stands there now; `Guard.holds()` says
whether that is what staging relied on.
"""

from __future__ import annotations

import array
import builtins
import collections
import types
from collections.abc import Hashable
from typing import Any

import numpy as np

from metaphrase.core.array_classes import is_plain
from metaphrase.core.types import NAMES
from metaphrase.exceptions import Room
from metaphrase.late import dataclass, module

from .definitions import bound_function

joins: Any = module("metaphrase.astpasses.frontend.flow.joins")

SEQUENCES = (collections.deque, array.array, bytearray)  # that are no pytrees, and can be changed


class Source:
    """Where a value comes from; `key()` is equal for equal places."""

    name: str

    def __str__(self) -> str:
        return self.name

    def read(self) -> Any:
        raise KeyError(self)

    def key(self) -> Hashable:
        return id(self)

    def is_there(self) -> bool:
        """Whether there is something to read."""
        try:
            self.read()
        except (KeyError, AttributeError, ValueError, IndexError, TypeError):
            return False
        return True


@dataclass(eq=False)
class GlobalSource(Source):
    globals: dict
    name: str

    def read(self) -> Any:
        return self.globals[self.name] if self.name in self.globals else getattr(builtins, self.name)

    def key(self) -> Hashable:
        return ("global", id(self.globals), self.name)


@dataclass(eq=False)
class CellSource(Source):
    cell: types.CellType
    name: str

    def read(self) -> Any:
        return self.cell.cell_contents

    def key(self) -> Hashable:
        return ("cell", id(self.cell))


@dataclass(eq=False)
class ObjectSource(Source):
    """An object that the program was staged for (a static argument, a default value)."""

    value: Any
    name: str = "object"

    def read(self) -> Any:
        return self.value

    def key(self) -> Hashable:
        return ("object", id(self.value))


@dataclass(eq=False)
class ItemSource(Source):
    parent: Source
    index: Any

    def read(self) -> Any:
        return self.parent.read()[self.index]

    def key(self) -> Hashable:
        index = repr(self.index) if isinstance(self.index, slice) else self.index
        return ("item", self.parent.key(), index)

    def __str__(self) -> str:
        return f"{self.parent}[{self.index!r}]"


@dataclass(eq=False)
class AttributeSource(Source):
    parent: Source
    name: str

    def read(self) -> Any:
        return getattr(self.parent.read(), self.name)

    def key(self) -> Hashable:
        return ("attribute", self.parent.key(), self.name)

    def __str__(self) -> str:
        return f"{self.parent}.{self.name}"


class ThisProcess:
    """What a program relies on that was told something that only this process knows."""


THIS_PROCESS = ThisProcess()


def room_of(source: Any) -> Room | None:
    """The Room that a capture reads, if it is one's size."""
    parent = source.parent if isinstance(source, AttributeSource) else None
    return parent.value if isinstance(parent, ObjectSource) and isinstance(parent.value, Room) else None


@dataclass(eq=False)
class NumberSource(Source):
    """A number that changes from call to call: a hidden argument. `python`: its Python type, None for a NumPy
    scalar of `dtype`."""

    place: Source
    python: type | None
    dtype: Any

    def read(self) -> Any:
        return self.place.read()

    def fits(self, value: Any) -> bool:
        """Whether a value is a number of this type, and one that the program can take."""
        if self.python is None:
            return isinstance(value, np.generic) and value.dtype == self.dtype
        return type(value) is self.python and is_number(value)

    def key(self) -> Hashable:
        return ("number", self.place.key())

    def __str__(self) -> str:
        return str(self.place)


@dataclass(frozen=True)
class ElementsSource(Source):
    """The elements of an array whose class is no plain `ndarray`: a memory map, say."""

    place: Source

    def read(self) -> Any:
        value = self.place.read()
        plain = isinstance(value, np.ndarray) and is_plain(type(value))  # type: ignore[arg-type]
        return np.asarray(value) if plain else value

    def key(self) -> Hashable:
        return self.place.key()

    def __str__(self) -> str:
        return str(self.place)


def is_number(value: Any) -> bool:
    """A Python or NumPy number that a program can be given: no bool, no int beyond 64 bits."""
    if type(value) is int:
        return -(2**63) <= value < 2**63
    if type(value) in (float, complex):
        return True
    return isinstance(value, np.number) and value.dtype in NAMES


@dataclass(eq=False)
class Guard:
    """What staging relied on. `kind`: "value" (an immutable value), "object" (identity), "structure" (type
    and keys), "contents" (of a set), "items" (of a list or tuple of immutable values), "presence" (of an
    attribute), "same" (whether another source has this very object), "method" (the function that an attribute
    is bound to), "function" (its code and defaults), "class" (its methods and descriptors)."""

    source: Source
    kind: str
    expected: Any

    def key(self) -> Hashable:
        """Equal for guards of which a program needs one."""
        if self.kind in ("value", "object", "contents"):
            return self.source.key()
        if self.kind == "same":
            return ("same", self.source.key(), self.expected[0].key())
        return (self.kind, self.source.key())

    def holds(self) -> bool:
        """Whether it is still so."""
        if self.kind == "presence":
            return self.source.is_there() == self.expected
        if self.kind == "same":
            return same_object(self.source, self.expected[0]) == self.expected[1]
        try:
            now = self.source.read()
        except (KeyError, AttributeError, ValueError, IndexError, TypeError):
            return False
        if self.kind == "object":
            return now is self.expected
        if self.kind in ("function", "class"):
            return self.expected.holds(now)
        if self.kind == "method":
            return bound_function(now) is self.expected
        if self.kind == "structure":
            return structure(now) == self.expected
        if self.kind == "items":
            return same_items(now, self.expected)
        if self.kind == "contents":
            return isinstance(now, (set, frozenset)) and now == self.expected
        return joins.same_static(now, self.expected)

    def __str__(self) -> str:
        if self.kind == "value":
            return f"{self.source} is {self.expected!r}"
        if self.kind == "presence":
            return f"{self.source} is {'there' if self.expected else 'not there'}"
        if self.kind == "same":
            return f"{self.source} is{'' if self.expected[1] else ' not'} {self.expected[0]}"
        if self.kind == "class":
            return f"the methods of {self.source} are what they were"
        if self.kind == "function":
            return f"the code of {self.source} is what it was"
        return f"{self.source} is what it was"


def same_object(first: Source, second: Source) -> bool | None:
    """Whether one object stands in two places; None where one of them is gone."""
    try:
        return first.read() is second.read()
    except (KeyError, AttributeError, ValueError, IndexError, TypeError):
        return None


def same_items(value: Any, expected: tuple) -> bool:
    fits = isinstance(value, (list, tuple)) and len(value) == len(expected)
    return fits and all(map(joins.same_static, value, expected))


def structure(value: Any) -> Any:
    """The type and keys (or length) of a container."""
    if isinstance(value, dict):
        return dict, tuple(value)
    if isinstance(value, (list, tuple, set, *SEQUENCES)):
        return type(value), len(value)
    return type(value)
