"""Sweeps beside a loop whose iterations wait for each other become part of it, where rounds of all of them can then run
side by side (waves.py).

In: the fused tree, in which nothing joins such a loop. Out: the same, where a loop's body has loops of equal lengths
behind one another, the last of which waits, and an iteration needs nothing that a later one of a loop before it leaves:

    for i in range(1, n):                               for i in range(1, n):
        for j in range(m): t[j] = y[i - 1, j + 1]           for j in range(m):
        for j in range(m):                        ->            t[j] = y[i - 1, j + 1]
            y[i, j + 1] = (y[i, j] + t[j])/3                    y[i, j + 1] = (y[i, j] + t[j])/3

Each element sees the same operations in the same order. By themselves the sweeps would be vectors, but rounds could not
begin before the ones in front of them have ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from metaphrase.core.dims import Sym
from metaphrase.core.facts import Facts

from .dependence import disjoint, distance
from .lifetimes import Lifetimes
from .nest import Fn, For, Stmt, bound_inside, touched, walk
from .place import accesses_of
from .rewrite import rename_statement
from .target import Target
from .waves import waiting, wave_of


def in_chains(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such loops joined."""
    facts = Facts(fn.facts.ranges)
    for stmt in walk(fn.body):
        if isinstance(stmt, For):
            facts.learn(stmt.index, 0, stmt.extent - 1)
    whole: dict[Stmt, For] = {}  # of each loop in whose body loops are joined the one that was there

    def joined(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        rows = []
        for stmt in block:
            stmt = stmt.with_blocks(tuple(map(joined, stmt.blocks))) if stmt.blocks else stmt
            one = _chained(stmt, facts, target) if isinstance(stmt, For) else None
            if one is not None and waiting(one, target) is not None:
                whole[one] = stmt  # type: ignore[assignment]
                stmt = one
            rows.append(stmt)
        return tuple(rows)

    body = joined(fn.body)
    if not whole:
        return fn.body
    lifetimes = Lifetimes(body)
    kept = {s for s in whole if wave_of(s, lifetimes, facts, target) is not None}  # type: ignore[arg-type]

    def settled(block: Iterable[Stmt]) -> tuple[Stmt, ...]:
        rows = (s if s in kept else whole.get(s, s) for s in block)
        return tuple(s.with_blocks(tuple(map(settled, s.blocks))) if s.blocks and s not in kept else s for s in rows)

    return settled(body)


def _chained(loop: For, facts: Facts, target: Target) -> For | None:
    """The loop with those sweeps of its body joined that stand in front of one whose iterations may wait, and that one;
    None where there are none, or one of them has to be whole before the next begins."""
    first = next((k for k, s in enumerate(loop.body) if s.blocks), len(loop.body))
    last = next((k for k, s in enumerate(loop.body) if isinstance(s, For) and s.kind == "seq"), 0)
    chain = [s for s in loop.body[first : last + 1] if isinstance(s, For)]
    few = sum(len(s.body) for s in chain) <= 4 * target.together
    if len(chain) < 2 or len(chain) <= last - first or not few:
        return None
    whole = chain[0]
    for one in chain[1:]:
        body = tuple(rename_statement(s, {one.index: Sym(whole.index)}) for s in one.body)
        if not facts.equal(whole.extent, one.extent) or not _may_follow(whole, body, facts):
            return None
        whole = replace(whole, body=(*whole.body, *body), kind="seq")
    return replace(loop, body=(*loop.body[:first], whole, *loop.body[last + 1 :]))


def _may_follow(loop: For, body: tuple[Stmt, ...], facts: Facts) -> bool:
    """Whether iterations of what stands behind a loop may each come behind the loop's own iteration, before all later
    ones."""
    places, others = ([a for s in walk(block) for a in accesses_of(s)] for block in (loop.body, body))
    inner = frozenset().union(*(bound_inside(s) for s in (*loop.body, *body)))
    given = frozenset(b.name for s in walk((*loop.body, *body)) for b in touched(s) if not b.dims)
    for a in places:
        for b in others:
            if a.buf is b.buf and (a.write or b.write):
                found = distance(a.index, b.index, loop.index, loop.extent, inner, given)
                if found is not None and (found.at is None or found.at < 0):
                    if not disjoint(a.index, b.index, facts, inner | {loop.index}):
                        return False
    return True


__all__ = ["in_chains"]
