"""Checks of numbers are looked at behind their loop, which then vectorises.

In: the final tree. Out: a loop in which nothing relies on its checks (`math.exp` overflows, `assert x[i] > 0`,
the places of a gather that a loop of its own checks) notes whether one fails, and goes on; where one did, the
loop as it was is run once more, and fails at the iteration, line and message that Python has.

    for i in range(n):                        failed = False
        check(x[i] >= 0)                      for i in range(n):
        y[i] = sqrt(x[i])            ->           failed |= not x[i] >= 0
                                                  y[i] = sqrt(x[i])
                                              if failed:
                                                  for i in range(n): check(x[i] >= 0); ...

Not where a check guards a place in memory or an integer's division, where the loop writes what the caller
sees when the program fails, or changes what a check looks at.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from metaphrase.core.dims import Sym, symbols
from metaphrase.core.scalars import facts

from .names import Names
from .nest import (
    Bind,
    Buf,
    Check,
    Const,
    E,
    For,
    If,
    Load,
    Map,
    Op,
    Stmt,
    Store,
    While,
    boolean,
    loaded,
    local,
    subexpressions,
    walk,
)
from .rewrite import with_storages
from .scalars import negated
from .target import Target

BOOL = np.dtype(bool)


def late_checks(block: tuple[Stmt, ...], names: Names, seen: frozenset[Buf], target: Target) -> tuple[Stmt, ...]:
    """Rewrite every loop that it fits. `seen`: what the caller sees although the program fails."""
    if target.lanes < 2:  # nothing runs in step that a check could hold up
        return block
    uses = Counter(load.buf for s in walk(block) for load in loaded(s))

    def rewritten(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        rows: list[Stmt] = []
        for stmt in block:
            if isinstance(stmt, For) and (made := _late(stmt, names, seen, uses, target.late_checks_from)):
                rows.extend(made)
            else:
                rows.append(stmt.with_blocks(tuple(map(rewritten, stmt.blocks))) if stmt.blocks else stmt)
        return tuple(rows)

    return rewritten(block)


def _late(loop: For, names: Names, seen: frozenset[Buf], uses: Counter, shortest: int) -> list[Stmt]:
    if isinstance(loop.extent, int) and loop.extent < shortest:
        return []
    if not any(isinstance(s, Check) for s in walk(loop.body)):
        return []
    loop = replace(loop, body=_conditions_in_place(loop.body, uses))
    inside = list(walk(loop.body))
    checks = [s for s in inside if isinstance(s, Check)]
    if all(isinstance(s, (Store, Check)) for s in inside):
        free = _of_floats_only(inside) or _is_last(inside)
        return _flagged(loop, checks[0].site, names) if free and _fits(inside, seen) and _steady(loop) else []
    by_lane = loop.kind == "par" and any(isinstance(s, While) for s in inside)
    if (
        by_lane
        and _fits(inside, seen)
        and _of_floats_only(inside)
        and not any(isinstance(s, Store) and s.monoid for s in inside)
    ):
        return _by_lane(loop, checks[0].site, names)
    return []


def _conditions_in_place(block: tuple[Stmt, ...], uses: Counter) -> tuple[Stmt, ...]:
    """`t = x < 0; check(t)` as one statement."""
    rows: list[Stmt] = []
    for stmt in block:
        if stmt.blocks:
            stmt = stmt.with_blocks(tuple(_conditions_in_place(b, uses) for b in stmt.blocks))
        last = rows[-1] if rows else None
        if (
            isinstance(stmt, Check)
            and isinstance(stmt.ok, Load)
            and isinstance(last, Store)
            and stmt.ok.buf is last.buf
            and not last.buf.dims
            and uses[last.buf] == 1
        ):
            rows[-1] = replace(stmt, ok=last.value)
        else:
            rows.append(stmt)
    return tuple(rows)


def _fits(inside: list[Stmt], seen: frozenset[Buf]) -> bool:
    """Whether the loop may go on after a check that fails, and be run again."""
    bound = {s.name for s in inside if isinstance(s, Bind)}
    bound |= {s.counter for s in inside if isinstance(s, While)}
    written = {s.buf for s in inside if isinstance(s, Store)}
    if written & seen:
        return False
    for stmt in inside:
        if not isinstance(stmt, (Store, Bind, For, While, If, Check)):
            return False
        if isinstance(stmt, Store) and not _known(stmt.index, bound):
            return False
        for e in stmt.expressions:
            for x in subexpressions(e):
                if isinstance(x, Load) and (not _known(x.index, bound) or x.buf.dims and x.buf in written):
                    return False
                if isinstance(x, Op) and x.dtype.kind in "iu" and not facts(x.name).safe:
                    return False
    return True


def _of_floats_only(inside: list[Stmt]) -> bool:
    """Whether floats alone decide all checks: then no place in memory, and no end of a loop, was found valid by one."""
    made: dict[Buf, list[E]] = {}
    for stmt in inside:
        if isinstance(stmt, Store) and not stmt.buf.dims:
            made.setdefault(stmt.buf, []).append(stmt.value)
    return all(_of_floats(s.ok, made, set()) for s in inside if isinstance(s, Check))


def _is_last(inside: list[Stmt]) -> bool:
    """Whether a loop is one check behind variables: all places in it are read before something is found valid."""
    *before, last = inside
    return isinstance(last, Check) and all(isinstance(s, Store) and not (s.buf.dims or s.monoid) for s in before)


def _known(index: Map, bound: set[str]) -> bool:
    return not any(isinstance(entry, E) or symbols(entry) & bound for entry in index)


def _of_floats(e: E, made: dict[Buf, list[E]], followed: set[Buf]) -> bool:
    if isinstance(e, Op):
        return e.dtype.kind in "fcb" and all(x.dtype.kind in "fc" or _of_floats(x, made, followed) for x in e.args)
    if isinstance(e, Load) and e.dtype.kind == "b" and e.buf in made:
        if e.buf in followed:
            return True
        followed.add(e.buf)
        return all(_of_floats(value, made, followed) for value in made[e.buf])
    return isinstance(e, Const) or isinstance(e, Load) and e.dtype.kind in "fc"


def _steady(loop: For) -> bool:
    """Whether no check looks at what an iteration hands to the next: run again, the same one fails."""
    written = {s.buf for s in loop.body if isinstance(s, Store)}
    known: set[Buf] = set()
    for stmt in loop.body:
        read = {load.buf for load in loaded(stmt) if not load.buf.dims}
        stale = any(b in written and b not in known for b in read)
        if isinstance(stmt, Check) and stale:
            return False
        if isinstance(stmt, Store) and not stmt.buf.dims:
            (known.discard if stale or stmt.monoid else known.add)(stmt.buf)
    return True


def _flagged(loop: For, site: int, names: Names) -> list[Stmt]:
    failed = local(names.fresh("fault"), BOOL)
    body = tuple(Store(failed, (), negated(s.ok), "any", s.span) if isinstance(s, Check) else s for s in loop.body)
    kind = "red" if loop.kind == "par" else loop.kind
    return [Store(failed, (), boolean(False)), replace(loop, body=body, kind=kind), _again(failed, loop, site)]


def _by_lane(loop: For, site: int, names: Names) -> list[Stmt]:
    """A loop around `while` loops: each lane stops where its check fails."""
    failed, stopped = local(names.fresh("fault"), BOOL), local(names.fresh("stopped"), BOOL)
    by_lane = Buf(names.fresh("fault_lanes"), BOOL, (loop.extent,))
    running = Op("not", (Load(stopped),), BOOL)

    def late(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        rows: list[Stmt] = []
        for s in block:
            s = s.with_blocks(tuple(late(b) for b in s.blocks)) if s.blocks else s
            if isinstance(s, While):
                s = replace(s, condition=Op("and", (s.condition, running), BOOL))
            if isinstance(s, Check):
                s = Store(stopped, (), Op("or", (Load(stopped), negated(s.ok)), BOOL), None, s.span)
            rows.append(s)
        return tuple(rows)

    body = (Store(stopped, (), boolean(False)), *late(loop.body), Store(by_lane, (Sym(loop.index),), Load(stopped)))
    lane = names.fresh("i")
    gathered = For(lane, loop.extent, (Store(failed, (), Load(by_lane, (Sym(lane),)), "any"),), "red")
    again = _again(failed, _with_scalars_of_its_own(loop, names), site)
    return [replace(loop, body=body), Store(failed, (), boolean(False)), gathered, again]


def _with_scalars_of_its_own(loop: For, names: Names) -> For:
    """The same loop: what the first one makes is then used nowhere else, as lockstep.py wants it."""
    own = {
        s.buf: local(names.fresh(s.buf.name), s.buf.dtype)
        for s in walk(loop.body)
        if isinstance(s, Store) and not s.buf.dims
    }

    made = with_storages(loop, own)
    assert isinstance(made, For)
    return made


def _again(failed: Buf, loop: For, site: int) -> If:
    """The loop as it was. Where its numbers come out a hair's breadth otherwise, it fails all the same."""
    return If(Load(failed), (replace(loop, kind="seq"), Check(boolean(False), site)), ())


__all__ = ["late_checks"]
