"""What lists the places where a mask is true, or the elements there, by several threads: how many are in each part of
the mask, then where they go.

In: library calls on one mask, and what makes functions of parts (share.py). Out: statements that leave the same lists,
each part of which is written by the thread that reads that part of the mask. Example:

    library('nonzero', mask, places)    ->    for k in parts: begins[k + 1] = how many are true in part k
    library('nonzero', (mask, x), y)          for k in parts: begins[k + 1] += begins[k]
                                              for k in parts:
                                                  library('nonzero', mask[part k], places[begins[k]:...])
                                                  library('nonzero', (mask[part k], x[part k]), y[begins[k]:...])
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeGuard

import numpy as np

from metaphrase.core.dims import DimLike, Sym, dim_min, floordiv
from metaphrase.core.types import i64
from metaphrase.source import Span

from .names import Names
from .nest import Access, Bind, Buf, CallFn, E, For, If, Index, LibraryCall, Load, Op, Parts, Stmt, Store, View, walk
from .target import Target

Call = Callable[[tuple[Stmt, ...], set[Buf], tuple[str, str], DimLike, Span | None], CallFn]


def _may_be_cut(stmt: Stmt, target: Target) -> TypeGuard[LibraryCall]:
    """Whether it lists what belongs to one whole line."""
    if not isinstance(stmt, LibraryCall) or not (offer := target.offer(stmt.operation)) or not offer.lists:
        return False
    return all(view.index == (0,) and view.strides == (1,) for view in (*stmt.reads, *stmt.writes))


def together(block: Sequence[Stmt], k: int, target: Target) -> list[LibraryCall]:
    """The calls from the k-th statement on that are cut together: of one mask, and none reads what another writes."""
    calls: list[LibraryCall] = []
    for stmt in block[k:]:
        if not _may_be_cut(stmt, target):
            break
        (mask, *_), (line,) = stmt.reads, stmt.writes
        same = not calls or (mask, line.extents) == (calls[0].reads[0], calls[0].writes[0].extents)
        read, written = ({v.buf for c in (*calls, stmt) for v in views(c)} for views in (_reads, _writes))
        if not same or read & written or len(written) <= len(calls):
            break
        calls.append(stmt)
    return calls


def _reads(call: LibraryCall) -> tuple[View, ...]:
    return call.reads


def _writes(call: LibraryCall) -> tuple[View, ...]:
    return call.writes


class Counted(NamedTuple):
    """A loop over `whole` elements, cut into parts of `length`, leaves in `held` how many are true in each."""

    held: Buf
    whole: DimLike
    length: int


def rounded(length: int, target: Target) -> int:
    """The length of a part of a mask: not less than what is looked at together."""
    return -(-max(1, length) // target.of_a_mask) * target.of_a_mask


def counting(loop: For, target: Target) -> dict[Buf, Buf]:
    """The i64 variables in which a loop counts where a mask is true, as it leaves the mask, each with the mask."""
    if not any(offer.lists for offer in target.offers):
        return {}
    found: dict[Buf, Buf] = {}
    for k, stmt in enumerate(loop.body):
        if isinstance(stmt, Store) and not stmt.buf.dims and stmt.monoid == "sum" and isinstance(stmt.value, Op):
            (x, *_), name = stmt.value.args, stmt.value.name
            is_count = name == "convert" and stmt.buf.dtype == i64 and x.dtype == bool
            if is_count and isinstance(x, Load) and x.index == (Sym(loop.index),):
                before = all(isinstance(s, Store) and a.index == x.index for s, a in _stores(loop.body[:k], x.buf))
                if before and not any(_stores(loop.body[k:], x.buf)):
                    found[stmt.buf] = x.buf
    return found


def _stores(block: Sequence[Stmt], buf: Buf) -> Iterator[tuple[Stmt, Access]]:
    inside = walk(tuple(block))
    return ((stmt, access) for stmt in inside for access in stmt.accesses if access.write and access.buf is buf)


def without_counts(loop: For, counted: Container[Buf]) -> For:
    """What is left of a loop whose counts something else takes."""
    left = tuple(stmt for stmt in loop.body if not (isinstance(stmt, Store) and stmt.buf in counted))
    combines = any(isinstance(stmt, Store) and stmt.monoid for stmt in walk(left))
    return replace(loop, body=left, kind=loop.kind if combines else "par")


def count(mask: Buf, first: DimLike, length: DimLike, total: Buf, place: DimLike, span: Span | None) -> LibraryCall:
    """How many are true in a part of a mask."""
    part = View(mask, (first,), (length,), (1,))
    return LibraryCall("nonzero", (part,), (View(total, (place,)),), (("axis", 0),), span)


def cut(
    calls: Sequence[LibraryCall], names: Names, target: Target, call: Call, known: Counted | None
) -> tuple[Stmt, ...]:
    """The lists in parts, where the mask is that long. `known`: how many are true in parts of it."""
    (mask, *_), (line,), span = calls[0].reads, calls[0].writes, calls[0].span
    (whole,), width = mask.extents, sum(c.writes[0].buf.dtype.itemsize for c in calls)
    worth = length = rounded(target.a_part // width, target)
    if known is not None and known.whole == whole:
        length, worth = known.length, max(known.length, worth)
    else:
        known = None
    if isinstance(whole, int) and whole <= worth:
        return tuple(calls)
    parts = floordiv(whole + length - 1, length)
    begins = Buf(names.fresh("begins"), i64, (parts + 1,))

    def each(make: Callable[[DimLike, DimLike, DimLike], tuple[tuple[Stmt, ...], set[Buf]]]) -> For:
        """A loop over the parts: a part has a number, a first element and so many."""
        number, first, count = (names.fresh(name) for name in ("number", "first", "count"))
        body, own = make(Sym(number), Sym(first), Sym(count))
        made, start = call(body, own, (first, count), dim_min(length, whole), span), length * Sym(number)
        made = replace(made, sizes=(*made.sizes[:-2], start, dim_min(length, whole - start)))
        return For(number, parts, (made,), "par", span, parts=Parts(whole, length, True))

    def counted(number: DimLike, first: DimLike, length: DimLike) -> tuple[tuple[Stmt, ...], set[Buf]]:
        return (count(mask.buf, first, length, begins, number + 1, span),), set()

    def upto(number: DimLike) -> E:
        """Where a part of the list begins; inside the list, whoever changes the mask meanwhile."""
        return Op("min", (Load(begins, (number,)), Index(line.extents[0])), i64)

    def listed(number: DimLike, first: DimLike, count: DimLike) -> tuple[tuple[Stmt, ...], set[Buf]]:
        begin, end = names.fresh("begin"), names.fresh("end")

        def part(one: LibraryCall) -> LibraryCall:
            reads = tuple(View(view.buf, (first,), (count,), (1,)) for view in one.reads)
            here = View(one.writes[0].buf, (Sym(begin),), (Sym(end) - Sym(begin),), (1,))
            attributes = (*one.attributes, ("first", first)) if len(reads) == 1 else one.attributes
            return replace(one, reads=reads, writes=(here,), attributes=attributes)

        return (Bind(begin, upto(number)), Bind(end, upto(number + 1)), *map(part, calls)), set()

    k = names.fresh("i")
    here = Load(known.held, (Sym(k),)) if known is not None else Load(begins, (Sym(k) + 1,))
    upto_here = Op("add", (Load(begins, (Sym(k),)), here), i64)
    several = (
        Store(begins, (0,), Index(0)),
        *([each(counted)] if known is None else []),
        For(k, parts, (Store(begins, (Sym(k) + 1,), upto_here),), "seq", span),
        Store(begins, (parts,), Index(line.extents[0])),
        each(listed),
    )
    return (If(Op("gt", (Index(whole), Index(worth)), np.dtype(bool)), several, tuple(calls), span),)


__all__ = ["Counted", "count", "counting", "cut", "rounded", "together", "without_counts"]
