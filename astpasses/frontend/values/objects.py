"""Mutable Python objects at joins: which of the results may still be one of several objects.

In: objects of two paths, or of two iterations. Out: `Shared`, which remembers the objects whose copies would
not see each other's writes and refuses such writes.

    if better:                  # after the branch `best` is made of the fields of both; the caller's `old`
        best = old              # may be the same object, so storing into `best` or `old` is refused
    else:
        best = Candidate(x)
"""

from __future__ import annotations

from typing import Any

from metaphrase.source import Span, UnsupportedError

from ..rewrite.plain import Undefined


class Shared:
    """Objects that may be one of several, by identity; kept alive so that no identity is used again."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[Any, str, Span | None]] = {}
        self.copies: dict[int, tuple[Any, Span | None]] = {}

    def add(self, thing: Any, name: str, span: Span | None) -> None:
        if is_mutable(thing):
            self.found.setdefault(id(thing), (thing, name, span))

    def add_copy(self, thing: Any, span: Span | None) -> None:
        """Note an item of a list that a loop made: what holds the parts of the items is not the object."""
        if is_mutable(thing):
            self.copies.setdefault(id(thing), (thing, span))

    def __contains__(self, thing: Any) -> bool:
        return id(thing) in self.found or id(thing) in self.copies

    def refuse(self, thing: Any, span: Span | None, why: str) -> None:
        """Refuse a write that another name for the same object would not see."""
        copied = self.copies.get(id(thing))
        if copied is not None:
            raise UnsupportedError(
                f"a {type(thing).__name__} in a list that a loop made is kept by its parts, and {why}",
                span,
                remedy="make an array of the list, np.array(values), and change that",
                code="alias",
                notes=(("it is put into the list, or read from it, here", copied[1]),),
            )
        entry = self.found.get(id(thing))
        if entry is not None:
            what = f"the {type(thing).__name__} '{entry[1]}'"
            raise UnsupportedError(
                f"{what} may or may not be the same object as another one, and {why}",
                span,
                remedy="make a new object instead of changing this one",
                code="alias",
                notes=(("it depends on how this runs", entry[2]),),
            )


def is_mutable(value: Any) -> bool:
    """Whether writes into a container can be seen through another name for it."""
    if value is None or isinstance(value, (tuple, Undefined)):
        return False
    parameters = getattr(type(value), "__dataclass_params__", None)
    return not (parameters is not None and parameters.frozen)
