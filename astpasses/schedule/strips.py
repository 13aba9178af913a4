"""Loops that read an array across its rows go over strips as wide as what memory gives at a time.

In: a function whose loops are shared among threads. Out: the same, where loops in one another of independent iterations
store along memory, and read another array across it. Example, of `y = x.T` in double precision:

    for i in range(m):                      for s in range(n//8):
        for j in range(n):                      for i in range(m):
            y[i, j] = x[j, i]       ->              for j in range(8): y[i, 8*s + j] = x[8*s + j, i]
                                            for i in range(m):
                                                for j in range(n%8): y[i, n - n%8 + j] = x[n - n%8 + j, i]

A strip reads eight rows side by side, and stores a line of the cache at a time; a whole row would have read a line for
each of its elements, and found none of them in the cache when the next row wants its neighbours. This is
strip-mining and interchange (Wolfe, "More iteration space tiling", 1989).
"""

from __future__ import annotations

from metaphrase.core.dims import DimLike, Sym, symbols
from metaphrase.core.scalars import CHEAP

from .dependence import slope
from .nest import E, Fn, For, Stmt, Store, dearest, loaded
from .rewrite import rename_statement, replaced
from .target import Target


def in_strips(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such loops cut."""

    def cut(stmt: Stmt) -> tuple[Stmt, ...] | None:
        loops = _perfect(stmt)
        across = _across(loops, target)
        return None if across is None else _cut(loops, across, fn, target)

    return fn.body if target.threads else replaced(fn.body, cut)


def _perfect(stmt: Stmt) -> list[For]:
    """The independent loops in one another that begin with a statement, the last of which only stores."""
    loops: list[For] = []
    while isinstance(stmt, For) and stmt.kind == "par" and stmt.parts is None:
        loops.append(stmt)
        if len(stmt.body) != 1 or not isinstance(stmt.body[0], For):
            return loops if all(isinstance(s, Store) and s.monoid is None for s in stmt.body) else []
        stmt = stmt.body[0]
    return []


def _across(loops: list[For], target: Target) -> For | None:
    """The loop along which an array lies that the innermost one reads across; None where there is none, or more is done
    than to move elements, or all that is stored does not lie along the innermost one."""
    if len(loops) < 2 or any(symbols(loop.extent) & {outer.index for outer in loops} for loop in loops):
        return None
    *outer, inner = loops
    stores = _stores(inner)
    if any(not s.index or _slope(s.index[-1], inner) != 1 or dearest(s) > CHEAP for s in stores):
        return None
    read = [load.index for s in stores for load in loaded(s) if any(_slope(entry, inner) for entry in load.index[:-1])]
    ways = [loop for loop in outer for index in read if _slope(index[-1], loop) == 1]
    return None if not ways or any(_is_short(loop, _width(inner, target)) for loop in (inner, ways[0])) else ways[0]


def _stores(loop: For) -> list[Store]:
    return [stmt for stmt in loop.body if isinstance(stmt, Store)]


def _slope(entry: object, loop: For) -> int | None:
    """By how much an index entry moves with a loop; None where that is no constant, or nobody knows."""
    return None if isinstance(entry, E) else slope(entry, loop.index)  # type: ignore[arg-type]


def _is_short(loop: For, width: int) -> bool:
    return isinstance(loop.extent, int) and loop.extent < 2 * width


def _width(loop: For, target: Target) -> int:
    """The elements of a strip: those of one line of the cache."""
    return max(4, min(16, target.line // max(s.buf.dtype.itemsize for s in _stores(loop))))


def _cut(loops: list[For], across: For, fn: Fn, target: Target) -> tuple[Stmt, ...]:
    inner, names, span = loops[-1], fn.names, loops[0].span
    width, extent = _width(inner, target), inner.extent
    strips = extent // width
    strip = names.fresh(inner.index)

    def nest(order: list[For], first: DimLike, count: DimLike) -> Stmt:
        last = names.fresh(inner.index)
        fn.facts.learn(last, 0, count - 1)
        body = tuple(rename_statement(s, {inner.index: first + Sym(last)}) for s in inner.body)
        stmt: Stmt = For(last, count, body, "par", span)
        for loop in reversed(order):
            index = names.fresh(loop.index)
            fn.facts.learn(index, 0, loop.extent - 1)
            stmt = For(index, loop.extent, (rename_statement(stmt, {loop.index: Sym(index)}),), "par", loop.span)
        return stmt

    outer = [loop for loop in loops[:-1] if loop is not across]
    rows = [nest([For(strip, strips, (), "par", span), *outer, across], width * Sym(strip), width)]
    if extent != width * strips:
        rows.append(nest(loops[:-1], width * strips, extent - width * strips))
    return tuple(rows)


__all__ = ["in_strips"]
