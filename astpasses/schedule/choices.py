"""Branches that only give variables numbers, as choices between numbers: a processor need not guess which way they go.

In: a function whose variables are what they will be. Out: the same; in loops, branches that data decide and that
compute little on either side are done on both. What a side adds to a variable is 0 on the other one: -0.0, which
changes no sum of floats. Example:

    if x[i] > 0.5:                        above = x[i] > 0.5
        count = count + 1                 count = count + convert(above)
        s = s + x[i]           ->         s = s + pick(above, x[i], -0.0)
        run = run + 1                     run = run + 1 if above else 0
    else:
        run = 0

Elements of arrays that the loop reads whatever happens are stored, taken or not: what a sort exchanges.
What a loop seeks (`if d < best: best = d`) is found seldom, and stays a branch; so does what the counters of loops, or
the iterations before, decide, which processors guess. Floats that are no sums are left to the C compiler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np

from metaphrase.core.dims import DimLike, Sym, symbols
from metaphrase.core.scalars import CHEAP, MONOIDS, facts
from metaphrase.locks import cached_property

from .fold import MAX_NODES
from .lifetimes import keys_read, keys_written, read_before_given
from .nest import (
    Bind,
    Check,
    Const,
    E,
    Fn,
    For,
    If,
    Index,
    Load,
    Op,
    Stmt,
    Store,
    While,
    boolean,
    constant,
    expression_symbols,
    loaded,
    loads,
    local,
    operations,
    subexpressions,
    walk,
)
from .rewrite import map_expression
from .scalars import negated
from .target import Target


def with_choices(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such branches as choices."""
    if not target.done_on_both_sides or not any(isinstance(s, If) for s in walk(fn.body)):
        return fn.body
    choices = _Choices(fn, target)
    return choices.block(fn.body, None, lambda: choices.parameters)


Given = Callable[[], frozenset[str]]  # the variables that have a value, if anyone asks
_LARGER, _SMALLER = ("gt", "ge"), ("lt", "le")  # the first operand is


class _Stays(Exception):
    """A branch does what is not to be done where it is not taken."""


class _Value(NamedTuple):
    """What a variable is behind a branch: `more` than it was before, or something else altogether; neither where it may
    have no value."""

    value: E | None
    more: E | None


