"""Loops that store into arguments and may fail, on a GPU: all their checks are made before they store anything.

In: the statements of a function. Out: the same, with such a loop as two, where no check asks for what the loop stores.
Example:

    for i in range(n):                          for i in range(n):
        check(0 <= k[i] < m)            ->          check(0 <= k[i] < m)
        y[i] = x[k[i]]                          for i in range(n):
                                                    y[i] = x[k[i]]

What the caller sees of a loop that fails has to be what was stored before the failure, or a part of it: with checks
among the stores no two iterations could run side by side. So a loop that fails has stored nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from .nest import Bind, Check, For, If, Stmt, Store, While, loaded, walk
from .slices import leading_to
from .target import Target


class Known(Protocol):
    """What the pass that divides statements among kernels knows (kernels.py)."""

    target: Target


def checks_first(of: Known, block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with such loops made two."""
    rows: list[Stmt] = []
    for stmt in block:
        parts = _parts(of, stmt) if isinstance(stmt, For) else None
        if parts is not None:
            rows += parts
        elif stmt.blocks:
            rows.append(stmt.with_blocks(tuple(checks_first(of, inner) for inner in stmt.blocks)))
        else:
            rows.append(stmt)
    return tuple(rows)


def _parts(of: Known, loop: For) -> tuple[Stmt, ...] | None:
    """The loop that checks, and the one that stores."""
    inside = list(walk(loop.body))
    stored = {s.buf for s in inside if isinstance(s, Store) and not s.buf.is_scalar}
    if not any(isinstance(s, Check) for s in inside) or not any(buf.space == "arg" for buf in stored):
        return None
    if not all(isinstance(s, (Bind, Check, For, If, Store, While)) for s in inside):
        return None
    if isinstance(loop.extent, int) and loop.extent < of.target.block_from:
        return None
    checks = leading_to(loop.body, lambda s: isinstance(s, Check))
    if any(load.buf in stored for s in walk(checks) for load in loaded(s)):
        return None
    return replace(loop, body=checks), replace(loop, body=_without_checks(loop.body))


def _without_checks(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    rows = (s for s in block if not isinstance(s, Check))
    return tuple(s.with_blocks(tuple(map(_without_checks, s.blocks))) if s.blocks else s for s in rows)


__all__ = ["checks_first"]
