"""Lanes in lockstep: a parallel loop around `while` loops runs 32 iterations side by side, and so vectorises.

In: the fused tree. Out: parallel loops over scalars cut into blocks of lanes and a rest. Each lane stops when
it is done; a block stops when its last lane does. Branches become choices. Other loops stay as they are.

    for i in range(n):                 for b in range(n//32):
        E = M                              for l in range(32): E[l] = M; running[l] = 1
        while test(E):         ->          while any running:
            E = step(E)                        for l in range(32): next_E[l] = step(E[l])
        out[i] = E                             for l in range(32): E[l] = next_E[l] if running[l] else E[l]
                                           for l in range(32): out[32*b + l] = E[l]
                                       the rest, one by one

The new values are stored before they are chosen from: gcc would move a call into the branch of the choice,
and branches do not vectorise.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from metaphrase.core.dims import Dim, DimLike, Sym, floordiv, symbols
from metaphrase.core.scalars import facts
from metaphrase.core.types import i64

from .lifetimes import Lifetimes, key_of
from .names import Names
from .nest import (
    Bind,
    Buf,
    E,
    For,
    Grow,
    If,
    Index,
    Load,
    Map,
    Op,
    Stmt,
    Store,
    While,
    loaded,
    local,
    subexpressions,
    touched,
    walk,
)
from .place import divided
from .rewrite import map_expression, rename_statement
from .target import Target

BOOL = np.dtype(bool)


class _DoesNotFit(Exception):
    """This loop stays as it is."""


def lockstep(block: tuple[Stmt, ...], names: Names, target: Target) -> tuple[Stmt, ...]:
    """Rewrite every parallel loop of scalars that has a `while` in it."""
    if target.lanes < 2 or not any(isinstance(s, While) for s in walk(block)):
        return block
    return _in_block(block, names, target, Lifetimes(block))


def _in_block(block: tuple[Stmt, ...], names: Names, target: Target, lifetimes: Lifetimes) -> tuple[Stmt, ...]:
    rows: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, For) and stmt.kind == "par" and any(isinstance(s, While) for s in walk(stmt.body)):
            if not isinstance(stmt.extent, int) or stmt.extent >= target.lockstep_from:
                try:
                    rows.extend(_Lanes(stmt, names, lifetimes, target.lanes).rewritten())
                    continue
                except _DoesNotFit:
                    pass
        rows.append(
            stmt.with_blocks(tuple(_in_block(b, names, target, lifetimes) for b in stmt.blocks))
            if stmt.blocks
            else stmt
        )
    return tuple(rows)


class _Lanes:
    def __init__(self, loop: For, names: Names, lifetimes: Lifetimes, width: int):
        self.loop, self.names, self.width = loop, names, width
        self.outer, self.lane = names.fresh("i"), names.fresh("i")
        inside = list(walk(loop.body))
        self.check(inside)
        used = {b for s in inside for b in _bufs(s)}
        temporaries = {b for b in used if b.dims and b.is_temporary}
        self.private = {b for b in temporaries if lifetimes.private(b, loop)}
        written = {b for s in inside for b in touched(s)}
        if not all(divided(b, loop) for b in temporaries & written - self.private):
            raise _DoesNotFit
        self.uses = Counter(load.buf for s in inside for load in loaded(s))
        self.uses.update(s.buf for s in inside if isinstance(s, Store))
        self.arrays: dict[Buf, Buf] = {}  # a scalar or private array and its storage by lanes
        self.counts: dict[str, Buf] = {}  # a while's counter and how far each lane got
        self.integers: dict[str, Buf] = {}  # an integer variable by lanes
        for stmt in inside:
            if isinstance(stmt, Store) and not stmt.buf.dims:
                if not lifetimes.private(key_of(stmt.buf), loop):
                    raise _DoesNotFit
                self.storage(stmt.buf)
            elif isinstance(stmt, Bind):
                self.integers.setdefault(stmt.name, Buf(names.fresh(stmt.name + "_lanes"), i64, (self.width,)))
            elif isinstance(stmt, While):
                self.counts.setdefault(stmt.counter, Buf(names.fresh("count"), i64, (self.width,)))

    def check(self, inside: list[Stmt]) -> None:
        for stmt in inside:
            if not isinstance(stmt, (Store, Bind, For, While, If, Grow)):
                raise _DoesNotFit
            if isinstance(stmt, Store) and stmt.monoid:
                raise _DoesNotFit
            for e in stmt.expressions:
                for x in subexpressions(e):
                    if isinstance(x, Op) and not facts(x.name).side_by_side:
                        raise _DoesNotFit
                    if x.dtype.kind not in "fib" or x.dtype.itemsize == 2:
                        raise _DoesNotFit

    def storage(self, buf: Buf) -> Buf:
        """The storage by lanes of a scalar, or of a private array (the lane is its last dim)."""
        if buf not in self.arrays:
            made = Buf(
                self.names.fresh(buf.name + "_lanes"),
                buf.dtype,
                (*buf.dims, self.width),
                buf.space,
                dynamic=buf.dynamic,
            )
            self.arrays[buf] = made
        return self.arrays[buf]

    def rewritten(self) -> list[Stmt]:
        whole: DimLike = floordiv(self.loop.extent, self.width)
        here = Sym(self.outer) * self.width + Sym(self.lane)
        body = tuple(rename_statement(s, {self.loop.index: here}) for s in self.loop.body)
        rows: list[Stmt] = []
        if not isinstance(whole, int):
            name = self.names.fresh("blocks")
            rows.append(Bind(name, Index(whole)))
            whole = Sym(name)
        rows.append(For(self.outer, whole, tuple(self.block(body, None)), "par", self.loop.span))
        rest = self.loop.extent - whole * self.width
        if rest != 0:
            tail = self.names.fresh("i")
            values: dict[str, DimLike] = {self.loop.index: whole * self.width + Sym(tail)}
            rows.append(
                For(tail, rest, tuple(rename_statement(s, values) for s in self.loop.body), "par", self.loop.span)
            )
        return rows

    # --- statements ---------------------------------------------------------------------------------

    def block(self, block: tuple[Stmt, ...], mask: Buf | None) -> list[Stmt]:
        """The statements for all lanes; under `mask` (i64, 0 or 1 a lane) only for those that run."""
        rows: list[Stmt] = []
        straight: list[Stmt] = []

        def flush() -> None:
            if straight:
                rows.extend(self.side_by_side(straight, mask))
                straight.clear()

        for stmt in block:
            if isinstance(stmt, (Store, Bind)):
                straight.append(stmt)
                continue
            flush()
            if isinstance(stmt, Grow):
                if any(b not in self.private for b in stmt.bufs):
                    raise _DoesNotFit
                rows.append(Grow(tuple(self.storage(b) for b in stmt.bufs), stmt.length, stmt.span))
            elif isinstance(stmt, While):
                rows.extend(self.loop_until_done(stmt, mask))
            elif isinstance(stmt, If):
                rows.extend(self.choice(stmt, mask))
            elif isinstance(stmt, For):
                rows.extend(self.counted(stmt, mask))
        flush()
        return rows

    def all_lanes(self, *body: Stmt, kind: str = "par") -> For:
        own = self.names.fresh("i")  # every loop has an index of its own
        return For(own, self.width, tuple(rename_statement(s, {self.lane: Sym(own)}) for s in body), kind)

    def at(self, buf: Buf) -> Load:
        return Load(buf, (Sym(self.lane),))

    def side_by_side(self, block: list[Stmt], mask: Buf | None) -> list[Stmt]:
        """One loop over the lanes that computes; under a mask a second that keeps what must not change."""
        body: list[Stmt] = []
        fresh: dict[Buf, Buf] = {}
        passing = self.passing(block)
        for stmt in block:
            if isinstance(stmt, Store) and stmt.buf in passing:
                body.append(replace(stmt, value=self.expression(stmt.value, fresh, passing)))
                continue
            if isinstance(stmt, Store) and stmt.buf.dims:
                if mask is not None and stmt.buf not in self.private:
                    raise _DoesNotFit
                buf, index = self.place(stmt.buf, stmt.index)
                body.append(Store(buf, index, self.expression(stmt.value, fresh, passing), None, stmt.span))
                continue
            assert isinstance(stmt, (Store, Bind))
            target = self.storage(stmt.buf) if isinstance(stmt, Store) else self.integers[stmt.name]
            value = self.expression(stmt.value, fresh, passing)
            if mask is not None:
                target.unbound = True  # a lane that does not run keeps what it has, if only what was there before
                fresh.setdefault(target, Buf(self.names.fresh("next_" + target.name), target.dtype, (self.width,)))
                target = fresh[target]
            body.append(Store(target, (Sym(self.lane),), value, None, stmt.span))
        rows: list[Stmt] = [self.all_lanes(*body)]
        if mask is not None and fresh:
            running = Op("ne", (self.at(mask), Index(0)), BOOL)
            rows.append(
                self.all_lanes(
                    *(
                        Store(old, (Sym(self.lane),), Op("select", (running, self.at(new), self.at(old)), old.dtype))
                        for old, new in fresh.items()
                    )
                )
            )
        return rows

    def passing(self, block: list[Stmt]) -> set[Buf]:
        """Scalars that are made and read in this stretch only: they need no storage by lanes."""
        here: Counter = Counter()
        first: dict[Buf, bool] = {}  # whether the first access is a write
        for stmt in block:
            for load in (x for x in loaded(stmt)):
                here[load.buf] += 1
                first.setdefault(load.buf, False)
            if isinstance(stmt, Store):
                here[stmt.buf] += 1
                first.setdefault(stmt.buf, True)
        return {b for b, count in here.items() if not b.dims and first[b] and self.uses[b] == count}

    def place(self, buf: Buf, index: Map) -> tuple[Buf, Map]:
        for entry in index:
            if isinstance(entry, E) or symbols(entry) & set(self.integers):
                raise _DoesNotFit
        return (self.storage(buf), (*index, Sym(self.lane))) if buf in self.private else (buf, index)

    def expression(self, e: E, fresh: dict[Buf, Buf], passing: set[Buf] = frozenset()) -> E:  # type: ignore
        def change(x: E) -> E | None:
            if isinstance(x, Load):
                if x.buf in passing:
                    return x
                if x.buf.dims:
                    return Load(*self.place(x.buf, x.index))
                if x.buf in self.arrays:
                    held = self.arrays[x.buf]
                    return self.at(fresh.get(held, held))
            if isinstance(x, Index) and isinstance(x.dim, Dim):
                return self.integer(x.dim, fresh)
            return None

        return map_expression(e, change)

    def integer(self, dim: Dim, fresh: dict[Buf, Buf]) -> E | None:
        """An integer expression whose variables differ by lane."""
        by_lane = symbols(dim) & (set(self.integers) | set(self.counts))
        if not by_lane:
            return None
        if dim.is_sym:
            held = self.integers.get(dim.name) or self.counts[dim.name]
            return self.at(fresh.get(held, held))
        total: E | None = None
        for monomial, coefficient in dim.terms:
            if len(monomial) > 1 or monomial and (monomial[0][1] != 1 or monomial[0][0].kind != "sym"):
                raise _DoesNotFit
            term: E = Index(coefficient)
            if monomial:
                name = Sym(monomial[0][0].name)
                value = self.integer(name, fresh) or Index(name)
                term = value if coefficient == 1 else Op("mul", (Index(coefficient), value), i64)
            total = term if total is None else Op("add", (total, term), i64)
        return total

    # --- loops and branches --------------------------------------------------------------------------

    def mask(self, name: str) -> Buf:
        return Buf(self.names.fresh(name), i64, (self.width,))

    def loop_until_done(self, loop: While, mask: Buf | None) -> list[Stmt]:
        running, count = self.mask("running"), self.counts[loop.counter]
        alive = local(self.names.fresh("alive"), i64)
        lane = (Sym(self.lane),)
        start = Index(1) if mask is None else self.at(mask)
        rows: list[Stmt] = [self.all_lanes(Store(running, lane, start), Store(count, lane, Index(0)))]
        if loop.limit is not None and symbols(loop.limit) & (set(self.integers) | set(self.counts)):
            raise _DoesNotFit
        # Inside, all lanes that run have come equally far: the counter is one number.
        own = self.counts.pop(loop.counter)
        before = self.block(loop.before, running)
        test = self.expression(loop.condition, {})
        still = Op("select", (test, self.at(running), Index(0)), i64)
        before += [
            self.all_lanes(Store(running, lane, still)),
            Store(alive, (), Index(0)),
            self.all_lanes(Store(alive, (), self.at(running), "sum"), kind="red"),
        ]
        body = self.block(loop.body, running)
        self.counts[loop.counter] = own
        body.append(self.all_lanes(Store(count, lane, self.at(running), "sum")))
        rows.append(
            While(
                loop.counter, tuple(before), Op("gt", (Load(alive), Index(0)), BOOL), tuple(body), loop.limit, loop.span
            )
        )
        return rows

    def choice(self, stmt: If, mask: Buf | None) -> list[Stmt]:
        if any(isinstance(s, Store) and s.buf.dims or isinstance(s, (For, While, Grow)) for s in walk((stmt,))):
            raise _DoesNotFit
        yes, no = self.mask("yes"), self.mask("no")
        whole = Index(1) if mask is None else self.at(mask)
        test = self.expression(stmt.condition, {})
        lane = (Sym(self.lane),)
        rows: list[Stmt] = [
            self.all_lanes(
                Store(yes, lane, Op("select", (test, whole, Index(0)), i64)),
                Store(no, lane, Op("sub", (whole, self.at(yes)), i64)),
            )
        ]
        return rows + self.block(stmt.then, yes) + self.block(stmt.orelse, no)

    def counted(self, loop: For, mask: Buf | None) -> list[Stmt]:
        """A loop of one length for all; or one back over the rows of a while, as far as each lane got."""
        extent = loop.extent
        by_lane = symbols(extent) & (set(self.integers) | set(self.counts))
        if not by_lane:
            return [For(loop.index, extent, tuple(self.block(loop.body, mask)), loop.kind, loop.span)]
        if not isinstance(extent, Dim) or not extent.is_sym or extent.name not in self.counts or mask is not None:
            raise _DoesNotFit
        back = extent - Sym(loop.index) - 1
        for stmt in walk(loop.body):
            for dim in _dims(stmt):
                names = symbols(dim) & {loop.index, extent.name}
                if names and symbols(dim - back) & {loop.index, extent.name}:
                    raise _DoesNotFit
        running, count = self.mask("running"), self.counts.pop(extent.name)
        test = Op("lt", (Index(back), self.at(count)), BOOL)
        first = self.all_lanes(Store(running, (Sym(self.lane),), Op("select", (test, Index(1), Index(0)), i64)))
        body = (first, *self.block(loop.body, running))
        self.counts[extent.name] = count
        return [For(loop.index, extent, body, loop.kind, loop.span)]


def _bufs(stmt: Stmt) -> set[Buf]:
    return set(touched(stmt)) | {load.buf for load in loaded(stmt)}


def _dims(stmt: Stmt) -> list[DimLike]:
    """Every dim expression of a statement."""
    found: list[DimLike] = []
    for e in stmt.expressions:
        for x in subexpressions(e):
            if isinstance(x, Index):
                found.append(x.dim)
            elif isinstance(x, Load):
                found += [i for i in x.index if not isinstance(i, E)]
    if isinstance(stmt, Store):
        found += [i for i in stmt.index if not isinstance(i, E)]
    elif isinstance(stmt, For):
        found.append(stmt.extent)
    elif isinstance(stmt, Grow):
        found.append(stmt.length)
    return found


__all__ = ["lockstep"]
