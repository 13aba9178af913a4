"""Storage that only one iteration of a loop touches needs no dim for that loop.

In: the fused tree. Out: the same with temporaries shrunk; those of rank 0 become scalar variables.

    for i:                        for i:
        y[i] = sin(x[i])    ->        y = sin(x[i])
        s += y[i]                     s += y
"""

from __future__ import annotations

from metaphrase.core.dims import symbols
from metaphrase.core.facts import Facts

from .dependence import in_rows, pinned
from .nest import Buf, E, For, LibraryCall, Load, Map, Stmt, loaded, walk
from .rewrite import map_expression, map_statement


def shrink(body: tuple[Stmt, ...], kept: frozenset[Buf] = frozenset()) -> tuple[Stmt, ...]:
    """Drop dims of temporaries that are indexed, everywhere, by one and the same loop. `kept`: others see them."""
    indices: dict[Buf, list[Map]] = {}
    fixed, arrays, facts = set(kept), set[Buf](), Facts()
    loops = {s.index: s for s in walk(body) if isinstance(s, For)}
    for loop in loops.values():
        facts.learn(loop.index, 0, loop.extent - 1)
    for stmt in walk(body):
        for load in loaded(stmt):
            indices.setdefault(load.buf, []).append(load.index)
        for access in (in_rows(access, facts) for access in stmt.accesses):
            indices.setdefault(access.buf, []).append(access.index)
            if access.whole:
                fixed.add(access.buf)
            elif isinstance(stmt, LibraryCall):
                arrays.add(access.buf)
    smaller: dict[Buf, tuple[Buf, tuple[int, ...]]] = {}
    for buf, places in indices.items():
        if buf.space != "temp" or not buf.dims or buf in fixed or buf.carried or _is_empty(buf, facts):
            continue
        keep = tuple(d for d in range(len(buf.dims)) if not _droppable([p[d] for p in places], set(loops)))
        if len(keep) < len(buf.dims) and (keep or buf not in arrays):
            smaller[buf] = Buf(buf.name, buf.dtype, tuple(buf.dims[d] for d in keep)), keep
            smaller[buf][0].unbound = buf.unbound
    if not smaller:
        return body

    def place(buf: Buf, index: Map) -> tuple[Buf, Map]:
        if buf not in smaller:
            return buf, index
        new, keep = smaller[buf]
        return new, tuple(index[d] for d in keep)

    def expression(e: E) -> E:
        def change(x: E) -> E | None:
            return Load(*place(x.buf, x.index)) if isinstance(x, Load) and x.buf in smaller else None

        return map_expression(e, change)

    return tuple(map_statement(s, expression, place) for s in body)


def _is_empty(buf: Buf, facts: Facts) -> bool:
    """Whether an array has no elements, so that nobody stores into it."""
    return any(facts.less_equal(d, 0) for d in buf.dims)


def _droppable(entries: list, loops: set[str]) -> bool:
    first = entries[0]
    if any(e != first for e in entries[1:]):
        return False
    if isinstance(first, int):
        return True  # one slice, known when the program is made
    if isinstance(first, E):
        return False
    return any(pinned(first, loop, frozenset()) for loop in symbols(first) & loops)
