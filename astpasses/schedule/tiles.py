"""Loops over the grid that read an array across its rows: a block goes over a tile, which it reads along memory first.

In: loops in one another, of independent iterations. Out: the kernel's region; None where nothing is read across.
Example, of `y = x.T + 1`:

    for i in range(n):            for ti in range(-(-n // 32)):                                    # on the grid
        for j in range(m):            for tj in range(-(-m // 32)):                                # on the grid
            y[i, j] = x[j, i] + 1         for a in 32: for b in 32: tile[a, b] = x[32*tj + a, 32*ti + b]
                                          for a in 32: for b in 32: y[32*ti + a, 32*tj + b] = tile[b, a] + 1

Neighbouring threads then read and store neighbouring elements, where each would have had a row of its own: memory gives
32 bytes for each element that is asked for (Ruetsch and Micikevicius, "Optimizing matrix transpose in CUDA", 2009). A
row of a tile has one element more than it needs, so that a column lies in as many banks of the shared memory as it has
rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from metaphrase.core.dims import DimLike, Sym, floordiv, substitute, symbols_of

from .launches import Region
from .nest import Bind, Buf, E, For, If, Index, Load, Map, Op, Stmt, Store, index_symbols, loaded, operation
from .rewrite import map_expression, map_statement, rename_statement
from .shapes import Shape
from .target import Target

_TRUTH = np.dtype(bool)


def along_memory(shape: Shape) -> Shape:
    """The loops in the order in which the last one runs along the arrays that are stored into."""
    stores = [stmt for stmt in shape.body if isinstance(stmt, Store) and stmt.buf.dims]
    if not stores or not all(isinstance(stmt, (Store, Bind)) for stmt in shape.body):
        return shape
    last = [loop for loop in shape.loops if all(stmt.index[-1] == Sym(loop.index) for stmt in stores)]
    if not last or last[0] is shape.loops[-1]:
        return shape
    return Shape([*(loop for loop in shape.loops if loop is not last[0]), last[0]], shape.body, shape.roles)


def tiled(shape: Shape, target: Target, fresh: Callable[[str], str]) -> Region | None:
    """The region in which a block does a tile of the last two loops."""
    if len(shape.loops) < 2 or isinstance(shape.total, int) and shape.total < target.wide_from:
        return None
    *around, rows, columns = shape.loops
    if symbols_of([rows.extent, columns.extent]) & {loop.index for loop in shape.loops}:
        return None
    if not all(isinstance(stmt, (Store, Bind)) for stmt in shape.body):
        return None
    stores = [stmt for stmt in shape.body if isinstance(stmt, Store) and stmt.buf.dims]
    if any(stmt.index[-1] != Sym(columns.index) for stmt in stores) or not stores:
        return None
    stored = {stmt.buf for stmt in stores}
    loads = dict.fromkeys(
        (load.buf, load.index) for stmt in shape.body for load in loaded(stmt) if load.buf not in stored
    )
    across = [one for one in loads if _is_across(*one, rows.index, columns.index)]
    side = target.tile
    bytes_ = sum(buf.dtype.itemsize for buf, _ in across) * side * (side + 1)
    if not across or bytes_ > target.shared_bytes:
        return None
    return _region(shape, across, side, target, fresh)


def _is_across(buf: Buf, index: Map, i: str, j: str) -> bool:
    """Whether an array is read along the outer loop where it lies close, and along the inner one in steps."""
    if buf.space in ("frame", "shared", "stack") or any(isinstance(entry, E) for entry in index) or not index:
        return False
    *others, last = index
    step = substitute(last, {i: Sym(i) + 1}) - last  # type: ignore[arg-type,operator]
    return step in (1, -1) and j not in index_symbols((last,)) and j in index_symbols(tuple(others))


def _region(
    shape: Shape, across: list[tuple[Buf, Map]], side: int, target: Target, fresh: Callable[[str], str]
) -> Region:
    *around, rows, columns = shape.loops
    i, j, span = rows.index, columns.index, rows.span
    tile_i, tile_j = fresh(i), fresh(j)
    places: dict[tuple[Buf, Map], Buf] = {one: Buf(fresh("tile"), one[0].dtype, (side, side + 1)) for one in across}
    exact = all(isinstance(e, int) and e % side == 0 for e in (rows.extent, columns.extent))

    def over_tile(body: Callable[[DimLike, DimLike], tuple[Stmt, ...]], flipped: bool) -> For:
        """Two loops that the block divides; of what lies beyond the arrays nothing is done."""
        a, b = fresh("a"), fresh("b")
        first, second = (Sym(b), Sym(a)) if flipped else (Sym(a), Sym(b))
        here_i, here_j = side * Sym(tile_i) + first, side * Sym(tile_j) + second
        inside = body(first, second)
        inside = tuple(rename_statement(s, {i: here_i, j: here_j}) for s in inside)
        if not exact:
            within = [
                Op("lt", (Index(here), Index(e)), _TRUTH)
                for here, e in ((here_i, rows.extent), (here_j, columns.extent))
            ]
            inside = (If(operation("and", *within, dtype=_TRUTH), inside, (), span),)
        for name in (b, a):
            inside = (For(name, side, inside, "par", span, (), on="block"),)
        return inside[0]  # type: ignore[return-value]

    def read(first: DimLike, second: DimLike) -> tuple[Stmt, ...]:
        # A row of the tile is one of the array: `second` counts those.
        return tuple(Store(tile, (second, first), Load(*one), None, span) for one, tile in places.items())

    def done(first: DimLike, second: DimLike) -> tuple[Stmt, ...]:
        def expression(e: E) -> E:
            def of_tile(x: E) -> E | None:
                tile = places.get((x.buf, x.index)) if isinstance(x, Load) else None
                return None if tile is None else Load(tile, (second, first))

            return map_expression(e, of_tile)

        return tuple(map_statement(s, expression, lambda buf, index: (buf, index)) for s in shape.body)

    body: tuple[Stmt, ...] = (over_tile(read, True), over_tile(done, False))
    counts = [floordiv(loop.extent + side - 1, side) for loop in (rows, columns)]
    loops = [*around, *(For(name, n, (), "par", span) for name, n in zip((tile_i, tile_j), counts))]
    tiles = Shape(loops, (), shape.roles)
    return Region((tiles.nest(body, "grid"),), tiles.total, True, target.threads, (), tuple(places.values()))


__all__ = ["along_memory", "tiled"]
