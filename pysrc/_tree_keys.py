"""The steps of a path into a pytree, and the text of a path.

In: what a container calls its children. Out: key entries, hashable and printed as the Python that reads the
child.

>>> keystr((DictKey("layers"), SequenceKey(0), GetAttrKey("w")))
"['layers'][0].w"
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from .late import dataclass


@dataclass(frozen=True)
class SequenceKey:
    """An item of a tuple or a list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class DictKey:
    """A value of a dict."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """A field of a NamedTuple or of a registered class."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """A child of a class that was registered without names for its children."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = Any
KeyPath = tuple[Any, ...]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as text: `['a'][0].b`, or with `simple` and a separator `a/0/b`."""
    return separator.join(_bare(k) if simple else str(k) for k in keys)


def _bare(key: KeyEntry) -> str:
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)
