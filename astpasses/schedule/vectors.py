"""Reductions whose iterations run side by side: each lane of a vector has a part of the result.

In: the final tree. Out: the same; an innermost loop of kind "red" says which variables its iterations only combine
into, and how. A target makes of it what it has: a pragma before a loop in C (emit/cython_simd.py). NumPy promises no
order for its reductions; a user's own loop is no reduction.

    for i in range(n): s += x[i]*y[i]       its partials: ((s, "sum"),)
"""

from __future__ import annotations

from dataclasses import replace

from .dependence import pinned
from .nest import Bind, Buf, For, Map, Stmt, Store, loaded
from .target import Target


def in_vectors(block: tuple[Stmt, ...], target: Target) -> tuple[Stmt, ...]:
    """Mark every loop that it fits."""
    rows: list[Stmt] = []
    for stmt in block:
        if stmt.blocks:
            stmt = stmt.with_blocks(tuple(in_vectors(b, target) for b in stmt.blocks))
        if isinstance(stmt, For) and stmt.kind == "red" and not _is_short(stmt, target) and (parts := partials(stmt)):
            stmt = replace(stmt, partials=tuple(parts.items()))
        rows.append(stmt)
    return tuple(rows)


def _is_short(loop: For, target: Target) -> bool:
    return isinstance(loop.extent, int) and loop.extent < target.vector_from


def partials(loop: For) -> dict[Buf, str]:
    """The variables that an innermost loop combines into, and does nothing else with; none if that is not all, but for
    stores into an element of its own for each iteration."""
    found: dict[Buf, str] = {}
    places: dict[Buf, Map] = {}
    for stmt in loop.body:
        if not isinstance(stmt, (Store, Bind)):
            return {}
        if not isinstance(stmt, Store) or stmt.monoid is None:
            continue
        if stmt.buf.is_scalar:
            same = found.setdefault(stmt.buf, stmt.monoid) == stmt.monoid
        else:
            same = places.setdefault(stmt.buf, stmt.index) == stmt.index
        if not same:
            return {}
    if not all(any(pinned(entry, loop.index, frozenset()) for entry in index) for index in places.values()):
        return {}
    loads = [load for s in loop.body for load in loaded(s)]
    assigned = {s.buf for s in loop.body if isinstance(s, Store) and s.monoid is None}
    if any(load.index != places.get(load.buf, load.index) for load in loads) or assigned & places.keys():
        return {}
    return {} if ({load.buf for load in loads} | assigned) & found.keys() else found


__all__ = ["in_vectors", "partials"]
