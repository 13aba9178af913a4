"""The loop-nest language: what native code is made from. It prints as Python loops (python_loops.py) and
runs.

In: nothing. Out: `Buf`, statements (`Store Bind Nest For While If Call Check Effect Swap Grow SetDims`),
`Fn`, `Program`.

An index is a dim expression over symbols: loop indices, sizes, integers bound by `Bind`. A whole row sum:

    For("i", n, (Store(s, (), zero),
                 For("j", m, (Store(s, (), Load(x, (i, j)), monoid="sum"),)),
                 Store(y, (i,), Load(s, ()))))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from metaphrase.core.dims import Dim, DimLike, Sym, symbols
from metaphrase.core.facts import Facts
from metaphrase.core.native import Const, E, Op, constant, operation
from metaphrase.core.types import Array, i64
from metaphrase.source import Span

STACK_BYTES = 4096  # what a function's arrays of known size may take on the C stack, together


class Buf:
    """One storage, C-contiguous. Rank 0 and not a parameter: a scalar variable.

    `space` says where it lives: "arg" (parameter `position`), "out" (result `position`), "const" (`data`),
    "temp" (placed later), "stack" (grows along dim 0 while it is written).
    """

    __slots__ = ("name", "dtype", "dims", "space", "position", "data", "dynamic", "carried")

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

    @property
    def is_scalar(self) -> bool:
        """A plain variable."""
        return not self.dims and self.space == "temp"

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


class Stmt:
    """A statement; subclasses list their parts as fields."""

    span: Span | None = None


@dataclass(eq=False)
class Store(Stmt):
    """`buf[index] = value`, or combined with what is there when `monoid` is sum, prod, max, min, any, all."""

    buf: Buf
    index: Map
    value: E
    monoid: str | None = None
    span: Span | None = None


@dataclass(eq=False)
class Bind(Stmt):
    """The integer symbol `name` now stands for `value`."""

    name: str
    value: E
    span: Span | None = None


@dataclass(frozen=True)
class Axis:
    """A loop of a Nest. `kind`: "par" (any order), "red" (any order, accumulates), "seq" (ascending)."""

    name: str
    extent: DimLike
    kind: str = "par"


@dataclass(eq=False)
class Nest(Stmt):
    """A perfect nest before fusion: every axis may be any loop (seq axes ascend); `body` is straight-line.

    `first` runs once for every index of the par axes, before the first of the other axes is begun.
    """

    axes: tuple[Axis, ...]
    body: tuple[Stmt, ...]
    first: tuple[Stmt, ...] = ()
    span: Span | None = None


@dataclass(eq=False)
class For(Stmt):
    """`for index in range(extent)`. `kind` as in Axis."""

    index: str
    extent: DimLike
    body: tuple[Stmt, ...]
    kind: str = "seq"
    span: Span | None = None


@dataclass(eq=False)
class While(Stmt):
    """`counter = 0; loop: run `before`; stop unless `condition` (and counter < limit); run `body`; counter
    += 1`.

    After the loop the symbol `counter` is the number of iterations run.
    """

    counter: str
    before: tuple[Stmt, ...]
    condition: E
    body: tuple[Stmt, ...]
    limit: DimLike | None = None
    span: Span | None = None


@dataclass(eq=False)
class If(Stmt):
    """Only the chosen side runs."""

    condition: E
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    span: Span | None = None


@dataclass(frozen=True)
class View:
    """A strided part of a Buf handed to a library: the element at `index`, and per dim (extent, element
    stride)."""

    buf: Buf
    index: Map
    extents: tuple[DimLike, ...] = ()
    strides: tuple[DimLike, ...] = ()


@dataclass(eq=False)
class Call(Stmt):
    """A library routine: `routine(*reads, *writes, *numbers)`. Which views it reads and writes is all the
    scheduler asks. It fails at `site` where a size is more than the library can count, and at `site + 1`
    where the library refuses what it is given."""

    routine: str
    reads: tuple[View, ...]
    writes: tuple[View, ...]
    numbers: tuple[E, ...] = ()
    info: tuple[tuple[str, Any], ...] = ()
    span: Span | None = None
    site: int = -1


@dataclass(eq=False)
class Check(Stmt):
    """Fail at `site` unless `ok`; `values` go into the message."""

    ok: E
    site: int
    values: tuple[E, ...] = ()
    span: Span | None = None


@dataclass(eq=False)
class Effect(Stmt):
    """Call back into Python at `site` with `reads` (whole Bufs; rank 0 for scalars), in program order."""

    site: int
    reads: tuple[Buf, ...]
    span: Span | None = None


@dataclass(eq=False)
class Swap(Stmt):
    """The two Bufs change places: pointers, no copy."""

    a: Buf
    b: Buf
    span: Span | None = None


@dataclass(eq=False)
class Grow(Stmt):
    """Make sure that each of `bufs` (space "stack", or a temp whose size is only known here) holds `length`
    rows."""

    bufs: tuple[Buf, ...]
    length: DimLike
    span: Span | None = None


@dataclass(eq=False)
class SetDims(Stmt):
    """Result `buf` has run-time sizes that are known now: allocate it and report its dims."""

    buf: Buf
    span: Span | None = None


@dataclass(eq=False)
class CallFn(Stmt):
    """Call an outlined Fn with Bufs and sizes in its parameter order; `result` takes the scalar it gives
    back."""

    fn: str
    bufs: tuple[Buf, ...]
    sizes: tuple[DimLike, ...]
    fails: bool = False
    writes: frozenset[Buf] = frozenset()
    result: Buf | None = None
    span: Span | None = None


@dataclass(frozen=True)
class Site:
    """What a failing site raises, or an ordered site does. Stays in Python."""

    kind: str
    exception: str
    message: str
    span: Span | None
    dtypes: tuple[np.dtype, ...] = ()  # of the values shown, or of an effect's operands
    ranks: tuple[int, ...] = ()
    holds: tuple = ()  # of what an exception that holds more than a message is made


@dataclass(eq=False)
class Fn:
    """A function: `bufs` and `sizes` are its parameters, `temps` its own storage."""

    name: str
    bufs: tuple[Buf, ...]
    sizes: tuple[str, ...]
    body: tuple[Stmt, ...]
    temps: tuple[Buf, ...] = ()
    fails: bool = False
    result: Buf | None = None  # the scalar it returns


@dataclass(eq=False)
class Program:
    """`entry` after the Fns it calls. `entry.bufs`: parameters, then results, then constants."""

    name: str
    params: tuple[Buf, ...]
    results: tuple[Buf, ...]
    constants: tuple[Buf, ...]
    sizes: tuple[str, ...]
    entry: Fn
    fns: tuple[Fn, ...] = ()
    sites: tuple[Site, ...] = ()
    facts: Facts = field(default_factory=Facts)
    names: Any = None  # gives fresh names to later passes
    in_place: tuple[tuple[int, int], ...] = ()  # (result, parameter) that are one Buf: the caller's array


def local(name: str, dtype: np.dtype) -> Buf:
    """A scalar variable."""
    return Buf(name, dtype, ())


def boolean(value: bool) -> Const:
    return constant(value, bool)


def never(condition: E) -> bool:
    """Whether a condition is False by its look."""
    return isinstance(condition, Const) and not condition.value


def parts(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The blocks inside a statement."""
    if isinstance(stmt, For):
        return (stmt.body,)
    if isinstance(stmt, Nest):
        return (stmt.first, stmt.body)
    if isinstance(stmt, While):
        return (stmt.before, stmt.body)
    if isinstance(stmt, If):
        return (stmt.then, stmt.orelse)
    return ()


