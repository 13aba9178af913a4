"""What the device does as functions, and what a launch of each is given.

In: a function whose statements are the host's or in regions (kernels.py). Out: the function with a call of a kernel in
the place of each region, and the kernels. A variable that more than one of them has to do with lies in memory of the
device, an array of one element; the host reads it where it needs its value, and no sooner.

    k = k + 1                         program_1(k_at):  k = k_at[0]; k = k + 1; k_at[0] = k
    for i in range(k): ...     ->     k = k_at[0]                                              # the host waits
                                      program_2(y, k):  for i in range(k): ...
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace

from metaphrase.core.dims import DimLike, Sym, symbols_of
from metaphrase.core.types import i64
from metaphrase.late import dataclass, field

from .lifetimes import read_before_given
from .nest import (
    Bind,
    Buf,
    CallFn,
    Check,
    E,
    Effect,
    Fn,
    For,
    Grow,
    Index,
    Kernel,
    Load,
    Program,
    Stmt,
    Store,
    While,
    bound_inside,
    expression_symbols,
    loaded,
    local,
    other_symbols,
    touched,
    used_inside,
    walk,
)
from .place import near
from .rewrite import map_expression, with_storages
from .storage import fact_attribute


@dataclass(eq=False)
class Region(Stmt):
    """Statements that the device does. `count`, `together`, `threads` as in Kernel; `frame`: arrays of each thread,
    `shared`: of each block."""

    body: tuple[Stmt, ...]
    count: DimLike | None
    together: bool
    threads: int
    frame: tuple[Buf, ...] = ()
    shared: tuple[Buf, ...] = ()

    @fact_attribute
    def blocks(self) -> tuple[tuple[Stmt, ...], ...]:
        return (self.body,)

    def with_blocks(self, blocks: tuple[tuple[Stmt, ...], ...]) -> Region:
        return replace(self, body=blocks[0])


def launches(fn: Fn, program: Program, made: list[Fn]) -> Fn:
    """The function as the host's. Its kernels are appended to `made`."""
    return _Launches(fn, program, made).done()


@dataclass
class _Names:
    """The variables that a region, or the host's statements, read before they give them a value, and those that they
    give one: on some path, and on each."""

    read: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    surely: frozenset[str] = frozenset()

    @property
    def all(self) -> set[str]:
        return self.read | self.given


