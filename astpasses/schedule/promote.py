"""Which element of an array a loop can keep in a variable.

In: a folded tree. Out: the same, with elements that a loop combines into in variables meanwhile.

    for j: y[i] += x[i, j]      ->      total = y[i]
                                        for j: total += x[i, j]
                                        y[i] = total
"""

from __future__ import annotations

from dataclasses import replace

from .lower_arrays import identity
from .names import Names
from .nest import Buf, E, For, Load, Map, Stmt, Store, bound_inside, index_symbols, loaded, loads, local, touched, walk
from .rewrite import map_expression, map_statement


def promote(block: tuple[Stmt, ...], names: Names, around: frozenset[str] = frozenset()) -> tuple[Stmt, ...]:
    """An element that a loop combines into, and that does not move with the loop, is kept in a variable meanwhile.
    Where it does not move with a reduction around it either (`around`: their indices), the variable is a part of the
    result, which is combined: iterations of that reduction stay independent."""
    rows: list[Stmt] = []
    for stmt in block:
        if stmt.blocks:
            inside = around | {stmt.index} if isinstance(stmt, For) and stmt.kind == "red" else around
            stmt = stmt.with_blocks(tuple(promote(b, names, inside) for b in stmt.blocks))
        if isinstance(stmt, For):
            before, stmt, after = _promote_loop(stmt, names, around)
            for first in before:
                _load_or_take(rows, first)
            rows.append(stmt)
            rows.extend(after)
        else:
            rows.append(stmt)
    return tuple(rows)


def _load_or_take(rows: list[Stmt], first: Store) -> None:
    """`total = y[i]` right behind `y[i] = value` is `total = value`."""
    load = first.value
    if not isinstance(load, Load):
        rows.append(first)
        return
    for k in range(len(rows) - 1, -1, -1):
        stmt = rows[k]
        if isinstance(stmt, Store) and stmt.buf is load.buf and stmt.index == load.index and not stmt.monoid:
            rows[k] = replace(stmt, buf=first.buf, index=())
            return
        if not isinstance(stmt, Store) or stmt.buf is load.buf or any(x.buf is load.buf for x in loads(stmt.value)):
            break
    rows.append(first)


def _promote_loop(loop: For, names: Names, around: frozenset[str]) -> tuple[list[Store], For, list[Stmt]]:
    places: dict[Buf, set[Map]] = {}
    stored: dict[Buf, set[str | None]] = {}
    read: set[Buf] = set()
    fixed: set[Buf] = set()
    changing = bound_inside(loop)
    for stmt in walk(loop.body):
        for load in loaded(stmt):
            places.setdefault(load.buf, set()).add(load.index)
            read.add(load.buf)
        if isinstance(stmt, Store):
            places.setdefault(stmt.buf, set()).add(stmt.index)
            stored.setdefault(stmt.buf, set()).add(stmt.monoid)
        else:
            fixed |= set(touched(stmt))
    before: list[Store] = []
    after: list[Stmt] = []
    for buf in places:  # in the order of the text, so that names are the same each time
        monoids = stored.get(buf, set())
        if not any(monoids) or buf in fixed or not buf.dims or len(places[buf]) != 1:
            continue
        (index,) = places[buf]
        if index_symbols(index) & changing or any(isinstance(i, E) for i in index):
            continue
        kept = local(names.fresh("total"), buf.dtype)
        (monoid,) = monoids if len(monoids) == 1 and buf not in read else (None,)
        if monoid is not None and around - index_symbols(index):
            before.append(Store(kept, (), identity(monoid, buf.dtype)))
            after.append(Store(buf, index, Load(kept), monoid))
        else:
            before.append(Store(kept, (), Load(buf, index)))
            after.append(Store(buf, index, Load(kept)))
        loop = _with_variable(loop, buf, kept)
    return before, loop, after


def _with_variable(loop: For, buf: Buf, kept: Buf) -> For:
    def expression(e: E) -> E:
        return map_expression(e, lambda x: Load(kept) if isinstance(x, Load) and x.buf is buf else None)

    def place(b: Buf, index: Map) -> tuple[Buf, Map]:
        return (kept, ()) if b is buf else (b, index)

    made = map_statement(loop, expression, place)
    assert isinstance(made, For)
    return made


__all__ = ["promote"]
