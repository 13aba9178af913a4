"""Which element of an array a loop can keep in a variable.

In: a folded tree. Out: the same, with elements that a loop combines into in variables meanwhile.

    for j: y[i] += x[i, j]      ->      total = y[i]
                                        for j: total += x[i, j]
                                        y[i] = total

A place that may lie outside of its array is touched only if the loop touches it: `if n > 0: total = y[k]`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from metaphrase.core.facts import Facts
from metaphrase.core.types import i64

from .lower_arrays import identity
from .names import Names
from .nest import (
    Buf,
    Check,
    E,
    For,
    If,
    Index,
    Load,
    Map,
    Stmt,
    Store,
    bound_inside,
    constant,
    index_symbols,
    loaded,
    loads,
    local,
    operation,
    touched,
    value_symbols,
    walk,
)
from .rewrite import map_expression, map_statement
from .target import Target


def promote(
    block: tuple[Stmt, ...], names: Names, facts: Facts, target: Target, around: frozenset[str] = frozenset()
) -> tuple[Stmt, ...]:
    """An element that a loop combines into, and that does not move with the loop, is kept in a variable meanwhile; so
    are a few of one array (`f[0] += x`, `f[1] += y`), if the loop names no other ones.
    Where it does not move with a reduction around it either (`around`: their indices), the variable is a part of the
    result, which is combined: iterations of that reduction stay independent. In kernels the outermost such loop has the
    only variable: all loops inside are one sum, however their iterations are divided."""
    in_parts, most = not target.threads, target.kept_elements
    rows: list[Stmt] = []
    for stmt in block:
        before: list[Stmt] = []
        after: list[Stmt] = []
        if isinstance(stmt, For) and not in_parts:
            before, stmt, after = _promote_loop(stmt, names, around, facts, most)
        if stmt.blocks:
            inside = around | {stmt.index} if isinstance(stmt, For) and stmt.kind == "red" else around
            known = facts.index(stmt.index, stmt.extent) if isinstance(stmt, For) else facts
            stmt = stmt.with_blocks(tuple(promote(b, names, known, target, inside) for b in stmt.blocks))
        elif stmt.binds and stmt.binds not in facts.ranges:
            facts = facts.bounded(stmt.binds, None, None)
        if isinstance(stmt, For) and in_parts:
            before, stmt, after = _promote_loop(stmt, names, around, facts, most)
        for first in before:
            _load_or_take(rows, first)
        rows += [stmt, *after]
    return tuple(rows)


def _load_or_take(rows: list[Stmt], first: Stmt) -> None:
    """`total = y[i]` right behind `y[i] = value` is `total = value`."""
    load = first.value if isinstance(first, Store) else None
    if not isinstance(first, Store) or not isinstance(load, Load):
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


def _promote_loop(
    loop: For, names: Names, around: frozenset[str], facts: Facts, most: int
) -> tuple[list[Stmt], For, list[Stmt]]:
    places: dict[Buf, dict[Map, None]] = {}
    stored: dict[tuple[Buf, Map], set[str | None]] = {}
    read: set[tuple[Buf, Map]] = set()
    fixed: set[Buf] = set()
    changing = bound_inside(loop)
    for stmt in walk(loop.body):
        for load in loaded(stmt):
            places.setdefault(load.buf, {})[load.index] = None
            read.add((load.buf, load.index))
        if isinstance(stmt, Store):
            places.setdefault(stmt.buf, {})[stmt.index] = None
            stored.setdefault((stmt.buf, stmt.index), set()).add(stmt.monoid)
        else:
            fixed |= set(touched(stmt))
    before: list[Stmt] = []
    after: list[Stmt] = []
    for buf, indices in places.items():  # in the order of the text, so that names are the same each time
        monoids = {monoid for index in indices for monoid in stored.get((buf, index), ())}
        if not any(monoids) or buf in fixed or not buf.dims or len(indices) > most:
            continue
        if any(index_symbols(i) & changing or any(isinstance(entry, E) for entry in i) for i in indices):
            continue
        if len(indices) > 1 and not _may_be_variables(buf, list(indices), stored, read, facts):
            continue
        touched_if = () if all(_lies_inside(buf, i, facts) for i in indices) else _when_touched((loop,), buf, changing)
        if touched_if is None:
            continue
        variables = {index: local(names.fresh("total"), buf.dtype) for index in indices}
        for index, kept in variables.items():
            own = stored.get((buf, index), set())
            (monoid,) = own if len(own) == 1 and (buf, index) not in read else (None,)
            if monoid is not None and around - index_symbols(index):
                before.append(Store(kept, (), identity(monoid, buf.dtype)))
                after.append(_only_if(touched_if, Store(buf, index, Load(kept), monoid)))
                continue
            nothing = Store(kept, (), constant(0, buf.dtype))
            if touched_if or len(indices) > 1 or not _begins_anew(loop, buf, facts):
                before.append(_only_if(touched_if, Store(kept, (), Load(buf, index)), nothing))
            if own:
                after.append(_only_if(touched_if, Store(buf, index, Load(kept))))
        loop = _with_variables(loop, buf, variables)
    return before, loop, after


def _may_be_variables(
    buf: Buf, indices: list[Map], stored: Mapping[tuple[Buf, Map], set], read: set[tuple[Buf, Map]], facts: Facts
) -> bool:
    """Whether several elements lie inside of an array and apart, and hold a value before the loop, as what is combined
    with does, or what is read."""

    def apart(a: Map, b: Map) -> bool:
        return any(isinstance(x - y, int) and x != y for x, y in zip(a, b))  # type: ignore[operator]

    return all(
        _lies_inside(buf, a, facts)
        and ((buf, a) in read or None not in stored[buf, a])
        and all(apart(a, b) for b in indices[k + 1 :])
        for k, a in enumerate(indices)
    )


def _begins_anew(loop: For, buf: Buf, facts: Facts) -> bool:
    """Whether the loop surely stores into an array before it reads any of it."""
    first = next((stmt for stmt in loop.body if any(buf in _named(inner) for inner in walk((stmt,)))), None)
    if not isinstance(first, Store) or first.buf is not buf or first.monoid or any(x.buf is buf for x in loaded(first)):
        return False
    return facts.less(0, loop.extent)


def _named(stmt: Stmt) -> set[Buf]:
    """What a statement itself reads or stores into."""
    return {*touched(stmt), *(load.buf for load in loaded(stmt))}


def _lies_inside(buf: Buf, index: Map, facts: Facts) -> bool:
    """Whether a place surely is one of the array's."""
    return all(
        not isinstance(entry, E) and facts.nonnegative(entry) and facts.less(entry, extent)
        for entry, extent in zip(index, buf.dims, strict=True)
    )