class _Launches:
    def __init__(self, fn: Fn, program: Program, made: list[Fn]):
        self.fn, self.program, self.made = fn, program, made
        self.fresh = fn.names.fresh
        self.regions = [s for s in walk(fn.body) if isinstance(s, Region)]
        self.names = {region: _names_of(region) for region in self.regions}
        self.uses: dict[Buf, set[Region | None]] = {}
        self.host = _Names()
        self.wanted: set[str] = set()  # by the host
        self.variables: dict[str, Buf] = {}
        self.cells: dict[str, Buf] = {}
        self.looped: set[Region] = set()
        self._visit(fn.body, False)
        for region in self.regions:
            own = {*region.frame, *region.shared, *_growing(region.body)}
            for buf in used_inside(region):
                self.uses.setdefault(buf, set()).add(region)
                if buf.dims:
                    self.wanted |= symbols_of(buf.dims) if buf not in own else set()
                else:
                    self.variables[buf.name] = buf
            self.wanted |= symbols_of(() if region.count is None else (region.count,))
        self.wanted -= {name for region in self.regions for name in bound_inside(region)} - self.defined()
        self.outer = {buf.name: buf for buf in fn.bufs if not buf.dims}

    def defined(self) -> set[str]:
        return {name for names in self.names.values() for name in names.given}

    def _visit(self, block: tuple[Stmt, ...], in_loop: bool) -> None:
        """The host's statements."""
        for stmt in block:
            if isinstance(stmt, Region):
                if in_loop:
                    self.looped.add(stmt)
                continue
            for e in stmt.expressions:
                self.wanted |= expression_symbols(e)
            self.wanted |= other_symbols(stmt)
            for buf in (*touched(stmt), *(load.buf for load in loaded(stmt))):
                self.uses.setdefault(buf, set()).add(None)
                if not buf.dims:
                    self.variables[buf.name] = buf
                    self.host.read.add(buf.name)
            if stmt.binds is not None:
                self.host.given.add(stmt.binds)
            for inner in stmt.blocks:
                self._visit(inner, in_loop or isinstance(stmt, (For, While)))

    # --- the host ---------------------------------------------------------------------------------

    def done(self) -> Fn:
        self.has = {*self.fn.sizes, *self.host.given}
        asked = self.wanted - self.has
        body = self.block(self.fn.body, asked)
        arguments = [name for name in self.outer if name in asked]
        begin = tuple(Bind(name, Load(self.cell(name), (0,))) for name in arguments)
        bufs = tuple(buf if buf.dims else self.cell(buf.name) for buf in self.fn.bufs)
        return replace(self.fn, body=(*begin, *body), bufs=bufs)

    def block(self, block: tuple[Stmt, ...], asked: set[str]) -> tuple[Stmt, ...]:
        rows: list[Stmt] = []
        for stmt in block:
            if isinstance(stmt, Region):
                rows.append(self.launch(stmt, asked))
                rows += [Bind(n, Load(self.cell(n), (0,))) for n in sorted(asked & self.names[stmt].given)]
                continue
            if stmt.blocks:
                stmt = stmt.with_blocks(tuple(self.block(inner, asked) for inner in stmt.blocks))
            rows.append(self.read(stmt))
        return tuple(rows)

    def read(self, stmt: Stmt) -> Stmt:
        """A statement of the host's, which reads variables from where they lie."""
        if isinstance(stmt, CallFn):
            return replace(stmt, bufs=tuple(buf if buf.dims else self.cell(buf.name) for buf in stmt.bufs))

        def change(e: E) -> E | None:
            return Load(self.cell(e.buf.name), (0,)) if isinstance(e, Load) and not e.buf.dims else None

        if isinstance(stmt, (Bind, While)) or hasattr(stmt, "condition"):
            field_name = "value" if isinstance(stmt, Bind) else "condition"
            return replace(stmt, **{field_name: map_expression(getattr(stmt, field_name), change)})  # type: ignore
        if isinstance(stmt, Effect):
            reads, writes = (
                tuple(b if b.dims else self.cell(b.name) for b in bufs) for bufs in (stmt.reads, stmt.writes)
            )
            return replace(stmt, reads=reads, writes=writes)
        return stmt

    def cell(self, name: str) -> Buf:
        """The array of one element that a variable lies in between kernels."""
        if name not in self.cells:
            buf = self.variables.get(name) or self.outer.get(name)
            dtype = buf.dtype if buf is not None else i64
            cell = Buf(self.fresh(f"{name}_at"), dtype, (1,))
            outer = self.outer.get(name)
            if outer is not None:
                space = "arg" if outer.space not in ("arg", "out") else outer.space
                cell = Buf(cell.name, dtype, (1,), space, outer.position)
            cell.unbound = outer is None  # a path that reads it may never run
            self.cells[name] = cell
        return self.cells[name]

    # --- kernels ----------------------------------------------------------------------------------

    def is_shared(self, name: str, region: Region) -> bool:
        """Whether anyone else has to do with a variable of a region."""
        others = (names for other, names in self.names.items() if other is not region)
        return (
            name in self.outer
            or name in self.wanted
            or name in self.host.all
            or any(name in names.all for names in others)
            or name in self.names[region].read
        )

    def launch(self, region: Region, asked: set[str]) -> CallFn:
        names = self.names[region]
        kept = sorted(name for name in names.given if self.is_shared(name, region))
        fetched = {name for name in kept if name not in names.surely}
        by_value = {name for name in names.read - names.given if name in self.has or name in asked}
        fetched |= names.read - by_value
        locals_ = {
            buf: local(buf.name, buf.dtype) for buf in used_inside(region) if not buf.dims and not buf.is_temporary
        }
        body = (
            *(self.fetch(name, locals_) for name in sorted(fetched)),
            *(with_storages(s, locals_) for s in _in_order(region.body)),
            *(Store(self.cell(name), (0,), self.value(name, locals_)) for name in kept),
        )
        self.settle(region)
        inside = list(walk(body))
        used = dict.fromkeys(b for s in inside for b in (*(load.buf for load in loaded(s)), *touched(s)))
        arrays = [b for b in used if b.dims and b.space not in ("frame", "shared", "stack")]
        growing = _growing(body)
        arrays += [b for b in used if b.space == "stack" and b not in growing]
        places = {name for b in used if b.dims for name in symbols_of(b.dims[1:])}
        places |= symbols_of(() if region.count is None else (region.count,))
        bound = bound_inside(replace(region, body=body)) | {b.name for b in used if not b.dims}
        sizes = tuple(sorted(by_value | (places - bound)))
        written = frozenset(b for s in inside for b in touched(s) if isinstance(s, Store) and b in arrays)
        fails = any(isinstance(s, (Check, Grow)) for s in inside)
        kernel = Kernel(region.count, region.together, region.threads)
        name = self.fresh(f"{_identifier(self.program.name)}_{len(self.made)}")
        facts = self.fn.facts
        fn = Fn(name, tuple(arrays), sizes, body, (), fails, names=self.fn.names, facts=facts, kernel=kernel)
        self.made.append(self.with_own_sizes(fn))
        return CallFn(fn.name, tuple(arrays), tuple(map(Sym, sizes)), fails, written, None, region.span)

    def with_own_sizes(self, kernel: Fn) -> Fn:
        """The kernel with arrays of its own in the place of those whose sizes indices of the host's loops decide: these
        have other names on the host in the end."""
        moving = [buf for buf in kernel.bufs if symbols_of(buf.dims) - frozenset(self.fn.sizes)]
        own = {buf: copy(buf) for buf in moving}
        body = tuple(with_storages(s, own) for s in kernel.body)
        return replace(kernel, body=body, bufs=tuple(own.get(buf, buf) for buf in kernel.bufs))

    def fetch(self, name: str, locals_: dict[Buf, Buf]) -> Stmt:
        buf, load = self.variables.get(name), Load(self.cell(name), (0,))
        return Bind(name, load) if buf is None else Store(locals_.get(buf, buf), (), load)

    def value(self, name: str, locals_: dict[Buf, Buf]) -> E:
        buf = self.variables.get(name)
        return Index(Sym(name)) if buf is None else Load(locals_.get(buf, buf))

    def settle(self, region: Region) -> None:
        """Say where the arrays lie that only this region has to do with."""
        for buf in region.frame:
            buf.space = "frame" if buf.space == "temp" else buf.space
        for buf in region.shared:
            buf.space = "shared"
        if region.count is None and region not in self.looped:
            mine = [b for b in used_inside(region) if b.dims and self.uses[b] == {region} and b.space == "temp"]
            for buf in near(sorted(mine, key=lambda b: b.name), self.program.target.shared_bytes // 2):
                buf.space = "shared"


def _names_of(region: Region) -> _Names:
    loops = {s.index for s in walk(region.body) if isinstance(s, For)}
    read, surely = read_before_given(region.body)
    return _Names(read - loops, set(_given(region.body)) - loops, surely)


def _given(block: tuple[Stmt, ...]) -> Iterator[str]:
    """The variables that a block gives a value that lasts: of a loop whose iterations are divided, what they combine;
    all else in it is an iteration's own."""
    for stmt in block:
        if isinstance(stmt, For) and stmt.on:
            yield from (buf.name for buf, _ in stmt.partials)
            continue
        if stmt.binds is not None:
            yield stmt.binds
        yield from (buf.name for buf in touched(stmt) if not buf.dims)
        for inner in stmt.blocks:
            yield from _given(inner)


def _in_order(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A block whose loops that no threads divide run in order: their iterations may share what each had for itself."""
    rows: list[Stmt] = []
    for stmt in block:
        if stmt.blocks:
            stmt = stmt.with_blocks(tuple(map(_in_order, stmt.blocks)))
        rows.append(replace(stmt, kind="seq") if isinstance(stmt, For) and not stmt.on else stmt)
    return tuple(rows)


def _growing(body: tuple[Stmt, ...]) -> set[Buf]:
    return {buf for s in walk(body) if isinstance(s, Grow) for buf in s.bufs}


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "program"


__all__ = ["Region", "launches"]
