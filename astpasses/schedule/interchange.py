"""Loops that walk across memory are turned inside out: the innermost one runs along it, and becomes vectors.

In: a function whose loops are shared among threads. Out: the same, where a loop whose iterations do not depend on each
other is inside the one that was in it, if elements then lie side by side. Variables of an iteration are arrays, as long
as a block of iterations. Example:

    for j in range(m):                    for b in range(-(-m // 256)):
        s = 0.0                               count = min(256, m - 256*b)
        for k in range(n):                    for j in range(count): t[j] = 0.0
            s = s + a[k]*x[k, j]    ->        for k in range(n):
        y[j] = s                                  for j in range(count): t[j] = t[j] + a[k]*x[k, 256*b + j]
                                              for j in range(count): y[256*b + j] = t[j]

Each iteration does what it did in the same order: results are the same to the bit. This is strip-mining, distribution
and interchange (Wolfe, "High Performance Compilers for Parallel Computing", 1996, chapter 9).
"""

from __future__ import annotations

from collections.abc import Iterable

from metaphrase.core.dims import DimLike, Sym, dim_min, floordiv, symbols, symbols_of
from metaphrase.core.facts import Facts
from metaphrase.core.types import i64

from .dependence import slope
from .independence import Independence
from .nest import Bind, Buf, E, Fn, For, If, Index, Stmt, Store, expression_symbols, index_symbols, touched, walk
from .place import accesses_of
from .rewrite import rename_statement, with_parts
from .target import Target


def interchange(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such loops turned inside out."""
    if target.threads or all(middle_of(s, target) is None for s in walk(fn.body) if isinstance(s, For)):
        return fn.body
    return _Turning(fn, target).block(fn.body)


def middle_of(loop: For, target: Target) -> int | None:
    """Where in a loop that is to be turned inside out the one loop inside it stands: it is an innermost one, all else
    are simple statements. None for other loops."""
    inner = [k for k, s in enumerate(loop.body) if s.blocks]
    if len(inner) != 1 or not isinstance(within := loop.body[inner[0]], For):
        return None
    simple = all(isinstance(s, (Store, Bind)) for s in loop.body if s is not within)
    short = any(isinstance(x.extent, int) and x.extent < target.vector_from for x in (loop, within))
    fits = simple and not short and within.parts is None and all(map(_is_select, within.body))
    return inner[0] if fits and _runs_along(loop, within) else None


def _is_select(stmt: Stmt) -> bool:
    """Whether it stores, or chooses what a variable is."""
    if isinstance(stmt, If):
        return all(isinstance(s, Store) and not s.buf.dims for s in (*stmt.then, *stmt.orelse))
    return isinstance(stmt, Store)


def _runs_along(loop: For, within: For) -> bool:
    """Whether the inner loop walks across arrays, and the outer one would run along all that it moves in."""
    across = False
    for stmt in walk(within.body):
        for access in accesses_of(stmt):
            by_outer, by_inner = ({k for k, e in enumerate(access.index) if _has(e, x)} for x in (loop, within))
            last = len(access.index) - 1
            if not by_outer:
                continue
            entry = access.index[last]
            if by_outer != {last} or last in by_inner or isinstance(entry, E) or slope(entry, loop.index) != 1:
                return False
            across |= bool(by_inner)
    return across


def _has(entry: DimLike | E, loop: For) -> bool:
    return loop.index in index_symbols((entry,))


class _Turning:
    """The loops of one function."""

    def __init__(self, fn: Fn, target: Target):
        self.fn, self.target = fn, target
        self.independent = Independence(fn, target, Facts(fn.facts.ranges))

    def block(self, block: Iterable[Stmt]) -> tuple[Stmt, ...]:
        rows: list[Stmt] = []
        for stmt in block:
            turned = self.turned(stmt) if isinstance(stmt, For) else []
            if not turned and stmt.blocks:
                stmt = stmt.with_blocks(tuple(map(self.block, stmt.blocks)))
            rows += turned or [stmt]
        return tuple(rows)

    def turned(self, loop: For) -> list[Stmt]:
        """The loop inside out; nothing where it stays."""
        middle = middle_of(loop, self.target)
        if middle is None:
            return []
        within = loop.body[middle]
        assert isinstance(within, For)
        sections = [loop.body[:middle], within.body, loop.body[middle + 1 :]]
        held = self.held(loop, within, sections)
        if held is None:
            return []
        length = self.length(held)
        names, span = self.fn.names, loop.span
        number, count = names.fresh("i"), loop.extent
        first: DimLike = 0
        rows: list[Stmt] = []
        if not (isinstance(loop.extent, int) and loop.extent <= length):
            first = length * Sym(number)
            rows.append(Bind(names.fresh("count"), Index(dim_min(length, loop.extent - first)), span))
            self.fn.facts.learn(rows[0].binds, 1, length)  # type: ignore[arg-type]
            count = Sym(rows[0].binds)  # type: ignore[arg-type]
        arrays = {b: Buf(names.fresh(b.name), b.dtype, (length,)) for b in held}

        def sweep(section: tuple[Stmt, ...]) -> list[Stmt]:
            index = names.fresh("i")
            places = {b: (array, (Sym(index),)) for b, array in arrays.items()}
            body = (with_parts(rename_statement(s, {loop.index: first + Sym(index)}), places) for s in section)
            return [For(index, count, tuple(body), "par", span)] if section else []

        before, inside, behind = map(sweep, sections)
        kind = "seq" if within.kind == "par" else within.kind
        rows += [*before, For(within.index, within.extent, tuple(inside), kind, within.span), *behind]
        if first == 0:
            return rows
        blocks = floordiv(loop.extent + length - 1, length)
        return [For(number, blocks, tuple(rows), loop.kind, span)]

    def held(self, loop: For, within: For, sections: list[tuple[Stmt, ...]]) -> list[Buf] | None:
        """The variables of an iteration that more than one of its sections needs; None where iterations depend on one
        another, or need more than such variables."""
        given = {s.binds for s in loop.body if isinstance(s, Bind)}
        stored = {b for s in walk(loop.body) for b in touched(s)}
        if symbols(within.extent) & {loop.index, *given, *(b.name for b in stored)}:
            return None
        roles = self.independent.roles(loop)
        if roles is None or roles.sums or any(b.dims for b in roles.private):
            return None
        needed = [set[str]().union(*map(names_of, walk(section))) for section in sections]
        several = {name for name in set[str]().union(*needed) if sum(name in names for names in needed) > 1}
        held = sorted((b for b in roles.private if b.name in several), key=lambda b: b.name)
        chosen = {b for s in within.body if isinstance(s, If) for inner in walk((s,)) for b in touched(inner)}
        return None if several & given or chosen & {*held} or any(b.dtype == i64 for b in held) else held

    def length(self, held: list[Buf]) -> int:
        """How many iterations a block has: a power of two, so that its variables lie in half of a function's frame."""
        numbers = max(sum(b.dtype.itemsize for b in held), 4)
        return 1 << (self.target.stack_bytes // 2 // numbers).bit_length() - 1


def names_of(stmt: Stmt) -> set[str]:
    """Those of the symbols and storages that a statement uses."""
    accesses = accesses_of(stmt)
    symbols_read = (*map(expression_symbols, stmt.expressions), *(index_symbols(a.index) for a in accesses))
    return {*(a.buf.name for a in accesses), *symbols_of(stmt.extents)}.union(*symbols_read, {stmt.binds or ""})


__all__ = ["interchange", "middle_of", "names_of"]
