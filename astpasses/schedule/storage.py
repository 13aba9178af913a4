"""Where values lie, and what an expression reads: `Buf`, `Load`, `Index`, `Access`.

In: nothing. Out: storages, the places in them, and the facts of an expression, each of which is worked out
once. An index is a dim expression over symbols: loop indices, sizes, integers bound by `Bind`.

    e = operation("add", Load(x, (i, j)), constant(1.0, f64))
    loads(e) == (Load(x, (i, j)),)
    expression_symbols(e) == {"i", "j"}
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from metaphrase.core.dims import DimLike, symbols
from metaphrase.core.native import E, Op
from metaphrase.core.types import Array, i64
from metaphrase.late import dataclass

N = TypeVar("N")
T = TypeVar("T")


def fact(rule: Callable[[N], T]) -> Callable[[N], T]:
    """A function of an expression or a statement that is worked out once for each: neither ever changes."""
    key = f"fact {rule.__name__}"

    @wraps(rule)
    def of(node: N) -> T:
        known = node.__dict__
        try:
            return known[key]
        except KeyError:
            known[key] = found = rule(node)
            return found

    return of


class _Attribute:
    """Python's cached_property, without the lock that it takes before Python 3.12."""

    def __init__(self, rule: Callable[[Any], Any]):
        self.rule, self.name = rule, rule.__name__

    def __get__(self, owner: Any, kind: type) -> Any:
        owner.__dict__[self.name] = value = self.rule(owner)
        return value


def fact_attribute(rule: Callable[[Any], T]) -> T:
    """A fact that is an attribute: the method works it out once for each object."""
    return cast(T, _Attribute(rule))


class Buf:
    """One storage, C-contiguous. Rank 0 and not a parameter: a scalar variable.

    `space` says where it lives: "arg" (parameter `position`), "out" (result `position`), "const" (`data`); "temp"
    until it is placed, which makes it one of "frame" (the function's own), "arena" (memory for the call) and "room"
    (memory taken when its size is known); "stack" (grows along dim 0 while it is written).
    """

    __slots__ = ("name", "dtype", "dims", "space", "position", "data", "dynamic", "carried", "unbound")

    def __init__(
        self,
        name: str,
        dtype: np.dtype,
        dims: tuple[DimLike, ...],
        space: str = "temp",
        position: int | None = None,
        data: Any = None,
        dynamic: bool = False,
    ):
        self.name, self.dtype, self.dims, self.space = name, np.dtype(dtype), tuple(dims), space
        self.position, self.data, self.dynamic = position, data, dynamic
        self.carried = False  # holds its value from one iteration of a loop to the next
        self.unbound = False  # may be read where no path has given it a value: what is read there nobody wants

    @property
    def is_scalar(self) -> bool:
        """A plain variable."""
        return not self.dims and self.is_temporary

    @property
    def is_temporary(self) -> bool:
        """Neither the caller's nor a constant."""
        return self.space not in ("arg", "out", "const")

    def __repr__(self) -> str:
        return f"{self.name}: {Array(self.dtype, self.dims)}"


IndexEntry = DimLike | E  # an E is a gathered index: nothing is known of its value
Map = tuple[IndexEntry, ...]


@dataclass(frozen=True)
class Load(E):
    """The element of `buf` at `index`."""

    buf: Buf
    index: Map = ()

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        return self.buf.dtype


@dataclass(frozen=True)
class Index(E):
    """A dim expression as an i64 value."""

    dim: DimLike

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        return i64


class Access(NamedTuple):
    """One place in a Buf that is read or written. `whole`: any part of it, as far as we know; `spread`: or
    the elements that lie behind the place, so many at such a distance, in so many directions."""

    buf: Buf
    index: Map  # type: ignore[assignment]
    write: bool
    whole: bool = False
    spread: tuple[tuple[DimLike, DimLike], ...] | None = None


@fact
def subexpressions(e: E) -> tuple[E, ...]:
    """`e` and everything inside it, indices included."""
    if isinstance(e, Op):
        inside = e.args
    elif isinstance(e, Load):
        inside = tuple(entry for entry in e.index if isinstance(entry, E))
    else:
        return (e,)
    return (e, *(x for part in inside for x in subexpressions(part)))


@fact
def loads(e: E) -> tuple[Load, ...]:
    """Every Load in `e`."""
    return tuple(x for x in subexpressions(e) if isinstance(x, Load))


@fact
def value_symbols(e: E) -> tuple[str, ...]:
    """The symbols that are numbers in `e`, as often as each occurs."""
    return tuple(name for x in subexpressions(e) if isinstance(x, Index) for name in symbols(x.dim))


@fact
def place_symbols(e: E) -> tuple[str, ...]:
    """The symbols in the places that `e` loads from, as often as each occurs."""
    return tuple(name for x in loads(e) for entry in x.index if not isinstance(entry, E) for name in symbols(entry))


@fact
def expression_symbols(e: E) -> frozenset[str]:
    """Integer symbols an expression reads."""
    return frozenset((*value_symbols(e), *place_symbols(e)))


def index_symbols(index: Map) -> frozenset[str]:
    """Integer symbols that a place depends on."""
    return frozenset().union(*(expression_symbols(i) if isinstance(i, E) else symbols(i) for i in index))


__all__ = [
    "Access",
    "Buf",
    "Index",
    "Load",
    "Map",
    "expression_symbols",
    "fact",
    "fact_attribute",
    "index_symbols",
    "loads",
    "place_symbols",
    "subexpressions",
    "value_symbols",
]
