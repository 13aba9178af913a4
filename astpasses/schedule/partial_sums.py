"""Long sums on a GPU: parts that many blocks work out, then their sum, in an order that sizes alone fix.

In: a nest that combines many values into a few. Out: a kernel for the parts, and what is left to do behind it:

    for i in range(n):                        for number in range(parts):                  # on the grid
        s += x[i]                     ->          s_parts[number] = the sum over its part of range(n)
                                              for k in range(parts): s += s_parts[k]       # one block

    for j in range(m):                        for number in range(parts):                  # on the grid, both
        s = 0                                     for j in range(m): s_parts[number, j] = ...
        for i in range(n): s += x[i, j]  ->   for j in range(m):
        y[j] = s                                  s = 0
                                                  for k in range(parts): s += s_parts[k, j]
                                                  y[j] = s
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from metaphrase.core.dims import DimLike, Sym, dim_max, dim_min, floordiv, symbols_of

from .launches import Region
from .lifetimes import read_before_given
from .lower_arrays import identity
from .nest import (
    Bind,
    Buf,
    For,
    Grow,
    Index,
    Load,
    Stmt,
    Store,
    bound_inside,
    index_symbols,
    loaded,
    local,
    touched,
    walk,
)
from .rewrite import with_storages
from .shapes import Own, Shape, unravelled
from .target import Target


class Division(Protocol):
    """What the pass that divides statements among kernels knows (kernels.py)."""

    target: Target
    sizes: frozenset[str]
    known: set[str]

    def fresh(self, base: str) -> str: ...
    def shape(self, loop: For) -> Shape | None: ...
    def in_block(self, block: tuple[Stmt, ...]) -> tuple[Stmt, ...]: ...
    def threads(self, body: tuple[Stmt, ...]) -> int: ...
    def together(self, shape: Shape) -> bool: ...
    def work(self, block: Iterable[Stmt]) -> tuple[int, int]: ...
    def named(self, name: str, dim: DimLike, rows: list[Stmt]) -> DimLike: ...


def whole_sum(of: Division, shape: Shape, together: bool, own: Own) -> tuple[list[Stmt], list[Stmt]] | None:
    """One sum of all iterations: each block has a part of it. Behind it, one block combines the parts."""
    rows: list[Stmt] = []
    total, loop, sums = shape.total, shape.loops[0], shape.roles.sums
    fewest = _fewest(of, shape, together)
    if isinstance(total, int) and total <= fewest:
        return None
    parts = of.named("parts", dim_min(floordiv(total + fewest - 1, fewest), of.target.blocks), rows)
    length = of.named("length", floordiv(total + parts - 1, dim_max(parts, 1)), rows)
    number, count, at = of.fresh("number"), of.fresh("count"), of.fresh("i")
    first = length * Sym(number)
    mine = {buf: local(of.fresh(buf.name), buf.dtype) for buf in sums}
    held = {buf: Buf(of.fresh(f"{buf.name}_parts"), buf.dtype, (of.target.blocks,)) for buf in sums}
    each = unravelled(of.in_block(shape.body) if together else shape.body, first + Sym(at), shape.loops, of.fresh)
    inner = For(at, Sym(count), each, "red", loop.span)
    if not together:
        inner = replace(inner, on="block", partials=tuple((mine[b], m) for b, m in sums.items()))
    body = (
        Bind(count, Index(dim_min(length, total - first)), loop.span),
        *(Store(mine[buf], (), identity(monoid, buf.dtype)) for buf, monoid in sums.items()),
        with_storages(inner, mine),
        *(Store(held[buf], (Sym(number),), Load(mine[buf])) for buf in sums),
    )
    grid = For(number, parts, body, "par", loop.span, on="grid")
    rows.append(Region((grid,), parts, True, of.threads(body), own.frame, own.shared))
    k = of.fresh("i")
    added = tuple(Store(b, (), Load(held[b], (Sym(k),)), m, loop.span) for b, m in sums.items())
    behind = For(k, parts, added, "red", loop.span, on="block", partials=tuple(sums.items()))
    return rows, [behind]


def _fewest(of: Division, shape: Shape, together: bool) -> int:
    """How many iterations are worth a part of their own: those that give each thread of a block a few numbers."""
    alone, shared = of.work(shape.body)
    if together:
        return max(1, 2 * of.target.of_a_thread * of.target.threads // max(shared, 1))
    return max(of.target.of_a_thread * of.target.threads // max(alone + shared, 1), of.target.warp)


def sums_of_few(of: Division, shape: Shape, together: bool, own: Own) -> list[Stmt] | None:
    """A nest whose iterations are too few to keep a GPU busy, and long: the longest sum in each is cut into parts that
    have iterations of their own. None where that does not pay."""
    few = of.target.blocks * (1 if together else of.target.threads) // 4
    if own.frame or own.shared or isinstance(shape.total, int) and shape.total >= few:
        return None
    place = next((k for k, stmt in enumerate(shape.body) if is_long_sum(of, shape, k, together)), None)
    if place is None:
        return None
    rows: list[Stmt] = []
    loop = shape.body[place]
    assert isinstance(loop, For)
    inner = of.shape(loop)
    assert inner is not None
    sums, extent = inner.roles.sums, inner.total if together else loop.extent
    least = of.target.part_from * (of.target.threads // 4 if together else 1)
    wanted = dim_min(dim_min(floordiv(inner.total, least), extent), floordiv(few, dim_max(shape.total, 1)))
    parts = of.named("parts", dim_max(1, dim_min(of.target.parts_of_each, wanted)), rows)
    if parts == 1:
        return None
    length = of.named("length", floordiv(extent + parts - 1, parts), rows)
    number, count, at, k = of.fresh("number"), of.fresh("count"), of.fresh("i"), of.fresh("i")
    first = length * Sym(number)
    mine = {buf: local(of.fresh(buf.name), buf.dtype) for buf in sums}
    extents = tuple(outer.extent for outer in shape.loops)
    held = {buf: Buf(of.fresh(f"{buf.name}_parts"), buf.dtype, (of.target.parts_of_each, *extents)) for buf in sums}
    indices = tuple(Sym(outer.index) for outer in shape.loops)
    if together:
        each = unravelled(inner.body, first + Sym(at), inner.loops, of.fresh)
        part = For(at, Sym(count), each, "red", loop.span, on="block")
        part = replace(part, partials=tuple((mine[b], m) for b, m in sums.items()))
    else:
        each = unravelled(loop.body, first + Sym(at), [loop], of.fresh)
        part = For(at, Sym(count), each, "red", loop.span)
    body: tuple[Stmt, ...] = (
        Bind(count, Index(dim_min(length, extent - first)), loop.span),
        *(Store(mine[buf], (), identity(monoid, buf.dtype)) for buf, monoid in sums.items()),
        with_storages(part, mine),
        *(Store(held[buf], (Sym(number), *indices), Load(mine[buf])) for buf in sums),
    )
    threads = of.threads(body) if together else of.target.threads
    grid = For(number, parts, (shape.nest(body, "grid"),), "par", loop.span, on="grid")
    for buf in held.values():
        if symbols_of(buf.dims) - of.sizes:  # its size is known only here
            buf.dynamic, buf.space = True, "room"
            rows.append(Grow((buf,), buf.dims[0]))
    rows.append(Region((grid,), parts * shape.total, together, threads))
    added = tuple(Store(b, (), Load(held[b], (Sym(k), *indices)), m, loop.span) for b, m in sums.items())
    combined = For(k, parts, added, "red", loop.span)
    if together:
        combined = replace(combined, on="block", partials=tuple(sums.items()))
    rest = (*shape.body[:place], combined, *shape.body[place + 1 :])
    rest = of.in_block(rest) if together else rest
    nest = shape.nest(rest, "grid")
    rows.append(Region((nest,), shape.total, together, of.threads(rest) if together else of.target.threads))
    return rows


def is_long_sum(of: Division, shape: Shape, place: int, together: bool) -> bool:
    """Whether a statement of an iteration is a sum that is worth cutting, and needs nothing that the iteration does."""
    loop = shape.body[place]
    if not isinstance(loop, For) or (inner := of.shape(loop)) is None or not inner.roles.sums:
        return False
    least = 2 * of.target.part_from * (of.target.threads // 4 if together else 1)
    if isinstance(inner.total, int) and inner.total < least or together and not isinstance(inner.total, int):
        return False
    if any(buf.dims for buf in inner.roles.private):
        return False
    inside = list(walk((loop,)))
    outer = frozenset(l.index for l in shape.loops)
    begun = {s.buf.name for s in shape.body[:place] if isinstance(s, Store)}
    begun |= frozenset().union(*(bound_inside(s) for s in shape.body[:place]))
    read, _ = read_before_given((loop,), outer)
    stored = {b for s in walk(shape.body[:place]) for b in touched(s)}
    return not (
        symbols_of(l.extent for l in inner.loops) & (outer | begun)
        or (read - {buf.name for buf in inner.roles.sums}) & begun
        or any(load.buf in stored and load.buf.dims for s in inside for load in loaded(s))
        or any(index_symbols(load.index) & begun for s in inside for load in loaded(s))
    )


__all__ = ["Division", "is_long_sum", "sums_of_few", "whole_sum"]
