"""Loops of the user's that carry sums and extremes, as parts that several threads do: each part is the loop as it was
written, with variables of its own.

In: a function. Out: `carried_loops`, those of its loops whose iterations only combine into variables; for each, what a
part of it begins with, and how the results of the parts are combined in their order. Example:

    for i in range(n):                        part k:   least_1, nearest_1 = inf, 0
        d = abs(x[i] - a)                               for i in range(count):
        if d < least:                                       d = abs(x[first + i] - a)
            least = d                 ->                    if d < least_1:
            nearest = i                                         least_1, nearest_1 = d, first + i
                                                        least_parts[k], nearest_parts[k] = least_1, nearest_1
                                              for k in range(parts):
                                                  if least_parts[k] < least:
                                                      least, nearest = least_parts[k], nearest_parts[k]

So the first of equal extremes is found, and a NaN is as little an extreme as in the loop.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from metaphrase.core.dims import DimLike, Sym, symbols
from metaphrase.core.facts import Facts
from metaphrase.core.scalars import MONOIDS
from metaphrase.core.types import i64
from metaphrase.late import dataclass

from .carried import Carried, Variable, carried_by, truth, with_rows
from .copies import without_copies
from .independence import Independence, Roles
from .nest import Bind, Buf, E, Fn, For, If, Index, Load, Op, Stmt, Store, constant, local, walk
from .ordered_sums import in_order
from .rewrite import rebound, with_storages
from .target import Target
from .work import Work


@dataclass
class CarriedLoop:
    """What a loop combines, and the roles of what else it writes."""

    carried: Carried
    roles: Roles


def carried_loops(fn: Fn, target: Target, work: Work) -> tuple[Fn, dict[Stmt, CarriedLoop]]:
    """The loops of a function whose iterations only combine into the variables that they carry, and the function that
    has them: the same, with fewer copies, and with sums of floats that are added up behind a loop, in order."""
    if not _Search(fn, target, work).is_worth_it(fn.body):
        return fn, {}
    search = _Search(replace(fn, body=without_copies(fn, target)), target, work)
    body = search.block(search.fn.body)
    return (replace(search.fn, body=body), search.loops) if search.has_found else (fn, {})


def _may_carry(stmt: Stmt, target: Target) -> bool:
    short = isinstance(stmt, For) and isinstance(stmt.extent, int) and stmt.extent < target.few
    return isinstance(stmt, For) and stmt.kind == "seq" and not short


class _Search:
    """For loops that stand in no other one that is such a loop."""

    def __init__(self, fn: Fn, target: Target, work: Work):
        self.fn, self.target, self.work = fn, target, work
        self.facts = Facts(fn.facts.ranges)
        self.around: frozenset[str] = frozenset()  # indices of loops
        self.loops: dict[Stmt, CarriedLoop] = {}
        self.has_found = False

    def is_worth_it(self, block: tuple[Stmt, ...]) -> bool:
        """Whether there are such loops that may have several parts."""
        for stmt in block:
            if isinstance(stmt, For):
                if _may_carry(stmt, self.target) and not self.is_short(stmt):
                    return True
                self.facts.learn(stmt.index, 0, stmt.extent - 1)
            if any(map(self.is_worth_it, stmt.blocks)):
                return True
        return False

    def block(self, block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        rows: list[Stmt] = []
        for stmt in block:
            made = self.loop(stmt) if isinstance(stmt, For) and _may_carry(stmt, self.target) else []
            if not made and stmt.blocks:
                made = [self.inside(stmt)]
            rows += made or [stmt]
        return tuple(rows)

    def inside(self, stmt: Stmt) -> Stmt:
        around = self.around
        if isinstance(stmt, For):
            self.facts.learn(stmt.index, 0, stmt.extent - 1)
            self.around |= {stmt.index}
        inner = tuple(map(self.block, stmt.blocks))
        self.around = around
        return stmt if inner == stmt.blocks else stmt.with_blocks(inner)

    def loop(self, loop: For) -> list[Stmt]:
        """The statements in the place of a loop that is found, itself perhaps."""
        if self.is_short(loop):
            return []
        if (one := _read(loop, self.fn, self.target)) is not None:
            self.loops[loop], self.has_found = one, True
            return [loop]
        if not self.is_long(loop):
            return []
        names = copy(self.fn.names)
        names.used = dict(names.used)
        parted = in_order(loop, names, self.target.noted)
        if parted is None:
            return []
        fn = replace(self.fn, body=with_rows(self.fn.body, loop, parted.rows))
        if Independence(fn, self.target, Facts(fn.facts.ranges)).roles(parted.loop) is None:
            if (one := _read(parted.loop, fn, self.target)) is None:
                return []
            self.loops[parted.loop] = one
        self.fn.names.used, self.has_found = names.used, True
        return parted.rows

    def is_long(self, loop: For) -> bool:
        """Whether it is worth an array to have threads work out what an iteration adds."""
        each = self.work.iteration(loop)
        rectangle = self.around.isdisjoint(symbols(loop.extent))
        return rectangle and not (isinstance(each, int) and each < self.target.terms_from)

    def is_short(self, loop: For) -> bool:
        """Whether it surely has no two parts."""
        most = self.facts.upper(loop.extent * self.work.iteration(loop), self.fn.sizes)
        return isinstance(most, int) and most < 2 * self.target.a_part


def _read(loop: For, fn: Fn, target: Target) -> CarriedLoop | None:
    names = copy(fn.names)
    names.used = dict(names.used)  # those of the loop that combines, which nobody keeps
    carried = carried_by(loop, names, target)
    if carried is None or not all(v.keeps_apart(loop) and _is_first(v) for v in carried.variables):
        return None
    combining = replace(fn, body=with_rows(fn.body, loop, carried.in_place_of(loop)))
    roles = carried.roles(combining, target)
    return None if roles is None else CarriedLoop(carried, roles)


def _is_first(variable: Variable) -> bool:
    """Whether what is kept beside an extreme is there if the extreme is better than another one."""
    return not variable.kept or variable.compared in ("lt", "gt")


class _Own(NamedTuple):
    """A variable of the loop, the one that a part has, and the results of all parts."""

    name: str
    buf: Buf | None  # None: a symbol
    own: Buf
    parts: Buf

    def take(self, value: E) -> Stmt:
        return Bind(self.name, value) if self.buf is None else Store(self.buf, (), value)


class PartsOf:
    """The variables of the parts of one loop."""

    def __init__(self, loop: For, one: CarriedLoop, fn: Fn, parts: DimLike):
        self.loop, self.variables, self.parts = loop, one.carried.variables, parts
        self.fresh = fn.names.fresh
        bufs = {s.buf.name: s.buf for s in walk(loop.body) if isinstance(s, Store) and not s.buf.dims}
        names = dict.fromkeys(name for v in self.variables for name in (v.name, *sorted(v.kept)))
        self.own = {name: self.of(name, bufs.get(name)) for name in names}

    def of(self, name: str, buf: Buf | None) -> _Own:
        dtype: np.dtype = i64 if buf is None else buf.dtype
        held = Buf(self.fresh(f"{name}_parts"), dtype, (self.parts,))
        return _Own(name, buf, local(self.fresh(name), dtype), held)

    def begins(self) -> list[Stmt]:
        """What stands before a part: what changes nothing, for each variable."""
        rows: list[Stmt] = []
        for variable in self.variables:
            rows.append(self.given(variable.name, variable.nothing()))
            rows += [self.given(name, constant(0, self.own[name].own.dtype)) for name in sorted(variable.kept)]
        return rows

    def given(self, name: str, value: E) -> Stmt:
        own = self.own[name]
        return Bind(own.own.name, value) if own.buf is None else Store(own.own, (), value)

    def with_own(self, stmt: Stmt) -> Stmt:
        """A statement of the loop about the variables of a part."""
        stmt = with_storages(stmt, {own.buf: own.own for own in self.own.values() if own.buf is not None})
        names = {own.name: own.own.name for own in self.own.values() if own.buf is None}
        return rebound(stmt, names) if names else stmt

    def ends(self, number: str) -> list[Stmt]:
        """What stands behind part `number`: its results are noted."""
        return [
            Store(own.parts, (Sym(number),), Load(own.own) if own.buf is not None else Index(Sym(own.own.name)))
            for own in self.own.values()
        ]

    def locals(self) -> set[Buf]:
        return {own.own for own in self.own.values()}

    def combined(self) -> For:
        """The results of the parts, combined in their order."""
        k = self.fresh("i")
        rows = tuple(self.combining(variable, k) for variable in self.variables)
        return For(k, self.parts, rows, "seq", self.loop.span)

    def combining(self, variable: Variable, k: str) -> Stmt:
        def result(name: str) -> Load:
            return Load(self.own[name].parts, (Sym(k),))

        own = self.own[variable.name]
        if not variable.compared:
            combine = MONOIDS[variable.monoid].combine
            return own.take(Op(combine, (variable.value(), result(variable.name)), own.own.dtype))
        taken = tuple(self.own[name].take(result(name)) for name in (variable.name, *sorted(variable.kept)))
        return If(truth(variable.compared, result(variable.name), variable.value()), taken, (), self.loop.span)


__all__ = ["CarriedLoop", "PartsOf", "carried_loops"]
