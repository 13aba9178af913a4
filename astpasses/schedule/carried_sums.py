"""Sums that loops of the user's carry, on a GPU: cut into parts as those of reductions are.

In: the statements of a function. Out: the same, with loops whose iterations only combine into variables as loops of
kind "red". `contract` allows it, as it does what else changes the last bits of a result. Example:

    for i in range(n):                         least_of_all = inf
        if x[i] < least:                       for i in range(n):                             # in any order
            least = x[i]             ->            least_of_all = min(least_of_all, x[i])
        if x[i] > 0:                               if x[i] > 0:
            s = s + x[i]                               s += x[i]
                                               if least_of_all < least:
                                                   least = least_of_all

Where an iteration that finds an extreme keeps more (`best = d; nearest = i`), it notes its own extreme; behind
the loop the first one, or the last, whose is that of all is done once more as it was written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from metaphrase.core.dims import Sym
from metaphrase.core.facts import Facts
from metaphrase.core.scalars import MONOIDS
from metaphrase.core.types import i64
from metaphrase.late import dataclass, field

from .independence import Independence
from .lifetimes import keys_read, keys_written, read_before_given
from .lower_arrays import identity
from .nest import Bind, Buf, E, Fn, For, If, Index, Load, Op, Stmt, Store, boolean, local, walk
from .rewrite import rebound, rename_statement, with_storages
from .target import Target

_MONOIDS = {monoid.combine: name for name, monoid in MONOIDS.items()}
_EXTREMES = {"lt": "min", "le": "min", "gt": "max", "ge": "max"}  # of what is compared with the extreme so far
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def with_carried_sums(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with the sums that its loops carry told apart, if the target may cut them into parts."""
    return _CarriedSums(fn, target).done() if target.cuts_carried_sums else fn.body


class _Differs(Exception):
    """A loop does more with a variable than to combine into it."""


@dataclass
class _Variable:
    """A variable that a loop carries, what iterations combine into, and how."""

    name: str
    buf: Buf | None  # None: an integer symbol
    total: Buf
    monoid: str | None = None
    compared: str | None = None  # an extreme that is found by comparing: how with the one so far
    found: list[If] = field(default_factory=list)  # where that is done
    kept: set[str] = field(default_factory=set)  # what else is kept there

    def value(self) -> E:
        return Index(Sym(self.name)) if self.buf is None else Load(self.buf)

    def combine(self, monoid: str | None, compared: str | None = None) -> None:
        """Note how an iteration combines; all have to do it in one way."""
        if monoid is None or self.monoid not in (None, monoid) or self.monoid and self.compared != compared:
            raise _Differs
        self.monoid, self.compared = monoid, compared


