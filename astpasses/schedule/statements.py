"""Statements of the loop-nest language, each with what it reads, writes and binds.

In: storages and expressions (storage.py). Out: `Store Bind Nest For While If LibraryCall Combine Check Effect Swap Grow
Lap SetDims CallFn`. What a pass may ask of a statement is declared with its kind, and nowhere else:

    For("i", n, body).extents == (n,)
    Store(y, (i,), value).accesses == (Access(y, (i,), write=True),)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import is_
from typing import Any, TypeVar

from metaphrase.core.dims import Dim, DimLike
from metaphrase.core.native import E, Op
from metaphrase.core.scalars import MONOIDS, facts
from metaphrase.late import dataclass
from metaphrase.source import Span

from .storage import Access, Buf, Load, Map, fact_attribute

Self = TypeVar("Self", bound="Stmt")
Blocks = tuple[tuple["Stmt", ...], ...]


@dataclass(frozen=True)
class Change:
    """What a rewriting does to the expressions that are read, the places that are written, the extents."""

    expression: Callable[[E], E]
    place: Callable[[Buf, Map], tuple[Buf, Map]] = lambda buf, index: (buf, index)
    dim: Callable[[DimLike], DimLike] = lambda d: d

    def view(self, view: View) -> View:
        extents, strides = tuple(map(self.dim, view.extents)), tuple(map(self.dim, view.strides))
        return View(*self.place(view.buf, view.index), extents, strides)


class Stmt:
    """A statement. Only `span` is set after it is made. `ordered`: it stays in program order with others that are.
    `guarded`: it stays behind earlier checks, since its places or its rounds are data."""

    span: Span | None = None
    ordered = False
    guarded = False
    binds: str | None = None  # the symbol that it gives a value to
    inner: tuple[str, ...] = ()  # what the blocks inside it are called
    blocks: Blocks = ()
    expressions: tuple[E, ...] = ()  # those of the statement itself that are read, not those of the blocks inside it
    accesses: tuple[Access, ...] = ()  # the places that it names outside of expressions
    extents: tuple[DimLike, ...] = ()  # the dims that it names outside of expressions and places

    def with_blocks(self: Self, blocks: Blocks) -> Self:
        """The same statement with other blocks inside."""
        return self.but(**dict(zip(self.inner, blocks, strict=True)))

    def but(self: Self, **parts: Any) -> Self:
        """The statement with other parts; itself where it has these already, so that its facts stay known."""
        same = all(_same(part, self.__dict__[name]) for name, part in parts.items())
        return self if same else self.anew(**parts)

    def anew(self: Self, **parts: Any) -> Self:
        """Another statement with these parts, and the others of this one."""
        made: Any = object.__new__(type(self))
        made.__dict__.update({name: self.__dict__[name] for name in made.__dataclass_fields__} | parts)
        return made

    def changed(self: Self, change: Change) -> Self:
        """The statement itself rewritten, its blocks as they are. A loop is a new one: it may be a copy of another."""
        return self


def _same(part: Any, other: Any) -> bool:
    """Whether two parts are one object, or tuples of the same objects."""
    return (
        part is other or type(part) is type(other) is tuple and len(part) == len(other) and all(map(is_, part, other))
    )


@dataclass(eq=False)
class Store(Stmt):
    """`buf[index] = value`, or combined with what is there when `monoid` is sum, prod, max, min, any, all. `atomic`:
    while other threads may do the same (scatters.py)."""

    buf: Buf
    index: Map
    value: E
    monoid: str | None = None
    span: Span | None = None
    atomic: bool = False

    @fact_attribute
    def expressions(self) -> tuple[E, ...]:
        return (self.value, *(x for x in self.index if isinstance(x, E)))

    @fact_attribute
    def accesses(self) -> tuple[Access, ...]:
        return (Access(self.buf, self.index, True),)

    @property
    def result(self) -> E:
        """What is there afterwards."""
        return self.value if self.monoid is None else self.combined_with(Load(self.buf, self.index))

    def combined_with(self, before: E) -> E:
        """What is there afterwards. What an extreme was comes last: of two zeros the first one stays."""
        operation = MONOIDS[self.monoid].combine  # type: ignore[index]
        operands = (before, self.value) if facts(operation).commutes else (self.value, before)
        return Op(operation, operands, self.buf.dtype)

    def changed(self, change: Change) -> Store:
        buf, index = change.place(self.buf, self.index)
        return self.but(buf=buf, index=index, value=change.expression(self.value))


@dataclass(eq=False)
class Bind(Stmt):
    """The integer symbol `name` now stands for `value`."""

    name: str
    value: E
    span: Span | None = None

    @fact_attribute
    def binds(self) -> str:
        return self.name

    @fact_attribute
    def expressions(self) -> tuple[E, ...]:
        return (self.value,)

    def changed(self, change: Change) -> Bind:
        return self.but(value=change.expression(self.value))


@dataclass(frozen=True)
class Axis:
    """A loop of a Nest. `kind`: "par" (any order), "red" (any order, accumulates), "seq" (ascending)."""

    name: str
    extent: DimLike
    kind: str = "par"


@dataclass(eq=False)
class Nest(Stmt):
    """A perfect nest before fusion: every axis may be any loop (seq axes ascend); `body` is straight-line.
    `first` runs once for every index of the par axes, before the first of the other axes is begun."""

    axes: tuple[Axis, ...]
    body: tuple[Stmt, ...]
    first: tuple[Stmt, ...] = ()
    span: Span | None = None
    inner = ("first", "body")

    @fact_attribute
    def blocks(self) -> Blocks:
        return (self.first, self.body)

    def changed(self, change: Change) -> Nest:
        return self.but(axes=tuple(replace(a, extent=change.dim(a.extent)) for a in self.axes))


@dataclass(frozen=True)
class Parts:
    """A loop of `whole` iterations is cut into parts of `length`, the last of which may be shorter. `several`: it is
    known that there is more than one."""

    whole: DimLike
    length: DimLike
    several: bool = False


@dataclass(eq=False)
class For(Stmt):
    """`for index in range(extent)`. `kind` as in Axis. `private`: temporaries of which each iteration of a parallel
    loop may have one of its own, and, where iterations run side by side, must; None before they are placed.
    `partials`: variables of which each lane of a vector may have a part, and the monoid that combines them.
    `parts`: of a loop whose iterations threads share (share.py), each of which is a call of one function.
    `on`: what its iterations are divided among in a kernel: "grid", all threads or blocks there are, "block", those of
    one block; "" where one thread does all, or each thread of a block (kernels.py). A "seq" loop on a block with
    `partials` is a scan: it carries these, and what reads them is in a branch at its end (scans.py).
    `width`: of a loop over the grid, the consecutive elements that a thread takes at a time (wide.py)."""

    index: str
    extent: DimLike
    body: tuple[Stmt, ...]
    kind: str = "seq"
    span: Span | None = None
    private: tuple[Buf, ...] | None = None
    partials: tuple[tuple[Buf, str], ...] = ()
    parts: Parts | None = None
    on: str = ""
    width: int = 1
    guarded, inner = True, ("body",)

    @fact_attribute
    def binds(self) -> str:
        return self.index

    @property
    def is_scan(self) -> bool:
        return self.on == "block" and self.kind == "seq" and bool(self.partials)

    @fact_attribute
    def blocks(self) -> Blocks:
        return (self.body,)

    @fact_attribute
    def extents(self) -> tuple[DimLike, ...]:
        return (self.extent,) if self.parts is None else (self.extent, self.parts.whole, self.parts.length)

    def changed(self, change: Change) -> For:
        parts = self.parts and replace(
            self.parts, whole=change.dim(self.parts.whole), length=change.dim(self.parts.length)
        )
        partials = tuple((change.place(buf, ())[0], monoid) for buf, monoid in self.partials)
        return self.anew(extent=change.dim(self.extent), parts=parts, partials=partials)


@dataclass(eq=False)
class While(Stmt):
    """`counter = 0; loop: run `before`; stop unless `condition` (and counter < limit); run `body`; counter += 1`.
    After the loop the symbol `counter` is the number of iterations run."""

    counter: str
    before: tuple[Stmt, ...]
    condition: E
    body: tuple[Stmt, ...]
    limit: DimLike | None = None
    span: Span | None = None
    guarded, inner = True, ("before", "body")

    @fact_attribute
    def binds(self) -> str:
        return self.counter

    @fact_attribute
    def blocks(self) -> Blocks:
        return (self.before, self.body)

    @fact_attribute
    def expressions(self) -> tuple[E, ...]:
        return (self.condition,)

    @fact_attribute
    def extents(self) -> tuple[DimLike, ...]:
        return () if self.limit is None else (self.limit,)

    def changed(self, change: Change) -> While:
        limit = None if self.limit is None else change.dim(self.limit)
        return self.anew(condition=change.expression(self.condition), limit=limit)


@dataclass(eq=False)
class If(Stmt):
    """Only the chosen side runs."""

    condition: E
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    span: Span | None = None
    inner = ("then", "orelse")

    @fact_attribute
    def blocks(self) -> Blocks:
        return (self.then, self.orelse)

    @fact_attribute
    def expressions(self) -> tuple[E, ...]:
        return (self.condition,)

    def changed(self, change: Change) -> If:
        return self.but(condition=change.expression(self.condition))


@dataclass(frozen=True)
class View:
    """A strided part of a Buf handed to a library: the element at `index`, and per dim (extent, element stride)."""

    buf: Buf
    index: Map
    extents: tuple[DimLike, ...] = ()
    strides: tuple[DimLike, ...] = ()

    def access(self, write: bool) -> Access:
        return Access(self.buf, self.index, write, True, tuple(zip(self.extents, self.strides)))


@dataclass(eq=False)
class LibraryCall(Stmt):
    """What a library of the target computes: the primitive `operation` of the views `reads`, into the views
    `writes`. Which views it reads and writes is all the scheduler asks. It fails at `site` or one behind it, as the
    target's offer says (target.py)."""

    operation: str
    reads: tuple[View, ...]
    writes: tuple[View, ...]
    attributes: tuple[tuple[str, Any], ...] = ()
    span: Span | None = None
    site: int = -1
    guarded = True

    @fact_attribute
    def accesses(self) -> tuple[Access, ...]:
        return (*(view.access(False) for view in self.reads), *(view.access(True) for view in self.writes))

    @fact_attribute
    def extents(self) -> tuple[DimLike, ...]:
        dims = (value for _, value in self.attributes if isinstance(value, Dim))
        return (*(d for v in (*self.reads, *self.writes) for d in (*v.extents, *v.strides)), *dims)

    def changed(self, change: Change) -> LibraryCall:
        reads, writes = (tuple(map(change.view, views)) for views in (self.reads, self.writes))
        attributes = tuple((k, change.dim(value) if isinstance(value, Dim) else value) for k, value in self.attributes)
        return self.but(reads=reads, writes=writes, attributes=attributes)


