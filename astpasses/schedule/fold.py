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

from metaphrase.core.dims import symbols
from metaphrase.core.types import i64

from .nest import (
    Bind,
    Buf,
    Call,
    CallFn,
    Check,
    Const,
    E,
    Effect,
    For,
    Grow,
    If,
    Index,
    Load,
    Op,
    SetDims,
    Stmt,
    Store,
    Swap,
    While,
    expressions,
    index_symbols,
    loads,
    parts,
    subexpressions,
    walk,
    with_parts,
)
from .rewrite import map_expression, map_statement

MAX_NODES = 20  # of an expression on one line


def fold(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Fold to the end."""
    known = _Known()
    body = _forward_copies(body, known)
    for _ in range(4):
        before = body
        body = _drop_unread(body, known)
        uses = _Uses(body, known)
        body = _block(body, uses)
        if all(a is b for a, b in zip(before, body)) and len(before) == len(body):
            break
    return _drop_unread(body, known)


class _Known:
    """What expressions read and statements change, found once each: both are looked at again and again, and
    never changed. By identity; the things themselves are kept, so that an identity stays theirs."""

    def __init__(self) -> None:
        self.read: dict[int, tuple[tuple[Buf, ...], tuple[str, ...], tuple[str, ...], E]] = {}
        self.changed: dict[int, tuple[Stmt, frozenset[Buf], frozenset[str], bool]] = {}

    def reads(self, e: E) -> tuple[tuple[Buf, ...], tuple[str, ...], tuple[str, ...], E]:
        """(the Bufs it loads from, the symbols that are values, those that are places, e), as often as each
        occurs."""
        found = self.read.get(id(e))
        if found is None:
            bufs: list[Buf] = []
            names: list[str] = []
            places: list[str] = []
            for x in subexpressions(e):
                if isinstance(x, Load):
                    bufs.append(x.buf)
                    for i in x.index:
                        if not isinstance(i, (int, E)):
                            places.extend(symbols(i))
                elif isinstance(x, Index):
                    names.extend(symbols(x.dim))
            found = self.read[id(e)] = tuple(bufs), tuple(names), tuple(places), e
        return found

    def changes(self, stmt: Stmt) -> tuple[Stmt, frozenset[Buf], frozenset[str], bool]:
        """(stmt, the Bufs that it and what is in it name, the names written, whether there are checks)."""
        found = self.changed.get(id(stmt))
        if found is None:
            bufs: set[Buf] = set(touched(stmt))
            names: set[str] = set()
            checks = isinstance(stmt, Check)
            if isinstance(stmt, Store):
                names.add(stmt.buf.name)
            elif isinstance(stmt, Bind):
                names.add(stmt.name)
            elif isinstance(stmt, While):
                names.add(stmt.counter)
            for block in parts(stmt):
                for inner in block:
                    _, inside, written, fails = self.changes(inner)
                    bufs |= inside
                    names |= written
                    checks = checks or fails
            found = self.changed[id(stmt)] = stmt, frozenset(bufs), frozenset(names), checks
        return found


class _Uses:
    """How often each scalar is written and read, in the whole function."""

    def __init__(self, body: tuple[Stmt, ...], known: _Known):
        self.known = known
        self.reads: Counter = Counter()
        self.writes: Counter = Counter()
        self.combined: Counter = Counter()
        self.symbol_writes: Counter = Counter()
        self.symbol_reads: Counter = Counter()
        for stmt in walk(body):
            for e in expressions(stmt):
                bufs, values, places, _ = known.reads(e)
                for buf in bufs:
                    self.reads[buf] += 1
                for name in (*values, *places):
                    self.symbol_reads[name] += 1
            for name in other_symbols(stmt):
                self.symbol_reads[name] += 2  # not in an expression: it has to stay a symbol
            if isinstance(stmt, Store):
                self.writes[stmt.buf] += 1
                if stmt.monoid:
                    self.reads[stmt.buf] += 1
                    self.combined[stmt.buf] += 1
            elif isinstance(stmt, Bind):
                self.symbol_writes[stmt.name] += 1
            elif isinstance(stmt, (Call, Effect, Swap, Grow, SetDims, CallFn)):
                for buf in touched(stmt):
                    self.reads[buf] += 2
        # An i64 scalar Buf may also be read through the symbol of its name.
        for buf in list(self.writes):
            if not buf.dims and buf.dtype == i64:
                self.reads[buf] += self.symbol_reads[buf.name]

    def is_single(self, stmt: Stmt) -> bool:
        if isinstance(stmt, Store):
            return (
                stmt.buf.is_scalar
                and not stmt.monoid
                and self.writes[stmt.buf] == 1
                and self.reads[stmt.buf] == 1
                and self.symbol_reads[stmt.buf.name] == 0
            )
        return (
            isinstance(stmt, Bind)
            and self.symbol_writes[stmt.name] == 1
            and self.symbol_reads[stmt.name] == 1
        )


def other_symbols(stmt: Stmt) -> frozenset[str]:
    """Symbols in extents, places written and sizes: everywhere but in expressions."""
    found: frozenset[str] = frozenset()
    if isinstance(stmt, Store):
        found = index_symbols(stmt.index)
    elif isinstance(stmt, For):
        found = symbols(stmt.extent)
    elif isinstance(stmt, While):
        found = symbols(stmt.limit) if stmt.limit is not None else found
    elif isinstance(stmt, Call):
        for view in (*stmt.reads, *stmt.writes):
            found |= index_symbols(view.index)
            for d in (*view.extents, *view.strides):
                found |= symbols(d)
    elif isinstance(stmt, Grow):
        found = symbols(stmt.length)
    elif isinstance(stmt, CallFn):
        for d in stmt.sizes:
            found |= symbols(d)
    for buf in touched(stmt):
        for d in buf.dims:
            found |= symbols(d)
    return found


def touched(stmt: Stmt) -> tuple[Buf, ...]:
    """Bufs a statement names outside of expressions."""
    if isinstance(stmt, Store):
        return (stmt.buf,)
    if isinstance(stmt, Call):
        return tuple(v.buf for v in (*stmt.reads, *stmt.writes))
    if isinstance(stmt, Effect):
        return stmt.reads
    if isinstance(stmt, Swap):
        return (stmt.a, stmt.b)
    if isinstance(stmt, Grow):
        return stmt.bufs
    if isinstance(stmt, SetDims):
        return (stmt.buf,)
    if isinstance(stmt, CallFn):
        return stmt.bufs if stmt.result is None else (*stmt.bufs, stmt.result)
    return ()


# --- moving into the reader -----------------------------------------------------------------------


def _block(block: tuple[Stmt, ...], uses: _Uses) -> tuple[Stmt, ...]:
    rows: list[Stmt | None] = [_inside(s, uses) for s in block]
    where = _Where(rows, uses.known)
    for k, stmt in enumerate(rows):
        if stmt is not None and uses.is_single(stmt):
            assert isinstance(stmt, (Store, Bind))
            if (found := _reader(rows, k, stmt, where)) is not None:
                reader = rows[found]
                assert reader is not None
                rows[found] = _put_in(reader, stmt)
                rows[k] = None
                where.moved(stmt, found)
    kept = tuple(_while_tests(s, uses) for s in rows if s is not None)
    return kept if len(kept) != len(block) or any(a is not b for a, b in zip(kept, block)) else block


class _Where:
    """The rows of a block that read a scalar and those that change something, by their numbers. What is read
    once has one; of others some row stands there, and is not asked for."""

    def __init__(self, rows: list[Stmt | None], known: _Known):
        self.known = known
        self.read: dict[Buf | str, int] = {}
        self.changed: dict[Buf | str, list[int]] = {}
        self.checks: list[int] = []
        for k, stmt in enumerate(rows):
            assert stmt is not None
            for e in expressions(stmt):
                self.note_reads(e, k)
            _, bufs, names, checks = known.changes(stmt)
            keys: list[Buf | str] = [*bufs, *names]
            for key in keys:
                self.changed.setdefault(key, []).append(k)
            if checks:
                self.checks.append(k)

    def note_reads(self, e: E, row: int) -> None:
        bufs, values, _, _ = self.known.reads(e)
        keys: list[Buf | str] = [*bufs, *values]
        for key in keys:
            self.read[key] = row

    def moved(self, stmt: Store | Bind, row: int) -> None:
        """What this statement reads is read in that row now. (What it wrote has no other reader.)"""
        self.note_reads(stmt.value, row)

    def changes(self, keys: Iterable[Buf | str], first: int, last: int) -> bool:
        """Whether a row behind `first` and before `last` changes one of these."""
        return any(_between(self.changed.get(key, ()), first, last) for key in keys)


def _between(rows: Sequence[int], first: int, last: int) -> bool:
    at = bisect_right(rows, first)
    return at < len(rows) and rows[at] < last


def _inside(stmt: Stmt, uses: _Uses) -> Stmt:
    """The statement with its blocks folded; the same one where nothing moved."""
    blocks = tuple(_block(b, uses) for b in parts(stmt))
    return with_parts(stmt, blocks) if any(a is not b for a, b in zip(blocks, parts(stmt))) else stmt


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
        before.pop()
    if len(before) == len(stmt.before):
        return stmt
    return replace(stmt, before=tuple(before), condition=condition)


def _reader(rows: list[Stmt | None], k: int, stmt: Store | Bind, where: _Where) -> int | None:
    """The later statement of this block that reads `stmt`, if its value is still the same there."""
    value, known = stmt.value, where.known
    way = 0 if isinstance(stmt, Store) else 1
    read = stmt.buf if isinstance(stmt, Store) else stmt.name
    j = where.read.get(read, k)
    later = rows[j]
    if j <= k or later is None or not any(read in known.reads(e)[:2][way] for e in expressions(later)):
        return None
    loaded, values, places, _ = known.reads(value)
    if where.changes({*loaded, *values, *places, *(b.name for b in loaded if not b.dims)}, k, j):
        return None
    if any(b.dims for b in loaded) and _between(where.checks, k, j):
        return None  # the element read may exist only because the check holds... or not: leave it
    if isinstance(later, (While, Check)):
        return None
    nodes = sum(_size(e) for e in expressions(later)) + _size(value)
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
            if (
                isinstance(x, Op)
                and x.name == "add"
                and x.dtype.kind in "fiu"
                and x.args[1] == Load(stmt.buf)
            ):
                if (
                    isinstance(stmt.value, Op) and stmt.value.name == "neg"
                ):  # a + -b is a - b, to the last bit
                    return Op("sub", (_substituted(x.args[0], stmt), stmt.value.args[0]), x.dtype)
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
    if isinstance(stmt, Bind) and not all(_alone(e, stmt.name) for e in expressions(reader)):
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
    from .nest import boolean

    return _Pair(boolean(True), (stmt, reader))


def _size(e: E) -> int:
    return sum(1 for x in subexpressions(e) if isinstance(x, (Op, Load, Index)))


# --- copies and dead stores -----------------------------------------------------------------------


def _forward_copies(body: tuple[Stmt, ...], known: _Known) -> tuple[Stmt, ...]:
    """`a = b` where both are scalar variables written once: read b."""
    uses = _Uses(body, known)
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
        return body

    def change(x: E) -> E | None:
        while isinstance(x, Load) and x.buf in source:
            x = source[x.buf]
            if not (isinstance(x, Load) and x.buf in source):
                return x
        return None

    return tuple(
        map_statement(s, lambda e: map_expression(e, change), lambda buf, index: (buf, index)) for s in body
    )


def _drop_unread(body: tuple[Stmt, ...], known: _Known) -> tuple[Stmt, ...]:
    body = _unpack(body)
    while True:
        uses = _Uses(body, known)
        new = _without(body, uses)
        if new == body:
            return body
        body = new


def _unpack(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    rows: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, _Pair):
            rows.extend(_unpack(stmt.then))
        else:
            rows.append(with_parts(stmt, tuple(_unpack(b) for b in parts(stmt))) if parts(stmt) else stmt)
    return tuple(rows) if any(a is not b for a, b in zip(rows, block)) or len(rows) != len(block) else block


def _without(block: tuple[Stmt, ...], uses: _Uses) -> tuple[Stmt, ...]:
    rows: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, Store) and stmt.buf.space == "temp" and not stmt.buf.carried:
            if uses.reads[stmt.buf] == uses.combined[stmt.buf]:  # `s += x` reads s, but only for itself
                continue
        if isinstance(stmt, Bind) and uses.symbol_reads[stmt.name] == 0:
            continue
        if parts(stmt):
            blocks = tuple(_without(b, uses) for b in parts(stmt))
            if isinstance(stmt, (For, If)) and not any(blocks):
                continue
            if any(a is not b for a, b in zip(blocks, parts(stmt))):
                stmt = with_parts(stmt, blocks)
        rows.append(stmt)
    return tuple(rows) if len(rows) != len(block) or any(a is not b for a, b in zip(rows, block)) else block


__all__ = ["fold", "touched", "other_symbols"]
