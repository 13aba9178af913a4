"""Functions that a loop calls of what does not wait are called ahead: for a row of iterations at once, side by side.

In: loops that are fused and folded. Out: the same, where iterations of an innermost loop wait for each other, and call
functions (exp, sin, log) of what none of them leaves to the next. The calls are a loop of their own, which becomes
vectors; rows are so short that they stay near. Example:

    for j in range(n):                        for b in range((n + 255) // 256):
        s = s*exp(a + b*z[j])                     for k in range(min(n - 256*b, 256)):
        if s > top: top = s          ->               row[k] = exp(a + b*z[256*b + k])
                                                  for k in range(min(n - 256*b, 256)):
                                                      s = s*row[k]
                                                      if s > top: top = s

Each element sees the same operations: results are the same to the bit. This is loop distribution with scalar expansion
(R. Allen, K. Kennedy, "Automatic translation of Fortran programs to vector form", 1987).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from metaphrase.core.dims import Sym, symbols
from metaphrase.core.facts import Facts
from metaphrase.core.scalars import CALLED, facts

from .blocks import Blocks
from .fold import MAX_NODES
from .interchange import middle_of
from .lifetimes import Lifetimes, keys_read, keys_written, lifetimes_in, read_before_given
from .nest import (
    Bind,
    Buf,
    E,
    Fn,
    For,
    If,
    Index,
    Load,
    Op,
    Stmt,
    Store,
    expression_symbols,
    loaded,
    subexpressions,
    walk,
)
from .rewrite import map_expression, map_statement
from .target import Target


def called_ahead(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such calls in loops of their own."""
    if not target.called_together or not any(_may_wait(s) for s in walk(fn.body)):
        return fn.body
    return _Ahead(fn, target).block(fn.body, None)


def _may_wait(stmt: Stmt) -> bool:
    """Whether it is an innermost loop of the user's that does nothing but compute, and calls functions."""
    if not isinstance(stmt, For) or stmt.kind != "seq" or stmt.parts is not None:
        return False
    inside = list(walk(stmt.body))
    return all(isinstance(s, (Store, Bind, If)) for s in inside) and any(map(_calls, _expressions(stmt.body)))


def _expressions(block: tuple[Stmt, ...]) -> list[E]:
    """What statements that every iteration comes to compute."""
    return [e for s in block for e in s.expressions]


def _calls(e: E) -> bool:
    """Whether it calls a function of floats that vectors have."""
    return any(isinstance(x, Op) and _is_call(x) for x in subexpressions(e))


def _is_call(e: Op) -> bool:
    known = facts(e.name)
    return e.dtype.kind == "f" and e.dtype.itemsize >= 4 and known.cost >= CALLED and known.side_by_side


class _Ahead:
    """The loops of one function."""

    def __init__(self, fn: Fn, target: Target):
        self.fn, self.target = fn, target
        self.lifetimes, self.facts = lifetimes_in(fn), Facts(fn.facts.ranges)

    def block(self, block: tuple[Stmt, ...], around: For | None) -> tuple[Stmt, ...]:
        rows: list[Stmt] = []
        for stmt in block:
            made: list[Stmt] = []
            if isinstance(stmt, For):
                self.facts.learn(stmt.index, 0, stmt.extent - 1)
            if isinstance(stmt, For) and _may_wait(stmt):
                turned = around is not None and middle_of(around, self.target) is not None  # it will run along memory
                made = [] if turned else self.loop(stmt)
            elif stmt.blocks:
                within = stmt if isinstance(stmt, For) else None
                inner = tuple(self.block(b, within) for b in stmt.blocks)
                made = [stmt if inner == stmt.blocks else stmt.with_blocks(inner)]
            rows += made or [stmt]
        return tuple(rows)

    def loop(self, loop: For) -> list[Stmt]:
        """The loop in two; nothing where it stays one."""
        one = _Loop(loop, self.lifetimes)
        calls = one.calls() if one.waits() else {}
        rounds = self.facts.upper(loop.extent, self.fn.sizes)
        if not calls or isinstance(rounds, int) and rounds < self.target.vector_from:
            return []
        here, fresh = Blocks(loop, self.target.called_together, rounds, self.fn.names), self.fn.names.fresh
        ahead = fresh(loop.index)
        rows = {e: Buf(fresh("row"), e.dtype, (here.held,)) for e in calls}
        stores = (Store(rows[e], (Sym(ahead),), value, None, loop.span) for e, value in calls.items())

        def called(e: E) -> E | None:
            return Load(rows[e], (Sym(here.within),)) if e in rows else None

        left = [map_statement(s, lambda e: map_expression(e, called), lambda *place: place) for s in loop.body]
        return here.around(
            [
                For(ahead, here.count, tuple(here.iteration(s, ahead) for s in stores), "par", loop.span),
                replace(loop, index=here.within, extent=here.count, body=tuple(map(here.iteration, one.needed(left)))),
            ]
        )


