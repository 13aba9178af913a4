"""Rounds of a loop around an innermost one are done several at a time: what they share is loaded and stored once.

In: a function whose loops run along memory. Out: the same, where iterations of the innermost loop have nothing to do
with one another, and store into what the next round stores into again. Example:

    for k in range(m):                            for k in range(m // 4):
        t = a[i, k]                                   t_1 = a[i, 4*k]; t_2 = a[i, 4*k + 1]; ...
        for j in range(n):                ->          for j in range(n):
            c[j] = c[j] + t*b[k, j]                       c[j] = c[j] + t_1*b[4*k, j]
                                                          c[j] = c[j] + t_2*b[4*k + 1, j]
                                                          ...
                                                  for k in range(m % 4): ...

Rounds that do not depend on one another, and add up a row each, are done so, too: while one sum waits for its last
addition the others go on, and what all rows are multiplied by is loaded once (a matrix times a vector).

Each element sees the same operations in the same order: results are the same to the bit. This is unroll-and-jam
(Callahan, Cocke, Kennedy, "Estimating interlock and improving balance for pipelined architectures", 1988).
"""

from __future__ import annotations

from metaphrase.core.dims import DimLike, Sym, floordiv, symbols
from metaphrase.core.scalars import MEDIUM
from metaphrase.core.types import i64

from .dependence import in_step
from .lifetimes import Lifetimes
from .nest import Fn, For, Stmt, Store, bound_inside, dearest, index_symbols, loaded, local, touched, walk
from .place import accesses_of
from .rewrite import rename_statement, with_storages
from .target import Target
from .vectors import partials


def jam(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such rounds done several at a time."""
    if target.together < 2 or not any(
        isinstance(s, For) and (_may_be_rounds(s, target) or _may_be_sums(s, target)) for s in walk(fn.body)
    ):
        return fn.body
    lifetimes = Lifetimes(fn.body)

    def jammed(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        rows: list[Stmt] = []
        for stmt in block:
            if isinstance(stmt, For) and (
                _may_be_rounds(stmt, target)
                and _may_be_together(stmt, lifetimes)
                or _may_be_sums(stmt, target)
                and _are_apart(stmt, lifetimes)
            ):
                rows += _together(stmt, fn, target.together)
            else:
                rows.append(stmt.with_blocks(tuple(map(jammed, stmt.blocks))) if stmt.blocks else stmt)
        return tuple(rows)

    return jammed(fn.body)


def _may_be_rounds(loop: For, target: Target) -> bool:
    """Whether a loop gives variables values and sweeps, and does a few cheap operations: beside a division or a call of
    a function, loads and stores are nothing."""
    *before, sweep = loop.body or (None,)
    if not isinstance(sweep, For) or loop.parts is not None or sweep.parts is not None:
        return False
    short = any(isinstance(x.extent, int) and x.extent < target.vector_from for x in (loop, sweep))
    stores = all(isinstance(s, Store) and not s.buf.dims and s.buf.dtype != i64 for s in before)
    simple = all(isinstance(s, Store) for s in sweep.body) and len(loop.body) + len(sweep.body) <= 2 * target.together
    return simple and stores and not short and all(dearest(s) < MEDIUM for s in walk(loop.body))


def _may_be_together(loop: For, lifetimes: Lifetimes) -> bool:
    """Whether elements may go through several rounds, one behind the other, and what they store into is the same."""
    *before, sweep = loop.body
    assert isinstance(sweep, For)
    variables = dict.fromkeys(b for s in walk(loop.body) for b in touched(s) if not b.dims)
    inner = {loop.index, *(b.name for b in variables)}
    if symbols(sweep.extent) & inner or not all(lifetimes.private(b.name, loop) for b in variables):
        return False
    if not all(lifetimes.private(b.name, sweep) for s in sweep.body for b in touched(s) if not b.dims):
        return False
    places = [a for s in sweep.body for a in accesses_of(s) if a.buf.dims]
    stored = {a.buf for a in places if a.write}
    if any(load.buf in stored for s in before for load in loaded(s)) or bound_inside(sweep) - {sweep.index}:
        return False
    for a in places:
        for b in places if a.write else ():
            if a.buf is b.buf and not in_step(a.index, b.index, sweep.index, sweep.extent, frozenset(inner)):
                return False
    return any(a.write and loop.index not in index_symbols(a.index) for a in places)


def _may_be_sums(loop: For, target: Target) -> bool:
    """Whether the iterations of a loop may come in any order, and add up rows that are not long: a long sum has several
    partial results by itself (lanes.py)."""
    row, *others = [s for s in loop.body if s.blocks] or (None,)
    if others or loop.kind != "par" or loop.parts is not None:
        return False
    if isinstance(loop.extent, int) and loop.extent < target.together:
        return False
    if not isinstance(row, For) or row.kind != "red" or row.parts is not None or not isinstance(row.extent, int):
        return False
    simple = all(isinstance(s, Store) and s.buf.dtype != i64 for s in (*loop.body, *row.body) if s is not row)
    few = len(loop.body) + len(row.body) <= 2 * target.together
    cheap = all(dearest(s) < MEDIUM for s in row.body)
    return simple and few and cheap and bool(partials(row)) and target.vector_from <= row.extent < target.sums_from


def _are_apart(loop: For, lifetimes: Lifetimes) -> bool:
    """Whether iterations have nothing in common but what they read."""
    stored = dict.fromkeys(b for s in walk(loop.body) for b in touched(s))
    variables = [b for b in stored if not b.dims]
    arrays = [a for s in walk(loop.body) for a in accesses_of(s) if a.write and a.buf.dims]
    own = all(lifetimes.private(b.name, loop) for b in variables)
    return own and all(loop.index in index_symbols(a.index) for a in arrays)


def _together(loop: For, fn: Fn, count: int) -> list[Stmt]:
    place = next(k for k, s in enumerate(loop.body) if s.blocks)
    before, sweep, behind = loop.body[:place], loop.body[place], loop.body[place + 1 :]
    assert isinstance(sweep, For)
    number, blocks = fn.names.fresh("i"), floordiv(loop.extent, count)
    variables = dict.fromkeys(b for s in walk(loop.body) for b in touched(s) if not b.dims)

    def rounds(starts: list[DimLike]) -> tuple[Stmt, ...]:
        """What some rounds do, and one sweep for all of them."""
        first: list[Stmt] = []
        inside: list[Stmt] = []
        last: list[Stmt] = []
        index = fn.names.fresh("i")
        for at in starts:
            own = {b: local(fn.names.fresh(b.name), b.dtype) for b in variables}
            here = {loop.index: at, sweep.index: Sym(index)}
            first += [with_storages(rename_statement(s, here), own) for s in before]
            inside += [with_storages(rename_statement(s, here), own) for s in sweep.body]
            last += [with_storages(rename_statement(s, here), own) for s in behind]
        kind = "red" if sweep.kind == "red" else "par"
        return (*first, For(index, sweep.extent, tuple(inside), kind, sweep.span), *last)

    several = rounds([count * Sym(number) + k for k in range(count)])
    rows: list[Stmt] = [For(number, blocks, several, loop.kind, loop.span)]
    rest = loop.extent - count * blocks
    if rest != 0:
        rows.append(For(loop.index, rest, rounds([count * blocks + Sym(loop.index)]), loop.kind, loop.span))
    return rows


__all__ = ["jam"]