def _when_touched(block: tuple[Stmt, ...], buf: Buf, changing: frozenset[str]) -> tuple[E, ...] | None:
    """Conditions under which statements surely touch an array; None where that can't be said before they run, or where
    a check stands before, which may be that of the place."""
    for stmt in block:
        if any(isinstance(inner, Check) for inner in walk((stmt,))):
            return None
        if not any(buf in touched(inner) for inner in walk((stmt,))):
            continue
        if not stmt.blocks:
            return ()
        if not isinstance(stmt, (For, If)):
            return None
        asked = Index(stmt.extent) > constant(0, i64) if isinstance(stmt, For) else stmt.condition
        inside = _when_touched(stmt.blocks[0], buf, changing)
        return None if inside is None or loads(asked) or changing & {*value_symbols(asked)} else (asked, *inside)
    return None


def _only_if(conditions: tuple[E, ...], stmt: Stmt, otherwise: Stmt | None = None) -> Stmt:
    if not conditions:
        return stmt
    asked = functools.reduce(lambda a, b: operation("and_", a, b), conditions)
    return If(asked, (stmt,), (otherwise,) if otherwise else ())


def _with_variables(loop: For, buf: Buf, variables: Mapping[Map, Buf]) -> For:
    def expression(e: E) -> E:
        return map_expression(e, lambda x: Load(variables[x.index]) if isinstance(x, Load) and x.buf is buf else None)

    def place(b: Buf, index: Map) -> tuple[Buf, Map]:
        return (variables[index], ()) if b is buf else (b, index)

    made = map_statement(loop, expression, place)
    assert isinstance(made, For)
    return made


__all__ = ["promote"]
