"""Sums of floats that a user's loop carries: threads work out what iterations add, and one of them adds it in order.

In: a loop whose iterations are long. Out: two: the first notes what each iteration adds, the second adds it up, so that
the sum is that of the loop as it was written, to the bit. Example:

    for i in range(n):                        for block in range((n + 65535) // 65536):
        x = path(i)                               for i in range(min(n - 65536*block, 65536)):
        if x > k:                                     term = -0.0                                # which changes no sum
            total = total + (x - k)    ->             x = path(65536*block + i)
                                                      if x > k:
                                                          term = x - k
                                                      terms[i] = term
                                                  for i in range(min(n - 65536*block, 65536)):
                                                      total = total + terms[i]

An inner loop adds so often as its rounds are, and is no place for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from metaphrase.core.dims import Sym, dim_min
from metaphrase.core.scalars import MONOIDS

from .blocks import Blocks
from .lifetimes import keys_read, keys_written, read_before_given
from .names import Names
from .nest import Buf, E, For, If, Load, Map, Op, Stmt, Store, constant, local, walk

_MONOIDS = {MONOIDS[name].combine: name for name in ("sum", "prod")}


class InOrder(NamedTuple):
    """Statements in the place of a loop, and the loop among them whose iterations may be independent."""

    rows: list[Stmt]
    loop: For


class _Differs(Exception):
    """An iteration does more with a variable than to add to it, or does it in a loop."""


class _Term(NamedTuple):
    """What one statement adds to a variable: an array with an element for each iteration, and, where a branch decides
    whether it adds, a variable that holds what changes nothing where it does not."""

    total: Buf
    monoid: str
    terms: Buf
    own: Buf | None

    def nothing(self) -> E:
        return constant(MONOIDS[self.monoid].before_first(self.total.dtype), self.total.dtype)


def in_order(loop: For, names: Names, most: int) -> InOrder | None:
    """A loop as one that notes what its iterations add to variables and one that adds it; None where there is no such
    variable, or an iteration does more with one. `most`: iterations of a block."""
    inside = list(walk(loop.body))
    bufs = {s.buf.name: s.buf for s in inside if isinstance(s, Store) and not s.buf.dims}
    written = {key for s in inside for key in keys_written(s) if isinstance(key, str)}
    carried = read_before_given(loop.body, frozenset([loop.index]))[0] & written & bufs.keys()
    totals = [bufs[name] for name in sorted(carried) if bufs[name].dtype.kind in "fc"]
    here = Blocks(loop, most, loop.extent, names)
    body = loop.body
    kept: list[_Term] = []
    for total in totals:
        sums = _Sums(total, here, names)
        try:
            body = sums.block(body, False)
        except _Differs:
            continue  # an extreme, it may be
        kept += sums.terms
    if not kept:
        return None
    begins = tuple(Store(t.own, (), t.nothing()) for t in kept if t.own is not None)
    ends = tuple(Store(t.terms, (Sym(here.within),), Load(t.own)) for t in kept if t.own is not None)
    inner = tuple(map(here.iteration, (*begins, *body, *ends)))
    noting = replace(loop, index=here.within, extent=here.count, body=inner)
    again = names.fresh(loop.index)
    adding = tuple(
        Store(t.total, (), Op(MONOIDS[t.monoid].combine, (Load(t.total), Load(t.terms, (Sym(again),))), t.total.dtype))
        for t in kept
    )
    return InOrder(here.around([noting, For(again, here.count, adding, "seq", loop.span)]), noting)


class _Sums:
    """The statements of a loop that add to one variable, or multiply it."""

    def __init__(self, total: Buf, here: Blocks, names: Names):
        self.total, self.here, self.fresh, self.monoid = total, here, names.fresh, ""
        self.terms: list[_Term] = []

    def block(self, block: tuple[Stmt, ...], decided: bool) -> tuple[Stmt, ...]:
        """A block with what it adds noted. `decided`: it is a side of a branch."""
        rows: list[Stmt] = []
        for stmt in block:
            name = self.total.name
            if name in keys_read(stmt) or name in keys_written(stmt):
                rows += self.noted(stmt, decided)
            elif isinstance(stmt, If):
                rows.append(stmt.with_blocks(tuple(self.block(inner, True) for inner in stmt.blocks)))
            elif stmt.blocks and any(name in keys_written(s) | keys_read(s) for s in walk((stmt,))):
                raise _Differs
            else:
                rows.append(stmt)
        return tuple(rows)

    def noted(self, stmt: Stmt, decided: bool) -> list[Stmt]:
        if not isinstance(stmt, Store) or stmt.buf is not self.total:
            raise _Differs
        monoid, values = (stmt.monoid, [stmt.value]) if stmt.monoid else self.added(stmt.value)
        if monoid not in _MONOIDS.values() or self.monoid not in ("", monoid):
            raise _Differs
        if decided and monoid == "prod" and self.total.dtype.kind == "c":  # infinity times 1 + 0j is not infinity
            raise _Differs
        self.monoid = monoid
        rows: list[Stmt] = []
        for value in values:
            if self.total.name in keys_read(Store(self.total, (), value)):
                raise _Differs
            term = self.term(decided)
            place: tuple[Buf, Map] = (term.terms, (Sym(self.here.within),)) if term.own is None else (term.own, ())
            rows.append(Store(*place, value, None, stmt.span))
        return rows

    def term(self, decided: bool) -> _Term:
        dtype: np.dtype = self.total.dtype
        held = dim_min(self.here.loop.extent, self.here.held)
        terms = Buf(self.fresh(f"{self.total.name}_terms"), dtype, (held,))
        own = local(self.fresh(f"{self.total.name}_term"), dtype) if decided else None
        self.terms.append(_Term(self.total, self.monoid, terms, own))
        return self.terms[-1]

    def added(self, e: E) -> tuple[str, list[E]]:
        """How an expression combines the variable with others, and these in their order."""
        if not isinstance(e, Op) or len(e.args) != 2:
            raise _Differs
        a, b = e.args
        so_far = Load(self.total)
        negated: Callable[[E], E] = lambda x: Op("neg", (x,), e.dtype, e.span) if e.name == "sub" else x
        monoid = "sum" if e.name == "sub" else _MONOIDS.get(e.name, "")
        if a == so_far:
            return monoid, [negated(b)]
        if b == so_far and e.name != "sub":
            return monoid, [a]
        inner, values = self.added(a)
        if inner != monoid:
            raise _Differs
        return monoid, [*values, negated(b)]


__all__ = ["InOrder", "in_order"]
