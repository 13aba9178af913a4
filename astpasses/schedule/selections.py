"""What an array has where a mask is true is listed as the mask is read, not gathered by a list of places.

In: the folded tree. Out: the same, where a loop over the places of a mask that stores elements of arrays, in their
order, is a call of the library that lists them: it reads the mask and the array along memory, and needs no list. A list
that nobody reads any more is not made. Example:

    library('nonzero', mask, places)                      library('nonzero', (mask, x), y)
    for i in range(count):                         ->
        p = places[i]
        y[i] = x[p]

A call reads an array where the mask is true only: so it may be shorter than the mask, where the places have been
checked, unless somebody else might change the mask meanwhile.

Calls of one mask one after the other are cut into the same parts (compaction.py): each thread reads its part of the
mask, which is near then, for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from metaphrase.core.dims import DimLike, Sym, symbols_of
from metaphrase.core.facts import Facts

from .nest import (
    Bind,
    Buf,
    Check,
    E,
    Fn,
    For,
    Index,
    LibraryCall,
    Load,
    Op,
    Stmt,
    Store,
    View,
    expression_symbols,
    loaded,
    other_symbols,
    touched,
    walk,
)
from .target import Target
from .work import binds


def in_selections(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body with such loops as calls."""
    if not any(_lists(stmt, target) for stmt in walk(fn.body)):
        return fn.body
    return _without_lists(_block(fn.body, target, _Lengths(fn.facts, ())), target)


def _lists(stmt: Stmt, target: Target) -> bool:
    """Whether it is a call that lists the places of one whole line."""
    if not isinstance(stmt, LibraryCall) or not (offer := target.offer(stmt.operation)) or not offer.lists:
        return False
    views = (*stmt.reads, *stmt.writes)
    return len(stmt.reads) == 1 and all(view.index == (0,) and view.strides == (1,) for view in views)


class _Lengths:
    """What is known of lengths: by itself, and by what has been checked in this block and around it."""

    def __init__(self, facts: Facts, equal: Iterable[frozenset[DimLike]]):
        self.facts, self.equal = facts, set(equal)
        self.said: dict[Buf, frozenset[DimLike]] = {}  # what variables say

    def behind(self, stmt: Stmt, bound: set[str]) -> None:
        """Learn what a statement says; forget what was said of symbols that are others now."""
        self.equal = {dims for dims in self.equal if not bound & symbols_of(dims)}
        self.said = {buf: dims for buf, dims in self.said.items() if not bound & {buf.name, *symbols_of(dims)}}
        if isinstance(stmt, Store) and not stmt.buf.dims and not stmt.monoid and (dims := _equal(stmt.value)):
            self.said[stmt.buf] = dims
        if isinstance(stmt, Check):
            known = self.said.get(stmt.ok.buf) if isinstance(stmt.ok, Load) else _equal(stmt.ok)
            self.equal |= {known} if known else set()

    def upto(self, short: DimLike, long: DimLike) -> bool:
        return frozenset((short, long)) in self.equal or self.facts.less_equal(short, long)


def _equal(e: E) -> frozenset[DimLike] | None:
    """The dims of which an expression says that they are equal."""
    if not isinstance(e, Op) or e.name != "eq" or not all(isinstance(x, Index) for x in e.args):
        return None
    return frozenset(x.dim for x in e.args if isinstance(x, Index))


def _block(block: tuple[Stmt, ...], target: Target, lengths: _Lengths) -> tuple[Stmt, ...]:
    lists: dict[Buf, LibraryCall] = {}  # whose masks are as they were
    lengths = _Lengths(lengths.facts, lengths.equal)
    rows: list[Stmt] = []
    for stmt in block:
        made: list[Stmt] = [stmt]
        if isinstance(stmt, For) and stmt.kind == "par" and (calls := _selections(stmt, lists, lengths)):
            left = _without(stmt, [store for store, _ in calls])
            made = [*(call for _, call in calls), *([left] if left.body else [])]
        elif stmt.blocks:
            made = [stmt.with_blocks(tuple(_block(inner, target, lengths) for inner in stmt.blocks))]
        rows += made
        inside = list(walk(tuple(made)))
        changed = {access.buf for inner in inside for access in inner.accesses if access.write}
        bound = {name for inner in made for name in binds(inner)}
        lengths.behind(stmt, bound)
        lists = {
            line: call
            for line, call in lists.items()
            if not changed & {line, call.reads[0].buf} and not bound & symbols_of(call.extents)
        }
        if isinstance(stmt, LibraryCall) and _lists(stmt, target):
            lists[stmt.writes[0].buf] = stmt
    return tuple(rows)


