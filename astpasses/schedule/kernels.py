"""Which statements of a function a GPU does in which kernels, and how their iterations are divided.

In: a program of loops. Out: the same for a target that has kernels: functions whose statements the host does (branches
and loops around kernels, libraries, memory), with a call of a kernel for each stretch that the device does. Example:

    for i in range(n):                        softmax_0:  for i in range(n):                        # on the grid
        t = -inf                                              t = -inf
        for j in range(m): t = max(t, x[i, j])                for j in range(m): t = max(t, x[i, j])  # on the block
        for j in range(m): y[i, j] = ...                      for j in range(m): y[i, j] = ...        # on the block
    k = k + 1                                 softmax_1:  k = k + 1

A large loop with independent iterations is a kernel of its own: each thread does iterations, or, where these have loops
that run along memory, each block does. A sum of many is cut into parts whose borders follow from sizes alone, so
results repeat to the bit. Stores at places that data name are sorted by place first (scatters.py), or atomic
(atomics.py). All other statements that stand together are one kernel of one block, whose threads share the loops that
are inside; they wait until a kernel needs them (pending.py). What launches need is in launches.py.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from metaphrase.core.dims import Dim, DimLike, Sym, symbols
from metaphrase.core.facts import Facts

from .ahead import started_ahead
from .apart import taken_apart
from .atomics import in_any_order
from .block_waves import block_wave, wave_of_block
from .checks_first import checks_first
from .independence import Independence
from .joined_kernels import joined
from .launches import Region, launches
from .nest import (
    Bind,
    Buf,
    CallFn,
    Const,
    E,
    Effect,
    Fn,
    For,
    Grow,
    If,
    Index,
    LibraryCall,
    Load,
    Op,
    Program,
    SetDims,
    Stmt,
    Store,
    Swap,
    While,
    bound_inside,
    expression_symbols,
    index_symbols,
    loaded,
    local,
    mentions,
    named,
    operations,
    subexpressions,
    touched,
    walk,
)
from .partial_sums import sums_of_few, whole_sum
from .pending import gives, meet, put, with_numbers, without_unread
from .place import divided, near
from .rewrite import rename_statement, with_parts
from .scans import Scan, long_scan, scan_of
from .scatters import scattered
from .shapes import Own, Shape
from .swaps import can_be_one_blocks, in_place_again
from .tiles import along_memory, tiled
from .warps import by_warps
from .waves import Wave
from .wide import wide

ON_HOST = frozenset("lt le gt ge eq ne and or not add sub mul max min".split())


def kernels(program: Program) -> Program:
    """The program with kernels, if its target has them."""
    if not program.target.threads:
        return program
    made: list[Fn] = []
    entry, *fns = (_with_kernels(fn, program, made) for fn in (program.entry, *program.fns))
    count = len(program.params)
    params, results = entry.bufs[:count], entry.bufs[count : count + len(program.results)]
    for fn in (entry, *fns):
        made = started_ahead(fn.body, made)
    kernels = (by_warps(wide(fn, program.target), program.target) for fn in made)
    return replace(program, entry=entry, fns=(*kernels, *fns), params=params, results=results)


def _with_kernels(fn: Fn, program: Program, made: list[Fn]) -> Fn:
    """The function as the host's, its kernels among those that are made. What grows in one kernel and is read in
    another one grows on the host instead."""
    grown: set[Buf] = set()
    fn = replace(fn, body=checks_first(_Division(fn, program, grown), fn.body))
    fn = replace(fn, body=in_any_order(_Division(fn, program, grown), fn.body))
    fn = replace(fn, body=taken_apart(_Division(fn, program, grown), fn.body))
    while True:
        body = _Division(fn, program, grown).host(fn.body)
        regions = [s for s in walk(body) if isinstance(s, Region)]
        growing = {buf: r for r in regions for s in walk(r.body) if isinstance(s, Grow) for buf in s.bufs}
        apart = {buf for buf in growing for s in _outside(body, growing[buf]) if buf in named(s)} - grown
        if not apart:
            kept = frozenset({*(buf.name for buf in fn.bufs), *fn.sizes})
            return launches(replace(fn, body=without_unread(body, kept)), program, made)
        grown |= apart


def _outside(body: tuple[Stmt, ...], region: Region) -> Iterator[Stmt]:
    """Every statement that is not in a region."""
    for stmt in body:
        if stmt is not region:
            yield stmt
            for block in stmt.blocks:
                yield from _outside(block, region)


class _Division:
    """The statements of one function. `grown`: arrays that have to grow on the host."""

    def __init__(self, fn: Fn, program: Program, grown: set[Buf]):
        self.target, self.grown, self.fresh = program.target, grown, fn.names.fresh
        self.facts = Facts(fn.facts.ranges)
        self.independent = Independence(fn, program.target, self.facts)
        self.sizes = frozenset(fn.sizes)
        self.known = set(fn.sizes)  # symbols whose values the host has
        self.given = Counter(name for s in walk(fn.body) for name in gives(s))
        self.shapes: dict[For, Shape | None] = {}
        self.scans: dict[For, Scan | None] = {}
        self.waves: dict[For, Wave | None] = {}

    # --- the host ---------------------------------------------------------------------------------

    def host(self, block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A block that the host does, with regions for what the device does."""
        rows: list[Stmt | list[Stmt]] = []  # a list: what one block does
        pending: list[Stmt] = []

        def flush() -> None:
            if pending:
                put(rows, list(pending))
                pending.clear()

        for stmt in itertools.chain.from_iterable(map(self.asked, block)):
            if isinstance(stmt, For) and (scatter := scattered(self, stmt)) is not None:
                flush()
                rows += scatter
            elif isinstance(stmt, For) and (scan := long_scan(self, stmt)) is not None:
                ahead, between, behind = scan
                ahead = with_numbers(pending, ahead, self.target.wide_work, self.fresh)
                if meet(pending, ahead):
                    flush()
                rows += ahead
                pending += between
                flush()
                rows += behind
            elif isinstance(stmt, For) and self.is_large(stmt) and (made := self.on_grid(stmt)) is not None:
                first, behind = made
                first = with_numbers(pending, first, self.target.wide_work, self.fresh)
                if meet(pending, first):
                    flush()
                rows += first
                pending += behind
            elif self.is_known(stmt):
                rows.append(stmt)
                self.known.add(stmt.binds or "")
            elif isinstance(stmt, Swap):
                if meet(pending, [stmt]):
                    flush()
                rows.append(stmt)
            elif self.is_hosts(stmt):
                flush()
                rows.append(self.inside(stmt))
            else:
                pending.append(stmt)
        flush()
        return tuple(joined(self.one(tuple(row)) if isinstance(row, list) else row for row in rows))

    def is_known(self, stmt: Stmt) -> bool:
        """Whether the host can work out an integer from those it has."""
        return isinstance(stmt, Bind) and self.given[stmt.name] == 1 and self.has(stmt.value)

    def has(self, e: E) -> bool:
        parts = subexpressions(e)
        plain = all(isinstance(x, (Const, Index)) or isinstance(x, Op) and x.name in ON_HOST for x in parts)
        return plain and expression_symbols(e) <= self.known

    def is_hosts(self, stmt: Stmt) -> bool:
        """Whether the host does a statement, and the device only what is inside."""
        if any(map(self.needs_host, walk((stmt,)))) or not can_be_one_blocks(stmt):
            return True
        return any(isinstance(s, For) and self.is_large(s) and self.fits_grid(s) for b in stmt.blocks for s in walk(b))

    def needs_host(self, stmt: Stmt) -> bool:
        if isinstance(stmt, Grow):
            return any(buf in self.grown or buf.space != "stack" for buf in stmt.bufs)
        return isinstance(stmt, (LibraryCall, Effect, SetDims, CallFn))

    def asked(self, stmt: Stmt) -> list[Stmt]:
        """A statement, the host's with a condition that it can read: the device works that out before. For a loop it
        does so before the first round and at the end of each, in the kernel of what stands there."""
        if not isinstance(stmt, (If, While)) or not self.is_hosts(stmt) or self.has(stmt.condition):
            return [stmt]
        answer = local(self.fresh("answer"), stmt.condition.dtype)
        ask = Store(answer, (), stmt.condition, span=stmt.span)
        if isinstance(stmt, If):
            return [ask, replace(stmt, condition=Load(answer))]
        question = (*stmt.before, ask)
        numbers = all(isinstance(s, (Store, Bind)) and not (isinstance(s, Store) and s.buf.dims) for s in question)
        if not numbers and (stmt.limit is not None or mentions(question, stmt.counter)):
            return [replace(stmt, before=question, condition=Load(answer))]  # to ask once too often may be seen
        first, later = question, question
        if numbers:
            first = tuple(rename_statement(s, {stmt.counter: 0}) for s in question)
            later = tuple(rename_statement(s, {stmt.counter: Sym(stmt.counter) + 1}) for s in question)
        return [*first, replace(stmt, before=(), condition=Load(answer), body=(*stmt.body, *later))]

    def inside(self, stmt: Stmt) -> Stmt:
        self.known |= {stmt.binds} if stmt.binds is not None else set()
        blocks = tuple(map(self.host, stmt.blocks))
        if isinstance(stmt, For):
            return replace(stmt, body=blocks[0], kind="seq")
        return stmt.with_blocks(blocks) if blocks else stmt

    # --- one block --------------------------------------------------------------------------------

    def one(self, body: tuple[Stmt, ...]) -> Region:
        """A kernel of one block."""
        body = in_place_again(self.in_block(body), self.fresh)
        return Region(body, None, True, self.threads(body), tuple(self.framed(body)))

    def threads(self, body: tuple[Stmt, ...]) -> int:
        """How many threads of a block have something to do: a power of two, or as many as there can be."""
        most = 1
        for outer in walk(body):
            total: DimLike = 1
            loop: Stmt = outer
            while isinstance(loop, For) and loop.on == "block":
                total, loop = total * loop.extent, loop.body[0]
            most = max(most, total if isinstance(total, int) else self.target.threads)
        if most == 1:
            return 1
        return min(max(32, 1 << (most - 1).bit_length()), self.target.threads)

    def in_block(self, block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A block whose statements all threads of a block do, and divide the loops in it."""
        rows: list[Stmt] = []
        for stmt in block:
            if isinstance(stmt, For) and not stmt.on and (shape := self.shared(stmt)) is not None:
                partials, private = tuple(shape.roles.sums.items()), tuple(b for b in shape.roles.private if b.dims)
                rows.append(shape.nest(shape.body, "block", partials=partials, private=private))
            elif isinstance(stmt, For) and not stmt.on and (scan := self.scan(stmt)) is not None:
                rows.append(scan.in_block())
            elif isinstance(stmt, For) and not stmt.on and (wave := self.wave(stmt)) is not None:
                rows += block_wave(self, wave)
            elif stmt.blocks and not (isinstance(stmt, For) and stmt.on):
                rows.append(stmt.with_blocks(tuple(map(self.in_block, stmt.blocks))))
            else:
                rows.append(stmt)
        return tuple(rows)

    def shared(self, loop: For) -> Shape | None:
        """The loops that the threads of a block divide, if it is worth it and each can have what is its own."""
        shape = self.shape(loop)
        if shape is None or loop.extent == 1:
            return None
        if isinstance(shape.total, int) and shape.total < self.target.block_from and self.long_inside(shape):
            return None
        if isinstance(shape.total, int) and shape.total < self.target.of_a_thread and _gives_numbers(shape.body):
            return None  # each thread has them sooner than all from one another
        arrays = [buf for buf in shape.roles.private if buf.dims and not buf.dynamic]
        return shape if len(near(arrays, self.target.stack_bytes)) == len(arrays) else None

    def scan(self, loop: For) -> Scan | None:
        """A loop of many rounds that the threads of a block can do as a scan."""
        if isinstance(loop.extent, int) and loop.extent < self.target.block_from:
            return None
        if loop not in self.scans:
            self.scans[loop] = scan_of(self, loop)
        return self.scans[loop]

    def wave(self, loop: For) -> Wave | None:
        """A loop whose rounds the threads of a block can do as a wave."""
        if loop not in self.waves:
            self.waves[loop] = wave_of_block(self, loop)
        return self.waves[loop]

    # --- the grid ---------------------------------------------------------------------------------

    def shape(self, loop: For) -> Shape | None:
        """The loop and those that stand in it with nothing between; None if its iterations depend on one another."""
        if loop not in self.shapes:
            self.shapes[loop] = self._shape(loop)
        return self.shapes[loop]

    def _shape(self, loop: For) -> Shape | None:
        roles = self.independent.roles(loop)
        if roles is None or any(buf.dims for buf in roles.sums):
            return None
        if any(self.needs_host(s) or isinstance(s, Swap) for s in walk(loop.body)):
            return None
        loops, body = [loop], loop.body
        indices = {loop.index}
        while len(body) == 1 and isinstance(inner := body[0], For):
            more = self.independent.roles(inner)
            if more is None or symbols(inner.extent) & indices or not more.sums.keys() <= roles.sums.keys():
                break
            roles.private |= more.private
            loops.append(inner)
            indices.add(inner.index)
            body = inner.body
        return Shape(loops, body, roles)

    def is_large(self, loop: For) -> bool:
        """Whether a loop has more to do side by side than one block should."""
        amount = self.amount(loop)
        if not isinstance(amount, int) or amount >= self.target.grid_from:
            return True
        return amount >= self.target.warp and self.all_work(loop) >= self.target.grid_work

    def amount(self, loop: For) -> DimLike:
        """How many iterations may run side by side, those of loops inside included."""
        if self.shape(loop) is None:
            return 1
        inside: DimLike = 0
        for stmt in loop.body:
            if isinstance(stmt, For):
                inside = inside + self.amount(stmt)
        return loop.extent * (1 if inside == 0 else inside)

    def fits_grid(self, loop: For) -> bool:
        shape = self.shape(loop)
        return shape is not None and self.own(shape, self.together(shape)) is not None

    def on_grid(self, loop: For) -> tuple[list[Stmt], list[Stmt]] | None:
        """The regions of a loop, and what one block has to do behind them; None where it is not for the grid."""
        shape = self.shape(loop)
        if shape is None:
            return None
        together = self.together(shape)
        own = self.own(shape, together)
        if own is None:
            return None
        if shape.roles.sums:
            return whole_sum(self, shape, together, own) if not own.parts else None
        if not own.parts and (cut := sums_of_few(self, shape, together, own)) is not None:
            return cut, []
        if not together and not own.parts:
            shape = along_memory(shape)
            if (tiles := tiled(shape, self.target, self.fresh)) is not None:
                return [tiles], []
        body = tuple(with_parts(s, own.parts) for s in (self.in_block(shape.body) if together else shape.body))
        nest = shape.nest(body, "grid")
        threads = self.threads(body) if together else self.target.threads
        rows: list[Stmt] = []
        for whole, _ in own.parts.values():
            if _symbols(whole.dims) - self.sizes:  # its size is known only here
                whole.dynamic, whole.space = True, "room"
                rows.append(Grow((whole,), whole.dims[0]))
        return [*rows, Region((nest,), shape.total, together, threads, own.frame, own.shared)], []

    def together(self, shape: Shape) -> bool:
        """Whether the threads of a block do an iteration together: it has long loops, and these run along memory rather
        than the iterations do. Where it does more one after the other, all threads would do that."""
        alone, shared = self.work(shape.body)
        if alone > shared:
            return False
        last = shape.loops[-1].index
        score = 0
        for inner in self.long_inside(shape):
            indices = {s.index for s in walk((inner,)) if isinstance(s, For)}
            for stmt in walk(inner.body):
                places = [load.index for load in loaded(stmt)] + [a.index for a in stmt.accesses]
                for index in places:
                    along = index_symbols(index[-1:])
                    score += bool(along & indices) - (last in along and bool(index_symbols(index) & indices))
        return score > 0

    def work(self, block: Iterable[Stmt]) -> tuple[int, int]:
        """How much of a block's work stands in loops, outside and inside of the long independent ones."""
        alone = shared = 0
        for stmt in block:
            rounds = self.rounds(stmt)
            if isinstance(stmt, For) and stmt in self._long((stmt,)):
                shared += rounds * sum(map(self.all_work, stmt.body))
                continue
            for inner in stmt.blocks:
                more, others = self.work(inner)
                own = sum(1 + operations(s) for s in inner) if isinstance(stmt, (For, While)) else 0
                alone, shared = alone + rounds * (more + own), shared + rounds * others
        return alone, shared

    def all_work(self, stmt: Stmt) -> int:
        """That of a statement and of what is inside it."""
        inside = sum(self.all_work(s) for block in stmt.blocks for s in block)
        return 1 + operations(stmt) + self.rounds(stmt) * inside

    def rounds(self, stmt: Stmt) -> int:
        """How often what is inside a statement is done, about."""
        if not isinstance(stmt, (For, While)):
            return 1
        extent = stmt.extent if isinstance(stmt, For) else self.target.unknown
        return extent if isinstance(extent, int) else self.target.unknown

    def long_inside(self, shape: Shape) -> list[For]:
        """The outermost independent loops of an iteration that have many rounds, or nobody knows how many."""
        return list(self._long(shape.body))

    def _long(self, block: Iterable[Stmt]) -> Iterator[For]:
        for stmt in block:
            if isinstance(stmt, For) and any(way(stmt) is not None for way in (self.shape, self.scan, self.wave)):
                if not isinstance(stmt.extent, int) or stmt.extent >= self.target.block_from:
                    yield stmt
                    continue
            for inner in stmt.blocks:
                yield from self._long(inner)

    def own(self, shape: Shape, together: bool) -> Own | None:
        """Where the arrays lie that an iteration has for itself; None where one has no place."""
        body = self.in_block(shape.body) if together else ()
        frame = tuple(buf for buf in self.framed(body) if buf in shape.roles.private)
        mine = [buf for buf in shape.roles.private if buf.dims and buf not in frame]
        growing = {buf for s in walk(shape.body) if isinstance(s, Grow) for buf in s.bufs}
        if growing - {buf for buf in mine if buf.space == "stack"}:
            return None
        fixed = [buf for buf in mine if buf not in growing]
        room = near(fixed, self.target.shared_bytes // 2 if together else self.target.stack_bytes)
        swapped = {buf for s in walk(shape.body) if isinstance(s, Swap) for buf in touched(s)}
        inner = bound_inside(shape.loops[0])
        rest = [buf for buf in fixed if buf not in room and not all(divided(buf, l, self.facts) for l in shape.loops)]
        if any(buf in swapped or buf.dynamic or inner & _symbols(buf.dims) for buf in rest):
            return None
        extents = tuple(loop.extent for loop in shape.loops)
        prefix: tuple[DimLike, ...] = tuple(Sym(loop.index) for loop in shape.loops)
        parts = {buf: (Buf(buf.name, buf.dtype, (*extents, *buf.dims)), prefix) for buf in rest}
        return Own((*frame, *(() if together else room)), tuple(room) if together else (), parts)

    def framed(self, body: tuple[Stmt, ...]) -> list[Buf]:
        """The arrays that each thread has for itself in the loops that a block divides."""
        loops = [s for s in walk(body) if isinstance(s, For) and s.on == "block" and s.private]
        return list(dict.fromkeys(buf for loop in loops for buf in loop.private or ()))

    def named(self, name: str, dim: DimLike, rows: list[Stmt]) -> DimLike:
        """A size under a name that the host has, unless it is a number."""
        if isinstance(dim, int):
            return dim
        name = self.fresh(name)
        rows.append(Bind(name, Index(dim)))
        self.known.add(name)
        return Sym(name)


def _gives_numbers(block: tuple[Stmt, ...]) -> bool:
    """Whether statements give variables values, and do nothing else."""
    return all(isinstance(s, (For, If, Bind)) or isinstance(s, Store) and not s.buf.dims for s in walk(block))


def _symbols(dims: Iterable[DimLike]) -> frozenset[str]:
    return frozenset().union(*(symbols(d) for d in dims if isinstance(d, Dim)))


__all__ = ["kernels"]
