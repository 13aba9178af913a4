"""Scalars that are read once move into the expression that reads them; what nobody reads goes away.

In: a fused and shrunk tree. Out: the same with fewer, longer statements, for readers and for the compiler's
time.

    t = x[i]*2.0
    y[i] = t + 1.0       ->      y[i] = x[i]*2.0 + 1.0
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from metaphrase.core.dims import symbols
from metaphrase.core.types import i64

from .nest import (
    Bind,
    Buf,
    Check,
    Const,
    E,
    For,
    If,
    Index,
    Load,
    Op,
    Stmt,
    Store,
    While,
    boolean,
    expression_symbols,
    fact,
    loaded,
    loads,
    other_symbols,
    place_symbols,
    subexpressions,
    touched,
    value_symbols,
    walk,
)
from .rewrite import map_expression, map_statement

MAX_NODES = 20  # of an expression on one line


def fold(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Fold to the end."""
    body, uses = _forward_copies(body)
    body = _drop_unread(body, uses)
    for _ in range(4):
        folded = _block(body, uses)
        if folded is body:
            break
        body = _drop_unread(_unpack(folded), uses)
    return body


class _Changes(NamedTuple):
    """What a statement and those inside it change: Bufs they name, symbols; and whether there are checks."""

    keys: frozenset[Buf | str]
    checks: bool


@fact
def _changes(stmt: Stmt) -> _Changes:
    keys: set[Buf | str] = set(touched(stmt))
    if isinstance(stmt, Store):
        keys.add(stmt.buf.name)
    elif stmt.binds is not None and not isinstance(stmt, For):  # a For's index has a name of its own
        keys.add(stmt.binds)
    checks = isinstance(stmt, Check)
    for block in stmt.blocks:
        for inner in block:
            inside = _changes(inner)
            keys |= inside.keys
            checks = checks or inside.checks
    return _Changes(frozenset(keys), checks)


@fact
def _values(stmt: Stmt) -> frozenset[Buf | str]:
    """The Bufs and symbols whose values the expressions of a statement itself read."""
    return frozenset().union(*map(_values_of, stmt.expressions))


@fact
def _values_of(e: E) -> frozenset[Buf | str]:
    return frozenset((*(load.buf for load in loads(e)), *value_symbols(e)))


@fact
def _symbol_reads(stmt: Stmt) -> tuple[str, ...]:
    """The symbols that a statement itself reads, as often as it does; twice each where a symbol has to stay:
    not in an expression."""
    read = [name for e in stmt.expressions for name in (*value_symbols(e), *place_symbols(e))]
    return (*read, *other_symbols(stmt), *other_symbols(stmt))


@fact
def _whole(stmt: Stmt) -> tuple[Buf, ...]:
    """The Bufs that a statement names otherwise than by storing an element."""
    return () if isinstance(stmt, Store) else touched(stmt)


class _Uses:
    """How often each scalar is written and read, in the whole function."""

    def __init__(self, body: tuple[Stmt, ...]):
        self.reads: Counter[Buf] = Counter()
        self.writes: Counter[Buf] = Counter()
        self.combined: Counter[Buf] = Counter()
        self.symbol_writes: Counter[str] = Counter()
        self.symbol_reads: Counter[str] = Counter()
        for stmt in walk(body):
            self.count(stmt, 1)

    def count(self, stmt: Stmt, by: int) -> None:
        """Count what a statement itself uses; `by` is -1 for one that goes away."""
        for load in loaded(stmt):
            self.reads[load.buf] += by
        for name in _symbol_reads(stmt):
            self.symbol_reads[name] += by
        if isinstance(stmt, Store):
            self.writes[stmt.buf] += by
            if stmt.monoid:
                self.reads[stmt.buf] += by
                self.combined[stmt.buf] += by
        elif isinstance(stmt, Bind):
            self.symbol_writes[stmt.name] += by
        for buf in _whole(stmt):
            self.reads[buf] += 2 * by

    def moved(self, stmt: Store | Bind) -> None:
        """A single one stands in its reader's expression now: what it reads is read there."""
        if isinstance(stmt, Store):
            self.writes[stmt.buf], self.reads[stmt.buf] = 0, 0
        else:
            self.symbol_writes[stmt.name], self.symbol_reads[stmt.name] = 0, 0

    def all_reads(self, buf: Buf) -> int:
        """Of a variable; an integer may also be read through the symbol of its name."""
        by_name = self.symbol_reads[buf.name] if not buf.dims and buf.dtype == i64 else 0
        return self.reads[buf] + by_name

    def is_single(self, stmt: Stmt) -> bool:
        """Whether `stmt` alone gives a scalar its value, and one expression reads it."""
        if isinstance(stmt, Store):
            return (
                stmt.buf.is_scalar
                and not stmt.monoid
                and self.writes[stmt.buf] == 1
                and self.reads[stmt.buf] == 1
                and self.symbol_reads[stmt.buf.name] == 0
            )
        return isinstance(stmt, Bind) and self.symbol_writes[stmt.name] == 1 and self.symbol_reads[stmt.name] == 1


