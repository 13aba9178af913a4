"""What a scheduled program costs: floating-point operations, function values, bytes, as expressions of its sizes.

In: a Program for one thread (`ONE_THREAD`: loops are whole). Out: `Costs`. Example, of `np.sin(x) * x` for `f64[n]`:

    costs(program)      # Costs(flops=n, transcendentals=n, read=8*n, written=8*n, temporaries=0, ...)

It counts what is in the loops after fusion, whatever a C compiler makes of it: one operation for each `+ - * /`,
comparison or root of floats, two for each multiplication of a matrix product; `sin`, `exp` and their like are function
values. Bytes are those of elements of arrays, as often as loops name them; arrays in a function's frame, 4 KiB at most,
count as variables. A branch costs as much as both of its sides. Rounds that only the run knows, those of a `while` and
those of a `for` over a number that is given, count once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple

from metaphrase.core.dims import Atom, Dim, DimLike, Sym, floordiv, product, substitute, symbols
from metaphrase.core.scalars import CALLED, CHEAP, facts
from metaphrase.late import dataclass
from metaphrase.source import Span

from .nest import (
    Bind,
    Buf,
    CallFn,
    E,
    Effect,
    Fn,
    For,
    Index,
    LibraryCall,
    Load,
    Op,
    Program,
    Stmt,
    Store,
    View,
    While,
    places,
    walk,
)
from .target import ONE_THREAD

Place = tuple[str, int, str] | None  # the file, line and role of a Span; None: of no line of the user's


@dataclass(frozen=True)
class Costs:
    """`flops`: those of libraries, `library`, included. `read`, `written`: bytes of arrays. `temporaries`: bytes of
    arrays of the program's own. `callbacks`: calls of Python."""

    flops: DimLike = 0
    transcendentals: DimLike = 0
    read: DimLike = 0
    written: DimLike = 0
    temporaries: DimLike = 0
    library: DimLike = 0
    callbacks: DimLike = 0

    def __add__(self, other: Costs) -> Costs:
        return Costs(*(a + b for a, b in zip(astuple(self), astuple(other))))

    @property
    def accessed(self) -> DimLike:
        return self.read + self.written

    def summed(self, index: str, extent: DimLike) -> Costs:
        """Over the rounds of a loop."""
        return Costs(*(_summed(part, index, extent) for part in astuple(self)))

    def with_sizes(self, sizes: Mapping[str, DimLike]) -> Costs:
        return Costs(*(substitute(part, sizes) for part in astuple(self)))


def costs(program: Program) -> Costs:
    """See the head of this file."""
    total = sum(costs_by_place(program).values(), start=Costs())
    unknown = set().union(*map(symbols, astuple(total))) - set(program.sizes)
    return total.with_sizes(dict.fromkeys(unknown, 1))


def costs_by_place(program: Program) -> dict[Place, Costs]:
    """Of each line of the user's. What only the run knows stays a symbol, as the counter of a `while`."""
    total = dict(Counted({fn.name: fn for fn in program.fns}).of_fn(program.entry))
    made = _makers(program.entry.body)
    for buf in program.entry.temps:
        if buf.dims:
            _add(total, made.get(buf), Costs(temporaries=_bytes(buf)))
    return total


def place_of(span: Span | None) -> Place:
    return None if span is None else (span.file, span.line, span.role)


class Counted:
    """Counts what functions cost, each once; who calls it puts sizes in."""

    def __init__(self, fns: Mapping[str, Fn]):
        self.fns, self.known = fns, dict[str, dict[Place, Costs]]()

    def of_fn(self, fn: Fn) -> dict[Place, Costs]:
        if fn.name not in self.known:
            self.known[fn.name] = self.of_block(fn.body, None)
        return self.known[fn.name]

    def of_block(self, block: Iterable[Stmt], around: Place) -> dict[Place, Costs]:
        """`around`: the place of the statement that the block is in, which is that of what has none."""
        total: dict[Place, Costs] = {}
        for stmt in block:
            for place, part in self.of(stmt, around).items():
                _add(total, place, part)
        return total

    def of(self, stmt: Stmt, around: Place) -> dict[Place, Costs]:
        here = place_of(places(stmt)[0]) if places(stmt) else around
        if isinstance(stmt, For):
            return self.of_all_rounds(stmt, self.of_block(stmt.body, here))
        if isinstance(stmt, CallFn):
            fn = self.fns[stmt.fn]
            sizes = dict(zip(fn.sizes, stmt.sizes))
            inside = self.of_fn(fn)
            return {place if place else here: part.with_sizes(sizes) for place, part in inside.items()}
        total: dict[Place, Costs] = {}
        for place, part in (*_of_expressions(stmt, here), (here, _of_places(stmt))):
            _add(total, place, part)
        for block in stmt.blocks:
            for place, part in self.of_block(block, here).items():
                _add(total, place, part)
        if isinstance(stmt, While):
            return self.of_all_rounds(stmt, total)
        return total

    def of_all_rounds(self, loop: For | While, inside: Mapping[Place, Costs]) -> dict[Place, Costs]:
        """What one round of a loop costs, for all of them."""
        if isinstance(loop, While):
            return {place: part.summed(loop.counter, Sym(loop.counter)) for place, part in inside.items()}
        if sizes := _of_all_blocks(loop):
            return {place: part.with_sizes(sizes) for place, part in inside.items()}
        return {place: part.summed(loop.index, loop.extent) for place, part in inside.items()}


