"""Mutable Python objects at joins: which of them may be one and the same, depending on how it runs.

In: what a branch or a loop made of objects of several paths, and those. Out: `Shared`, which refuses a write
to one of two such objects while user code can still reach the other, as each has its content for itself.

    if better:                  # after the branch `best` is made of the fields of both; it may be what `old`
        best = old              # is, so that a store into either is refused until the other is out of reach
    else:
        best = Candidate(x)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from metaphrase.source import Span, UnsupportedError

from ..rewrite.plain import Undefined


class Shared:
    """`older`: which objects a joined one may be, by identity; all are kept alive so that no identity is used
    again. Two objects may be one if both may be a third: a branch makes one of two that stay different.
    `reachable`: which of some objects user code can still reach."""

    def __init__(self, reachable: Callable[[Collection[int]], set[int]]) -> None:
        self.reachable = reachable
        self.things: dict[int, Any] = {}
        self.older: dict[int, set[int]] = {}
        self.places: dict[int, tuple[str, Span | None]] = {}
        self.copies: dict[int, tuple[Any, Span | None]] = {}

    def join(self, made: Any, older: Iterable[Any], name: str, span: Span | None) -> None:
        """Note that an object stands for one of some others."""
        known = {id(thing): thing for thing in older if is_mutable(thing) and thing is not made}
        if known and is_mutable(made):
            self.older.setdefault(id(made), set()).update(known)
            for key, thing in (id(made), made), *known.items():
                self.things[key] = thing
                self.places.setdefault(key, (name, span))

    def add_copy(self, thing: Any, span: Span | None) -> None:
        """Note an item of a list that a loop made: what holds the parts of the items is not the object."""
        if is_mutable(thing):
            self.copies.setdefault(id(thing), (thing, span))

    def __contains__(self, thing: Any) -> bool:
        return id(thing) in self.things or id(thing) in self.copies

    def origins(self, key: int) -> set[int]:
        """The objects that one may be, and itself, by identity."""
        found, todo = {key}, [key]
        while todo:
            more = self.older.get(todo.pop(), set()) - found
            found |= more
            todo += more
        return found

    def others(self, origins: set[int]) -> list[int]:
        """The objects that may be one of some."""
        return [key for key in self.things if not origins.isdisjoint(self.origins(key))]

    def refuse(self, thing: Any, span: Span | None) -> None:
        """Refuse a write that another name for the same object would not see."""
        if thing in self:
            others = [key for key in self.others(self.origins(id(thing))) if key != id(thing)]
            self._refuse_copied(thing, span, "it is written to")
            if others and self.reachable(others):
                raise self._unknown(thing, span, "it is written to")

    def refuse_identity(self, left: Any, right: Any, span: Span | None) -> None:
        """Refuse `left is right` where that depends on how the program runs."""
        if left is right or left not in self and right not in self:
            return
        for thing in (left, right):
            self._refuse_copied(thing, span, "its identity is asked for")
        if not self.origins(id(left)).isdisjoint(self.origins(id(right))):
            raise self._unknown(left, span, "its identity is asked for")

    def _unknown(self, thing: Any, span: Span | None, why: str) -> UnsupportedError:
        name, where = self.places[id(thing)]
        what = f"the {type(thing).__name__} '{name}'"
        return UnsupportedError(
            f"{what} may or may not be the same object as another one, and {why}",
            span,
            remedy="make a new object instead of changing this one",
            code="alias",
            notes=(("it depends on how this runs", where),),
        )

    def _refuse_copied(self, thing: Any, span: Span | None, why: str) -> None:
        origins = self.origins(id(thing))
        for copied, (_, where) in self.copies.items():
            if not origins.isdisjoint(self.origins(copied)):
                raise UnsupportedError(
                    f"a {type(thing).__name__} in a list that a loop made is kept by its parts, and {why}",
                    span,
                    remedy="make an array of the list, np.array(values), and change that",
                    code="alias",
                    notes=(("it is put into the list, or read from it, here", where),),
                )


def is_mutable(value: Any) -> bool:
    """Whether writes into a container can be seen through another name for it."""
    if value is None or isinstance(value, (tuple, Undefined)):
        return False
    parameters = getattr(type(value), "__dataclass_params__", None)
    return not (parameters is not None and parameters.frozen)
