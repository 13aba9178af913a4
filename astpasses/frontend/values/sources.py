"""How to read a captured value again: from a global, a closure cell, an item or attribute of another source.

In: where a value was found while staging. Out: `read()` gives what stands there now; `Guard.holds()` says
whether that is what staging relied on.
"""

from __future__ import annotations

import types
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any


class Source:
    """Where a value comes from; `key()` is equal for equal places."""

    def read(self) -> Any:
        raise KeyError(self)

    def key(self) -> Hashable:
        return id(self)


@dataclass(eq=False)
class GlobalSource(Source):
    globals: dict
    name: str

    def read(self) -> Any:
        import builtins

        return self.globals[self.name] if self.name in self.globals else getattr(builtins, self.name)

    def key(self) -> Hashable:
        return ("global", id(self.globals), self.name)

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False)
class CellSource(Source):
    cell: types.CellType
    name: str

    def read(self) -> Any:
        return self.cell.cell_contents

    def key(self) -> Hashable:
        return ("cell", id(self.cell))

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False)
class ObjectSource(Source):
    """An object that the program was staged for (a static argument, a default value)."""

    value: Any
    name: str = "object"

    def read(self) -> Any:
        return self.value

    def key(self) -> Hashable:
        return ("object", id(self.value))

    def __str__(self) -> str:
        return self.name


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


@dataclass(eq=False)
class Guard:
    """What staging relied on. `kind`: "value" (an immutable value), "object" (identity), "structure" (type
    and keys)."""

    source: Source
    kind: str
    expected: Any

    def holds(self) -> bool:
        """Whether it is still so."""
        try:
            now = self.source.read()
        except (KeyError, AttributeError, ValueError, IndexError, TypeError):
            return False
        if self.kind == "object":
            return now is self.expected
        if self.kind == "structure":
            return structure(now) == self.expected
        from ..flow.joins import same_static

        return same_static(now, self.expected)

    def __str__(self) -> str:
        return (
            f"{self.source} is {self.expected!r}" if self.kind == "value" else f"{self.source} is what it was"
        )


def structure(value: Any) -> Any:
    """The type and keys (or length) of a container."""
    if isinstance(value, dict):
        return dict, tuple(value)
    if isinstance(value, (list, tuple, set)):
        return type(value), len(value)
    return type(value)
