"""Where storage comes from, and which element of an array a loop can keep in a variable.

In: the final tree of a function. Out: its temporaries; `Grow` where a size is known only on the way;
promoted elements.

    for j: y[i] += x[i, j]      ->      total = y[i]
                                        for j: total += x[i, j]
                                        y[i] = total
"""

from __future__ import annotations

from dataclasses import replace

from metaphrase.core.dims import symbols

from .nest import (
    Buf,
    E,
    For,
    Grow,
    Load,
    Map,
    Stmt,
    Store,
    bound_inside,
    index_symbols,
    loaded,
    loads,
    local,
    touched,
    used_inside,
    walk,
)
from .rewrite import map_expression, map_statement
from .values import Names

# --- elements kept in variables -------------------------------------------------------------------


def promote(block: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """An element that a loop combines into, and that does not move with the loop, is kept in a variable
    meanwhile."""
    rows: list[Stmt] = []
    for stmt in block:
        if stmt.blocks:
            stmt = stmt.with_blocks(tuple(promote(b, names) for b in stmt.blocks))
        if isinstance(stmt, For):
            before, stmt, after = _promote_loop(stmt, names)
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
    assert isinstance(load, Load)
    for k in range(len(rows) - 1, -1, -1):
        stmt = rows[k]
        if isinstance(stmt, Store) and stmt.buf is load.buf and stmt.index == load.index and not stmt.monoid:
            rows[k] = replace(stmt, buf=first.buf, index=())
            return
        if (
            not isinstance(stmt, Store)
            or stmt.buf is load.buf
            or any(x.buf is load.buf for x in loads(stmt.value))
        ):
            break
    rows.append(first)


def _promote_loop(loop: For, names: Names) -> tuple[list[Store], For, list[Stmt]]:
    places: dict[Buf, set[Map]] = {}
    stored: set[Buf] = set()
    fixed: set[Buf] = set()
    changing = bound_inside(loop)
    for stmt in walk(loop.body):
        for load in loaded(stmt):
            places.setdefault(load.buf, set()).add(load.index)
        if isinstance(stmt, Store):
            places.setdefault(stmt.buf, set()).add(stmt.index)
            if stmt.monoid:
                stored.add(stmt.buf)
        else:
            fixed |= set(touched(stmt))
    before: list[Store] = []
    after: list[Stmt] = []
    for buf in places:  # in the order of the text, so that names are the same each time
        if buf not in stored or buf in fixed or not buf.dims or len(places[buf]) != 1:
            continue
        (index,) = places[buf]
        if index_symbols(index) & changing or any(isinstance(i, E) for i in index):
            continue
        kept = local(names.fresh("total"), buf.dtype)
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


# --- storage --------------------------------------------------------------------------------------


def temporaries(body: tuple[Stmt, ...]) -> tuple[Buf, ...]:
    """The storages a body uses that it does not get from its caller, in order of appearance."""
    found: dict[Buf, None] = {}
    for stmt in walk(body):
        for buf in touched(stmt):
            if buf.space in ("temp", "stack"):
                found.setdefault(buf)
        for load in loaded(stmt):
            if load.buf.space in ("temp", "stack"):
                found.setdefault(load.buf)
    return tuple(found)


def make_room(body: tuple[Stmt, ...], known: frozenset[str]) -> tuple[Stmt, ...]:
    """Temporaries whose sizes are not `known` on entry are made where their sizes are."""
    for buf in temporaries(body):
        unknown = frozenset().union(*map(symbols, buf.dims)) - known
        if unknown and buf.space == "temp":
            buf.dynamic = True
            body = _grow_in(body, buf, unknown)
    return body


def _grow_in(block: tuple[Stmt, ...], buf: Buf, unknown: frozenset[str]) -> tuple[Stmt, ...]:
    first = next(k for k, s in enumerate(block) if buf in used_inside(s))
    stmt = block[first]
    if stmt.blocks and unknown & bound_inside(stmt):
        blocks = list(stmt.blocks)
        for k, inner in enumerate(blocks):
            if any(buf in used_inside(s) for s in inner):
                blocks[k] = _grow_in(inner, buf, unknown)
        return (*block[:first], stmt.with_blocks(tuple(blocks)), *block[first + 1 :])
    return (*block[:first], Grow((buf,), buf.dims[0]), *block[first:])


__all__ = ["promote", "temporaries", "make_room"]