def _of_all_blocks(loop: For) -> dict[str, DimLike]:
    """Of a loop over blocks of elements (rounds.py), the sizes with which one block has all of them."""
    count = next(iter(loop.body), None)
    if isinstance(count, Bind) and isinstance(count.value, Index) and isinstance(count.value.dim, Dim):
        for monomial, _ in count.value.dim.terms:
            for atom, _ in monomial:
                for left in atom.operands if atom.kind == "min" else ():
                    if loop.index in symbols(left):
                        return {count.name: substitute(left, {loop.index: 0}), loop.index: 0}
    return {}


def _add(total: dict[Place, Costs], place: Place, part: Costs) -> None:
    if part != Costs():
        total[place] = total[place] + part if place in total else part


def _makers(block: tuple[Stmt, ...]) -> dict[Buf, Place]:
    """Where each array is first stored into."""
    found: dict[Buf, Place] = {}
    for stmt in walk(block):
        for access in stmt.accesses:
            if access.write and places(stmt):
                found.setdefault(access.buf, place_of(places(stmt)[0]))
    return found


def _of_places(stmt: Stmt) -> Costs:
    """What a statement costs but for its expressions."""
    if isinstance(stmt, LibraryCall):
        read, written = (sum(map(_viewed, views), start=0) for views in (stmt.reads, stmt.writes))  # type: ignore[arg-type]
        return Costs(flops=_library(stmt), read=read, written=written, library=_library(stmt))
    if isinstance(stmt, Effect):
        return Costs(callbacks=1)
    if isinstance(stmt, Store):
        size, combines = _touched(stmt.buf), stmt.monoid is not None
        return Costs(flops=int(combines and stmt.buf.dtype.kind in "fc"), read=size * combines, written=size)
    return Costs()


def _of_expressions(stmt: Stmt, here: Place) -> Iterator[tuple[Place, Costs]]:
    """The operations of a statement, and what they read, each at its place."""
    for e in stmt.expressions:
        read: set[Load] = set()
        yield from _of_expression(e, here, read)


def _of_expression(e: E, around: Place, read: set[Load]) -> Iterator[tuple[Place, Costs]]:
    """An element that is read twice counts once."""
    if isinstance(e, Op):
        here = place_of(e.span) if e.span is not None else around
        if any(arg.dtype.kind in "fcV" for arg in e.args):
            cost = facts(e.name).cost
            yield here, Costs(flops=int(CHEAP <= cost < CALLED), transcendentals=int(cost >= CALLED))
        for arg in e.args:
            yield from _of_expression(arg, here, read)
    elif isinstance(e, Load):
        if e not in read:
            read.add(e)
            yield around, Costs(read=_touched(e.buf))
        for entry in e.index:
            if isinstance(entry, E):
                yield from _of_expression(entry, around, read)


def _touched(buf: Buf) -> int:
    """Bytes of an element; a variable is none, and what lies in a function's frame is as near."""
    return buf.dtype.itemsize if buf.dims and buf.space != "frame" or not buf.is_temporary else 0


def _bytes(buf: Buf) -> DimLike:
    return product(buf.dims) * buf.dtype.itemsize


def _viewed(view: View) -> DimLike:
    return product(view.extents) * view.buf.dtype.itemsize


def _library(call: LibraryCall) -> DimLike:
    """About, of what works on matrices; of sorting and its like none."""
    elements = product(call.reads[0].extents)
    if call.operation == "dot_general":
        return 2 * elements * call.reads[1].extents[-1]
    if len(call.reads[0].extents) == 2 and call.reads[0].buf.dtype.kind in "fc":
        return elements * call.reads[0].extents[-1]
    return 0


def _summed(dim: DimLike, index: str, extent: DimLike) -> DimLike:
    """The sum of a dim over index = 0, ..., extent - 1: exact up to the square of the index; where it is divided or
    compared, as much as for its middle."""
    if index not in symbols(dim):
        return extent * dim
    assert isinstance(dim, Dim)
    total: DimLike = 0
    sums = {0: extent, 1: extent * (extent - 1) // 2, 2: extent * (extent - 1) * (2 * extent - 1) // 6}
    for monomial, coefficient in dim.terms:
        blocks = [(item, whole) for item in monomial if (whole := _of_blocks(*item, index, extent)) is not None]
        if len(blocks) == 1:
            ((block, whole),) = blocks
            beside = tuple(item for item in monomial if item is not block)
            each: DimLike = Dim(((beside, 1),)) if beside else 1
            if index not in symbols(each):
                total = total + coefficient * each * whole
                continue
        power = next((power for atom, power in monomial if atom.kind == "sym" and atom.name == index), 0)
        others = tuple(item for item in monomial if item[0].name != index)
        rest: DimLike = Dim(((others, 1),)) if others else 1
        if power in sums and index not in symbols(rest):
            total = total + coefficient * rest * sums[power]
        else:
            middle = substitute(Dim(((monomial, 1),)) if monomial else 1, {index: (extent - 1) // 2})
            total = total + coefficient * extent * middle
    return total


def _of_blocks(atom: Atom, power: int, index: str, extent: DimLike) -> DimLike | None:
    """What min(whole - size*index, size), the lengths of the blocks of a whole, come to together: the whole."""
    if atom.kind != "min" or power != 1:
        return None
    for rest, size in (atom.operands, atom.operands[::-1]):
        if isinstance(size, int):
            whole = rest + size * Sym(index)
            if index not in symbols(whole) and extent == floordiv(whole + size - 1, size):
                return whole
    return None


__all__ = ["ONE_THREAD", "Costs", "Counted", "Place", "costs", "costs_by_place", "place_of"]
