"""Loops whose iterations several threads share: parts of them become calls of a function.

In: a program whose loops are fused. Out: the same; the outermost loops that are worth it and whose iterations do not
depend on one another are cut into parts, and what a part does is a function, whose temporaries are its own. Sizes alone
say where a part of a program's loop begins and ends, and partial results are combined in the order of the parts: a
result does not depend on how many threads there are.

    for i in range(n):                        for i in range(-(-n // 4096)):                  # part=4096
        t = sin(x[i])                  ->         part_0(x, y, 4096*i, min(4096, n - 4096*i))
        y[i] = t*t

                                              def part_0(x, y, first, count):
                                                  for i in range(count):
                                                      t = sin(x[first + i])
                                                      y[first + i] = t*t

A reduction (`s += x[i]`, `y[j] += x[i, j]`) has one result for each part, which the loop behind combines; so has a loop
of the user's that carries counts and extremes (carried_parts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from metaphrase.core.dims import (
    Dim,
    DimLike,
    Monomial,
    Sym,
    dim_max,
    dim_min,
    floordiv,
    product,
    substitute,
    symbols,
    symbols_of,
    terms_of,
)
from metaphrase.core.facts import Facts
from metaphrase.core.types import i64
from metaphrase.source import Span

from .batches import apart, together
from .canonical import canonical, text_of
from .carried_parts import CarriedLoop, PartsOf, carried_loops
from .compaction import Counted, counting, cut, rounded, without_counts
from .compaction import count as number_true
from .compaction import together as lists_together
from .independence import Independence, Roles
from .interchange import middle_of
from .lower_arrays import identity
from .nest import (
    Bind,
    Buf,
    CallFn,
    Check,
    E,
    Fn,
    For,
    If,
    Index,
    LibraryCall,
    Load,
    Map,
    Op,
    Parts,
    Program,
    Stmt,
    Store,
    While,
    bound_inside,
    expression_symbols,
    index_symbols,
    loaded,
    local,
    touched,
    walk,
)
from .outline import is_large
from .rewrite import map_expression, map_statement, rename_statement, with_storages
from .target import Target
from .work import Work, binds

Term = tuple[Monomial, int]


def share(program: Program) -> Program:
    """Cut every outermost parallel loop that is worth it."""
    if not program.target.a_part:
        return program
    program = apart(program)
    work = Work(program, whiles=True)
    carried = [carried_loops(fn, program.target, work) for fn in (program.entry, *program.fns)]
    program = replace(program, entry=carried[0][0], fns=tuple(fn for fn, _ in carried[1:]))
    work, made = Work(program, whiles=True), _Functions(program)
    entry, *fns = (_Sharing(fn, program.target, work, made, loops).done() for fn, loops in carried)
    return _failing(together(replace(program, entry=entry, fns=(*made.fns, *fns))))


class _Functions:
    """The functions that are made, under names that nothing else in the program has."""

    def __init__(self, program: Program):
        self.fns: list[Fn] = []
        self.equal: dict[str, Fn] = {}
        self.used = {name for fn in (program.entry, *program.fns) for name in fn.names.used}
        self.used |= {fn.name for fn in program.fns}

    def keep(self, fn: Fn, longest: DimLike, text: str = "") -> Fn:
        """The function under a name; under a text that another one had, the other one."""
        if text and text in self.equal:
            fn = self.equal[text]
            _, before = fn.facts.ranges[fn.sizes[-1]]
            fn.facts.learn(fn.sizes[-1], 1, None if before is None else dim_max(before, longest))
            return fn
        fn.facts.learn(fn.sizes[-1], 1, longest)
        number = len(self.fns)
        while f"part_{number}" in self.used:
            number += 1
        fn = replace(fn, name=f"part_{number}", is_part=True)
        self.used.add(fn.name)
        self.fns.append(fn)
        self.equal[text] = fn
        return fn


class _Sharing:
    """The loops of one function."""

    def __init__(self, fn: Fn, target: Target, work: Work, made: _Functions, carried: dict[Stmt, CarriedLoop]):
        self.fn, self.target, self.work, self.made, self.carried = fn, target, work, made, carried
        self.facts = Facts(fn.facts.ranges)
        self.independent = Independence(fn, target, self.facts)
        self.is_large = is_large(fn, target)
        self.amounts = self.amounts_in(fn.body)
        self.is_inside = False  # another loop
        self.counted: dict[Buf, Counted] = {}  # of masks of a block, as they are now

    def done(self) -> Fn:
        body = self.block(self.fn.body)
        return self.fn if body == self.fn.body else replace(self.fn, body=body)

    def block(self, block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        around, self.counted = self.counted, {}
        rows: list[Stmt] = []
        k = 0
        while k < len(block):
            stmt, made = block[k], self.counted
            if lists := lists_together(block, k, self.target):
                rows += cut(lists, self.fn.names, self.target, self.call, self.counted.get(lists[0].reads[0].buf))
            else:
                self.counted = {}
                rows += self.loop(stmt) if isinstance(stmt, For) else [self.inside(stmt)]
                self.counted = {**_unchanged(made, stmt), **self.counted}
            k += max(1, len(lists))
        self.counted = around
        return tuple(rows)

    def inside(self, stmt: Stmt) -> Stmt:
        around = self.amounts, self.is_inside
        if isinstance(stmt, For):
            self.facts.learn(stmt.index, 0, stmt.extent - 1)
            self.amounts = self.amounts_in(stmt.body)
        self.is_inside |= isinstance(stmt, (For, While))
        blocks = tuple(map(self.block, stmt.blocks))
        self.amounts, self.is_inside = around
        return stmt if blocks == stmt.blocks else stmt.with_blocks(blocks)

    def amounts_in(self, block: tuple[Stmt, ...]) -> list[tuple[Term, ...]]:
        """The work of the outermost loops of a block."""
        return [terms_of(self.work.of(loop)) for loop in _outermost(block)]

    def loop(self, loop: For) -> list[Stmt]:
        few = isinstance(loop.extent, int) and loop.extent < self.target.few
        carried = self.carried.get(loop)
        if few or (roles := carried.roles if carried else self.independent.roles(loop)) is None:
            return [self.inside(loop)]
        length = self.length(loop, roles)
        parts = floordiv(loop.extent + length - 1, length)
        most = self.facts.upper(parts, self.fn.sizes)
        if isinstance(most, int) and most < 2 or self.facts.less_equal(loop.extent, length) or self.is_minor(loop):
            return [loop]
        large = self.large_calls(loop)
        if symbols(length) & bound_inside(loop) or large is None:
            return [self.inside(loop)]
        rows: list[Stmt] = []
        if not isinstance(length, int):
            name = self.fn.names.fresh("length")
            rows.append(Bind(name, Index(length), loop.span))
            length = Sym(name)
            parts = floordiv(loop.extent + length - 1, length)
        shared = self.cut_carried(loop, carried, length, parts) if carried else self.cut(loop, roles, length, parts)
        conditions = [Op("lt", (Index(work), Index(limit)), np.dtype(bool)) for work, limit in large]
        if not isinstance(parts, int) and self.several(roles):
            # One part needs no sums of its own.
            conditions.append(Op("gt", (Index(loop.extent), Index(length)), np.dtype(bool)))
        for condition in conditions:
            shared = [If(condition, tuple(shared), (loop,), loop.span)]
        return [*rows, *shared]

    def several(self, roles: Roles) -> bool:
        """Whether it is cut only where there are several parts: an array of sums is made for each, and in a loop that
        goes round often the call of a part would cost more than a short sum."""
        return any(buf.dims or self.is_inside for buf in roles.sums)

    def large_calls(self, loop: For) -> list[tuple[DimLike, int]] | None:
        """(work, limit) of the calls in a loop that threads may share by themselves; None if one surely does."""
        found: dict[DimLike, int] = {}
        for call in (s for s in walk(loop.body) if isinstance(s, LibraryCall)):
            offer, work = self.target.offer(call.operation), self.work.of(call)
            if offer is not None and offer.by_itself and not (isinstance(work, int) and work < offer.by_itself):
                if isinstance(work, int) or symbols(work) & bound_inside(loop):
                    return None
                found[work] = offer.by_itself
        return list(found.items())

    def length(self, loop: For, roles: Roles) -> DimLike:
        """How many iterations a part has: enough to be worth a thread, and its sums, which are to be added up."""
        work = _positive(self.work.iteration(loop))
        length = floordiv(self.target.a_part, work)
        if isinstance(length, int) and counting(loop, self.target):
            length = rounded(length, self.target)
        least = 1 if middle_of(loop, self.target) is None else self.target.along  # of what will run along rows
        sums = [product(buf.dims) for buf in roles.sums if buf.dims]
        if not sums:
            return dim_max(least, length)
        worth = floordiv(self.target.apart * sum(sums), work) + 1
        return dim_max(dim_max(length, worth), floordiv(loop.extent, self.target.lanes) + 1)

    def is_minor(self, loop: For) -> bool:
        """Whether another loop beside it does far more, whatever sizes there are."""
        own = terms_of(self.work.of(loop))
        return any(all(any(self.is_far_less(a, b) for b in other) for a in own) for other in self.amounts)

    def is_far_less(self, a: Term, b: Term) -> bool:
        """Whether an amount of work is a small part of another one, or has a size of the function less as a factor."""
        rest = dict(b[0])
        for atom, power in a[0]:
            rest[atom] = rest.get(atom, 0) - power
        left = [atom for atom, power in rest.items() if power]
        if not left:
            return b[1] >= self.target.apart * a[1]
        return all(rest[atom] > 0 and atom.kind == "sym" and atom.name in self.fn.sizes for atom in left)

    # --- what is made ---------------------------------------------------------------------------------

    def cut(self, loop: For, roles: Roles, length: DimLike, parts: DimLike) -> list[Stmt]:
        fresh = self.fn.names.fresh
        number, first, count = fresh("number"), fresh("first"), fresh("count")
        masks = counting(loop, self.target)
        held = {buf: Buf(fresh(f"{buf.name}_parts"), buf.dtype, (parts, *buf.dims)) for buf in roles.sums}
        own = {buf: local(fresh(buf.name), buf.dtype) for buf in roles.sums if not buf.dims and buf not in masks}

        def place(buf: Buf, index: Map) -> tuple[Buf, Map]:
            return (held[buf], (Sym(number), *index)) if buf in held else (buf, index)

        if isinstance(length, int):
            self.counted |= {masks[buf]: Counted(held[buf], loop.extent, length) for buf in held if buf in masks}
        body: list[Stmt] = []
        for buf, monoid in roles.sums.items():
            if buf in masks:
                continue
            nothing = identity(monoid, buf.dtype)
            if buf in own:
                body.append(Store(own[buf], (), nothing))
            else:
                body.append(self.over(buf.dims, lambda *at, b=buf, e=nothing: Store(held[b], (Sym(number), *at), e)))
        index = fresh("i")
        here = {loop.index: Sym(first) + Sym(index)}
        private = {buf: _copy(buf, tuple(substitute(d, here) for d in buf.dims)) for buf in roles.private}
        # Where an array of sums makes parts long, threads ask between iterations whether they shall stop.
        kind = "seq" if any(buf.dims for buf in roles.sums) else loop.kind
        left = without_counts(For(index, Sym(count), loop.body, kind, loop.span), masks)
        if left.body:
            inner = with_storages(left, {**own, **private})
            body.append(map_statement(rename_statement(inner, here), lambda e: e, place))
        body += [Store(held[buf], (Sym(number),), Load(variable)) for buf, variable in own.items()]
        body += [
            number_true(mask, Sym(first), Sym(count), held[buf], Sym(number), loop.span) for buf, mask in masks.items()
        ]
        locals_ = {*own.values(), *private.values()}
        rows: list[Stmt] = [self.parts_of(loop, roles, tuple(body), locals_, (number, first, count), length, parts)]
        for buf, monoid in roles.sums.items():
            k = fresh("i")
            total = self.over(
                buf.dims, lambda *at, b=buf, m=monoid, k=k: Store(b, at, Load(held[b], (Sym(k), *at)), m, loop.span)
            )
            rows.append(For(k, parts, (total,), "red" if buf.dims else "seq", loop.span))
        return rows

    def cut_carried(self, loop: For, one: CarriedLoop, length: DimLike, parts: DimLike) -> list[Stmt]:
        """A loop of the user's in parts that have variables of their own, and behind them what combines these."""
        fresh = self.fn.names.fresh
        number, first, count, index = fresh("number"), fresh("first"), fresh("count"), fresh("i")
        here = {loop.index: Sym(first) + Sym(index)}
        private = {buf: _copy(buf, tuple(substitute(d, here) for d in buf.dims)) for buf in one.roles.private}
        own = PartsOf(loop, one, self.fn, parts)
        inner = with_storages(own.with_own(For(index, Sym(count), loop.body, loop.kind, loop.span)), private)
        body = (*own.begins(), rename_statement(inner, here), *own.ends(number))
        locals_ = {*own.locals(), *private.values()}
        part = self.parts_of(loop, one.roles, body, locals_, (number, first, count), length, parts)
        return [part, own.combined()]

    def parts_of(
        self,
        loop: For,
        roles: Roles,
        body: tuple[Stmt, ...],
        own: set[Buf],
        names: tuple[str, str, str],
        length: DimLike,
        parts: DimLike,
    ) -> For:
        """The loop over the parts of another one. `body`: of a part; `names`: of its number, its first iteration, and
        how many it has."""
        number, first, count = names
        call = self.call(body, own, (first, count), dim_min(length, loop.extent), loop.span)
        start = length * Sym(number)
        call = replace(call, sizes=(*call.sizes[:-2], start, dim_min(length, loop.extent - start)))
        cut = Parts(loop.extent, length, isinstance(parts, int) or self.several(roles))
        return For(number, parts, (call,), "par", loop.span, parts=cut)

    def over(self, dims: tuple[DimLike, ...], rule: Callable[..., Stmt]) -> Stmt:
        """A statement for every place of an array."""
        indices = [self.fn.names.fresh("i") for _ in dims]
        stmt = rule(*map(Sym, indices))
        for index, extent in zip(reversed(indices), reversed(dims)):
            stmt = For(index, extent, (stmt,), "par")
        return stmt

    def call(
        self, body: tuple[Stmt, ...], own: set[Buf], last: tuple[str, str], longest: DimLike, span: Span | None
    ) -> CallFn:
        """A call of a function that does `body`, with all that this takes from around it. `own`: the storages that
        nobody else needs. `last`: the names of its last two sizes, of which the second is at most `longest`."""
        inside = list(walk(body))
        bufs = dict.fromkeys(b for s in inside for b in (*(load.buf for load in loaded(s)), *touched(s)))
        taken = [b for b in bufs if b not in own and b.space != "const"]
        known = frozenset(b for b in taken if _is_integer(b))
        if known:
            body = tuple(_by_symbols(s, known) for s in body)
            inside = list(walk(body))
        read = frozenset().union(*map(_symbols_read, inside), *(_symbols_of_dims(b, b in own) for b in bufs))
        integers = {b.name for b in own if _is_integer(b)}
        names = read.union(b.name for b in known).difference(integers, last, *map(bound_inside, body))
        arrays, scalars = [b for b in taken if b.dims], [b for b in taken if not b.dims and not _is_integer(b)]
        sizes = (*sorted(names), *last)
        written = {a.buf for s in inside for a in s.accesses if a.write}
        # A context has to do with failures, memory, and signals, for which loops around loops ask, and those as long as
        # data says.
        fails = any(b.dims for b in own) or any(isinstance(s, (Check, While, LibraryCall)) for s in inside)
        told = {s.name for s in inside if isinstance(s, Bind)}
        loops = [s for s in inside if isinstance(s, For)]
        fails = fails or any(s.kind == "seq" and _has_loops(s) or bool(symbols_of(s.extents) & told) for s in loops)
        if self.is_large and not integers & read:
            rows, variables = [b for b in bufs if b in own and b.dims], [b for b in bufs if b in own and not b.dims]
            fn, _ = canonical(body, arrays, rows, scalars, variables, sizes, written, self.target.words)
            fn = self.made.keep(replace(fn, fails=fails), longest, text_of(fn))
        else:
            given = {b: Buf(b.name, b.dtype, (0, *b.dims[1:]), "arg") for b in arrays}
            given |= {b: Buf(b.name, b.dtype, ()) for b in scalars}
            for buf, parameter in given.items():
                parameter.unbound = buf.unbound
            body = tuple(with_storages(s, given) for s in body)
            facts = Facts(self.fn.facts.ranges)
            fn = self.made.keep(
                Fn("", tuple(given.values()), sizes, body, (), fails, None, self.fn.names, facts), longest
            )
        writes = frozenset(b for b in arrays if b in written)
        return CallFn(fn.name, (*arrays, *scalars), tuple(map(Sym, sizes)), fails, writes, None, span)