def with_parts(stmt: Stmt, blocks: tuple[tuple[Stmt, ...], ...]) -> Stmt:
    """The same statement with other blocks inside."""
    if isinstance(stmt, For):
        return replace(stmt, body=blocks[0])
    if isinstance(stmt, Nest):
        return replace(stmt, first=blocks[0], body=blocks[1])
    if isinstance(stmt, While):
        return replace(stmt, before=blocks[0], body=blocks[1])
    if isinstance(stmt, If):
        return replace(stmt, then=blocks[0], orelse=blocks[1])
    return stmt


def walk(block: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement, outer before inner."""
    for stmt in block:
        yield stmt
        for inner in parts(stmt):
            yield from walk(inner)


def expressions(stmt: Stmt) -> tuple[E, ...]:
    """The expressions of a statement itself (not of the blocks inside it); those that are read."""
    if isinstance(stmt, Store):
        return (stmt.value, *(x for x in stmt.index if isinstance(x, E)))
    if isinstance(stmt, Bind):
        return (stmt.value,)
    if isinstance(stmt, (While, If)):
        return (stmt.condition,)
    if isinstance(stmt, Check):
        return (stmt.ok, *stmt.values)
    if isinstance(stmt, Call):
        return stmt.numbers
    return ()


def subexpressions(e: E) -> Iterator[E]:
    """`e` and everything inside it, indices included."""
    yield e
    if isinstance(e, Op):
        for arg in e.args:
            yield from subexpressions(arg)
    elif isinstance(e, Load):
        for entry in e.index:
            if isinstance(entry, E):
                yield from subexpressions(entry)


def loads(e: E) -> Iterator[Load]:
    """Every Load in `e`."""
    return (x for x in subexpressions(e) if isinstance(x, Load))


def index_symbols(index: Map) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for entry in index:
        found |= expression_symbols(entry) if isinstance(entry, E) else symbols(entry)
    return found


def expression_symbols(e: E) -> frozenset[str]:
    """Integer symbols an expression reads."""
    found: frozenset[str] = frozenset()
    for x in subexpressions(e):
        if isinstance(x, Index):
            found |= symbols(x.dim)
        elif isinstance(x, Load):
            found |= index_symbols(tuple(i for i in x.index if not isinstance(i, E)))
    return found


__all__ = [
    "Buf",
    "Load",
    "Index",
    "Store",
    "Bind",
    "Axis",
    "Nest",
    "For",
    "While",
    "If",
    "View",
    "Call",
    "Check",
    "Effect",
    "Swap",
    "Grow",
    "SetDims",
    "CallFn",
    "Site",
    "Fn",
    "Program",
    "E",
    "Op",
    "Const",
    "constant",
    "operation",
    "Sym",
    "Dim",
    "DimLike",
    "Map",
    "Stmt",
    "local",
    "boolean",
    "parts",
    "with_parts",
    "walk",
    "expressions",
    "subexpressions",
    "loads",
    "never",
    "index_symbols",
    "expression_symbols",
]