def _selections(loop: For, lists: dict[Buf, LibraryCall], lengths: _Lengths) -> list[tuple[Store, LibraryCall]]:
    """The stores of a loop that are selections, each with the call that does it."""
    if any(isinstance(stmt, Check) for stmt in walk(loop.body)):
        return []
    places: dict[str, LibraryCall] = {}
    for stmt in loop.body:
        if isinstance(stmt, Bind) and isinstance(stmt.value, Load) and stmt.value.index == (Sym(loop.index),):
            call = lists.get(stmt.value.buf)
            if call is not None and call.writes[0].extents == (loop.extent,):
                places[stmt.name] = call
    found = []
    stored = [buf for stmt in walk(loop.body) for buf in touched(stmt)]
    read = {load.buf for stmt in walk(loop.body) for load in loaded(stmt)}
    for stmt in loop.body:
        if not isinstance(stmt, Store) or stmt.monoid or not isinstance(stmt.value, Load):
            continue
        x, y = stmt.value.buf, stmt.buf
        call = next((places[name] for name in places if stmt.value.index == (Sym(name),)), None)
        if (
            call is not None
            and stmt.index == (Sym(loop.index),)
            and x.dtype == y.dtype
            and stored.count(y) == 1
            and not {x, y} & {call.reads[0].buf}
            and x not in stored
            and y not in read
            and _is_inside(x, call.reads[0], lengths)
        ):
            found.append((stmt, _call(call, x, y, loop)))
    return found


def _is_inside(x: Buf, mask: View, lengths: _Lengths) -> bool:
    """Whether an array has an element wherever a mask is true, as it was when its places were listed."""
    return mask.buf.is_temporary or lengths.upto(mask.extents[0], x.dims[0])


def _call(call: LibraryCall, x: Buf, y: Buf, loop: For) -> LibraryCall:
    (mask,), extent = call.reads, loop.extent
    reads, writes = (mask, View(x, (0,), mask.extents, (1,))), (View(y, (0,), (extent,), (1,)),)
    return replace(call, reads=reads, writes=writes, span=loop.span)


def _without(loop: For, stores: list[Store]) -> For:
    """What is left of a loop, without numbers that nobody needs any more."""
    rows = [stmt for stmt in loop.body if stmt not in stores]
    used: set[str] = set()
    left: list[Stmt] = []
    for stmt in reversed(rows):
        if isinstance(stmt, Bind) and stmt.name not in used:
            continue
        left.append(stmt)
        for inner in walk((stmt,)):
            used |= other_symbols(inner).union(*map(expression_symbols, inner.expressions))
    return replace(loop, body=tuple(reversed(left)))


def _without_lists(body: tuple[Stmt, ...], target: Target) -> tuple[Stmt, ...]:
    """The body without lists that nobody reads."""
    inside = list(walk(body))
    read = {load.buf for stmt in inside for load in loaded(stmt)}
    read |= {access.buf for stmt in inside for access in stmt.accesses if not access.write}

    def block(rows: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(
            stmt.with_blocks(tuple(map(block, stmt.blocks))) if stmt.blocks else stmt
            for stmt in rows
            if not isinstance(stmt, LibraryCall) or not _lists(stmt, target) or not _is_unread(stmt.writes[0].buf, read)
        )

    return block(body)


def _is_unread(buf: Buf, read: set[Buf]) -> bool:
    return buf.space == "temp" and not buf.carried and buf not in read


__all__ = ["in_selections"]