@dataclass(eq=False)
class Combine(Stmt):
    """The elements of `partials` combined into the variable `buf`, in an order of their own: halves first."""

    buf: Buf
    partials: Buf
    monoid: str
    span: Span | None = None
    guarded = True

    @fact_attribute
    def accesses(self) -> tuple[Access, ...]:
        return (Access(self.partials, (0,), False, True), Access(self.buf, (), True))

    @fact_attribute
    def extents(self) -> tuple[DimLike, ...]:
        return self.partials.dims

    def changed(self, change: Change) -> Combine:
        return self.but(buf=change.place(self.buf, ())[0], partials=change.place(self.partials, (0,))[0])


@dataclass(eq=False)
class Check(Stmt):
    """Fail at `site` unless `ok`; `values` go into the message."""

    ok: E
    site: int
    values: tuple[E, ...] = ()
    span: Span | None = None
    ordered = True

    @fact_attribute
    def expressions(self) -> tuple[E, ...]:
        return (self.ok, *self.values)

    def changed(self, change: Change) -> Check:
        return self.but(ok=change.expression(self.ok), values=tuple(map(change.expression, self.values)))


@dataclass(eq=False)
class Effect(Stmt):
    """Call back into Python at `site` with `reads` (whole Bufs; rank 0 for scalars), in program order; what it gives
    is stored into `writes`."""

    site: int
    reads: tuple[Buf, ...]
    writes: tuple[Buf, ...] = ()
    span: Span | None = None
    ordered = True

    @fact_attribute
    def accesses(self) -> tuple[Access, ...]:
        both = ((self.reads, False), (self.writes, True))
        return tuple(Access(buf, (), write, True) for bufs, write in both for buf in bufs)