class _Choices:
    def __init__(self, fn: Fn, target: Target):
        self.fn, self.fresh, self.target = fn, fn.names.fresh, target
        self.parameters = frozenset((*fn.sizes, *(buf.name for buf in fn.bufs)))
        self.outside = self.parameters | ({fn.result.name} if fn.result is not None else set())  # others read these

    @cached_property
    def reads(self) -> Counter:
        """How many statements read each variable."""
        return Counter(key for s in walk(self.fn.body) for key in keys_read(s))

    def block(self, block: tuple[Stmt, ...], loop: For | While | None, given: Given) -> tuple[Stmt, ...]:
        """A block, which is a loop's own; `given` tells the variables that have a value before it."""
        rows: list[Stmt] = []
        for k, stmt in enumerate(block):

            def before(k: int = k) -> frozenset[str]:
                return read_before_given(block[:k], given())[1]

            if isinstance(stmt, If) and loop is not None and (choice := self.choice(stmt, loop, before, rows)):
                rows += choice
                continue
            if isinstance(stmt, (For, While)):
                within = _with(before, stmt.binds or "")
                stmt = stmt.with_blocks(tuple(self.block(b, stmt, within) for b in stmt.blocks))
            elif stmt.blocks:
                stmt = stmt.with_blocks(tuple(self.block(b, None, before) for b in stmt.blocks))
            rows.append(stmt)
        return tuple(rows)

    def choice(self, stmt: If, loop: For | While, given: Given, before: list[Stmt]) -> list[Stmt] | None:
        """The statements that do what a branch does, without one; None where it stays."""
        inside = [s for s in walk((stmt,)) if s is not stmt]
        work = sum(operations(s) for s in walk((stmt,)))
        if len(inside) < 2 or work > self.target.done_on_both_sides or not self.is_guessed_wrong(stmt, inside, loop):
            return None
        try:
            return _Sides(self, stmt, given(), before).done()
        except _Stays:
            return None

    def is_own(self, name: str, stmt: If) -> bool:
        """Whether nobody but a branch reads a variable, and no iteration what another one left."""
        inside = sum(name in keys_read(s) for s in walk((stmt,)))
        alone = name not in self.outside and self.reads[name] == inside
        return alone and name not in read_before_given((stmt,))[0]

    def is_guessed_wrong(self, stmt: If, inside: list[Stmt], loop: For | While) -> bool:
        """Whether each iteration has a number of its own that decides a branch, and the branch does not change it."""
        changed = frozenset().union(*map(keys_written, inside)) & keys_read(stmt)
        changed = frozenset(key for key in changed if isinstance(key, str))  # what elements are is data again
        if changed:  # an automaton's state, if it goes on whichever side is taken
            return all(_is_integer(name, stmt) and _is_given(name, stmt.then, stmt.orelse) for name in changed)
        if any(load.buf.dims for load in loads(stmt.condition)):
            return True
        whole = tuple(s for b in loop.blocks for s in b)
        carried, _ = read_before_given(whole, frozenset([loop.binds or ""]))
        return any(key in keys_written(s) for key in keys_read(stmt) - carried for s in walk(whole))

    @cached_property
    def counted(self) -> frozenset[str]:
        """The symbols of which the facts hold anywhere; what is known of others may be known in a branch."""
        return frozenset((*self.fn.sizes, *(s.index for s in walk(self.fn.body) if isinstance(s, For))))

    def may_be_read(self, load: Load, seen: set[Load]) -> bool:
        """Whether an element is read in any case, or lies in its array."""
        known = self.fn.facts
        return load in seen or all(
            not isinstance(place, E)
            and symbols(place) <= self.counted
            and known.nonnegative(place)
            and known.less(place, dim)
            for place, dim in zip(load.index, load.buf.dims)
        )


