"""Elements that are given a value twice, and read in between by nobody: the first time they are left out.

In: a block of perfect nests. Out: the same, where a nest that fills an array, most of which a later one overwrites,
fills what is left: a frame. Example (`y = x.copy(); y[1:-1] += v`):

    for i in range(n): y[i] = x[i]               y[0] = x[0]; y[n - 1] = x[n - 1]
    for i in range(n - 2): y[i + 1] += v[i]  ->  for i in range(n - 2): y[i + 1] = x[i + 1] + v[i]

A sweep over the array is saved, and in loops in time that is a good part of what they do.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from metaphrase.core.dims import DimLike, Sym, product, symbols
from metaphrase.core.facts import Facts

from .nest import (
    Axis,
    Bind,
    Buf,
    Const,
    E,
    Fn,
    If,
    Index,
    Load,
    Nest,
    Op,
    Stmt,
    Store,
    loaded,
    touched,
    used_inside,
    walk,
)
from .rewrite import rename_expression, rename_statement
from .target import Target

TRUTH = np.dtype(bool)
Box = tuple[tuple[DimLike, DimLike], ...]  # of each dim where it begins, and the length


def without_overwritten(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function without what is overwritten before anyone reads it."""
    return _in_block(fn.body, fn, target)


def _in_block(block: tuple[Stmt, ...], fn: Fn, target: Target) -> tuple[Stmt, ...]:
    rows: list[Stmt] = []
    block_now = list(block)
    users = _users(block)
    for k, stmt in enumerate(block_now):
        filled = filled_box(stmt) if isinstance(stmt, Nest) and _store(stmt) is not None else None
        if filled is not None and filled[0].space != "arg":
            behind = users[filled[0]][users[filled[0]].index(k) + 1 :]
            _set_first(stmt, k, block_now, behind, users, fn, target)
            pieces = [stmt]
            for box in _overwritten(filled[0], (block_now[j] for j in behind)):
                pieces = [part for piece in pieces for part in _left(piece, box, fn, target)]
            rows += pieces
        elif stmt.blocks and not isinstance(stmt, Nest):
            rows.append(stmt.with_blocks(tuple(_in_block(inner, fn, target) for inner in stmt.blocks)))
        else:
            rows.append(stmt)
    return tuple(rows)


def _users(block: tuple[Stmt, ...]) -> dict[Buf, list[int]]:
    """The places of the statements that have to do with each array."""
    users: dict[Buf, list[int]] = {}
    for k, stmt in enumerate(block):
        for buf in used_inside(stmt).union(touched(stmt)):
            users.setdefault(buf, []).append(k)
    return users


def _set_first(
    stmt: Stmt, k: int, block: list[Stmt], behind: list[int], users: dict[Buf, list[int]], fn: Fn, target: Target
) -> None:
    """Where the first that is done with an array that a copy or a constant fills is to combine into most of it: do that
    with what is copied."""
    store = _store(stmt)
    if store is None or not isinstance(store.value, (Load, Const)) or not behind:
        return
    later = block[behind[0]]
    whole, filled, combines = filled_box(stmt), filled_box(later, combining=True), _store(later)
    if whole is None or filled is None or combines is None or filled[0] is not store.buf:
        return
    if not _lies_inside(filled[1], whole[1], fn.facts):
        return
    if _left(stmt, filled[1], fn, target) == [stmt]:
        return
    between = [block[j] for load in loaded(store) for j in users[load.buf] if k < j < behind[0]]
    if any(load.buf in touched(s) for load in loaded(store) for s in walk(tuple(between))):
        return
    places = zip(store.index, combines.index, strict=True)
    here: dict[str, DimLike] = {
        name: b - (a - Sym(name))  # type: ignore[misc, operator]
        for a, b in places
        for name in symbols(a)  # type: ignore[arg-type]
    }
    value = combines.combined_with(rename_expression(store.value, here))
    block[behind[0]] = _with_store(later, replace(combines, value=value, monoid=None))


def _store(stmt: Stmt) -> Store | None:
    """What a statement, or an iteration of a nest, stores, if it does nothing else."""
    stored = stmt.body[-1] if isinstance(stmt, Nest) and len(stmt.body) == 1 else stmt
    return stored if isinstance(stored, Store) else None


def _with_store(stmt: Stmt, store: Store) -> Stmt:
    return replace(stmt, body=(store,)) if isinstance(stmt, Nest) else store


