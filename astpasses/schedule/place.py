"""Where the storage of temporaries comes from, and which of it an iteration of a parallel loop has for itself.

In: the final tree of a function. Out: `Grow` where a size is known only on the way; then the temporaries with the
spaces they lie in, and parallel loops that say which are their iterations' own.

    x = temp(40)  ->  frame        rows = temp(n, m)  ->  arena        for i (par, private x): ...
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from metaphrase.core.dims import product, symbols
from metaphrase.core.facts import Facts

from .dependence import INSIDE, disjoint, in_blocks, in_rows, in_step
from .lifetimes import key_of, lifetimes_in
from .nest import Access, Buf, Fn, For, Grow, If, Map, Stmt, Swap, bound_inside, loaded, touched, used_inside, walk
from .target import Target


def temporaries(body: tuple[Stmt, ...]) -> tuple[Buf, ...]:
    """The storages a body uses that it does not get from its caller, in order of appearance."""
    used = (buf for s in walk(body) for buf in (*touched(s), *(load.buf for load in loaded(s))))
    return tuple(dict.fromkeys(buf for buf in used if buf.is_temporary))


def make_room(fn: Fn) -> tuple[Stmt, ...]:
    """Temporaries whose sizes are not known on entry are made where they are."""
    body = fn.body
    for buf in temporaries(body):
        unknown = frozenset().union(*map(symbols, buf.dims)) - frozenset(fn.sizes)
        if unknown and buf.space == "temp" and buf not in fn.bufs:
            buf.dynamic, buf.space = True, "room"
            body = _grow_in(body, buf, unknown)
    return body


def _grow_in(block: tuple[Stmt, ...], buf: Buf, unknown: frozenset[str]) -> tuple[Stmt, ...]:
    def uses(stmt: Stmt) -> bool:
        return buf in used_inside(stmt)

    first, *later = (k for k, s in enumerate(block) if uses(s))
    stmt = block[first]
    of_a_branch = isinstance(stmt, If) and not later and sum(any(map(uses, inner)) for inner in stmt.blocks) == 1
    if of_a_branch or stmt.blocks and unknown & bound_inside(stmt):
        blocks = list(stmt.blocks)
        for k, inner in enumerate(blocks):
            if any(map(uses, inner)):
                blocks[k] = _grow_in(inner, buf, unknown)
        return (*block[:first], stmt.with_blocks(tuple(blocks)), *block[first + 1 :])
    return (*block[:first], Grow((buf,), buf.dims[0]), *block[first:])


def near(bufs: Iterable[Buf], room: int) -> list[Buf]:
    """Those of known size that a function's frame has room for: it need not ask for memory."""
    chosen = []
    for buf in bufs:
        total = product(buf.dims)
        if isinstance(total, int) and total * buf.dtype.itemsize <= room:
            room -= total * buf.dtype.itemsize
            chosen.append(buf)
    return chosen


def place(fn: Fn, target: Target) -> Fn:
    """The function with the temporaries that it declares, each in a space, and with what is private in its loops."""
    temps = tuple(buf for buf in temporaries(fn.body) if buf not in fn.bufs)
    exchanged = {buf for s in walk(fn.body) if isinstance(s, Swap) for buf in (s.a, s.b)}
    fixed = [buf for buf in temps if buf.space == "temp"]
    stack_bytes = 0 if target.threads else target.stack_bytes  # a kernel's arrays have their places, a host has none
    frame = near((buf for buf in fixed if buf.dims and buf not in exchanged), stack_bytes)
    for buf in fixed:
        buf.space = "frame" if not buf.dims or buf in frame else "arena"
    if all(s.kind == "seq" for s in walk(fn.body) if isinstance(s, For)):
        return replace(fn, temps=temps)
    lifetimes = lifetimes_in(fn)

    def with_private(stmt: Stmt) -> Stmt:
        if not stmt.blocks:
            return stmt
        inside = stmt.with_blocks(tuple(tuple(map(with_private, block)) for block in stmt.blocks))
        if not isinstance(stmt, For) or stmt.kind == "seq":
            return inside
        used = used_inside(stmt)
        mine = (b for b in temps if b in used and lifetimes.private(key_of(b), stmt) and not divided(b, stmt))
        return replace(inside, private=tuple(mine))  # type: ignore[type-var]

    return replace(fn, temps=temps, body=tuple(map(with_private, fn.body)))


def divided(buf: Buf, loop: For, facts: Facts | None = None) -> bool:
    """Whether each iteration has a part of an array to itself. `facts`: of what the places say."""
    if not buf.dims:
        return False
    accesses = {
        a if facts is None else in_rows(a, facts) for s in walk(loop.body) for a in accesses_of(s) if a.buf is buf
    }
    if any(a.whole for a in accesses):
        return False
    stored = {a.buf.name for s in walk(loop.body) for a in s.accesses if a.write and not a.buf.dims}
    inner = (bound_inside(loop) | stored | set(INSIDE)) - {loop.index}
    own = inner | {loop.index}

    def apart(a: Map, b: Map) -> bool:
        if in_step(a, b, loop.index, loop.extent, inner):
            return True
        return facts is not None and (in_blocks(a, b, loop.index, facts) or disjoint(a, b, facts, own))

    written = {a.index for a in accesses if a.write}
    return all(apart(a.index, place) for a in accesses for place in written)


def accesses_of(stmt: Stmt) -> list[Access]:
    """The places that a statement itself reads or writes."""
    return [*(Access(load.buf, load.index, False) for load in loaded(stmt)), *stmt.accesses]


__all__ = ["accesses_of", "divided", "make_room", "near", "place", "temporaries"]