class _Waits(Exception):
    """An expression reads what an iteration leaves to the next, or may."""


class _Loop:
    """What an iteration of one loop computes without the ones before it."""

    def __init__(self, loop: For, lifetimes: Lifetimes):
        self.loop = loop
        inside = list(walk(loop.body))
        self.stored = {a.buf for s in inside for a in s.accesses if a.write}
        self.given = Counter(name for s in inside for name in keys_written(s) if isinstance(name, str))
        self.before = read_before_given(loop.body, frozenset([loop.index]))[0]
        self.values: dict[str, E] = {}  # of variables that are computed so, without a call
        for s in loop.body:
            if isinstance(s, Store) and not s.buf.dims and s.monoid is None and self.given[s.buf.name] == 1:
                value = self.alone(s.value)
                private = s.buf.name not in self.before and lifetimes.private(s.buf.name, loop)
                if private and value is not None and not _calls(value):
                    self.values[s.buf.name] = value

    def waits(self) -> bool:
        """Whether iterations wait for each other in another way than by one sum, of which C compilers make vectors."""
        if len(self.loop.body) == 1:
            (only,) = self.loop.body
            if isinstance(only, Store) and (only.monoid or isinstance(only.value, Op) and only.value.name == "add"):
                return any(load.buf in self.stored and load.buf.dims for load in loaded(only))
        carried = self.before & self.given.keys()
        arrays = {b for b in self.stored if b.dims}
        return bool(carried) or any(load.buf in arrays for s in walk(self.loop.body) for load in loaded(s))

    def calls(self) -> dict[E, E]:
        """The largest expressions that call a function and wait for nothing, as they are written, and by what is known
        before the loop."""
        found: dict[E, E] = {}

        def look(e: E) -> E | None:
            if not _calls(e):
                return e
            value = self.alone(e)
            if value is None:
                return None
            found[e] = value
            return e

        for e in _expressions(self.loop.body):
            map_expression(e, look)
        return found

    def needed(self, body: list[Stmt]) -> list[Stmt]:
        """Statements of an iteration without what gives variables values that no other one reads any more."""
        inside = list(walk(tuple(body)))
        read = {load.buf.name for s in inside for load in loaded(s)}.union(*map(keys_read, inside))
        return [s for s in body if not (isinstance(s, Store) and s.buf.name in self.values and s.buf.name not in read)]

    def alone(self, e: E) -> E | None:
        """An expression without the variables of the iteration; None where it waits, or is long."""
        try:
            value = map_expression(e, self.known)
        except _Waits:
            return None
        return value if sum(isinstance(x, Op) for x in subexpressions(value)) <= MAX_NODES else None

    def known(self, x: E) -> E | None:
        if isinstance(x, Load):
            if x.buf.name in self.values and not x.buf.dims:
                return self.values[x.buf.name]
            if x.buf in self.stored or x.buf.name in self.given:
                raise _Waits
        if isinstance(x, (Index, Load)) and not self.given.keys().isdisjoint(_own_symbols(x)):
            raise _Waits
        return None


def _own_symbols(x: Index | Load) -> frozenset[str]:
    return symbols(x.dim) if isinstance(x, Index) else frozenset(expression_symbols(x))


__all__ = ["called_ahead"]
