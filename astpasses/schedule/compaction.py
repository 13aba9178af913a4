"""The places where a mask is true, found by several threads: how many there are in each part, then where.

In: the library call that lists them, and what makes functions of parts (share.py). Out: statements that leave the same
list, each part of which is written by the thread that reads that part of the mask. Example:

    library('nonzero', mask, places)    ->    for k in parts: begins[k + 1] = how many are true in part k
                                              for k in parts: begins[k + 1] += begins[k]
                                              for k in parts: library('nonzero', mask[part k], places[begins[k]:...])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

import numpy as np

from metaphrase.core.dims import DimLike, Sym, dim_min, floordiv
from metaphrase.core.types import i64
from metaphrase.source import Span

from .names import Names
from .nest import Bind, Buf, CallFn, E, For, If, Index, LibraryCall, Load, Op, Parts, Stmt, Store, View, local
from .target import Target

Call = Callable[[tuple[Stmt, ...], set[Buf], tuple[str, str], DimLike, Span | None], CallFn]


def may_be_cut(stmt: Stmt, target: Target) -> TypeGuard[LibraryCall]:
    """Whether it lists the places of one whole line."""
    if not isinstance(stmt, LibraryCall) or not (offer := target.offer(stmt.operation)) or not offer.lists:
        return False
    (mask,), (line,) = stmt.reads, stmt.writes
    return mask.index == (0,) == line.index and mask.strides == (1,) == line.strides


def cut(stmt: LibraryCall, names: Names, target: Target, call: Call) -> tuple[Stmt, ...]:
    """The list in parts, where the mask is that long."""
    (mask,), (line,) = stmt.reads, stmt.writes
    (whole,), length, span = mask.extents, target.a_part // 8, stmt.span
    if isinstance(whole, int) and whole <= length:
        return (stmt,)
    parts = floordiv(whole + length - 1, length)
    begins = Buf(names.fresh("begins"), i64, (parts + 1,))

    def each(make: Callable[[DimLike, DimLike, DimLike], tuple[tuple[Stmt, ...], set[Buf]]]) -> For:
        """A loop over the parts: a part has a number, a first element and so many."""
        number, first, count = (names.fresh(name) for name in ("number", "first", "count"))
        body, own = make(Sym(number), Sym(first), Sym(count))
        made, start = call(body, own, (first, count), dim_min(length, whole), span), length * Sym(number)
        made = replace(made, sizes=(*made.sizes[:-2], start, dim_min(length, whole - start)))
        return For(number, parts, (made,), "par", span, parts=Parts(whole, length, True))

    def counted(number: DimLike, first: DimLike, count: DimLike) -> tuple[tuple[Stmt, ...], set[Buf]]:
        total, i = local(names.fresh("total"), i64), names.fresh("i")
        one = Op("convert", (Load(mask.buf, (first + Sym(i),)),), i64)
        body = (
            Store(total, (), Index(0)),
            For(i, count, (Store(total, (), one, "sum"),), "red"),
            Store(begins, (number + 1,), Load(total)),
        )
        return body, {total}

    def upto(number: DimLike) -> E:
        """Where a part of the list begins; inside the list, whoever changes the mask meanwhile."""
        return Op("min", (Load(begins, (number,)), Index(line.extents[0])), i64)

    def listed(number: DimLike, first: DimLike, count: DimLike) -> tuple[tuple[Stmt, ...], set[Buf]]:
        begin, end = names.fresh("begin"), names.fresh("end")
        here = View(line.buf, (Sym(begin),), (Sym(end) - Sym(begin),), (1,))
        part = View(mask.buf, (first,), (count,), (1,))
        attributes = (*stmt.attributes, ("first", first))
        body = (
            Bind(begin, upto(number)),
            Bind(end, upto(number + 1)),
            LibraryCall(stmt.operation, (part,), (here,), attributes, span, stmt.site),
        )
        return body, set()

    k = names.fresh("i")
    before = Op("add", (Load(begins, (Sym(k) + 1,)), Load(begins, (Sym(k),))), i64)
    several = (
        Store(begins, (0,), Index(0)),
        each(counted),
        For(k, parts, (Store(begins, (Sym(k) + 1,), before),), "seq", span),
        Store(begins, (parts,), Index(line.extents[0])),
        each(listed),
    )
    return (If(Op("gt", (Index(parts), Index(1)), np.dtype(bool)), several, (stmt,), span),)


__all__ = ["cut", "may_be_cut"]
