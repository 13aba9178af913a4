"""Scans on a GPU: loops that carry nothing but combinations of what they have seen.

In: a loop whose iterations depend on one another by variables alone, which each combines something into. Out: the same
for the threads of a block, or, where it is long and few run side by side, the kernels in its place: what each part
combines, what each part begins with, the parts themselves. Example:

    for i in range(n):                  for number in range(parts):        # on the grid
        t += x[i]                           t_parts[number] = the sum over its part
        y[i] = t                 ->     t_starts[0] = t
                                        for k in range(parts): t += t_parts[k]; t_starts[k + 1] = t
                                        for number in range(parts):        # on the grid
                                            t_1 = t_starts[number]
                                            for i in its part: t_1 += x[i]; y[i] = t_1

Where parts begin follows from sizes alone. Floats are combined in another order than one after the other. This is the
scan in three phases of Blelloch, "Prefix sums and their applications", 1990.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from metaphrase.core.dims import DimLike, Sym, dim_max, dim_min, floordiv
from metaphrase.core.facts import Facts
from metaphrase.core.scalars import MONOIDS
from metaphrase.late import dataclass

from .independence import Independence
from .launches import Region
from .lifetimes import read_before_given
from .lower_arrays import identity
from .nest import (
    Bind,
    Buf,
    For,
    If,
    Index,
    Load,
    Stmt,
    Store,
    boolean,
    loaded,
    local,
    other_symbols,
    place_symbols,
    value_symbols,
)
from .partial_sums import Division
from .place import divided
from .rewrite import rename_statement, with_storages
from .shapes import Shape


class Known(Division, Protocol):
    """What the pass that divides statements among kernels knows."""

    facts: Facts
    independent: Independence


@dataclass
class Scan:
    """A loop, the variables that it carries with their monoids, what it does up to the combinations, and after."""

    loop: For
    totals: dict[Buf, str]
    before: tuple[Stmt, ...]
    behind: tuple[Stmt, ...]

    def in_block(self) -> For:
        """The loop for the threads of a block: each does iterations up to the combinations, has what all up to its own
        have combined, and goes on."""
        body = (*self.before, If(boolean(True), self.behind, (), self.loop.span))
        return replace(self.loop, body=body, on="block", partials=tuple(self.totals.items()))


def scan_of(of: Known, loop: For) -> Scan | None:
    """A loop as a scan; None where iterations depend on one another in other ways."""
    if loop.kind != "seq" or not all(isinstance(s, (Store, Bind)) for s in loop.body):
        return None
    steps = [s for s in loop.body if isinstance(s, Store) and s.monoid is not None and s.buf.is_scalar]
    totals = {s.buf: s.monoid for s in steps if s.monoid is not None}
    if not steps or len(totals) < len(steps) or any(buf.unbound for buf in totals):
        return None
    if not all(MONOIDS[monoid].regroups or MONOIDS[monoid].exact for monoid in totals.values()):
        return None
    given = {s.binds for s in loop.body if s.binds is not None}
    given |= {s.buf.name for s in loop.body if isinstance(s, Store) and s not in steps and not s.buf.dims}
    names = {buf.name for buf in totals}
    read, _ = read_before_given(loop.body, frozenset([loop.index]))
    if given & (names | read) or not all(of.independent.lifetimes.private(name, loop) for name in given):
        return None
    late, before, behind = set(names), list[Stmt](), list[Stmt]()
    arrays = {s.buf for s in loop.body if isinstance(s, Store) and s.buf.dims}
    for stmt in loop.body:
        step = stmt in steps
        waits = bool(_variables_read(stmt) & late) or not step and isinstance(stmt, Store) and bool(stmt.buf.dims)
        if waits and step or not waits and any(load.buf in arrays for load in loaded(stmt)):
            return None
        if waits:
            late |= {stmt.binds} if isinstance(stmt, Bind) else set()
            late |= {stmt.buf.name} if isinstance(stmt, Store) and not stmt.buf.dims else set()
        (behind if waits else before).append(stmt)
    of.facts.learn(loop.index, 0, loop.extent - 1)
    if not arrays or not all(divided(buf, loop, of.facts) for buf in arrays):
        return None
    return Scan(loop, totals, tuple(before), tuple(behind))


def _variables_read(stmt: Stmt) -> set[str]:
    """The variables that a statement reads, but what it combines into."""
    names = {load.buf.name for load in loaded(stmt) if not load.buf.dims} | set(other_symbols(stmt))
    for e in stmt.expressions:
        names |= set(value_symbols(e))
    return names | {name for e in stmt.expressions for name in place_symbols(e)}


def long_scan(of: Known, stmt: For) -> tuple[list[Stmt], list[Stmt], list[Stmt]] | None:
    """Kernels, statements for one block, and kernels in the place of a long scan, or of few that each are a thread's;
    None where there is none."""
    scan = scan_of(of, stmt)
    if scan is not None:
        least = of.target.threads * of.target.of_a_thread
        long = not isinstance(stmt.extent, int) or stmt.extent > 2 * least
        return _InParts(of, scan, None, (), least).kernels() if long else None
    shape = of.shape(stmt)
    if shape is None or shape.roles.sums or not isinstance(shape.total, int) or of.together(shape):
        return None
    *begun, last = shape.body
    if not isinstance(last, For) or not isinstance(last.extent, int) or last.extent < 2 * of.target.part_from:
        return None
    scan = scan_of(of, last)
    if scan is None or not all(isinstance(s, Store) and s.buf in scan.totals and not loaded(s) for s in begun):
        return None
    if shape.total * of.target.of_a_thread > of.target.blocks * of.target.threads or len(begun) < len(scan.totals):
        return None
    return _InParts(of, scan, shape, tuple(begun), of.target.part_from).kernels()


class _InParts:
    """A scan in parts: of one line, by the blocks of a GPU; or of the lines of a nest, by threads."""

    def __init__(self, of: Known, scan: Scan, lines: Shape | None, begun: tuple[Stmt, ...], least: int):
        self.of, self.scan, self.lines, self.begun, self.least = of, scan, lines, begun, least
        self.rows: list[Stmt] = []
        self.line: tuple[DimLike, ...] = tuple(Sym(loop.index) for loop in lines.loops) if lines else ()
        extents = tuple(loop.extent for loop in lines.loops) if lines else ()
        most = of.target.parts_of_each if lines else of.target.blocks
        extent = scan.loop.extent
        self.parts = of.named("parts", dim_min(floordiv(extent + least - 1, least), most), self.rows)
        self.length = of.named("length", floordiv(extent + self.parts - 1, dim_max(self.parts, 1)), self.rows)

        def room(buf: Buf, what: str, more: int) -> Buf:
            return Buf(of.fresh(f"{buf.name}_{what}"), buf.dtype, (most + more, *extents))

        self.held = {buf: room(buf, "parts", 0) for buf in scan.totals}
        self.starts = {buf: room(buf, "starts", 1) for buf in scan.totals}

    def kernels(self) -> tuple[list[Stmt], list[Stmt], list[Stmt]]:
        first, between = self.in_parts(self.scan.before, self.held, None), self.between()
        last = self.in_parts((), {}, self.starts)
        if self.lines is None:
            return [*self.rows, first], between, [last]
        nest = self.lines.nest((*self.begun, *between), "grid", kind="par")
        return [*self.rows, first, Region((nest,), self.lines.total, False, self.of.target.threads)], [], [last]

    def in_parts(self, needed: tuple[Stmt, ...], kept: dict[Buf, Buf], begin: dict[Buf, Buf] | None) -> Region:
        """A kernel of parts: what each combines is kept, or, with a beginning for each, all is done."""
        of, loop, totals = self.of, self.scan.loop, self.scan.totals
        number, count, at = of.fresh("number"), of.fresh("count"), of.fresh("i")
        mine, first = {buf: local(of.fresh(buf.name), buf.dtype) for buf in totals}, self.length * Sym(number)
        whole = self.scan.in_block() if begin is not None else replace(loop, body=needed, kind="red", on="block")
        if self.lines is not None:
            whole = replace(loop, body=needed or loop.body)
        partials = tuple(totals.items()) if self.lines is None else ()
        part = replace(whole, index=at, extent=Sym(count), partials=partials)
        part = rename_statement(with_storages(part, mine), {loop.index: first + Sym(at)})  # type: ignore[assignment]
        here = (Sym(number), *self.line)
        block: tuple[Stmt, ...] = (
            Bind(count, Index(dim_min(self.length, loop.extent - first)), loop.span),
            *(
                Store(mine[buf], (), identity(monoid, buf.dtype) if begin is None else Load(begin[buf], here))
                for buf, monoid in totals.items()
            ),
            part,
            *(Store(kept[buf], here, Load(mine[buf])) for buf in kept),
        )
        if self.lines is None:
            grid = For(number, self.parts, block, "par", loop.span, on="grid")
            return Region((grid,), self.parts, True, of.threads(block))
        grid = For(number, self.parts, (self.lines.nest(block, "grid", kind="par"),), "par", loop.span, on="grid")
        return Region((grid,), self.parts * self.lines.total, False, of.target.threads)

    def between(self) -> list[Stmt]:
        """What each part begins with: a scan over what the parts have combined."""
        k, totals, span = self.of.fresh("i"), self.scan.totals, self.scan.loop.span
        begin = [Store(self.starts[buf], (0, *self.line), Load(buf)) for buf in totals]
        steps = [Store(buf, (), Load(self.held[buf], (Sym(k), *self.line)), m) for buf, m in totals.items()]
        keep = [Store(self.starts[buf], (Sym(k) + 1, *self.line), Load(buf)) for buf in totals]
        loop = For(k, self.parts, (*steps, *keep), "seq", span)
        return [*begin, Scan(loop, totals, tuple(steps), tuple(keep)).in_block() if self.lines is None else loop]


__all__ = ["long_scan", "scan_of"]