# --- moving into the reader -----------------------------------------------------------------------


def _block(block: tuple[Stmt, ...], uses: _Uses) -> tuple[Stmt, ...]:
    rows: list[Stmt | None] = [_inside(s, uses) for s in block]
    if any(s is not None and uses.is_single(s) for s in rows):
        where = _Where(rows)
        for k, stmt in enumerate(rows):
            if stmt is not None and uses.is_single(stmt):
                assert isinstance(stmt, (Store, Bind))
                if (row := _reader(rows, k, stmt, where)) is not None:
                    reader = rows[row]
                    assert reader is not None
                    rows[row] = put_in = _put_in(reader, stmt)
                    rows[k] = None
                    if not isinstance(put_in, _Pair):
                        uses.moved(stmt)
                    where.moved(stmt, row)
    kept = tuple(_while_tests(s, uses) for s in rows if s is not None)
    return kept if len(kept) != len(block) or any(a is not b for a, b in zip(kept, block)) else block


class _Where:
    """The rows of a block that read a scalar and those that change something, by their numbers. What is read
    once has one; of others some row stands there, and is not asked for."""

    def __init__(self, rows: list[Stmt | None]):
        self.read: dict[Buf | str, int] = {}
        self.changed: dict[Buf | str, list[int]] = {}
        self.checks: list[int] = []
        for k, stmt in enumerate(rows):
            assert stmt is not None
            for key in _values(stmt):
                self.read[key] = k
            changes = _changes(stmt)
            for key in changes.keys:
                self.changed.setdefault(key, []).append(k)
            if changes.checks:
                self.checks.append(k)

    def moved(self, stmt: Store | Bind, row: int) -> None:
        """What this statement reads is read in that row now. (What it wrote has no other reader.)"""
        for key in _values_of(stmt.value):
            self.read[key] = row

    def changes(self, keys: Iterable[Buf | str], first: int, last: int) -> bool:
        """Whether a row behind `first` and before `last` changes one of these."""
        return any(_between(self.changed.get(key, ()), first, last) for key in keys)


def _between(rows: Sequence[int], first: int, last: int) -> bool:
    at = bisect_right(rows, first)
    return at < len(rows) and rows[at] < last


def _inside(stmt: Stmt, uses: _Uses) -> Stmt:
    """The statement with its blocks folded; the same one where nothing moved."""
    blocks = tuple(_block(b, uses) for b in stmt.blocks)
    return stmt.with_blocks(blocks) if any(a is not b for a, b in zip(blocks, stmt.blocks)) else stmt


def _while_tests(stmt: Stmt, uses: _Uses) -> Stmt:
    """The last of a While's preparations may be its condition."""
    if not isinstance(stmt, While):
        return stmt
    before = list(stmt.before)
    condition = stmt.condition
    while before and uses.is_single(before[-1]) and _mentions(condition, before[-1]):
        last = before[-1]
        assert isinstance(last, (Store, Bind))
        if _size(condition) + _size(last.value) > MAX_NODES + 4:
            break
        condition = _substituted(condition, last)
        uses.moved(last)
        before.pop()
    if len(before) == len(stmt.before):
        return stmt
    return replace(stmt, before=tuple(before), condition=condition)


def _reader(rows: list[Stmt | None], k: int, stmt: Store | Bind, where: _Where) -> int | None:
    """The later statement of this block that reads `stmt`, if its value is still the same there."""
    value = stmt.value
    read = stmt.buf if isinstance(stmt, Store) else stmt.name
    j = where.read.get(read, k)
    later = rows[j]
    if j <= k or later is None or read not in _values(later):
        return None
    bufs = [load.buf for load in loads(value)]
    scalars = (b.name for b in bufs if not b.dims)
    if where.changes({*bufs, *scalars, *expression_symbols(value)}, k, j):
        return None
    if any(b.dims for b in bufs) and _between(where.checks, k, j):
        return None  # the element read may exist only because the check holds... or not: leave it
    if isinstance(later, (While, Check)):
        return None
    nodes = sum(_size(e) for e in later.expressions) + _size(value)
    if nodes > MAX_NODES and (isinstance(later, If) or not isinstance(value, (Load, Const, Index))):
        return None
    return j  # the reader's own write comes after its reads


def _mentions(e: E, stmt: Stmt) -> bool:
    if isinstance(stmt, Store):
        return any(load.buf is stmt.buf for load in loads(e))
    return isinstance(stmt, Bind) and any(
        isinstance(x, Index) and stmt.name in symbols(x.dim) for x in subexpressions(e)
    )