def _outermost(block: tuple[Stmt, ...]) -> Iterator[For]:
    """The loops that are inside no other one."""
    for stmt in block:
        if isinstance(stmt, For):
            yield stmt
        else:
            for inner in stmt.blocks:
                yield from _outermost(inner)


def _has_loops(loop: For) -> bool:
    return any(isinstance(s, For) for s in walk(loop.body))


def _unchanged(counted: dict[Buf, Counted], stmt: Stmt) -> dict[Buf, Counted]:
    """What is known of masks behind a statement."""
    changed = {access.buf for inner in walk((stmt,)) for access in inner.accesses if access.write}
    bound = binds(stmt)
    return {m: c for m, c in counted.items() if not changed & {m, c.held} and not bound & symbols(c.whole)}


def _copy(buf: Buf, dims: tuple[DimLike, ...]) -> Buf:
    """A storage of its own for a part: the loop as it was may stay beside it, and have the other one."""
    made = Buf(buf.name, buf.dtype, dims, buf.space, dynamic=buf.dynamic)
    made.carried, made.unbound = buf.carried, buf.unbound
    return made


def _positive(work: DimLike) -> DimLike:
    """A size that is at least 1 and not less: what is subtracted from it is left out."""
    if isinstance(work, int):
        return max(work, 1)
    terms = (Dim(((monomial, factor),)) if monomial else factor for monomial, factor in terms_of(work) if factor > 0)
    return sum(terms, start=1)


