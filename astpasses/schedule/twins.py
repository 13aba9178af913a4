"""An intermediate array that is also stored into a larger one is read from there, and goes away.

In: a fused and shrunk tree. Out: the same, without temporaries of which every element has a twin.

    for j: t[j] = (a[j] + a[j + 1])/2              for j: b[j + 1] = (a[j] + a[j + 1])/2
           b[j + 1] = t[j]                   ->
    for j: a[j] = t[j] + b[j]                      for j: a[j] = b[j + 1] + b[j]
"""

from __future__ import annotations

from dataclasses import replace

from metaphrase.core.dims import DimLike, substitute, symbols
from metaphrase.late import dataclass

from .nest import Bind, Buf, E, For, Load, Map, Stmt, Store, While, loaded, touched, walk
from .rewrite import map_expression, map_statement


@dataclass(eq=False)
class _Twin:
    """Element `index` of `temporary` is also element `place` of `buf`."""

    temporary: Buf
    index: tuple[str, ...]
    buf: Buf
    place: Map


def merge_twins(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Rewrite every block."""
    reads: dict[Buf, int] = {}
    writes: dict[Buf, int] = {}
    for stmt in walk(body):
        for load in loaded(stmt):
            reads[load.buf] = reads.get(load.buf, 0) + 1
        for buf in touched(stmt):
            # Anything but a store names a whole array: it must stay one.
            writes[buf] = writes.get(buf, 0) + (1 if isinstance(stmt, Store) and not stmt.monoid else 2)
    return _block(body, reads, writes)


def _block(block: tuple[Stmt, ...], reads: dict[Buf, int], writes: dict[Buf, int]) -> tuple[Stmt, ...]:
    rows = [s.with_blocks(tuple(_block(b, reads, writes) for b in s.blocks)) if s.blocks else s for s in block]
    for k, stmt in enumerate(rows):
        if isinstance(stmt, For):
            for twin in _twins(stmt, writes):
                if (last := _last_reader(rows, k, twin, reads)) is not None:
                    rows[k] = _without_copy(rows[k], twin)
                    for j in range(k, last + 1):
                        rows[j] = _redirected(rows[j], twin)
    return tuple(rows)


def _twins(nest: For, writes: dict[Buf, int]) -> list[_Twin]:
    """Temporaries that the innermost block of a perfect nest makes and stores once more."""
    loops: list[str] = []
    inner: Stmt = nest
    while isinstance(inner, For):
        loops.append(inner.index)
        if len(inner.body) != 1 or not isinstance(inner.body[0], For):
            break
        inner = inner.body[0]
    assert isinstance(inner, For)
    made: dict[Buf, tuple[str, ...]] = {}
    begun: dict[Buf, int] = {}
    found = []
    stored: list[Buf] = [s.buf for s in walk(nest.body) if isinstance(s, Store)]
    for k, stmt in enumerate(inner.body):
        if not isinstance(stmt, Store) or stmt.monoid or not stmt.buf.dims:
            continue
        names = _names(stmt.index)
        if stmt.buf.space == "temp" and not stmt.buf.carried and not stmt.buf.dynamic:
            if names is not None and set(names) == set(loops) and writes[stmt.buf] == 1:
                made[stmt.buf], begun[stmt.buf] = names, k
                continue
        value = stmt.value
        if (
            isinstance(value, Load)
            and value.buf in made
            and _names(value.index) == made[value.buf]
            and value.buf.dtype == stmt.buf.dtype
            and stored.count(stmt.buf) == 1
            and all(not isinstance(entry, E) for entry in stmt.index)
            and not _is_read(inner.body[begun[value.buf] + 1 : k], stmt.buf)
        ):
            found.append(_Twin(value.buf, made[value.buf], stmt.buf, stmt.index))
    return found


def _is_read(statements: tuple[Stmt, ...], buf: Buf) -> bool:
    """Whether one of them wants what an array held before."""
    return any(load.buf is buf for s in walk(statements) for load in loaded(s)) or any(
        buf in touched(s) for s in walk(statements)
    )


def _names(index: Map) -> tuple[str, ...] | None:
    """The symbols of an index whose entries are a symbol each, all different."""
    names = [
        entry.name
        for entry in index
        if not isinstance(entry, (int, E)) and entry.is_sym  # type: ignore[union-attr]
    ]
    return tuple(names) if len(names) == len(index) and len(set(names)) == len(names) else None


def _last_reader(rows: list[Stmt], k: int, twin: _Twin, reads: dict[Buf, int]) -> int | None:
    """The last statement of the block that reads the temporary, if its twin lives as long."""
    left = reads.get(twin.temporary, 0)
    names = frozenset().union(*(symbols(entry) for entry in twin.place)) - set(twin.index)  # type: ignore[arg-type]
    for j in range(k, len(rows)):
        for stmt in walk((rows[j],)):
            if j > k and twin.buf in touched(stmt) and not _only_reads(stmt, twin.buf):
                # The last reader may store where it has just read; nobody may store before.
                return None
            if isinstance(stmt, Bind) and stmt.name in names:
                return None
            if isinstance(stmt, While) and stmt.counter in names:
                return None
            if isinstance(stmt, For) and stmt.index in names:
                return None
            for load in loaded(stmt):
                if load.buf is twin.temporary:
                    left -= 1
                    if any(isinstance(entry, E) for entry in load.index):
                        return None
        if left == 0:
            return j
    return None


def _only_reads(stmt: Stmt, buf: Buf) -> bool:
    return isinstance(stmt, Store) and stmt.buf is not buf


def _without_copy(nest: Stmt, twin: _Twin) -> Stmt:
    """The value goes where its twin was, and the second store is left out."""
    if not isinstance(nest, For):
        return nest
    rows: list[Stmt] = []
    for stmt in nest.body:
        if isinstance(stmt, Store) and stmt.buf is twin.temporary:
            rows.append(replace(stmt, buf=twin.buf, index=twin.place))
        elif (
            isinstance(stmt, Store)
            and stmt.buf is twin.buf
            and isinstance(stmt.value, Load)
            and stmt.value.buf is twin.temporary
        ):
            continue
        else:
            rows.append(_without_copy(stmt, twin))
    return replace(nest, body=tuple(rows))


def _redirected(stmt: Stmt, twin: _Twin) -> Stmt:
    def change(x: E) -> E | None:
        if not isinstance(x, Load) or x.buf is not twin.temporary:
            return None
        values: dict[str, DimLike] = dict(zip(twin.index, x.index))  # type: ignore[arg-type]
        return Load(twin.buf, tuple(substitute(entry, values) for entry in twin.place))  # type: ignore[arg-type]

    return map_statement(stmt, lambda e: map_expression(e, change), lambda buf, index: (buf, index))


__all__ = ["merge_twins"]
