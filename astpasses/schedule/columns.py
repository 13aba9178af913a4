"""Columns of a matrix that a nest reads again and again are read as rows of its transpose, made once.

In: the folded tree. Out: the same, where it pays with a copy before a nest and the nest reading that.

    for i in range(70):                            for j in range(60):
        for j in range(60):                            for k in range(70): a_columns[j, k] = a[k, j]
            for k in range(i + 1):        ->       for i in range(70):
                c[i, k] += a[i, j]*a[k, j]             for j in range(60):
                                                           for k in range(i + 1):
                                                               c[i, k] += a[i, j]*a_columns[j, k]

A loop whose every access runs along memory is vectorised; one access that walks across keeps it from that. It
pays where the sizes are known and each element is read several times.
"""

from __future__ import annotations

from metaphrase.core.dims import DimLike, Sym, product, substitute, symbols
from metaphrase.late import dataclass, field

from .dependence import pinned
from .names import Names
from .nest import Buf, E, For, Load, Map, Stmt, Store, loaded, touched, walk
from .rewrite import map_expression, map_statement
from .target import Target


def columns_as_rows(block: tuple[Stmt, ...], names: Names, target: Target) -> tuple[Stmt, ...]:
    """Copy what pays, before the outermost loop in which it does not change."""
    rows: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, For):
            for buf, found in _worthwhile(stmt, target).items():
                copy, made = _transposed(buf, names)
                rows.append(made)
                stmt = _reading(stmt, buf, copy, found.loops)
        if stmt.blocks:
            stmt = stmt.with_blocks(tuple(columns_as_rows(b, names, target) for b in stmt.blocks))
        rows.append(stmt)
    return tuple(rows)


@dataclass
class _Found:
    """The innermost loops that read down the columns of a matrix, and how often they read, all together."""

    loops: list[str] = field(default_factory=list)
    reads: int = 0


def _worthwhile(nest: For, target: Target) -> dict[Buf, _Found]:
    changed = {b for s in walk((nest,)) for b in touched(s)}
    found: dict[Buf, _Found] = {}
    _search(nest, (), changed, found, target)
    return {b: f for b, f in found.items() if f.reads >= target.reads_of_a_copy * product(b.dims)}  # type: ignore[operator]


def _search(stmt: Stmt, outer: tuple[For, ...], changed: set[Buf], found: dict[Buf, _Found], target: Target) -> None:
    if isinstance(stmt, For):
        outer = (*outer, stmt)
        if stmt.kind in ("par", "red") and not any(s.blocks for s in stmt.body):
            rounds = _rounds(outer)
            if rounds is None or rounds[-1] < target.vector_from:
                return
            for buf in _across(stmt, changed, target):
                entry = found.setdefault(buf, _Found())
                entry.loops.append(stmt.index)
                entry.reads += product(rounds)  # type: ignore[operator, assignment]
            return
    for block in stmt.blocks:
        for inner in block:
            _search(inner, outer, changed, found, target)


def _rounds(loops: tuple[For, ...]) -> list[int] | None:
    """How often each loop goes round, on the average; None where that is not known."""
    made: list[int] = []
    middle: dict[str, DimLike] = {}
    for loop in loops:
        extent = substitute(loop.extent, middle)
        if not isinstance(extent, int):
            return None
        made.append(extent)
        middle[loop.index] = extent // 2
    return made


def _across(loop: For, changed: set[Buf], target: Target) -> set[Buf]:
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
            known = len(buf.dims) == 2 and all(isinstance(d, int) for d in buf.dims) and not buf.dynamic
            if not (read and known and buf not in changed and buf.space in ("arg", "temp")):
                return set()
            if not pinned(index[0], loop.index, frozenset()) or _in(loop, index[1:]):
                return set()
            if product(buf.dims) > target.cache:  # type: ignore[operator]
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
