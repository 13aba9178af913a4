"""What iterations of a user's loop combine into the variables that it carries, read from what they do with them.

In: a loop. Out: `carried_by`: for each variable how iterations combine into it, and the loop with stores that combine
in the place of what was written; nothing where they do more with a variable, or where the order counts. Example:

    for i in range(n):                         for i in range(n):
        if x[i] < least:                           least_of_all = min(least_of_all, x[i])
            least = x[i]             ->            if x[i] > 0:
        if x[i] > 0:                                   count += 1
            count = count + 1

Sums and products of floats depend on the order, which `Target.regroups` says not to count; those of integers, extremes
and truths do not.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from metaphrase.core.dims import Sym
from metaphrase.core.facts import Facts
from metaphrase.core.scalars import MONOIDS
from metaphrase.core.types import i64
from metaphrase.late import dataclass, field

from .independence import Independence, Roles
from .lifetimes import keys_read, keys_written, read_before_given
from .lower_arrays import identity
from .names import Names
from .nest import Bind, Buf, E, Fn, For, If, Index, Load, Op, Stmt, Store, boolean, local, walk
from .target import Target

_MONOIDS = {monoid.combine: name for name, monoid in MONOIDS.items()}
_EXTREMES = {"lt": "min", "le": "min", "gt": "max", "ge": "max"}  # of what is compared with the extreme so far
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


class _Differs(Exception):
    """A loop does more with a variable than to combine into it."""


@dataclass
class Variable:
    """A variable that a loop carries, what iterations combine into, and how."""

    name: str
    buf: Buf | None  # None: an integer symbol
    total: Buf
    monoid: str = ""
    compared: str = ""  # an extreme that is found by comparing: how with the one so far
    found: list[If] = field(default_factory=list)  # where that is done
    kept: set[str] = field(default_factory=set)  # what else is kept there

    def value(self) -> E:
        return Index(Sym(self.name)) if self.buf is None else Load(self.buf)

    def take(self, value: E) -> Stmt:
        """Give the variable a value."""
        return Bind(self.name, value) if self.buf is None else Store(self.buf, (), value)

    def nothing(self) -> E:
        """What changes nothing in a combination."""
        return identity(self.monoid, self.total.dtype)

    def before(self) -> list[Stmt]:
        """What the combination begins with."""
        if self.compared:
            return [Store(self.total, (), self.nothing())]
        return [Store(self.total, (), self.value())] if self.buf is None else []

    def behind(self) -> list[Stmt]:
        """Give the variable what the iterations combined."""
        total = Load(self.total)
        if self.compared:
            return [If(truth(self.compared, total, self.value()), (self.take(total),))]
        return [self.take(total)] if self.buf is None else []

    def keeps_apart(self, loop: For) -> bool:
        """Whether what is kept beside the extreme is for those alone who want it behind the loop."""
        inside = {id(s) for one in self.found for s in one.then}
        read = {key for s in walk(loop.body) for key in keys_read(s)}
        elsewhere = {key for s in walk(loop.body) if id(s) not in inside for key in keys_written(s)}
        return not self.kept or len(self.found) == 1 and not self.kept & (read | elsewhere)


@dataclass
class Carried:
    """The variables that a loop carries, and the loop with stores that combine into them."""

    variables: list[Variable]
    loop: For

    def in_place_of(self, loop: For) -> list[Stmt]:
        """The loop that combines, with what stands around it, as statements that do what another loop did."""
        before = [s for v in self.variables for s in v.before()]
        return [*before, self.loop, *(s for v in self.variables for s in v.behind())]

    def roles(self, fn: Fn, target: Target) -> Roles | None:
        """The roles of what the loop writes, in a function that has it; None where its iterations depend on one another
        in another way, too."""
        roles = Independence(fn, target, Facts(fn.facts.ranges)).roles(self.loop, in_order=True)
        return None if roles is None or any(buf.dims for buf in roles.sums) else roles


def carried_by(loop: For, names: Names, target: Target) -> Carried | None:
    """What the iterations of a loop combine into, if they only combine into the variables that it carries."""
    inside = list(walk(loop.body))
    written = {key for s in inside for key in keys_written(s) if isinstance(key, str)}
    carried = read_before_given(loop.body, frozenset([loop.index]))[0] & written
    if not carried:
        return None
    reading = _Reading(loop, names, target)
    body, variables = loop.body, []
    try:
        for name in sorted(carried):
            variable = reading.variable(name)
            body = reading.combining(body, variable)
            variables.append(variable)
    except _Differs:
        return None
    return Carried(variables, replace(loop, body=body))


class _Reading:
    """What the iterations of one loop do with variables."""

    def __init__(self, loop: For, names: Names, target: Target):
        self.names, self.target = names, target
        inside = list(walk(loop.body))
        binds = [s for s in inside if isinstance(s, Bind)]
        once = Counter(s.name for s in binds)
        stored = {key for s in inside for key in keys_written(s)}
        self.bufs = {s.buf.name: s.buf for s in inside if isinstance(s, Store) and not s.buf.dims}
        self.loaded: dict[E, E] = {
            Index(Sym(s.name)): s.value
            for s in binds
            if once[s.name] == 1 and isinstance(s.value, Load) and s.value.buf.dims and s.value.buf not in stored
        }

    def variable(self, name: str) -> Variable:
        buf = self.bufs.get(name)
        return Variable(name, buf, local(self.names.fresh(name), i64) if buf is None else buf)

    def meaning(self, e: E) -> E:
        """The element of an array that a symbol stands for."""
        return self.loaded.get(e, e) if isinstance(e, Index) else e

    def combine(self, variable: Variable, monoid: str | None, compared: str = "") -> None:
        """Note how an iteration combines; all have to do it in one way, whose order does not count."""
        if monoid is None or variable.monoid and (variable.monoid, variable.compared) != (monoid, compared):
            raise _Differs
        if variable.total.dtype.kind not in "iub" and not MONOIDS[monoid].exact and not self.target.regroups:
            raise _Differs
        variable.monoid, variable.compared = monoid, compared

    def combining(self, block: tuple[Stmt, ...], variable: Variable) -> tuple[Stmt, ...]:
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

    def combined(self, stmt: Stmt, variable: Variable) -> Store:
        """`s = s + e` as `s += e`."""
        if isinstance(stmt, Store) and stmt.buf is variable.buf and stmt.monoid is not None:
            value: E = stmt.value
            self.combine(variable, stmt.monoid)
        elif isinstance(stmt, (Store, Bind)) and keys_written(stmt) == {variable.name}:
            monoid, value = self.parted(stmt.value, variable)
            self.combine(variable, monoid)
        else:
            raise _Differs
        if variable.name in keys_read(Store(variable.total, (), value)):
            raise _Differs
        return Store(variable.total, (), value, variable.monoid, stmt.span)

    def parted(self, e: E, variable: Variable) -> tuple[str | None, E]:
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

    def extreme(self, stmt: If, variable: Variable) -> Stmt:
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
        if not variable.monoid and variable.buf is not None:
            variable.total = local(self.names.fresh(variable.name), variable.buf.dtype)
        self.combine(variable, _EXTREMES[how], how)
        if variable.name in keys_read(Store(variable.total, (), a)):
            raise _Differs
        if a.dtype.kind == "f":
            a = Op("select", (truth("isnan", a), identity(_EXTREMES[how], a.dtype), a), a.dtype, condition.span)
        return Store(variable.total, (), a, _EXTREMES[how], stmt.span)


def truth(name: str, *args: E) -> Op:
    return Op(name, args, boolean(True).dtype)


def with_rows(block: tuple[Stmt, ...], old: Stmt, rows: list[Stmt]) -> tuple[Stmt, ...]:
    """A block with statements in the place of one that is in it or further inside."""
    made: list[Stmt] = []
    for stmt in block:
        if stmt is old:
            made += rows
        else:
            made.append(stmt.with_blocks(tuple(with_rows(b, old, rows) for b in stmt.blocks)) if stmt.blocks else stmt)
    return tuple(made)


__all__ = ["Carried", "Variable", "carried_by", "truth", "with_rows"]
