"""Reductions whose iterations run side by side: each lane of a vector has a part of the result.

In: the final tree. Out: the same; an innermost loop of kind "red" says which variables its iterations only combine
into, and how. A target makes of it what it has: a pragma before a loop in C (emit/cython_simd.py). NumPy promises no
order for its reductions; a user's own loop is no reduction.

    for i in range(n): s += x[i]*y[i]       its partials: ((s, "sum"),)
"""

from __future__ import annotations

from dataclasses import replace

from .nest import Bind, Buf, For, Stmt, Store, loaded
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
    """The variables that an innermost loop combines into, and does nothing else with; none if that is not all."""
    found: dict[Buf, str] = {}
    for stmt in loop.body:
        if not isinstance(stmt, (Store, Bind)):
            return {}
        if isinstance(stmt, Store) and stmt.monoid is not None:
            if not stmt.buf.is_scalar or found.setdefault(stmt.buf, stmt.monoid) != stmt.monoid:
                return {}
    read = {load.buf for s in loop.body for load in loaded(s)}
    assigned = {s.buf for s in loop.body if isinstance(s, Store) and s.monoid is None}
    return {} if (read | assigned) & found.keys() else found


__all__ = ["in_vectors", "partials"]