class _CarriedSums:
    def __init__(self, fn: Fn, target: Target):
        self.fn, self.target = fn, target
        self.loaded: dict[E, E] = {}

    def done(self) -> tuple[Stmt, ...]:
        seen: set[Stmt] = set()
        while True:
            loop = next((s for s in walk(self.fn.body) if self.may_be(s) and s not in seen), None)
            if loop is None:
                return self.fn.body
            assert isinstance(loop, For)
            seen.add(loop)
            self.attempt(loop)

    def may_be(self, stmt: Stmt) -> bool:
        return isinstance(stmt, For) and stmt.kind == "seq" and not stmt.on

    def attempt(self, loop: For) -> None:
        """Have the iterations of a loop combine, if that is all in which they depend on one another."""
        inside = list(walk(loop.body))
        written = {key for s in inside for key in keys_written(s) if isinstance(key, str)}
        carried = read_before_given(loop.body, frozenset([loop.index]))[0] & written
        if not carried:
            return
        bufs = {s.buf.name: s.buf for s in inside if isinstance(s, Store) and not s.buf.dims}
        binds = [s for s in inside if isinstance(s, Bind)]
        once = Counter(s.name for s in binds)
        stored = {key for s in inside for key in keys_written(s)}
        self.loaded = {
            Index(Sym(s.name)): s.value
            for s in binds
            if once[s.name] == 1 and isinstance(s.value, Load) and s.value.buf.dims and s.value.buf not in stored
        }
        body, variables = loop.body, []
        try:
            for name in sorted(carried):
                variable = self.variable(name, bufs.get(name))
                body = self.combining(body, variable)
                variables.append(variable)
        except _Differs:
            return
        rows: list[Stmt] = [s for v in variables for s in self.before(v)]
        behind: list[Stmt] = []
        for variable in variables:
            if variable.kept:
                others = carried.union(*(v.kept for v in variables)) - variable.kept - {variable.name}
                again = self.again(loop, variable, others)
                if again is None:
                    return
                body, more = self.noted(loop, body, variable, again)
                behind += more
            else:
                behind += self.behind(variable)
        made = replace(loop, body=body)
        fn = replace(self.fn, body=_with(self.fn.body, loop, [*rows, made, *behind]))
        roles = Independence(fn, self.target, Facts(fn.facts.ranges)).roles(made, in_order=True)
        if roles is not None and not any(buf.dims for buf in roles.sums):
            self.fn = replace(fn, body=_with(fn.body, made, [replace(made, kind="red")]))

    def variable(self, name: str, buf: Buf | None) -> _Variable:
        return _Variable(name, buf, local(self.fn.names.fresh(name), i64) if buf is None else buf)

    def before(self, variable: _Variable) -> list[Stmt]:
        """What the combination begins with."""
        total = variable.total
        if variable.compared:
            return [_worst(total, variable)]
        return [Store(total, (), variable.value())] if variable.buf is None else []

    def behind(self, variable: _Variable) -> list[Stmt]:
        """Give the variable what the iterations combined."""
        total = Load(variable.total)
        take: Stmt = Bind(variable.name, total)
        if variable.buf is not None:
            take = Store(variable.buf, (), total)
        if variable.compared:
            return [If(_truth(variable.compared, total, variable.value()), (take,))]
        return [take] if variable.buf is None else []

    # --- what is kept beside an extreme ----------------------------------------------------------------

    def noted(
        self, loop: For, body: tuple[Stmt, ...], variable: _Variable, again: tuple[Stmt, ...]
    ) -> tuple[tuple[Stmt, ...], list[Stmt]]:
        """The iterations of a loop, each of which notes its own extreme; and behind them what finds the one that the
        whole loop's is of, and does that again."""
        fresh, total, monoid = self.fn.names.fresh, variable.total, variable.monoid
        own = local(fresh(variable.name), total.dtype)
        each = Buf(fresh(f"{variable.name}_each"), total.dtype, (loop.extent,))
        place = (Sym(loop.index),)
        body = (
            _worst(own, variable),
            *(with_storages(stmt, {total: own}) for stmt in body),
            Store(each, place, Load(own)),
            Store(total, (), Load(own), monoid, loop.span),
        )
        first = variable.compared in ("lt", "gt")
        chosen, k, here = local(fresh("chosen"), i64), fresh("i"), fresh(loop.index)
        nowhere: E = Index(loop.extent if first else -1)
        same = _truth("eq", Load(each, (Sym(k),)), Load(total))
        take = Store(chosen, (), Index(Sym(k)), "min" if first else "max", loop.span)
        better = _truth(variable.compared or "", Load(total), variable.value())
        some = _truth("and", better, _truth("ne", Load(chosen), nowhere))
        self.fn.facts.learn(here, 0, loop.extent - 1)
        return body, [
            Store(chosen, (), nowhere),
            For(k, loop.extent, (If(same, (take,)),), "red", loop.span),
            If(some, (Bind(here, Load(chosen)), *(rename_statement(s, {loop.index: Sym(here)}) for s in again))),
        ]

    def again(self, loop: For, variable: _Variable, others: set[str]) -> tuple[Stmt, ...] | None:
        """An iteration as it was written, without what it does for other variables; None where it does more than give
        variables values."""
        kept = {variable.name, *variable.kept}
        read = {key for s in walk(loop.body) for key in keys_read(s)}
        inside = {id(s) for one in variable.found for s in one.then}
        elsewhere = {key for s in walk(loop.body) if id(s) not in inside for key in keys_written(s)}
        stored = {key for s in walk(loop.body) for key in keys_written(s) if isinstance(key, Buf)}
        if len(variable.found) != 1 or variable.kept & (read | elsewhere) or not all(b.is_temporary for b in stored):
            return None
        fresh = self.fn.names.fresh
        names = {s.binds: fresh(s.binds) for s in walk(loop.body) if s.binds and s.binds not in kept}
        given = {s.buf: None for s in walk(loop.body) if isinstance(s, Store) and s.buf.name not in kept}
        copies = {buf: Buf(fresh(buf.name), buf.dtype, buf.dims) for buf in given}
        body = _without(loop.body, others)
        return tuple(with_storages(rebound(s, names), copies) for s in body)

    def meaning(self, e: E) -> E:
        """The element of an array that a symbol stands for."""
        return self.loaded.get(e, e) if isinstance(e, Index) else e

    # --- what an iteration does with a variable --------------------------------------------------------

    def combining(self, block: tuple[Stmt, ...], variable: _Variable) -> tuple[Stmt, ...]:
        """A block with stores that combine in the place of what it does with a variable."""
        rows: list[Stmt] = []
        for stmt in block:
            own = variable.name in keys_read(stmt) or variable.name in keys_written(stmt)
            if not own and stmt.blocks:
                stmt = stmt.with_blocks(tuple(self.combining(inner, variable) for inner in stmt.blocks))
            elif isinstance(stmt, If) and own:
                stmt = self.extreme(stmt, variable)
            elif own:
                stmt = self.combined(stmt, variable)
            rows.append(stmt)
        return tuple(rows)

    def combined(self, stmt: Stmt, variable: _Variable) -> Store:
        """`s = s + e` as `s += e`."""
        if isinstance(stmt, Store) and stmt.buf is variable.buf and stmt.monoid is not None:
            value: E = stmt.value
            variable.combine(stmt.monoid)
        elif isinstance(stmt, (Store, Bind)) and keys_written(stmt) == {variable.name}:
            monoid, value = self.parted(stmt.value, variable)
            variable.combine(monoid)
        else:
            raise _Differs
        if variable.name in keys_read(Store(variable.total, (), value)):
            raise _Differs
        return Store(variable.total, (), value, variable.monoid, stmt.span)

    def parted(self, e: E, variable: _Variable) -> tuple[str | None, E]:
        """How an expression combines the variable with another one, and that one."""
        if isinstance(e, Index) and variable.buf is None:
            rest = e.dim - Sym(variable.name)
            return "sum", Index(rest)
        if not isinstance(e, Op) or len(e.args) != 2:
            raise _Differs
        a, b = e.args
        so_far = variable.value()
        if e.name == "sub" and e.dtype.kind in "iufc":
            monoid, value = ("sum", None) if a == so_far else self.parted(a, variable)
            if monoid != "sum":
                raise _Differs
            less: E = Op("neg", (b,), e.dtype, e.span)
            return "sum", less if value is None else Op("add", (value, less), e.dtype, e.span)
        monoid = _MONOIDS.get(e.name)
        if b == so_far and a != so_far:
            return monoid, a
        if a == so_far:
            return monoid, b
        inner, value = self.parted(a, variable)
        if inner != monoid or monoid not in ("sum", "prod"):
            raise _Differs
        return monoid, Op(e.name, (value, b), e.dtype, e.span)

    def extreme(self, stmt: If, variable: _Variable) -> Stmt:
        """`if e < least: least = e` as an extreme: of floats, of those that are numbers."""
        condition = stmt.condition
        if stmt.orelse or not isinstance(condition, Op) or condition.name not in _EXTREMES:
            raise _Differs
        how, (a, b) = condition.name, condition.args
        if a == variable.value():
            how, a, b = _TURNED[how], b, a
        takes = [s for s in stmt.then if variable.name in keys_written(s)]
        plain = all(isinstance(s, Bind) or isinstance(s, Store) and not s.buf.dims and not s.monoid for s in stmt.then)
        taken = [self.meaning(s.value) for s in takes]  # type: ignore[attr-defined]
        if b != variable.value() or not plain or taken != [self.meaning(a)]:
            raise _Differs
        if any(variable.name in keys_read(s) for s in stmt.then[: stmt.then.index(takes[0])]):
            raise _Differs
        variable.found.append(stmt)
        variable.kept |= {key for s in stmt.then for key in keys_written(s) if isinstance(key, str)} - {variable.name}
        if variable.monoid is None and variable.buf is not None:
            variable.total = local(self.fn.names.fresh(variable.name), variable.buf.dtype)
        variable.combine(_EXTREMES[how], how)
        if variable.name in keys_read(Store(variable.total, (), a)):
            raise _Differs
        if a.dtype.kind == "f":
            a = Op("select", (_truth("isnan", a), identity(_EXTREMES[how], a.dtype), a), a.dtype, condition.span)
        return Store(variable.total, (), a, _EXTREMES[how], stmt.span)