def _is_integer(buf: Buf) -> bool:
    """Whether it is a variable that is an integer symbol, too."""
    return not buf.dims and buf.dtype == i64


def _by_symbols(stmt: Stmt, integers: frozenset[Buf]) -> Stmt:
    """The statement with variables that are integer symbols, too, read as these: a function gets sizes by value."""

    def symbol(x: E) -> E | None:
        return Index(Sym(x.buf.name)) if isinstance(x, Load) and x.buf in integers else None

    return map_statement(stmt, lambda e: map_expression(e, symbol), lambda buf, index: (buf, index))


def _symbols_read(stmt: Stmt) -> frozenset[str]:
    places = (index_symbols(access.index) for access in stmt.accesses)
    return symbols_of(stmt.extents).union(*places, *map(expression_symbols, stmt.expressions))


def _symbols_of_dims(buf: Buf, own: bool) -> frozenset[str]:
    """The sizes that say where the elements of a storage lie, and of one's own how many there are."""
    return frozenset().union(*map(symbols, buf.dims if own else buf.dims[1:]))


def _failing(program: Program) -> Program:
    """The program with functions that say that they may fail where one that they call does."""
    fns = {fn.name: fn for fn in program.fns}
    failing = {name for name, fn in fns.items() if fn.fails}

    def calls(fn: Fn) -> bool:
        inside = list(walk(fn.body))
        return any(isinstance(s, CallFn) and s.fn in failing or isinstance(s, For) and s.parts for s in inside)

    while more := {name for name, fn in fns.items() if name not in failing and calls(fn)}:
        failing |= more

    def marked(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        rows = (s.with_blocks(tuple(map(marked, s.blocks))) if s.blocks else s for s in block)
        return tuple(replace(s, fails=True) if isinstance(s, CallFn) and s.fn in failing else s for s in rows)

    entry, *others = (
        replace(fn, body=marked(fn.body), fails=fn.fails or fn.name in failing) for fn in (program.entry, *fns.values())
    )
    return replace(program, entry=entry, fns=tuple(others))


__all__ = ["share"]
