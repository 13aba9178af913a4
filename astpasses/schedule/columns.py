"""Columns of a matrix that a nest reads again and again are read as rows of its transpose, made once.

In: the folded tree. Out: the same, where it pays with a copy before a nest and the nest reading that.

    for i in range(70):                            for j in range(60):
        for j in range(60):                            for k in range(70): a_columns[j, k] = a[k, j]
            for k in range(i + 1):        ->       for i in range(70):
                c[i, k] += a[i, j]*a[k, j]             for j in range(60):
                                                           for k in range(i + 1):
                                                               c[i, k] += a[i, j]*a_columns[j, k]

A loop whose every access runs along memory is vectorised; one access that walks across keeps it from that. It
pays where each element is read several times. Sizes of the run say so there: both nests stand in the program.

    if n*m*(n//2) >= 4*n*m:                        # of an `a` of n rows and m columns
        ...                                        # with the copy
    else:
        ...                                        # without
"""

from __future__ import annotations

import functools
from collections import Counter
from copy import copy

import numpy as np

from metaphrase.core.dims import DimLike, Sym, floordiv, product, substitute, symbols
from metaphrase.late import dataclass, field

from .dependence import pinned
from .names import Names
from .nest import Buf, E, Fn, For, If, Index, Load, Map, Op, Stmt, Store, bound_inside, loaded, named, touched, walk
from .rewrite import map_expression, map_statement, with_storages
from .target import Target