def _truth(name: str, *args: E) -> Op:
    return Op(name, args, boolean(True).dtype)


def _worst(buf: Buf, variable: _Variable) -> Store:
    """Begin an extreme."""
    assert variable.monoid is not None
    return Store(buf, (), identity(variable.monoid, buf.dtype))


def _without(block: tuple[Stmt, ...], names: set[str]) -> tuple[Stmt, ...]:
    """A block without what gives variables values, and what is in branches and loops with nothing else."""
    rows: list[Stmt] = []
    for stmt in block:
        if names.isdisjoint(keys_written(stmt)):
            left = tuple(_without(inner, names) for inner in stmt.blocks)
            if any(left) or not stmt.blocks:
                rows.append(stmt.with_blocks(left) if stmt.blocks else stmt)
    return tuple(rows)


def _with(block: tuple[Stmt, ...], old: Stmt, rows: list[Stmt]) -> tuple[Stmt, ...]:
    """A block with statements in the place of one that is in it or further inside."""
    made: list[Stmt] = []
    for stmt in block:
        if stmt is old:
            made += rows
        else:
            made.append(stmt.with_blocks(tuple(_with(b, old, rows) for b in stmt.blocks)) if stmt.blocks else stmt)
    return tuple(made)


__all__ = ["with_carried_sums"]
