"""Reductions in lanes: a long loop that sums floats keeps 32 sums side by side.

In: the final tree. Out: leaf loops that combine floats into variables, cut into blocks of lanes and a rest.
A short loop stays one loop, of kind "red": the C compiler keeps one register of sums for it
(emit/cython_simd.py).

    for i in range(n):                 for l in range(32): s_lanes[l] = 0
        s += x[i]*x[i]        ->       for i in range(n//32):
                                           for l in range(32): s_lanes[l] += x[32*i + l]*x[32*i + l]
                                       s += sum of s_lanes
                                       for i in range(n%32): s += ...

Floats are combined in another order than written, which NumPy's own sum does too; the error is smaller than
a plain loop's.
"""

from __future__ import annotations

import numpy as np

from metaphrase.core.dims import DimLike, Sym, floordiv
from metaphrase.core.facts import Facts
from metaphrase.core.scalars import MONOIDS
from metaphrase.core.types import i64, is_float

from .dependence import in_step
from .lower_arrays import identity
from .names import Names
from .nest import Bind, Buf, Combine, E, For, If, Index, Load, Map, Op, Stmt, Store, loaded
from .rewrite import map_expression, map_statement, rename_statement
from .target import Target


def in_lanes(block: tuple[Stmt, ...], names: Names, facts: Facts, target: Target) -> tuple[Stmt, ...]:
    """Rewrite every leaf loop that combines floats, unless it is known to be short."""
    if target.lanes < 2:
        return block
    rows: list[Stmt] = []
    for stmt in block:
        if stmt.blocks:
            stmt = stmt.with_blocks(tuple(in_lanes(b, names, facts, target) for b in stmt.blocks))
        if isinstance(stmt, For) and (sums := _combined(stmt, facts, target)):
            rows.extend(_rewritten(stmt, sums, names, target))
        else:
            rows.append(stmt)
    return tuple(rows)


def _combined(loop: For, facts: Facts, target: Target) -> dict[Buf, str]:
    """The variables that a leaf loop combines into, if that is all that its iterations share."""
    if loop.kind != "red" or facts.less(loop.extent, target.sums_from):
        return {}
    sums: dict[Buf, str] = {}
    made: set[Buf] = set()
    for stmt in loop.body:
        if not isinstance(stmt, Store):
            return {}
        if stmt.buf.dims:
            places = [s.index for s in loop.body if isinstance(s, Store) and s.buf is stmt.buf]
            places += [load.index for s in loop.body for load in loaded(s) if load.buf is stmt.buf]
            if not all(in_step(stmt.index, place, loop.index, loop.extent) for place in places):
                return {}
        elif stmt.monoid:
            if (
                stmt.buf in sums
                or stmt.buf in made
                or not MONOIDS[stmt.monoid].regroups
                or not is_float(stmt.buf.dtype)
            ):
                return {}
            sums[stmt.buf] = stmt.monoid
        else:
            made.add(stmt.buf)
    written = {s.buf for s in loop.body if isinstance(s, Store)}
    ready: set[Buf] = set()
    for stmt in loop.body:
        for load in loaded(stmt):
            if load.buf in sums or (load.buf in written and not load.buf.dims and load.buf not in ready):
                return {}  # a value that one iteration hands to the next
        ready.add(stmt.buf)  # type: ignore[attr-defined]
    return {b: m for b, m in sums.items() if b.dtype.itemsize >= 4}


def _rewritten(loop: For, sums: dict[Buf, str], names: Names, target: Target) -> list[Stmt]:
    count = target.lanes
    lanes = {buf: Buf(names.fresh(buf.name + "_lanes"), buf.dtype, (count,)) for buf in sums}
    start, lane, outer, rest = (names.fresh("i") for _ in range(4))
    rows: list[Stmt] = []
    whole: DimLike = floordiv(loop.extent, count)
    if not isinstance(whole, int):
        name = names.fresh("blocks")
        long = Op("ge", (Index(loop.extent), Index(target.sums_from)), np.dtype(bool))
        rows.append(Bind(name, Op("select", (long, Index(whole), Index(0)), i64), loop.span))
        whole = Sym(name)
    body = tuple(
        _laned(rename_statement(s, {loop.index: Sym(outer) * count + Sym(lane)}), lanes, lane) for s in loop.body
    )
    blocks: list[Stmt] = [
        For(
            start,
            count,
            tuple(Store(lanes[b], (Sym(start),), identity(m, b.dtype)) for b, m in sums.items()),
            "par",
            loop.span,
        ),
        For(outer, whole, (For(lane, count, body, "par", loop.span),), "red", loop.span),
    ]
    for buf, monoid in sums.items():
        blocks.append(Combine(buf, lanes[buf], monoid, loop.span))
    if isinstance(whole, int):
        rows += blocks
    else:  # a short loop does without the lanes
        rows.append(If(Op("gt", (Index(whole), Index(0)), np.dtype(bool)), tuple(blocks), (), loop.span))
    left = loop.extent - whole * count
    if left != 0:
        tail = tuple(rename_statement(s, {loop.index: whole * count + Sym(rest)}) for s in loop.body)
        rows.append(For(rest, left, tail, "red", loop.span))
    return rows


def _laned(stmt: Stmt, lanes: dict[Buf, Buf], lane: str) -> Stmt:
    def place(buf: Buf, index: Map) -> tuple[Buf, Map]:
        return (lanes[buf], (Sym(lane),)) if buf in lanes else (buf, index)

    def expression(e: E) -> E:
        return map_expression(
            e, lambda x: Load(*place(x.buf, x.index)) if isinstance(x, Load) and x.buf in lanes else None
        )

    return map_statement(stmt, expression, place)