@dataclass(eq=False)
class Swap(Stmt):
    """The two Bufs change places: pointers, no copy."""

    a: Buf
    b: Buf
    span: Span | None = None

    @fact_attribute
    def accesses(self) -> tuple[Access, ...]:
        return tuple(Access(buf, (), True, True) for buf in (self.a, self.b))


@dataclass(eq=False)
class Grow(Stmt):
    """Make sure that each of `bufs` (space "stack", or a temp whose size is only known here) holds `length` rows."""

    bufs: tuple[Buf, ...]
    length: DimLike
    span: Span | None = None

    @fact_attribute
    def accesses(self) -> tuple[Access, ...]:
        return tuple(Access(buf, (), True, True) for buf in self.bufs)

    @fact_attribute
    def extents(self) -> tuple[DimLike, ...]:
        return (self.length,)

    def changed(self, change: Change) -> Grow:
        return self.but(bufs=tuple(change.place(b, ())[0] for b in self.bufs), length=change.dim(self.length))


@dataclass(eq=False)
class Lap(Stmt):
    """From here on the time is that of the part `number` (laps.py). It is in no program but one that is timed."""

    number: int


@dataclass(eq=False)
class SetDims(Stmt):
    """Result `buf` has run-time sizes that are known now: allocate it and report its dims."""

    buf: Buf
    span: Span | None = None

    @fact_attribute
    def accesses(self) -> tuple[Access, ...]:
        return (Access(self.buf, (), True, True),)


@dataclass(eq=False)
class CallFn(Stmt):
    """Call an outlined Fn with Bufs and sizes in its parameter order; `result` takes the scalar it gives back."""

    fn: str
    bufs: tuple[Buf, ...]
    sizes: tuple[DimLike, ...]
    fails: bool = False
    writes: frozenset[Buf] = frozenset()
    result: Buf | None = None
    span: Span | None = None

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        return self.fails

    @fact_attribute
    def accesses(self) -> tuple[Access, ...]:
        result = () if self.result is None else (Access(self.result, (), True),)
        return (*(Access(buf, (), buf in self.writes, True) for buf in self.bufs), *result)

    @fact_attribute
    def extents(self) -> tuple[DimLike, ...]:
        return self.sizes

    def changed(self, change: Change) -> CallFn:
        return self.but(sizes=tuple(map(change.dim, self.sizes)))


__all__ = [
    "Axis",
    "Bind",
    "CallFn",
    "Change",
    "Check",
    "Combine",
    "Effect",
    "For",
    "Grow",
    "If",
    "LibraryCall",
    "Nest",
    "Parts",
    "SetDims",
    "Stmt",
    "Store",
    "Swap",
    "View",
    "While",
]
