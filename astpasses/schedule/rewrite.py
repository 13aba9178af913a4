"""Rebuilding statements and expressions: the tools that passes over the nest language share.

In: a tree and what is to change in it. Out: a new tree; statements are never changed in place.

    rename_statement(nest, {"i": Sym("k") + 1})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from metaphrase.core.dims import substitute

from .nest import Buf, Change, DimLike, E, For, Index, Load, Map, Op, Stmt, Sym, While, expression_symbols, used_inside


def map_expression(e: E, change: Callable[[E], E | None]) -> E:
    """Rebuild `e` top down: where `change` returns an expression, that stands instead."""
    new = change(e)
    if new is not None:
        return new
    if isinstance(e, Op):
        args = tuple(map_expression(a, change) for a in e.args)
        return e if all(a is b for a, b in zip(args, e.args)) else Op(e.name, args, e.dtype, e.span)
    if isinstance(e, Load) and any(isinstance(i, E) for i in e.index):
        return Load(e.buf, tuple(map_expression(i, change) if isinstance(i, E) else i for i in e.index))
    return e


def rename_index(index: Map, values: Mapping[str, DimLike]) -> Map:
    return tuple(rename_expression(i, values) if isinstance(i, E) else substitute(i, values) for i in index)


def rename_expression(e: E, values: Mapping[str, DimLike]) -> E:
    """Put dims in the place of symbols."""

    def change(x: E) -> E | None:
        if expression_symbols(x).isdisjoint(values):
            return x
        if isinstance(x, Index):
            return Index(substitute(x.dim, values))
        return Load(x.buf, rename_index(x.index, values)) if isinstance(x, Load) else None

    return map_expression(e, change)


def map_statement(
    stmt: Stmt,
    expression: Callable[[E], E],
    index: Callable[[Buf, Map], tuple[Buf, Map]],
    dim: Callable[[DimLike], DimLike] = lambda d: d,
) -> Stmt:
    """Rebuild a statement and the blocks in it: every expression read, every place written, every extent."""

    return mapped(stmt, Change(expression, index, dim))


def mapped(stmt: Stmt, change: Change) -> Stmt:
    """Rebuild a statement and the blocks in it."""
    if stmt.blocks:
        blocks = tuple(tuple(mapped(s, change) for s in block) for block in stmt.blocks)
        stmt = stmt.with_blocks(blocks)
    return stmt.changed(change)


def replaced(block: tuple[Stmt, ...], change: Callable[[Stmt], tuple[Stmt, ...] | None]) -> tuple[Stmt, ...]:
    """A block with what `change` gives in the place of a statement, at any depth: None leaves the statement, and looks
    at those in it."""
    rows: list[Stmt] = []
    for stmt in block:
        new = change(stmt)
        rows += (stmt.with_blocks(tuple(replaced(b, change) for b in stmt.blocks)),) if new is None else new
    return tuple(rows)


def rename_statement(stmt: Stmt, values: Mapping[str, DimLike]) -> Stmt:
    """Put dims in the place of symbols throughout a statement."""
    if not values:
        return stmt
    return map_statement(
        stmt,
        lambda e: rename_expression(e, values),
        lambda buf, index: (buf, rename_index(index, values)),
        lambda d: substitute(d, values),
    )


def rebound(stmt: Stmt, names: Mapping[str, str]) -> Stmt:
    """Put other names in the place of symbols, where statements bind them as well."""
    return _bound(rename_statement(stmt, {old: Sym(new) for old, new in names.items()}), names)


def _bound(stmt: Stmt, names: Mapping[str, str]) -> Stmt:
    if stmt.blocks:
        stmt = stmt.with_blocks(tuple(tuple(_bound(s, names) for s in block) for block in stmt.blocks))
    name = names.get(stmt.binds or "")
    if name is None:
        return stmt
    if isinstance(stmt, For):
        return stmt.anew(index=name)
    return stmt.anew(counter=name) if isinstance(stmt, While) else stmt.anew(name=name)


def with_storages(stmt: Stmt, storages: Mapping[Buf, Buf]) -> Stmt:
    """Put storages in the place of others throughout a statement."""
    if not storages:
        return stmt

    def expression(e: E) -> E:
        return map_expression(e, other)

    def place(buf: Buf, index: Map) -> tuple[Buf, Map]:
        return storages.get(buf, buf), tuple(expression(i) if isinstance(i, E) else i for i in index)

    def other(x: E) -> E | None:
        return Load(*place(x.buf, x.index)) if isinstance(x, Load) and x.buf in storages else None

    def put(stmt: Stmt) -> Stmt:
        if storages.keys().isdisjoint(used_inside(stmt)):
            return stmt
        if stmt.blocks:
            stmt = stmt.with_blocks(tuple(tuple(map(put, block)) for block in stmt.blocks))
        return stmt.changed(change)

    change = Change(expression, place, lambda d: d)
    return put(stmt)


def with_parts(stmt: Stmt, wholes: Mapping[Buf, tuple[Buf, Map]]) -> Stmt:
    """Put parts of larger storages, each where a place in them says, in the place of whole ones."""
    if not wholes:
        return stmt

    def place(buf: Buf, index: Map) -> tuple[Buf, Map]:
        whole, first = wholes.get(buf, (buf, ()))
        return whole, (*first, *(expression(i) if isinstance(i, E) else i for i in index))

    def expression(e: E) -> E:
        return map_expression(e, lambda x: Load(*place(x.buf, x.index)) if isinstance(x, Load) else None)

    return map_statement(stmt, expression, place)
