"""What a scheduled program costs: floating-point operations, function values, bytes, as expressions of its sizes.

In: a Program for one thread (`ONE_THREAD`: loops are whole). Out: `Costs`. Example, of `np.sin(x) * x` for `f64[n]`:

    costs(program)      # Costs(flops=n, transcendentals=n, accessed=16*n, temporaries=0)

It counts what is in the loops after fusion, whatever a C compiler makes of it: one operation for each `+ - * /`,
comparison or root of floats, two for each multiplication of a matrix product; `sin`, `exp` and their like are function
values. A branch costs as much as both of its sides. Rounds that only the run knows, those of a `while` and those of a
`for` over a number that is given, count once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from metaphrase.core.dims import Dim, DimLike, product, substitute, symbols
from metaphrase.core.scalars import CALLED, CHEAP, facts

from ...late import dataclass
from .nest import Buf, CallFn, E, Fn, For, LibraryCall, Op, Program, Stmt, Store, View, loads, subexpressions
from .target import ONE_THREAD


@dataclass(frozen=True)
class Costs:
    """`accessed`: bytes of arrays that are read or written. `temporaries`: bytes of arrays of the program's own."""

    flops: DimLike = 0
    transcendentals: DimLike = 0
    accessed: DimLike = 0
    temporaries: DimLike = 0

    def __add__(self, other: Costs) -> Costs:
        return Costs(*(a + b for a, b in zip(self._parts(), other._parts())))

    def _parts(self) -> tuple[DimLike, ...]:
        return self.flops, self.transcendentals, self.accessed, self.temporaries

    def summed(self, index: str, extent: DimLike) -> Costs:
        """Over the rounds of a loop."""
        return Costs(*(_summed(part, index, extent) for part in self._parts()))

    def with_sizes(self, sizes: Mapping[str, DimLike]) -> Costs:
        return Costs(*(substitute(part, sizes) for part in self._parts()))


def costs(program: Program) -> Costs:
    """See the head of this file."""
    fns = {fn.name: fn for fn in program.fns}
    total = _of_fn(program.entry, fns)
    unknown = set().union(*(symbols(part) for part in total._parts())) - set(program.sizes)
    return total.with_sizes(dict.fromkeys(unknown, 1))


def _of_fn(fn: Fn, fns: Mapping[str, Fn]) -> Costs:
    own = sum((_bytes(buf) for buf in fn.temps if buf.dims), start=0)  # type: ignore[arg-type]
    return replace(_of_block(fn.body, fns), temporaries=own)


def _of_block(block: Iterable[Stmt], fns: Mapping[str, Fn]) -> Costs:
    total = Costs()
    for stmt in block:
        total += _of(stmt, fns)
    return total


def _of(stmt: Stmt, fns: Mapping[str, Fn]) -> Costs:
    if isinstance(stmt, For):
        return _of_block(stmt.body, fns).summed(stmt.index, stmt.extent)
    if isinstance(stmt, CallFn):
        fn = fns[stmt.fn]
        return _of_fn(fn, fns).with_sizes(dict(zip(fn.sizes, stmt.sizes)))
    if isinstance(stmt, LibraryCall):
        views = [*stmt.reads, *stmt.writes]
        return Costs(flops=_library(stmt), accessed=sum((_viewed(view) for view in views), start=0))  # type: ignore[arg-type]
    total = Costs()
    for expression in stmt.expressions:
        total += _of_expression(expression)
    if isinstance(stmt, Store):
        total += Costs(
            flops=int(stmt.monoid is not None and stmt.buf.dtype.kind in "fc"),
            accessed=_touched(stmt.buf) * (1 + (stmt.monoid is not None)),
        )
    for inner in stmt.blocks:
        total += _of_block(inner, fns)
    return total


def _of_expression(expression: E) -> Costs:
    kinds = [
        facts(x.name).cost
        for x in subexpressions(expression)
        if isinstance(x, Op) and any(arg.dtype.kind in "fcV" for arg in x.args)
    ]
    return Costs(
        flops=sum(CHEAP <= cost < CALLED for cost in kinds),
        transcendentals=sum(cost >= CALLED for cost in kinds),
        accessed=sum(_touched(load.buf) for load in set(loads(expression))),
    )


def _touched(buf: Buf) -> int:
    """Bytes of an element; a variable is none."""
    return buf.dtype.itemsize if buf.dims or not buf.is_temporary else 0


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
        power = next((power for atom, power in monomial if atom.kind == "sym" and atom.name == index), 0)
        others = tuple(item for item in monomial if item[0].name != index)
        rest: DimLike = Dim(((others, 1),)) if others else 1
        if power in sums and index not in symbols(rest):
            total = total + coefficient * rest * sums[power]
        else:
            middle = substitute(Dim(((monomial, 1),)) if monomial else 1, {index: (extent - 1) // 2})
            total = total + coefficient * extent * middle
    return total


__all__ = ["ONE_THREAD", "Costs", "costs"]