def filled_box(stmt: Stmt, combining: bool = False) -> tuple[Buf, Box] | None:
    """The array that a statement fills a box of, or combines into each element of one, and does nothing else but give
    variables values."""
    axes, body = (stmt.axes, stmt.body) if isinstance(stmt, Nest) else ((), (stmt,))
    store = body[-1]
    if not isinstance(store, Store) or not store.buf.dims or combining != (store.monoid is not None):
        return None
    if not all(isinstance(s, Bind) or isinstance(s, Store) and not s.buf.dims for s in body[:-1]):
        return None
    if isinstance(stmt, Nest) and stmt.first or any(axis.kind != "par" for axis in axes):
        return None
    if any(load.buf is store.buf for s in body for load in loaded(s)):
        return None
    extents = {axis.name: axis.extent for axis in axes}
    inside = {*extents, *(s.binds or "" for s in body)}
    box: list[tuple[DimLike, DimLike]] = []
    for entry in store.index:
        if isinstance(entry, E):
            return None
        along = sorted(symbols(entry) & {axis.name for axis in axes})
        if not along and not symbols(entry) & inside:
            box.append((entry, 1))
            continue
        if not along:
            return None
        begin = entry - Sym(along[0])
        if along[0] not in extents or symbols(begin) & inside:
            return None
        box.append((begin, extents.pop(along[0])))
    return (store.buf, tuple(box)) if not extents else None


def _overwritten(buf: Buf, users: Iterable[Stmt]) -> list[Box]:
    """The boxes of an array that its users fill, up to the first that has to do with it in another way."""
    boxes: list[Box] = []
    for stmt in users:
        filled = filled_box(stmt)
        if filled is None or filled[0] is not buf:
            break
        boxes.append(filled[1])
    return boxes


def _lies_inside(box: Box, whole: Box, facts: Facts) -> bool:
    return all(
        facts.nonnegative(begin - first) and facts.less_equal(begin - first + length, extent)
        for (begin, length), (first, extent) in zip(box, whole, strict=True)
    )


def _left(stmt: Stmt, box: Box, fn: Fn, target: Target) -> list[Stmt]:
    """The parts of a statement that fill what lies outside a box; the whole, where that is no frame of it."""
    filled, facts = filled_box(stmt), fn.facts
    if filled is None:
        return [stmt]
    if _lies_inside(filled[1], box, facts):
        return []
    if not isinstance(stmt, Nest) or not _lies_inside(box, filled[1], facts):
        return [stmt]
    inside = [(begin - first, length) for (first, _), (begin, length) in zip(filled[1], box, strict=True)]
    extents = [extent for _, extent in filled[1]]
    around = [extent - length for (_, length), extent in zip(inside, extents)]
    amount = product([length for _, length in inside])
    if not all(isinstance(rows, int) and rows <= target.frame for rows in around):
        return [stmt]
    if isinstance(amount, int) and amount < target.frame_from:
        return [stmt]
    parts: list[Stmt] = []
    whole, store = stmt, _store(stmt)
    assert store is not None
    names = {axis.name for axis in stmt.axes}
    axes = [max(symbols(entry) & names, default=None) for entry in store.index]  # type: ignore[arg-type]
    rest = stmt  # what lies beside the box along the axes so far
    for axis, (before, length), extent in zip(axes, inside, extents):
        if axis is not None:
            rest = _part(rest, axis, before, length)
            for begin, rows in ((0, before), (before + length, extent - before - length)):
                if rows != 0:
                    parts.append(_renamed(_part(stmt, axis, begin, rows), fn))
            stmt = rest
    unsure = [Op("le", (Index(0), Index(length)), TRUTH) for _, length in inside if not facts.nonnegative(length)]
    if unsure:  # the array may be shorter than the frame
        holds = functools.reduce(lambda a, b: Op("and", (a, b), TRUTH), unsure)
        return [If(holds, tuple(parts), (whole,), whole.span)]
    return parts


def _part(nest: Nest, axis: str, begin: DimLike, length: DimLike) -> Nest:
    """The iterations of a nest from `begin` on along an axis."""
    axes = tuple(replace(a, extent=length) if a.name == axis else a for a in nest.axes)
    return replace(nest, axes=axes, body=tuple(rename_statement(s, {axis: begin + Sym(axis)}) for s in nest.body))


def _renamed(nest: Nest, fn: Fn) -> Stmt:
    """The nest with indices of its own; without those of one iteration."""
    axes: list[Axis] = []
    values: dict[str, DimLike] = {}
    for axis in nest.axes:
        values[axis.name] = 0
        if axis.extent != 1:
            axes.append(replace(axis, name=fn.names.fresh(axis.name)))
            fn.facts.learn(axes[-1].name, 0, axis.extent - 1)
            values[axis.name] = Sym(axes[-1].name)
    body = tuple(rename_statement(s, values) for s in nest.body)
    return replace(nest, axes=tuple(axes), body=body) if axes else body[0]


__all__ = ["filled_box", "without_overwritten"]