def columns_as_rows(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """Copy what pays, before the outermost loop in which it does not change."""
    return _Columns(fn, target).block(fn.body)


class _Columns:
    """The nests of one function."""

    def __init__(self, fn: Fn, target: Target):
        self.names, self.target = fn.names, target
        self.uses = _uses(fn.body)

    def block(self, block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(new for stmt in block for new in (self.nest(stmt) if isinstance(stmt, For) else self.inside(stmt)))

    def inside(self, stmt: Stmt) -> tuple[Stmt]:
        return (stmt.with_blocks(tuple(map(self.block, stmt.blocks))) if stmt.blocks else stmt,)

    def nest(self, nest: For) -> tuple[Stmt, ...]:
        conditions: list[E] = []
        copies: list[Stmt] = []
        changed: Stmt = nest
        for buf, found in _worthwhile(nest, self.target).items():
            rows, made = _transposed(buf, self.names)
            copies.append(made)
            changed = _reading(changed, buf, rows, found.loops)
            conditions += found.conditions(buf, self.target)
        (changed,) = self.inside(changed)
        if not conditions:
            return *copies, changed
        all_hold = functools.reduce(lambda a, b: Op("and", (a, b), _BOOL), dict.fromkeys(conditions))
        return (If(all_hold, (*copies, changed), (self.apart(nest),), nest.span),)

    def apart(self, nest: Stmt) -> Stmt:
        """The nest with arrays of its own in the place of those that nothing else uses: they may be an iteration's."""
        own = {}
        for buf, count in _uses((nest,)).items():
            if buf.space == "temp" and buf.dims and count == self.uses[buf]:
                own[buf] = copy(buf)
                own[buf].name = self.names.fresh(buf.name)
        return with_storages(nest, own)


def _uses(block: tuple[Stmt, ...]) -> Counter[Buf]:
    """How many statements name each storage."""
    return Counter(buf for stmt in walk(block) for buf in named(stmt))


_BOOL = np.dtype(bool)


@dataclass
class _Found:
    """The innermost loops that read down the columns of a matrix, and how often they read, all together."""

    loops: list[str] = field(default_factory=list)
    reads: DimLike = 0
    innermost: list[DimLike] = field(default_factory=list)  # how often each of the loops goes round

    def limits(self, buf: Buf, target: Target) -> list[tuple[DimLike, DimLike]]:
        """(more, less): it pays where each is so."""
        elements = product(buf.dims)
        rounds = [(count, target.vector_from) for count in self.innermost]
        return [(self.reads, target.reads_of_a_copy * elements), (target.copied, elements), *rounds]

    def sizes(self, buf: Buf, target: Target) -> frozenset[str]:
        """What the limits are made of."""
        return frozenset().union(*(symbols(size) for limit in self.limits(buf, target) for size in limit))

    def conditions(self, buf: Buf, target: Target) -> list[E]:
        """What only the run can tell of it."""
        unknown = ((a, b) for a, b in self.limits(buf, target) if not (isinstance(a, int) and isinstance(b, int)))
        return [Op("ge", (Index(more), Index(less)), _BOOL) for more, less in unknown]

    def pays(self, buf: Buf, target: Target) -> bool:
        """Whether it does for the sizes that are known, and for large ones otherwise."""
        return all(_taken(more, target) >= _taken(less, target) for more, less in self.limits(buf, target))


def _taken(size: DimLike, target: Target) -> int:
    """A size with what the target takes those for that only the run knows."""
    number = substitute(size, dict.fromkeys(symbols(size), target.unknown))
    assert isinstance(number, int)
    return number


def _worthwhile(nest: For, target: Target) -> dict[Buf, _Found]:
    changed = {b for s in walk((nest,)) for b in touched(s)}
    found: dict[Buf, _Found] = {}
    _search(nest, (), changed, found, target)
    own = bound_inside(nest)  # sizes that are not known before the nest
    return {b: f for b, f in found.items() if own.isdisjoint(f.sizes(b, target)) and f.pays(b, target)}


def _search(stmt: Stmt, outer: tuple[For, ...], changed: set[Buf], found: dict[Buf, _Found], target: Target) -> None:
    if isinstance(stmt, For):
        outer = (*outer, stmt)
        if stmt.kind in ("par", "red") and not any(s.blocks for s in stmt.body):
            rounds = _rounds(outer)
            if isinstance(rounds[-1], int) and rounds[-1] < target.vector_from:
                return
            for buf in _across(stmt, changed):
                entry = found.setdefault(buf, _Found())
                entry.loops.append(stmt.index)
                entry.innermost.append(rounds[-1])
                entry.reads += product(rounds)
            return
    for block in stmt.blocks:
        for inner in block:
            _search(inner, outer, changed, found, target)


def _rounds(loops: tuple[For, ...]) -> list[DimLike]:
    """How often each loop goes round, on the average."""
    made: list[DimLike] = []
    middle: dict[str, DimLike] = {}
    for loop in loops:
        made.append(substitute(loop.extent, middle))
        middle[loop.index] = floordiv(made[-1], 2)
    return made


def _across(loop: For, changed: set[Buf]) -> set[Buf]:
    """The matrices that an innermost loop reads down their columns, if nothing else keeps it from being
    vectorised."""
    found: set[Buf] = set()
    for stmt in loop.body:
        if not isinstance(stmt, Store):
            return set()
        accesses = [(x.buf, x.index, True) for x in loaded(stmt)]
        for buf, index, read in (*accesses, (stmt.buf, stmt.index, False)):
            if any(isinstance(entry, E) for entry in index):
                return set()
            if not any(loop.index in symbols(entry) for entry in index):  # type: ignore[arg-type]
                continue
            if pinned(index[-1], loop.index, frozenset()) and not _in(loop, index[:-1]):
                continue
            if not (read and len(buf.dims) == 2 and not buf.dynamic):
                return set()
            if buf in changed or buf.space not in ("arg", "temp"):
                return set()
            if not pinned(index[0], loop.index, frozenset()) or _in(loop, index[1:]):
                return set()
            found.add(buf)
    return found


def _in(loop: For, entries: Map) -> bool:
    return any(loop.index in symbols(e) for e in entries)  # type: ignore[arg-type]


def _transposed(buf: Buf, names: Names) -> tuple[Buf, For]:
    """The copy, and the nest that makes it: along the rows of the copy."""
    rows, columns = buf.dims
    copy = Buf(names.fresh(buf.name + "_columns"), buf.dtype, (columns, rows))
    i, j = names.fresh("i"), names.fresh("i")
    store = Store(copy, (Sym(i), Sym(j)), Load(buf, (Sym(j), Sym(i))))
    return copy, For(i, columns, (For(j, rows, (store,), "par"),), "par")


def _reading(stmt: Stmt, buf: Buf, copy: Buf, loops: list[str]) -> Stmt:
    """The nest with the columns read from the copy, in those loops."""
    if isinstance(stmt, For) and stmt.index in loops:
        index = stmt.index

        def change(x: E) -> E | None:
            if isinstance(x, Load) and x.buf is buf and index in symbols(x.index[0]):  # type: ignore[arg-type]
                return Load(copy, (x.index[1], x.index[0]))
            return None

        return map_statement(stmt, lambda e: map_expression(e, change), lambda b, place: (b, place))
    blocks = tuple(tuple(_reading(s, buf, copy, loops) for s in b) for b in stmt.blocks)
    return stmt.with_blocks(blocks) if blocks else stmt


__all__ = ["columns_as_rows"]