class _Sides:
    """One branch, and those in it."""

    def __init__(self, of: _Choices, stmt: If, given: frozenset[str], before: list[Stmt]):
        self.of, self.stmt, self.valued = of, stmt, given
        self.seen = _elements_read(before) | set(loads(stmt.condition))
        self.variables: dict[str, E] = {}  # as expressions
        self.rows: list[Stmt] = []
        self.stored: dict[str, tuple[Load, list[tuple[E, ...]]]] = {}  # elements, and on which sides that is done
        self.path: list[E] = []  # the conditions of the branches that a statement stands in

    def done(self) -> list[Stmt]:
        values = self.sides(self.stmt, {})
        for (one, here), (other, there) in combinations(self.stored.values(), 2):
            if here != there and one.buf is other.buf and not _are_apart(one, other):
                raise _Stays  # what one of them was may be stored over what the other one is
        places = {name: place for name in values if (place := self.element(name)) is not None}
        stores = [self.stores(place, self.whole(name, values[name])) for name, place in places.items()]
        own = {*places, *(name for name in values if name not in places and self.of.is_own(name, self.stmt))}
        left = {name: self.whole(name, v) for name, v in values.items() if name not in own}
        while left:
            ready = next((n for n in left if not any(self.reads(e, n) for m, e in left.items() if m != n)), None)
            if ready is None or len(subexpressions(left[ready])) > 2 * MAX_NODES:
                raise _Stays
            variable, value = self.variables[ready], left.pop(ready)
            span = self.stmt.span
            self.rows.append(
                Store(variable.buf, (), value, None, span) if isinstance(variable, Load) else Bind(ready, value, span)
            )
        return [*self.rows, *stores]

    def element(self, name: str) -> Load | None:
        """The element of an array that it is; None of a variable."""
        variable = self.variables[name]
        return variable if isinstance(variable, Load) and variable.buf.dims else None

    def stores(self, place: Load, value: E) -> Store:
        """What gives an element its value behind the branch: that is worked out before anything is stored."""
        kept = local(self.of.fresh(place.buf.name), place.dtype)
        self.rows.append(Store(kept, (), value, None, self.stmt.span))
        return Store(place.buf, place.index, Load(kept), None, self.stmt.span)

    def reads(self, e: E, name: str) -> bool:
        place = self.element(name)
        if place is not None:
            return any(load.buf is place.buf and not _are_apart(load, place) for load in loads(e))
        return name in expression_symbols(e) or any(load.buf.name == name for load in loads(e) if not load.buf.dims)

    def sides(self, stmt: If, env: Mapping[str, _Value]) -> dict[str, _Value]:
        """What variables are behind a branch, of what they are before it."""
        condition, place = self.read(stmt.condition, env), len(self.rows)
        taken = local(self.of.fresh("taken"), boolean(True).dtype)
        one = self.through(stmt.then, env, Load(taken))
        other = self.through(stmt.orelse, env, Op("not", (Load(taken),), taken.dtype))
        changed = dict.fromkeys(n for side in (one, other) for n, value in side.items() if value is not env.get(n))
        if len(changed) == 1 and len(self.rows) == place:
            (name,) = changed
            extreme = self.extreme(condition, *(self.whole_of(name, side) for side in (one, other)))
            if extreme is not None:
                return {name: _Value(extreme, None)}
            if stmt is self.stmt and not all(name in side and side[name].more is not None for side in (one, other)):
                raise _Stays  # the C compiler chooses what one variable is, if it is no sum
        self.rows.insert(place, Store(taken, (), condition, None, stmt.span))
        return {name: self.either(name, Load(taken), one.get(name), other.get(name)) for name in changed}

    def whole_of(self, name: str, side: Mapping[str, _Value]) -> E:
        """What a variable is on a side."""
        return self.whole(name, side[name]) if name in side else self.variables[name]

    def extreme(self, condition: E, one: E, other: E) -> E | None:
        """`most = n if n > most else most` of integers, which is their maximum."""
        if not isinstance(condition, Op) or condition.args not in ((one, other), (other, one)):
            return None
        if one.dtype.kind not in "iu" or condition.name not in _LARGER + _SMALLER:
            return None
        larger = (condition.name in _LARGER) == (condition.args[0] == one)
        return Op("max" if larger else "min", (one, other), one.dtype)

    def through(self, block: tuple[Stmt, ...], env: Mapping[str, _Value], taken: E) -> dict[str, _Value]:
        """What variables are behind a block that is run if `taken` holds. Its checks are made if it is."""
        env = dict(env)
        self.path.append(taken)
        for stmt in block:
            if isinstance(stmt, If):
                env |= self.sides(stmt, env)
            elif isinstance(stmt, Store) and not stmt.buf.dims and stmt.buf.is_scalar:
                self.variables[stmt.buf.name] = Load(stmt.buf)
                env[stmt.buf.name] = self.given(stmt.buf.name, self.read(stmt.result, env))
            elif isinstance(stmt, Store) and (place := self.place(stmt, env)) is not None:
                self.variables[str(place)] = place
                self.stored.setdefault(str(place), (place, []))[1].append(tuple(self.path))
                env[str(place)] = self.given(str(place), self.read(stmt.result, env))
            elif isinstance(stmt, Bind):
                self.variables[stmt.name] = Index(Sym(stmt.name))
                env[stmt.name] = self.given(stmt.name, self.read(stmt.value, env))
            elif isinstance(stmt, Check):
                ok = self.read(stmt.ok, env)
                for condition in reversed(self.path):
                    ok = Op("or", (negated(condition), ok), condition.dtype)
                values = tuple(self.read(value, env) for value in stmt.values)
                self.rows.append(stmt.but(ok=ok, values=values))
            else:
                raise _Stays
        self.path.pop()
        return env

    def read(self, e: E, env: Mapping[str, _Value]) -> E:
        """An expression of what variables were before the branch: one that may be computed on each side."""
        for x in subexpressions(e):
            if isinstance(x, Op) and not _is_cheap(x):
                raise _Stays
            if isinstance(x, Load) and x.buf.dims:
                if any(name != str(x) and self.reads(x, name) for name in env):
                    raise _Stays
                if str(x) not in env and not self.of.may_be_read(x, self.seen):
                    raise _Stays

        def change(x: E) -> E | None:
            if isinstance(x, Index):
                return self.sum_of(x.dim, sorted(name for name in symbols(x.dim) if name in env), env)
            if isinstance(x, Load) and (name := str(x) if x.buf.dims else x.buf.name) in env:
                return self.whole(name, env[name])
            return None

        return map_expression(e, change)

    def place(self, stmt: Store, env: Mapping[str, _Value]) -> Load | None:
        """The element that a store of a branch is into, if the loop reads it whatever happens. Two of them may be one:
        they are stored in the order in which the branch does it, each of them once."""
        place = Load(stmt.buf, stmt.index)
        if place not in self.seen or stmt.buf.space == "arg" or str(place) in env:
            return None
        if any(name in expression_symbols(place) for name in env) or any(isinstance(i, E) for i in stmt.index):
            return None
        return place

    def sum_of(self, dim: DimLike, names: list[str], env: Mapping[str, _Value]) -> E:
        """A sum of integers, some of which are given values in the branch."""
        parts: list[tuple[str, E]] = []
        for name in names:
            sign = next((s for s in (1, -1) if name not in symbols(dim - s * Sym(name))), None)
            if sign is None:
                raise _Stays
            dim = dim - sign * Sym(name)
            parts.append(("add" if sign == 1 else "sub", self.whole(name, env[name])))
        total: E | None = None if names and dim == 0 else Index(dim)
        for how, e in sorted(parts, key=lambda part: part[0]):
            if total is None and how == "add":
                total = e
            elif isinstance(e, Index) and isinstance(total, Index):
                total = Index(total.dim + e.dim if how == "add" else total.dim - e.dim)
            else:
                total = Op(how, (total or Index(0), e), e.dtype)
        assert total is not None
        return total

    def given(self, name: str, e: E) -> _Value:
        """The value of a variable that is given an expression."""
        variable = self.variables[name]
        more: E | None = None
        if e == variable:
            more = _nothing(e.dtype)
        elif isinstance(e, Index) and isinstance(variable, Index) and symbols(variable.dim) <= symbols(e.dim):
            more = Index(e.dim - variable.dim)
        elif isinstance(e, Op) and e.name in ("add", "sub") and e.dtype.kind in "iuf" and variable in e.args:
            a, b = e.args
            if a == variable:
                more = b if e.name == "add" else Op("neg", (b,), e.dtype, e.span)
            elif e.name == "add":
                more = a
        if more is None or self.reads(more, name):
            return _Value(e, None)
        return _Value(None, more)

    def whole(self, name: str, value: _Value) -> E:
        """What a variable is, as one expression."""
        variable = self.variables[name]
        if value.value is not None:
            return value.value
        if value.more is None:
            raise _Stays
        if value.more == _nothing(variable.dtype):
            return variable
        if isinstance(variable, Index) and isinstance(value.more, Index):
            return Index(variable.dim + value.more.dim)
        return Op("add", (variable, value.more), variable.dtype)

    def either(self, name: str, condition: E, one: _Value | None, other: _Value | None) -> _Value:
        """A variable that is one value or the other; None: as it was."""
        variable = self.variables[name]
        element = self.element(name) is not None
        unchanged = _Value(None, _nothing(variable.dtype) if element or name in self.valued else None)
        one, other = one or unchanged, other or unchanged
        if unchanged in (one, other) and unchanged.more is None:
            return unchanged
        sums, kind = one.more is not None and other.more is not None, variable.dtype.kind
        if kind not in "iub" and not (kind == "f" and variable.dtype.itemsize >= 4 and (sums or element)):
            raise _Stays
        if one.more is not None and other.more is not None:
            return _Value(None, _chosen(condition, one.more, other.more))
        if element:
            sides = self.whole(name, one), self.whole(name, other)
            return _Value(Op("select", (condition, *sides), variable.dtype), None)
        return _Value(_chosen(condition, self.whole(name, one), self.whole(name, other)), None)


