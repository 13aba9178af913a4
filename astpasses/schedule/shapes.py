"""Loops that a GPU divides: nests of independent iterations, and where what each iteration has for itself lies.

In: nothing. Out: `Shape` and `Own`, which the passes of kernels (kernels.py, partial_sums.py, scatters.py) hand to one
another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from metaphrase.core.dims import Dim, DimLike, Sym, floordiv, mod, product
from metaphrase.late import dataclass

from .expressions import merge_split_indices, only_symbols
from .independence import Roles
from .nest import (
    Bind,
    Buf,
    For,
    Index,
    Stmt,
    expression_symbols,
    index_symbols,
    loaded,
    other_symbols,
    subexpressions,
    walk,
)
from .rewrite import rename_statement


@dataclass
class Shape:
    """Loops that stand in one another with nothing between, what is inside of them, and their roles together."""

    loops: list[For]
    body: tuple[Stmt, ...]
    roles: Roles

    @property
    def total(self) -> DimLike:
        return product([loop.extent for loop in self.loops])

    def nest(self, body: tuple[Stmt, ...], on: str, **more: object) -> For:
        """The loops around another body."""
        for loop in reversed(self.loops):
            body = (replace(loop, body=body, on=on, **more),)  # type: ignore[arg-type]
        (outer,) = body
        assert isinstance(outer, For)
        return outer


@dataclass
class Own:
    """The arrays of an iteration: in a thread's memory, in a block's, and those that are parts of larger ones."""

    frame: tuple[Buf, ...]
    shared: tuple[Buf, ...]
    parts: dict[Buf, tuple[Buf, tuple[DimLike, ...]]]


def unravelled(
    body: tuple[Stmt, ...], place: DimLike, loops: Sequence[For], fresh: Callable[[str], str]
) -> tuple[Stmt, ...]:
    """What loops in one another do at one place of all their iterations. Where arrays are read row after row, the place
    is the address; else the indices are worked out before.

    x[i, j] of loops over (4, 56), at p:  x[p];  of x[i, j, 0]:  i = p // 56; j = p % 56
    """
    values: dict[str, DimLike] = {}
    rest = place
    for loop in reversed(loops[1:]):
        quotient = floordiv(rest, loop.extent)
        values[loop.index] = rest - loop.extent * quotient
        rest = quotient
    values[loops[0].index] = rest
    direct = tuple(rename_statement(s, values) for s in body)
    if len(loops) == 1 or all(map(_is_plain, walk(direct))):
        return direct
    at, binds = fresh("at"), list[Stmt]()
    rest = Sym(at)
    for loop in reversed(loops):
        index = rest if loop is loops[0] else mod(rest, loop.extent)
        binds.append(Bind(fresh(loop.index), Index(index), loop.span))
        rest = floordiv(rest, loop.extent)
    names = {loop.index: Sym(bind.binds) for loop, bind in zip(reversed(loops), binds)}  # type: ignore[arg-type]
    used = frozenset(name for s in walk(body) for name in _symbols(s))
    needed = [bind for loop, bind in zip(reversed(loops), binds) if loop.index in used]
    first = Bind(at, Index(place), loops[0].span)
    return (first, *reversed(needed), *(rename_statement(s, names) for s in body))


def _symbols(stmt: Stmt) -> frozenset[str]:
    places = (a.index for a in stmt.accesses), (load.index for load in loaded(stmt))
    names = other_symbols(stmt).union(*map(expression_symbols, stmt.expressions))
    return names.union(*(index_symbols(index) for part in places for index in part))


def _is_plain(stmt: Stmt) -> bool:
    """Whether no address in a statement is worked out by division."""
    places = [(a.index, a.buf) for a in stmt.accesses] + [(load.index, load.buf) for load in loaded(stmt)]
    for index, buf in places:
        entries, _ = merge_split_indices(list(index), list(buf.dims))
        if any(isinstance(entry, Dim) and not only_symbols(entry) for entry in entries):
            return False
    return all(only_symbols(x.dim) for e in stmt.expressions for x in subexpressions(e) if isinstance(x, Index))


__all__ = ["Own", "Shape", "unravelled"]
