"""Statements that wait to become a kernel of one block, and the kernels that go before them.

In: the waiting statements and the regions of a kernel. Out: whether their order can be seen; the regions with numbers
of the waiting ones worked out in each thread, where that is little. Example:

    t = a[k]                                        # waits on
    for i in range(n): y[i] += t*x[i]       ->      t_1 = a[k]                              # of the grid's kernel
                                                    for i in range(n): y[i] += t_1*x[i]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from metaphrase.core.dims import Sym, symbols_of

from .launches import Region
from .lifetimes import key_of, read_before_given
from .nest import (
    Bind,
    Buf,
    Check,
    For,
    Grow,
    If,
    Stmt,
    Store,
    Swap,
    expression_symbols,
    loaded,
    local,
    operations,
    other_symbols,
    touched,
    used_inside,
    walk,
)
from .rewrite import rename_statement, with_storages


def meet(before: Iterable[Stmt], behind: Iterable[Stmt]) -> bool:
    """Whether the order of statements is one that anyone could see."""
    read, written, stops = _touches(walk(tuple(before)))
    reads, writes, stop = _touches(walk(tuple(behind)))
    seen = stop and any(isinstance(key, Buf) and key.space == "arg" for key in written)  # by who catches the failure
    return stops or seen or bool(written & (reads | writes) or read & writes)


def _touches(statements: Iterable[Stmt]) -> tuple[set[Buf | str], set[Buf | str], bool]:
    """What statements read and write, and whether they may fail."""
    read: set[Buf | str] = set()
    written: set[Buf | str] = set()
    stops = False
    for stmt in statements:
        read |= {key_of(load.buf) for load in loaded(stmt)} | set(other_symbols(stmt))
        read = read.union(*map(expression_symbols, stmt.expressions))
        written |= {key_of(a.buf) for a in stmt.accesses if a.write} | set(gives(stmt))
        read |= {key_of(a.buf) for a in stmt.accesses if not a.write or isinstance(stmt, Store) and stmt.monoid}
        stops = stops or isinstance(stmt, (Check, Grow))
    return read, written, stops


def gives(stmt: Stmt) -> list[str]:
    """The variables that a statement itself gives a value."""
    return [*([] if stmt.binds is None else [stmt.binds]), *(b.name for b in touched(stmt) if not b.dims)]


def put(rows: list[Stmt | list[Stmt]], block: list[Stmt]) -> None:
    """Add what one block has to do behind the kernels that are there: to what one did before them, where they have
    nothing to do with it."""
    for row in reversed(rows):
        if isinstance(row, list):
            row += block
            return
        if not isinstance(row, (Region, Swap, Bind)) or meet([row], block):
            break
    rows.append(block)


def with_numbers(pending: list[Stmt], rows: list[Stmt], most: int, fresh: Callable[[str], str]) -> list[Stmt]:
    """The regions with what they need of the waiting statements, if that is `most` operations at most."""
    return [_with_numbers(pending, row, most, fresh) if isinstance(row, Region) else row for row in rows]


def _with_numbers(pending: list[Stmt], region: Region, most: int, fresh: Callable[[str], str]) -> Region:
    read, _ = read_before_given(region.body)
    given = [name for s in walk(tuple(pending)) for name in gives(s)]
    needed: list[Stmt] = []
    wanted = read & set(given)
    while wanted:
        name = max(wanted)
        stmt = next((s for s in pending if name in gives(s)), None)
        plain = isinstance(stmt, Bind) or isinstance(stmt, Store) and stmt.monoid is None
        if stmt is None or not plain or given.count(name) > 1:
            return region
        needed.append(stmt)
        wanted = (wanted | read_before_given((stmt,))[0] & set(given)) - {s for n in needed for s in gives(n)}
    needed.sort(key=pending.index)
    there: set[str] = set()
    for stmt in needed:
        if read_before_given((stmt,))[0] & set(given) - there:
            return region  # it goes on with what a variable was before
        there |= {*gives(stmt)}
    written = {buf for s in walk((*pending, *region.body)) for buf in touched(s) if buf.dims}
    if sum(map(operations, needed)) > most or any(load.buf in written for s in needed for load in loaded(s)):
        return region
    names = {name: fresh(name) for s in needed for name in gives(s)}
    if not names or symbols_of(() if region.count is None else (region.count,)) & names.keys():
        return region
    integers = {old: Sym(new) for old, new in names.items()}
    numbers = {b: local(names[b.name], b.dtype) for b in _variables((*needed, *region.body)) if b.name in names}

    def renamed(stmt: Stmt) -> Stmt:
        stmt = rename_statement(with_storages(stmt, numbers), integers)
        return replace(stmt, name=names[stmt.name]) if isinstance(stmt, Bind) and stmt.name in names else stmt

    return replace(region, body=tuple(map(renamed, (*needed, *region.body))))


def _variables(block: Iterable[Stmt]) -> list[Buf]:
    return [buf for buf in dict.fromkeys(b for s in block for b in used_inside(s)) if not buf.dims]


def without_unread(block: tuple[Stmt, ...], kept: frozenset[str]) -> tuple[Stmt, ...]:
    """The statements without those that only give variables values that nobody reads, and regions without any."""
    while True:
        read = kept.union(*map(_read, walk(block)))
        shorter = _without(block, read)
        if len(list(walk(shorter))) == len(list(walk(block))):
            return block
        block = shorter


def _read(stmt: Stmt) -> set[str]:
    """The variables that a statement reads, those that it combines into or that sizes of arrays name among them."""
    names = {load.buf.name for load in loaded(stmt) if not load.buf.dims} | set(other_symbols(stmt))
    names = names.union(*map(expression_symbols, stmt.expressions))
    if not isinstance(stmt, Store):
        names |= {buf.name for buf in touched(stmt) if not buf.dims}
    return names | {buf.name for buf, _ in stmt.partials} if isinstance(stmt, For) else names


def _without(block: tuple[Stmt, ...], read: frozenset[str]) -> tuple[Stmt, ...]:
    rows: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, Store) and not stmt.buf.dims and stmt.buf.name not in read:
            continue
        if stmt.blocks:
            stmt = stmt.with_blocks(tuple(_without(inner, read) for inner in stmt.blocks))
            if not any(stmt.blocks) and isinstance(stmt, (For, If, Region)):
                continue
        rows.append(stmt)
    return tuple(rows)


__all__ = ["gives", "meet", "put", "with_numbers", "without_unread"]
