"""Kernels that do the same iterations one after the other, as one kernel.

In: the statements of a host's block. Out: the same, where an iteration of the second kernel needs nothing of the first
but what the same iteration of it left. Example:

    for i in range(n): t[i] = 2*x[i]               for i in range(n):
    for i in range(n):                      ->         t[i] = 2*x[i]
        while y[i] < t[i]: ...                         while y[i] < t[i]: ...
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from metaphrase.core.dims import Sym

from .join import of_one_iteration
from .launches import Region
from .nest import Bind, Buf, Check, For, Grow, Stmt, Store, loaded, touched, walk
from .rewrite import rename_statement


def joined(rows: Iterable[Stmt]) -> list[Stmt]:
    """The statements with neighbours joined."""
    made: list[Stmt] = []
    for stmt in rows:
        both = _joined(made[-1], stmt) if made and isinstance(made[-1], Region) and isinstance(stmt, Region) else None
        if both is not None:
            made[-1] = both
        else:
            made.append(stmt)
    return made


def _joined(a: Region, b: Region) -> Region | None:
    if a.together or b.together or a.count is None or a.count != b.count:
        return None
    (*of_a, last_a), (*of_b, last_b) = a.body, b.body  # numbers that a thread works out before its iterations
    if not all(isinstance(s, (Store, Bind)) for s in (*of_a, *of_b)) or _touched(a.body) & _loaded(of_b):
        return None
    # Which failure comes first, and what runs again for want of memory, is a kernel's own matter.
    if any(isinstance(s, (Check, Grow)) for region in (a, b) for s in walk(region.body)):
        return None
    first, second = _loops(last_a), _loops(last_b)
    if [loop.extent for loop in first] != [loop.extent for loop in second]:
        return None
    here = {theirs.index: Sym(ours.index) for ours, theirs in zip(first, second)}
    inner = tuple(rename_statement(s, here) for s in second[-1].body)
    if not of_one_iteration(first[-1].body, inner, tuple(Sym(loop.index) for loop in first)):
        return None
    body: tuple[Stmt, ...] = (*first[-1].body, *inner)
    for loop in reversed(first):
        body = (replace(loop, body=body),)
    frame = tuple(dict.fromkeys((*a.frame, *b.frame)))
    return replace(a, body=(*of_a, *of_b, *body), frame=frame)


def _touched(block: Iterable[Stmt]) -> set[Buf]:
    return {buf for s in walk(tuple(block)) for buf in touched(s)}


def _loaded(block: Iterable[Stmt]) -> set[Buf]:
    return {load.buf for s in block for load in loaded(s)}


def _loops(stmt: Stmt) -> list[For]:
    """The loops of the grid in one another."""
    loops: list[For] = []
    while isinstance(stmt, For) and stmt.on == "grid":
        loops.append(stmt)
        if len(stmt.body) != 1:
            break
        stmt = stmt.body[0]
    return loops


__all__ = ["joined"]
