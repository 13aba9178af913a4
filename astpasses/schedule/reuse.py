"""An array that is made element by element from one that nobody reads any more is made where that one lies.

In: the folded body of a function. Out: the same with fewer arrays. Example (softmax):

    for i in range(n):                        for i in range(n):
        e[i] = exp(x[i] - top)                    out[i] = exp(x[i] - top)
        total += e[i]                    ->       total += out[i]
    for i in range(n): out[i] = e[i]/total    for i in range(n): out[i] = out[i]/total

The memory of one array stays in a cache where that of two may not; what is new to the process is asked for once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from metaphrase.core.dims import Sym

from .nest import Buf, Fn, For, LibraryCall, Map, Stmt, Store, loaded, named, touched, used_inside, walk
from .rewrite import with_storages
from .target import Target


def reuse(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such arrays as one."""
    plain = (Store, LibraryCall)
    handed = {buf for stmt in walk(fn.body) if not isinstance(stmt, plain) for buf in touched(stmt)}
    fixed = handed.union(buf for buf in fn.bufs if buf.space != "out")
    everywhere = _mentions(fn.body)
    free = [buf for buf in everywhere if _may_move(buf) and buf not in fixed]
    return _in_block(fn.body, everywhere, fixed) if len(free) > 1 else fn.body


def _in_block(block: tuple[Stmt, ...], everywhere: Counter[Buf], fixed: set[Buf]) -> tuple[Stmt, ...]:
    rows = [
        stmt.with_blocks(tuple(_in_block(inner, everywhere, fixed | _results(inner)) for inner in stmt.blocks))
        if stmt.blocks
        else stmt
        for stmt in block
    ]
    here = _mentions(block)
    free = {
        buf: rank
        for rank, buf in enumerate(here)
        if _may_move(buf) and buf not in fixed and here[buf] == everywhere[buf]
    }
    last = {buf: k for k, stmt in enumerate(rows) for buf in used_inside(stmt)}
    begun: set[Buf] = set()
    for k in range(len(rows)):
        used = sorted(free.keys() & used_inside(rows[k]), key=free.__getitem__)
        for made in used:
            for read in used:
                if made in begun or read not in begun or last[read] > k or read.space != "temp":
                    continue
                if _follows(rows[k], made, read):
                    rows = [with_storages(stmt, {read: made}) for stmt in rows]
                    begun = begun - {read} | {made}
        begun.update(used)
    return tuple(rows)


def _mentions(block: tuple[Stmt, ...]) -> Counter[Buf]:
    """The number of statements that name each array."""
    return Counter(buf for stmt in walk(block) for buf in named(stmt))


def _results(block: tuple[Stmt, ...]) -> set[Buf]:
    """The results of the program: what a round of a loop does not store there an earlier one has."""
    return {buf for stmt in block for buf in used_inside(stmt) if buf.space == "out"}


def _may_move(buf: Buf) -> bool:
    return bool(buf.dims) and buf.space in ("temp", "out") and not (buf.carried or buf.unbound or buf.dynamic)


def _follows(stmt: Stmt, made: Buf, read: Buf) -> bool:
    """Whether a nest stores each element of `made` once, and reads only that one of both arrays, of `read` before."""
    if made.dtype != read.dtype or made.dims != read.dims or not isinstance(stmt, For):
        return False
    at = next(_stored(stmt, made), None)
    if at is None:
        return False
    loops, block, k = at
    store = block[k]
    assert isinstance(store, Store)
    extents = {Sym(loop.index): loop.extent for loop in loops}
    if store.monoid or len(extents) != len(store.index) or {*store.index} != {*extents}:
        return False
    if tuple(extents[index] for index in store.index) != made.dims:  # type: ignore[index]
        return False
    accesses = [access.buf for inner in walk((stmt,)) for access in inner.accesses]
    return (
        accesses.count(made) == 1
        and accesses.count(read) == 0
        and _reads((stmt,), made) == _reads(block[k + 1 :], made)
        and _reads((stmt,), read) == _reads(block[: k + 1], read)
        and {*_reads((stmt,), made), *_reads((stmt,), read)} == {store.index}
    )


def _reads(block: tuple[Stmt, ...], buf: Buf) -> list[Map]:
    """The places of an array that are loaded in a block."""
    return [load.index for stmt in walk(block) for load in loaded(stmt) if load.buf is buf]


def _stored(loop: For, made: Buf) -> Iterator[tuple[tuple[For, ...], tuple[Stmt, ...], int]]:
    """Where a nest stores into an array: the loops, the innermost block, and the place in it."""
    for k, stmt in enumerate(loop.body):
        if isinstance(stmt, For):
            for loops, block, place in _stored(stmt, made):
                yield (loop, *loops), block, place
        elif isinstance(stmt, Store) and stmt.buf is made:
            yield (loop,), loop.body, k


__all__ = ["reuse"]