def _elements_read(block: list[Stmt]) -> set[Load]:
    """Elements that a block reads whatever happens, and that are the same behind it."""
    seen: set[Load] = set()
    for stmt in block:
        seen |= set(loaded(stmt)) if not stmt.blocks else set()
        given = frozenset().union(*map(keys_written, walk((stmt,))))
        seen = {x for x in seen if x.buf not in given and given.isdisjoint(keys_read(Bind("", x)))}
    return seen


def _are_apart(one: Load, other: Load) -> bool:
    """Whether two places of an array are surely not the same."""
    both = zip(one.index, other.index)
    return any(not isinstance(a, E) and not isinstance(b, E) and isinstance(a - b, int) and a != b for a, b in both)


def _with(given: Given, name: str) -> Given:
    return lambda: given() | {name}


def _is_integer(key: object, stmt: If) -> bool:
    """Whether a variable that a branch reads is an integer."""
    found = [load.buf.dtype.kind for load in loads(stmt.condition) if load.buf.name == key and not load.buf.dims]
    return isinstance(key, str) and all(kind in "iu" for kind in found)


def _is_given(key: object, *sides: tuple[Stmt, ...]) -> bool:
    """Whether a variable is given a value on each side."""
    return all(any(key in keys_written(s) for s in side if not s.blocks) for side in sides)


