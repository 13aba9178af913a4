"""Stores at places that data name, on a GPU: a stable sort brings those together that meet in one place, and one thread
does them in their order.

In: a loop that stores into arrays at places read from data. Out: the kernels in its place. Example:

    for j in range(n):               for j in range(n): keys[j] = t[j]                         # on the grid
        y[t[j]] += v[j]        ->    argsort(keys, order)
                                     for k in range(n):                                        # on the grid
                                         if k == 0 or keys[order[k]] != keys[order[k - 1]]:
                                             for m in range(n - k) while keys[order[k + m]] == keys[order[k]]:
                                                 y[t[order[k + m]]] += v[order[k + m]]

Every place sees what it would see if the loop ran as it stands, in the same order: floats are the same to the bit, and
of plain stores the last one stays. An iteration that stores into an array twice has two keys, one that is in a branch
the key -1 if it is not taken; several arrays are sorted one after the other. Integers that are added up, or of
which the largest or smallest stays, are the same in any order: they are combined by atomic operations, and nothing is
sorted. Checks are made before any store: what the loop had stored when it failed is lost, and so it has to be an array
that the caller does not see.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Protocol

import numpy as np

from metaphrase.core.dims import Dim, DimLike, Sym, dim_max, floordiv, mod, product, symbols_of
from metaphrase.core.scalars import MONOIDS
from metaphrase.core.types import i64
from metaphrase.late import dataclass

from .independence import ATOMIC, Independence, Roles
from .launches import Region
from .lifetimes import read_before_given
from .nest import (
    Bind,
    Buf,
    Check,
    E,
    For,
    If,
    Index,
    LibraryCall,
    Load,
    Map,
    Op,
    Stmt,
    Store,
    View,
    While,
    loaded,
    walk,
)
from .rewrite import rename_statement
from .shapes import Shape, unravelled
from .slices import leading_to, names_given, names_of, names_read
from .target import Target

TRUTH = np.dtype(bool)


class Known(Protocol):
    """What the pass that divides statements among kernels knows (kernels.py)."""

    target: Target
    sizes: frozenset[str]
    independent: Independence

    def fresh(self, base: str) -> str: ...


def scattered(of: Known, loop: For) -> list[Stmt] | None:
    """The kernels in the place of a loop; None where its iterations are independent, or few, or do other things."""
    loops, body = [loop], loop.body
    while len(body) == 1 and isinstance(inner := body[0], For):
        loops.append(inner)
        body = inner.body
    ordered = [l for l in loops if l.kind == "seq"]
    beside = [l for l in loops if l.kind == "par"]
    count = product([l.extent for l in ordered])
    indices = frozenset(l.index for l in loops)
    if len(ordered) + len(beside) < len(loops) or any(names_of(l.extent) & indices for l in loops):
        return None
    if not ordered or isinstance(count, int) and count < of.target.grid_from or symbols_of([count]) - of.sizes:
        return None
    if all(of.independent.roles(l) is not None for l in ordered):  # no two iterations meet in one place
        return None
    puts = _puts(of, loops, body)
    if not puts or any(isinstance(s, Check) for s in walk(body)) and any(put.buf.space == "arg" for put in puts):
        return None
    if len(puts) == 1 and (kernels := _in_any_order(of, loops, body, puts[0])) is not None:
        return kernels
    groups = _groups(puts)
    return _Sorted(of, ordered, beside, body, groups, count).kernels() if _meet_at_places(body, groups) else None


def _puts(of: Known, loops: list[For], body: tuple[Stmt, ...]) -> list[Store]:
    """The stores of an iteration into arrays, in their order, if they are all that iterations have to do with one
    another; else none."""
    puts = [s for s in walk(body) if isinstance(s, Store) and not s.buf.is_scalar]
    if not all(isinstance(s, (Bind, Check, Store, If, For, While)) for s in walk(body)):
        return []
    rounds = [s for loop in walk(body) if isinstance(loop, (For, While)) for s in walk((loop,))]
    if any(isinstance(s, Check) or s in puts for s in rounds):
        return []
    if any(not put.buf.dims or put.buf.space == "stack" for put in puts):
        return []
    given = set().union(*map(names_given, body))
    read, _ = read_before_given(body, frozenset(l.index for l in loops))
    if read & given or not all(of.independent.lifetimes.private(name, loops[0]) for name in given):
        return []
    return puts


@dataclass(frozen=True)
class Group:
    """Arrays whose stores are made in one order of places: several that an iteration stores into at the same place, or
    one of which it names several. `slots`: the stores at each place of an iteration, in their order."""

    slots: tuple[tuple[Store, ...], ...]

    @property
    def puts(self) -> list[Store]:
        return [put for slot in self.slots for put in slot]

    @property
    def arrays(self) -> set[Buf]:
        return {put.buf for put in self.puts}

    @property
    def places(self) -> list[Map]:
        return [slot[0].index for slot in self.slots]


def _groups(puts: list[Store]) -> list[Group]:
    """The stores of an iteration as they go together."""
    alone: dict[Map, list[Store]] = {}
    several: list[Group] = []
    for buf in dict.fromkeys(put.buf for put in puts):
        slots: list[list[Store]] = []
        for put in puts:
            if put.buf is buf and slots and slots[-1][0].index == put.index:
                slots[-1].append(put)
            elif put.buf is buf:
                slots.append([put])
        if len(slots) > 1:
            several.append(Group(tuple(map(tuple, slots))))
        else:
            alone.setdefault(slots[0][0].index, []).extend(slots[0])
    return [*(Group((tuple(slot),)) for slot in alone.values()), *several]


def _meet_at_places(body: tuple[Stmt, ...], groups: list[Group]) -> bool:
    """Whether what is stored at a place depends on no other place of these arrays."""
    order = {stmt: k for k, stmt in enumerate(walk(body))}
    arrays = set().union(*(group.arrays for group in groups))
    times = Counter(name for s in walk(body) if not s.blocks for name in names_given(s))
    if any(times[name] > 1 for group in groups for place in group.places for e in place for name in names_of(e)):
        return False
    for group in groups:
        for slot in group.slots:
            before = max(
                (order[put] for put in group.puts if put not in slot and order[put] < order[slot[0]]), default=-2
            )
            for stmt in walk(leading_to(body, lambda s, slot=slot: s in slot)):  # type: ignore[misc]
                read = [load for load in loaded(stmt) if load.buf in arrays]
                if any(load.buf not in group.arrays or load.index != slot[0].index for load in read):
                    return False
                if read and order.get(stmt, -1) < before:
                    return False
    return True


def _in_any_order(of: Known, loops: list[For], body: tuple[Stmt, ...], put: Store) -> list[Stmt] | None:
    """The checks of a loop, then its store by as many threads as there are iterations, where it does nothing but
    combine into an array and the order of that is not seen."""
    kind, size = put.buf.dtype.kind, put.buf.dtype.itemsize
    if size < 4 or not (kind in "iu" or kind == "f" and of.target.atomic_floats):
        return None
    combined = _combined(body, put)
    if combined.monoid not in ATOMIC if kind != "f" else combined.monoid != "sum":
        return None
    stores = leading_to(_with(body, {put: replace(combined, atomic=True)}), lambda s: isinstance(s, Store) and s.atomic)
    checks = leading_to(body, lambda s: isinstance(s, Check))
    if any(load.buf is put.buf for s in walk((*checks, *stores)) for load in loaded(s)):
        return None
    shape = Shape([replace(loop, kind="red", private=None) for loop in loops], (), Roles())
    nests = [shape.nest(rows, "grid") for rows in (checks, stores) if rows]
    return [Region((nest,), shape.total, False, of.target.threads) for nest in nests]


def _with(block: tuple[Stmt, ...], others: dict[Store, Store]) -> tuple[Stmt, ...]:
    """A block with other stores in the place of some."""
    rows = (others.get(s, s) if isinstance(s, Store) else s for s in block)
    return tuple(s.with_blocks(tuple(_with(inner, others) for inner in s.blocks)) if s.blocks else s for s in rows)


def _combined(body: tuple[Stmt, ...], store: Store) -> Store:
    """`y[p] = y[p] + v`, or `old = y[p]; y[p] = old + v`, as `y[p] += v`; the store as it is where it is not that."""
    own = Load(store.buf, store.index)
    olds = [s for s in walk(body) if isinstance(s, (Bind, Store)) and s is not store and s.value == own]
    added, monoid = _added(store, own, frozenset().union(*map(names_given, olds)))
    return store if added is None else replace(store, value=added, monoid=monoid)


def _added(store: Store, own: Load, names: frozenset[str]) -> tuple[E | None, str | None]:
    """What a store combines with what lies there, which is `own` and variables of these names, and how."""
    value = store.value
    if store.monoid is not None:
        return value, store.monoid
    if isinstance(value, Index):
        rest = [value.dim - Sym(name) for name in names & symbols_of([value.dim])]
        return (Index(rest[0]), "sum") if len(rest) == 1 and not names & symbols_of(rest) else (None, None)
    if not isinstance(value, Op) or len(value.args) != 2:
        return None, None
    monoids = [m.name for m in MONOIDS.values() if m.combine == value.name and value.dtype == store.buf.dtype]
    others = [e for e in value.args if e != own and not _is_one_of(e, names)]
    return (others[0], monoids[0]) if monoids and len(others) == 1 and not names & names_of(others[0]) else (None, None)


def _is_one_of(e: E, names: frozenset[str]) -> bool:
    """Whether an expression is a variable, one of those."""
    if isinstance(e, Load):
        return not e.buf.dims and e.buf.name in names
    return isinstance(e, Index) and isinstance(e.dim, Dim) and e.dim.is_sym and e.dim.name in names


class _Sorted:
    """Stores that are made in the order of their places."""

    def __init__(
        self,
        of: Known,
        ordered: list[For],
        beside: list[For],
        body: tuple[Stmt, ...],
        groups: list[Group],
        count: DimLike,
    ):
        self.of, self.ordered, self.beside = of, ordered, beside
        self.body, self.groups, self.count = body, groups, count
        self.arrays = set().union(*(group.arrays for group in groups))
        self.data, self.lanes = ({l.index for l in some} for some in (ordered, beside))
        for _ in range(2):  # what a round of a loop inside hands on to the next
            for stmt in walk(body):
                for names in (self.data, self.lanes):
                    if names_read(stmt) & names:
                        names |= names_given(stmt)

    def kernels(self) -> list[Stmt] | None:
        made: list[Stmt] = []
        for group in self.groups:
            found = self.of_group(group, checked=not made)
            if found is None:
                return None
            made += found
        return made

    def axes(self, group: Group) -> list[int] | None:
        """Those axes of an array that tell the places which meet, if the others are the same in all iterations, or are
        those of loops beside."""
        axes = []
        for axis, entries in enumerate(zip(*group.places)):
            names = frozenset().union(*map(names_of, entries))
            tells = bool(names & self.data) or any(e != entries[0] for e in entries)
            if tells and names & self.lanes:
                return None
            axes += [axis] if tells else []
        # The dims of an array that grows, which number the places, may not be known to the kernel.
        buf = group.puts[0].buf
        unknown = buf.dynamic and not all(isinstance(buf.dims[axis], int) for axis in axes[1:])
        return None if not axes or unknown else axes

    def of_group(self, group: Group, checked: bool) -> list[Stmt] | None:
        """The keys of all stores, their order, and the stores; `checked`: behind the checks of the loop."""
        axes, span = self.axes(group), self.ordered[0].span
        if axes is None:
            return None
        of, each = self.of, len(group.slots)
        names = {base: of.fresh(base) for base in ("keys", "order", "k", "m", "element")}
        key, order = (Buf(names[base], i64, (self.count * each,)) for base in ("keys", "order"))
        k, m, element = (Sym(names[base]) for base in ("k", "m", "element"))
        noted, are_all_made = self.with_keys(group, axes, key, k, checked)
        if any(load.buf in self.arrays for s in walk(noted) for load in loaded(s)):  # before anything is stored
            return None
        first = For(names["k"], self.count, noted, "par", span, on="grid")
        if any(names_read(s) & self.lanes for s in walk((first,))):
            return None

        def at(position: DimLike) -> E:
            return Load(key, (Load(order, (position,)),))

        begins = Op("ne", (at(k), at(dim_max(k - 1, 0))), TRUTH)
        begins = Op("or", (Op("eq", (Index(k), Index(0)), TRUTH), begins), TRUTH)
        if not are_all_made:
            begins = Op("and", (Op("ne", (at(k), Index(-1)), TRUTH), begins), TRUTH)
        goes_on = Op("eq", (at(k + m), at(k)), TRUTH)
        inside = (Bind(names["element"], Load(order, (k + m,)), span), *self.of_element(group, element))
        rounds = While(names["m"], (), goes_on, inside, self.count * each - k, span)
        loops = [For(of.fresh("k"), self.count * each, (), "par", span), *self.beside]
        shape = Shape(loops, (), Roles())
        here = {names["k"]: Sym(loops[0].index)}
        nest = shape.nest((rename_statement(If(begins, (rounds,), (), span), here),), "grid")
        lines = (View(key, (0,), key.dims, (1,)),), (View(order, (0,), order.dims, (1,)),)
        return [
            Region((first,), self.count, False, of.target.threads),
            LibraryCall("argsort", *lines, (("axis", 0),), span),
            Region((nest,), shape.total, False, of.target.threads),
        ]

    def with_keys(
        self, group: Group, axes: list[int], key: Buf, k: Dim, checked: bool
    ) -> tuple[tuple[Stmt, ...], bool]:
        """An iteration that notes the places of its stores, and makes none; and whether it notes all of them, taken or
        not: so it does with those that are known outside of their branches, where these ask for what is stored."""
        keys: dict[Store, Store] = {}
        missed: list[Stmt] = []
        anyway: list[Stmt] = []
        in_branches = set().union(*(names_given(s) for s in self.body if isinstance(s, If)))
        for number, slot in enumerate(group.slots):
            place, *more = (e if isinstance(e := slot[0].index[axis], E) else Index(e) for axis in axes)
            for entry, axis in zip(more, axes[1:]):
                place = Op("add", (Op("mul", (place, Index(slot[0].buf.dims[axis])), i64), entry), i64)
            note = Store(key, (k * len(group.slots) + number,), place, None, slot[0].span)
            if any(put in self.body for put in slot) or self.asks(slot) and not names_of(place) & in_branches:
                anyway.append(note)
            else:
                keys |= {put: replace(note) for put in slot}
                missed.append(replace(note, value=Index(-1)))
        wanted = {*keys.values(), *anyway}
        rows = leading_to((*_with(self.body, keys), *anyway), lambda s: s in wanted or checked and isinstance(s, Check))
        return unravelled((*missed, *rows), k, self.ordered, self.of.fresh), not missed

    def asks(self, slot: tuple[Store, ...]) -> bool:
        """Whether some branch of theirs is taken for what the loop stores."""
        rows = leading_to(self.body, lambda s: s in slot)
        return any(load.buf in self.arrays for s in walk(rows) if isinstance(s, If) for load in loaded(s))

    def of_element(self, group: Group, element: Dim) -> tuple[Stmt, ...]:
        """The stores of one slot of an iteration: `element % each` of `element // each`."""
        each = len(group.slots)
        rows: tuple[Stmt, ...] = ()
        for number, slot in reversed([*enumerate(group.slots)]):
            own = leading_to(self.body, lambda s, slot=slot: s in slot)  # type: ignore[misc]
            own = unravelled(own, floordiv(element, each), self.ordered, self.of.fresh)
            asked = Op("eq", (Index(mod(element, each)), Index(number)), TRUTH)
            rows = (If(asked, own, rows, slot[0].span),) if rows else own
        return rows


__all__ = ["scattered"]
