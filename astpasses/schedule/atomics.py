"""Loops whose iterations meet only where they combine into arrays, on a GPU: by atomic operations, in any order.

In: the statements of a function. Out: the same, with such stores atomic, where their order is not seen: integers, and
the floats of a target that allows it. Example (a sparse matrix's transposed product, with `fastmath`):

    for i in range(n):                                       for i in range(n):        # on the grid
        for k in range(first[i], first[i + 1]):      ->          for k in range(first[i], first[i + 1]):
            y[cols[k]] += v[k]*x[i]                                  atomically: y[cols[k]] += v[k]*x[i]

What single stores at places of data are, which loops make one after the other, is in scatters.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from .independence import Independence
from .nest import Buf, For, Stmt, Store
from .target import Target


class Known(Protocol):
    """What the pass that divides statements among kernels knows (kernels.py)."""

    target: Target
    independent: Independence

    def all_work(self, stmt: Stmt) -> int: ...


def in_any_order(of: Known, block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with such loops ready to be divided."""
    rows: list[Stmt] = []
    for stmt in block:
        roles = None
        if isinstance(stmt, For) and stmt.kind != "par" and of.all_work(stmt) >= of.target.grid_work:
            roles = of.independent.roles(stmt, counting=True)
        if isinstance(stmt, For) and roles is not None and roles.counts:
            body = tuple(_atomic(s, roles.counts) for s in stmt.body)
            stmt = replace(stmt, body=body, kind="red", private=None)
        elif stmt.blocks:
            stmt = stmt.with_blocks(tuple(in_any_order(of, inner) for inner in stmt.blocks))
        rows.append(stmt)
    return tuple(rows)


def _atomic(stmt: Stmt, bufs: set[Buf]) -> Stmt:
    if isinstance(stmt, Store) and stmt.buf in bufs:
        return replace(stmt, atomic=True)
    return stmt.with_blocks(tuple(tuple(_atomic(s, bufs) for s in b) for b in stmt.blocks)) if stmt.blocks else stmt


__all__ = ["in_any_order"]