def _is_cheap(e: Op) -> bool:
    """Whether an operation costs next to nothing, whatever its operands are."""
    known = facts(e.name)
    return known.cost <= CHEAP and (known.safe or all(x.dtype.kind == "f" for x in e.args))


def _nothing(dtype: np.dtype) -> Const:
    """What changes nothing when it is added."""
    return constant(MONOIDS["sum"].before_first(dtype), dtype)


def _chosen(condition: E, one: E, other: E) -> E:
    """One of two numbers. Bools, and what is 1 or 0, are made of the condition itself."""
    dtype = one.dtype
    if dtype.kind in "iu" and (a := _truth(one)) is not None and (b := _truth(other)) is not None:
        return Op("convert", (_logic(condition, a, b),), dtype)
    if dtype.kind == "b":
        return _logic(condition, one, other)
    true = boolean(True)
    if one == other:
        return one
    for inner, outside, turned in ((one, other, False), (other, one, True)):
        if dtype.kind in "iu" and isinstance(inner, Op) and inner.name in ("max", "min") and outside in inner.args:
            a, b = inner.args
            nothing = constant(MONOIDS[inner.name].before_first(dtype), dtype)  # an iteration waits for one operation
            sides = (a if b == outside else b, nothing)
            return Op(inner.name, (outside, Op("pick", (condition, *(sides[::-1] if turned else sides)), dtype)), dtype)
        if isinstance(inner, Op) and inner.name == "pick" and outside in inner.args[1:]:  # two conditions of one choice
            here = _logic(condition, boolean(False), true) if turned else condition
            again, a, b = inner.args
            if b == outside:
                return Op("pick", (Op("and", (here, again), true.dtype), a, b), dtype)
            return Op("pick", (Op("and", (here, negated(again)), true.dtype), b, a), dtype)
    return Op("pick", (condition, one, other), dtype)


def _logic(condition: E, one: E, other: E) -> E:
    """One of two bools."""
    true, false = boolean(True), boolean(False)
    if one == other:
        return one
    if one == true:
        return condition if other == false else Op("or", (condition, other), true.dtype)
    if other == false:
        return Op("and", (condition, one), true.dtype)
    without = Op("not", (condition,), true.dtype)
    if other == true:
        return without if one == false else Op("or", (without, one), true.dtype)
    without = Op("and", (without, other), true.dtype)
    return without if one == false else Op("or", (Op("and", (condition, one), true.dtype), without), true.dtype)


def _truth(e: E) -> E | None:
    """The bool that an integer is made of, if it is 0 or 1."""
    if isinstance(e, Op) and e.name == "convert" and e.args[0].dtype.kind == "b":
        return e.args[0]
    number = e.value if isinstance(e, Const) else e.dim if isinstance(e, Index) else None
    return boolean(bool(number)) if isinstance(number, (int, np.integer)) and number in (0, 1) else None


__all__ = ["with_choices"]
