"""Stores at places that data name, on a GPU: a stable sort brings those together that meet in one place, and one thread
does them in their order.

In: a loop that stores into an array at places read from data. Out: the kernels in its place. Example:

    for j in range(n):               for j in range(n): keys[j] = t[j]                         # on the grid
        y[t[j]] += v[j]        ->    argsort(keys, order)
                                     for k in range(n):                                        # on the grid
                                         if k == 0 or keys[order[k]] != keys[order[k - 1]]:
                                             for m in range(n - k) while keys[order[k + m]] == keys[order[k]]:
                                                 y[t[order[k + m]]] += v[order[k + m]]

Every place sees what it would see if the loop ran as it stands, in the same order: floats are the same to the bit, and
of plain stores the last one stays. Integers that are added up, or of which the largest or smallest stays, are the same
in any order: they are combined by atomic operations, and nothing is sorted. Checks are made before any store: what the
loop had stored when it failed is lost, and so it has to be an array that the caller does not see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from metaphrase.core.dims import Dim, DimLike, Sym, dim_max, product, symbols, symbols_of
from metaphrase.core.scalars import MONOIDS
from metaphrase.core.types import i64

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
    Op,
    Stmt,
    Store,
    View,
    While,
    expression_symbols,
    loaded,
    walk,
)
from .rewrite import rename_statement
from .shapes import Shape, unravelled
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
    if len(ordered) + len(beside) < len(loops) or any(_names(l.extent) & indices for l in loops):
        return None
    if not ordered or isinstance(count, int) and count < of.target.grid_from or symbols_of([count]) - of.sizes:
        return None
    if all(of.independent.roles(l) is not None for l in ordered):  # no two iterations meet in one place
        return None
    guard = body[-1] if body and isinstance(body[-1], If) and not body[-1].orelse else None
    whole = body if guard is None else (*body[:-1], *guard.then)
    store = _store(of, loops, whole)
    if store is None:
        return None
    data, lanes = ({l.index for l in some} for some in (ordered, beside))
    for stmt in whole[:-1]:
        for names in (data, lanes):
            if _used(stmt) & names:
                names |= _given(stmt)
    entries = [(e, d, _names(e)) for e, d in zip(store.index, store.buf.dims)]
    keys = [(e, d) for e, d, names in entries if names & data]
    checks = [s for s in whole if isinstance(s, Check)]
    if checks and store.buf.space == "arg":
        return None
    kind, size = store.buf.dtype.kind, store.buf.dtype.itemsize
    if (kind in "iu" or kind == "f" and of.target.atomic_floats) and size >= 4:
        before, combined = _combined(whole[:-1], store, guard)
        exact = combined.monoid in ATOMIC if kind != "f" else combined.monoid == "sum"
        if exact and (kernels := _with_atomics(of, loops, before, combined, guard)) is not None:
            return kernels
    if guard is not None or not keys or any(names & data and names & lanes for _, _, names in entries):
        return None
    if store.buf.dynamic and len(keys) > 1:  # its dims, which number the places, are not known to the kernel
        return None
    needed = [s for s in body[:-1] if not _used(s) & lanes]
    if any(_used(s) & lanes for s in checks):
        return None
    first, *others = _kernels(of, ordered, beside, needed, body, keys, count)
    early = any(load.buf is store.buf for s in walk((first,)) for load in loaded(s))  # before anything is stored
    return None if early else [first, *others]


def _combined(before: tuple[Stmt, ...], store: Store, guard: If | None) -> tuple[tuple[Stmt, ...], Store]:
    """`y[p] = y[p] + v`, or `old = y[p]; y[p] = old + v`, as `y[p] += v`; both as they are where it is not that, or
    `old` is asked for besides."""
    own = Load(store.buf, store.index)
    olds = [s for s in before if isinstance(s, (Bind, Store)) and s.value == own]
    others = tuple(s for s in before if s not in olds)
    names = frozenset().union(*map(_given, olds))
    added, monoid = _added(store, own, names)
    if added is None or any(names & _used(s) for s in (*others, *([] if guard is None else [guard]))):
        return before, store
    return others, replace(store, value=added, monoid=monoid)


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
    return (others[0], monoids[0]) if monoids and len(others) == 1 and not names & _names(others[0]) else (None, None)


def _is_one_of(e: E, names: frozenset[str]) -> bool:
    """Whether an expression is a variable, one of those."""
    if isinstance(e, Load):
        return not e.buf.dims and e.buf.name in names
    return isinstance(e, Index) and isinstance(e.dim, Dim) and e.dim.is_sym and e.dim.name in names


def _with_atomics(
    of: Known, loops: list[For], before: tuple[Stmt, ...], store: Store, guard: If | None
) -> list[Stmt] | None:
    """Checks, then the store by as many threads as there are iterations; None where a check reads what is stored.
    `guard`: under whose condition the last ones of the body stand."""
    if any(load.buf is store.buf for s in (*before, store, *([] if guard is None else [guard])) for load in loaded(s)):
        return None
    shape = Shape([replace(loop, kind="red", private=None) for loop in loops], (), Roles())

    def region(last: Stmt, before: Sequence[Stmt]) -> Region:
        if guard is None:
            rows = _leading_to(last, before)
        else:
            inside = _leading_to(last, [s for s in before if s in guard.then])
            asked = replace(guard, then=inside)
            rows = _leading_to(
                asked, [s for s in before if s not in guard.then], frozenset().union(*map(_used, inside))
            )
        return Region((shape.nest(rows, "grid"),), shape.total, False, of.target.threads)

    stores = region(replace(store, atomic=True), [s for s in before if not isinstance(s, Check)])
    checks = [k for k, s in enumerate(before) if isinstance(s, Check)]
    return [region(before[checks[-1]], before[: checks[-1]]), stores] if checks else [stores]


def _store(of: Known, loops: list[For], body: tuple[Stmt, ...]) -> Store | None:
    """The last statement of the body, if it is all that iterations have to do with one another."""
    *before, store = body
    if not all(
        isinstance(s, (Bind, Check)) or isinstance(s, Store) and s.buf.is_scalar and not s.monoid for s in before
    ):
        return None
    if not isinstance(store, Store) or not store.buf.dims or store.buf.space == "stack":
        return None
    if any(load.buf is store.buf and load.index != store.index for s in body for load in loaded(s)):
        return None  # its own place it may read
    given = set().union(*map(_given, before))
    read, _ = read_before_given(body, frozenset(l.index for l in loops))
    if read & given or not all(of.independent.lifetimes.private(name, loops[0]) for name in given):
        return None
    return store


def _kernels(
    of: Known,
    ordered: list[For],
    beside: list[For],
    needed: list[Stmt],
    body: tuple[Stmt, ...],
    keys: list[tuple[E | DimLike, DimLike]],
    count: DimLike,
) -> list[Stmt]:
    span = ordered[0].span
    names = {base: of.fresh(base) for base in ("keys", "order", "k", "m", "element")}
    key, order = (Buf(names[base], i64, (count,)) for base in ("keys", "order"))
    k, m, element = (Sym(names[base]) for base in ("k", "m", "element"))
    place, *more = (entry if isinstance(entry, E) else Index(entry) for entry, _ in keys)
    for entry, (_, dim) in zip(more, keys[1:]):
        place = Op("add", (Op("mul", (place, Index(dim)), i64), entry), i64)
    made = _leading_to(Store(key, (k,), place), needed)
    first = For(names["k"], count, unravelled(tuple(made), k, ordered, of.fresh), "par", span, on="grid")

    def at(position: DimLike) -> E:
        return Load(key, (Load(order, (position,)),))

    begins = Op("ne", (at(k), at(dim_max(k - 1, 0))), TRUTH)
    begins = Op("or", (Op("eq", (Index(k), Index(0)), TRUTH), begins), TRUTH)
    goes_on = Op("eq", (at(k + m), at(k)), TRUTH)
    stores = tuple(_leading_to(body[-1], [s for s in body[:-1] if not isinstance(s, Check)]))
    stores = unravelled(stores, element, ordered, of.fresh)
    inside = (Bind(names["element"], Load(order, (k + m,)), span), *stores)
    rounds = While(names["m"], (), goes_on, inside, count - k, span)
    loops = [For(of.fresh("k"), count, (), "par", span), *beside]
    shape = Shape(loops, (), Roles())
    nest = shape.nest((rename_statement(If(begins, (rounds,), (), span), {names["k"]: Sym(loops[0].index)}),), "grid")
    lines = (View(key, (0,), (count,), (1,)),), (View(order, (0,), (count,), (1,)),)
    return [
        Region((first,), count, False, of.target.threads),
        LibraryCall("argsort", *lines, (("axis", 0),), span),
        Region((nest,), shape.total, False, of.target.threads),
    ]


def _leading_to(last: Stmt, before: Sequence[Stmt], more: frozenset[str] = frozenset()) -> tuple[Stmt, ...]:
    """A statement behind those that it needs, and behind checks. `more`: what the statements inside of it read."""
    rows, wanted = [last], {*_used(last), *more}
    for stmt in reversed(before):
        if isinstance(stmt, Check) or _given(stmt) & wanted:
            rows.insert(0, stmt)
            wanted |= _used(stmt)
    return tuple(rows)


def _given(stmt: Stmt) -> set[str]:
    """The variable that a statement gives a value."""
    return {stmt.buf.name} if isinstance(stmt, Store) else set() if stmt.binds is None else {stmt.binds}


def _used(stmt: Stmt) -> frozenset[str]:
    """The variables that a statement without blocks reads."""
    return frozenset().union(*map(_names, stmt.expressions), *(_names(e) for a in stmt.accesses for e in a.index))


def _names(e: E | DimLike) -> frozenset[str]:
    """Symbols, and variables of their names, in an expression or a size."""
    if isinstance(e, E):
        return expression_symbols(e) | {load.buf.name for load in loaded(Bind("", e)) if not load.buf.dims}
    return symbols(e) if isinstance(e, Dim) else frozenset()


__all__ = ["scattered"]