def _substituted(e: E, stmt: Store | Bind) -> E:
    if isinstance(stmt, Store):

        def put(x: E) -> E | None:
            if isinstance(x, Load) and x.buf is stmt.buf:
                return stmt.value
            if isinstance(x, Op) and x.name == "add" and x.dtype.kind in "fiu" and x.args[1] == Load(stmt.buf):
                if isinstance(stmt.value, Op) and stmt.value.name == "neg":  # a + -b is a - b, to the last bit
                    return Op("sub", (_substituted(x.args[0], stmt), stmt.value.args[0]), x.dtype, x.span)
            return None

        return map_expression(e, put)

    def change(x: E) -> E | None:
        if isinstance(x, Index) and not isinstance(x.dim, int) and x.dim.is_sym and x.dim.name == stmt.name:
            return stmt.value
        return None

    return map_expression(e, change)


def _put_in(reader: Stmt, stmt: Store | Bind) -> Stmt:
    if isinstance(reader, If):  # the blocks inside do not read it: it is read once, here
        return replace(reader, condition=_substituted(reader.condition, stmt))
    if isinstance(stmt, Bind) and not all(_alone(e, stmt.name) for e in reader.expressions):
        return _keep_both(reader, stmt)
    return map_statement(reader, lambda e: _substituted(e, stmt), lambda buf, index: (buf, index))


def _alone(e: E, name: str) -> bool:
    """Whether the symbol stands by itself wherever it is read, so that any expression can take its place."""
    return all(
        not isinstance(x, Index) or name not in symbols(x.dim) or x.dim.is_sym  # type: ignore[union-attr]
        for x in subexpressions(e)
    )


class _Pair(If):
    """Two statements in the place of one; unpacked at the end."""


def _keep_both(reader: Stmt, stmt: Stmt) -> Stmt:
    return _Pair(boolean(True), (stmt, reader))


def _size(e: E) -> int:
    return sum(1 for x in subexpressions(e) if isinstance(x, (Op, Load, Index)))


# --- copies and dead stores -----------------------------------------------------------------------


def _forward_copies(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], _Uses]:
    """`a = b` where both are scalar variables written once: read b. The body, and its uses."""
    uses = _Uses(body)
    source: dict[Buf, E] = {}
    for stmt in walk(body):
        if isinstance(stmt, Store) and stmt.buf.is_scalar and uses.writes[stmt.buf] == 1 and not stmt.monoid:
            value = stmt.value
            if isinstance(value, Const) or (
                isinstance(value, Load)
                and value.buf.is_scalar
                and uses.writes[value.buf] == 1
                and uses.symbol_reads[stmt.buf.name] == 0
            ):
                source[stmt.buf] = value
    if not source:
        return body, uses

    def change(x: E) -> E | None:
        while isinstance(x, Load) and x.buf in source:
            x = source[x.buf]
            if not (isinstance(x, Load) and x.buf in source):
                return x
        return None

    made = [map_statement(s, lambda e: map_expression(e, change), lambda buf, index: (buf, index)) for s in body]
    return tuple(made), _Uses(tuple(made))


def _drop_unread(body: tuple[Stmt, ...], uses: _Uses) -> tuple[Stmt, ...]:
    """The body without what nobody reads; `uses` are those that are left."""
    while (kept := _without(body, uses)) is not body:
        body = kept
    return body


def _unpack(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    rows: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, _Pair):
            rows.extend(_unpack(stmt.then))
        else:
            blocks = tuple(map(_unpack, stmt.blocks))
            same = all(a is b for a, b in zip(blocks, stmt.blocks))
            rows.append(stmt if same else stmt.with_blocks(blocks))
    return tuple(rows) if any(a is not b for a, b in zip(rows, block)) or len(rows) != len(block) else block


def _without(block: tuple[Stmt, ...], uses: _Uses) -> tuple[Stmt, ...]:
    """The block without the statements that nobody needs. From the last to the first: what reads goes before
    what is read."""
    rows: list[Stmt] = []
    for stmt in reversed(block):
        if stmt.blocks:
            blocks = tuple(_without(b, uses) for b in stmt.blocks)
            if any(a is not b for a, b in zip(blocks, stmt.blocks)):
                stmt = stmt.with_blocks(blocks)
        if _is_unread(stmt, uses):
            uses.count(stmt, -1)
        else:
            rows.append(stmt)
    rows.reverse()
    return tuple(rows) if len(rows) != len(block) or any(a is not b for a, b in zip(rows, block)) else block


def _is_unread(stmt: Stmt, uses: _Uses) -> bool:
    if isinstance(stmt, Store) and stmt.buf.space == "temp" and not stmt.buf.carried:
        return uses.all_reads(stmt.buf) == uses.combined[stmt.buf]  # `s += x` reads s, but only for itself
    if isinstance(stmt, Bind):
        return uses.symbol_reads[stmt.name] == 0
    return isinstance(stmt, (For, If)) and not any(stmt.blocks)


__all__ = ["fold"]
