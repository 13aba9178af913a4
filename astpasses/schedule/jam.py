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

from collections.abc import Iterable

from metaphrase.core.dims import DimLike, Sym, floordiv, symbols
from metaphrase.core.facts import Facts
from metaphrase.core.scalars import MEDIUM
from metaphrase.core.types import i64

from .dependence import in_step
from .independence import Independence
from .lifetimes import Lifetimes
from .nest import Buf, Fn, For, Stmt, Store, bound_inside, dearest, index_symbols, loaded, local, touched, walk
from .place import accesses_of
from .rewrite import rename_statement, with_storages
from .target import Target
from .vectors import partials


def jam(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such rounds done several at a time."""
    if target.together < 2 or not any(
        isinstance(s, For) and (_may_be_rounds(s, target) or _may_be_rows(s, target)) for s in walk(fn.body)
    ):
        return fn.body
    independence = Independence(fn, target, Facts(fn.facts.ranges))

    def jammed(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        rows: list[Stmt] = []
        for stmt in block:
            own = _of_a_round(stmt, target, independence) if isinstance(stmt, For) else None
            if own is not None:
                rows += _together(stmt, own, fn, target.together)  # type: ignore[arg-type]
            else:
                rows.append(stmt.with_blocks(tuple(map(jammed, stmt.blocks))) if stmt.blocks else stmt)
        return tuple(rows)

    return jammed(fn.body)


def _of_a_round(loop: For, target: Target, independence: Independence) -> list[Buf] | None:
    """The variables that each round of a loop has for itself; None where rounds stay one by one."""
    if _may_be_rounds(loop, target) and _may_be_together(loop, independence.lifetimes):
        return list(dict.fromkeys(b for s in walk(loop.body) for b in touched(s) if not b.dims))
    roles = independence.roles(loop, in_order=True) if _may_be_rows(loop, target) else None
    if roles is None or roles.counts or any(b.dims for b in roles.private):
        return None
    return sorted(roles.private, key=lambda b: b.name)


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


def _may_be_rows(loop: For, target: Target) -> bool:
    """Whether the iterations of a loop may come in any order, and add up rows that are not long: a long sum has several
    partial results by itself (lanes.py)."""
    inner = [s for s in loop.body if isinstance(s, For)]
    if loop.parts is not None or isinstance(loop.extent, int) and loop.extent < target.together:
        return False
    statements = [x for s in loop.body for x in (s.body if isinstance(s, For) else (s,))]
    if not all(isinstance(s, Store) and s.buf.dtype != i64 for s in statements):
        return False
    if len(inner) + len(statements) > 2 * target.together or any(dearest(s) >= MEDIUM for r in inner for s in r.body):
        return False
    sums = [row for row in inner if row.kind == "red"]
    if not sums or any({*partials(row).values()} != {"sum"} for row in sums):
        return False
    if any(row.kind == "seq" or row.parts for row in inner):
        return False
    loads = ((row, load) for row in sums for s in row.body for load in loaded(s))
    own = {row for row, load in loads if loop.index in index_symbols(load.index)}
    lengths = [(row.extent, row.kind) for row in inner if isinstance(row.extent, int)]
    fits = all(target.sum_from <= n and (kind != "red" or n < target.sums_from) for n, kind in lengths)
    return fits and len(lengths) == len(inner) and len(own) == len(sums)


def _together(loop: For, variables: list[Buf], fn: Fn, count: int) -> list[Stmt]:
    """The loop with some rounds at a time, and one for those that are left."""
    number, blocks = fn.names.fresh("i"), floordiv(loop.extent, count)

    def rounds(starts: list[DimLike]) -> tuple[Stmt, ...]:
        """What some rounds do, statement by statement, and each sweep for all of them."""
        own = [{b: local(fn.names.fresh(b.name), b.dtype) for b in variables} for _ in starts]

        def of_all(stmts: Iterable[Stmt], values: dict[str, DimLike]) -> list[list[Stmt]]:
            return [
                [with_storages(rename_statement(s, {loop.index: at, **values}), mine) for s in stmts]
                for at, mine in zip(starts, own)
            ]

        made: list[Stmt] = []
        straight: list[Stmt] = []  # what a round does up to a sweep, it does at once
        for stmt in (*loop.body, None):
            if stmt is not None and not isinstance(stmt, For):
                straight.append(stmt)
                continue
            made += [s for row in of_all(straight, {}) for s in row]
            straight = []
            if stmt is not None:
                index = fn.names.fresh("i")
                inside = [s for row in of_all(stmt.body, {stmt.index: Sym(index)}) for s in row]
                made.append(For(index, stmt.extent, tuple(inside), "red" if stmt.kind == "red" else "par", stmt.span))
        return tuple(made)

    several = rounds([count * Sym(number) + k for k in range(count)])
    rows: list[Stmt] = [For(number, blocks, several, loop.kind, loop.span)]
    rest = loop.extent - count * blocks
    if rest != 0:
        rows.append(For(loop.index, rest, rounds([count * blocks + Sym(loop.index)]), loop.kind, loop.span))
    return rows


__all__ = ["jam"]
