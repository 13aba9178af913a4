"""A loop around an operation on arrays becomes one more axis of it, where its iterations do not depend on one another.

In: the tree as it is lowered. Out: the same with larger nests, for fuse to take. Example:

    for i in range(9):                        for i in range(n):
        c = table[i]                  ->          for j in range(9):
        for j in range(n):                            c = table[j]
            y[j, i] = c*x[j]                          y[i, j] = c*x[i]

The axes stand in the order in which elements lie. Numbers of an iteration are worked out for each element: they cost
next to nothing. This is the interchange of loops that are made perfect by sinking what stands between them (Wolfe,
"High Performance Compilers for Parallel Computing", 1996, chapter 9).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from metaphrase.core.dims import Sym, symbols_of
from metaphrase.core.facts import Facts
from metaphrase.core.scalars import CHEAP

from .fuse import Limits, fuse_block
from .independence import Independence
from .lifetimes import read_before_given
from .nest import (
    Axis,
    Bind,
    Buf,
    Fn,
    For,
    LibraryCall,
    Nest,
    Stmt,
    Store,
    dearest,
    index_symbols,
    loaded,
    local,
    named,
    touched,
    used_inside,
    walk,
)
from .overwritten import filled_box
from .rewrite import rebound, with_parts, with_storages
from .shrink import shrink
from .target import Target


def perfect(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such nests."""
    body = fn.body
    while True:
        loops = {s: loop for s in walk(body) if isinstance(s, For) and (loop := _fused(s, body, fn.facts, target))}
        if not loops:
            return body
        whole: dict[Stmt, tuple[Stmt, ...]] = {s: (loop,) for s, loop in loops.items()}
        written = _replaced(body, whole)
        independence = Independence(replace(fn, body=written), target, Facts(fn.facts.ranges))
        each = ((s, _nests(loop, independence, fn)) for s, loop in loops.items())
        nests: dict[Stmt, tuple[Stmt, ...]] = {s: made for s, made in each if made}
        if not nests:
            return body
        body = _replaced(body, nests)
        _settle(body, Counter(buf for s in walk(body) for buf in named(s)))


def _replaced(block: tuple[Stmt, ...], others: Mapping[Stmt, tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
    """A block with other statements in the place of some."""
    rows: list[Stmt] = []
    for s in block:
        whole = s.with_blocks(tuple(_replaced(b, others) for b in s.blocks)) if s not in others and s.blocks else s
        rows += others.get(s, (whole,))
    return tuple(rows)


def _settle(block: tuple[Stmt, ...], everywhere: Counter[Buf]) -> None:
    """Note which arrays no loop carries any more: the operations of one block fill them, and are all that use them."""
    here: dict[Buf, list[Stmt]] = {}
    for stmt in block:
        for buf in used_inside(stmt):
            here.setdefault(buf, []).append(stmt)
        if not isinstance(stmt, Nest):
            for inner in stmt.blocks:
                _settle(inner, everywhere)
    for buf, users in here.items():
        if buf.carried and buf.space in ("temp", "out") and all(isinstance(s, (Nest, LibraryCall)) for s in users):
            mentions = sum(buf in named(inner) for inner in walk(tuple(users)))
            whole = filled_box(users[0]) == (buf, tuple((0, extent) for extent in buf.dims))
            buf.carried = not (whole and mentions == everywhere[buf])


def _fused(loop: For, body: tuple[Stmt, ...], facts: Facts, target: Target) -> For | None:
    """The loop with the operations in it fused, if it is these, as one nest, and numbers. A GPU may have several nests:
    it divides each of them."""
    numbers = [s for s in loop.body if _is_number(s)]
    nests = [s for s in loop.body if not _is_number(s)]
    if loop.parts is not None or loop.kind == "red" or not nests or not all(map(_is_plain, nests)):
        return None
    stored = {buf for s in walk(tuple(nests)) for buf in touched(s)}
    names = [loop.index, *(s.binds or touched(s)[0].name for s in numbers)]
    given = set(names)
    if any(load.buf in stored for s in numbers for load in loaded(s)) or len(given) < len(names):
        return None  # what one is depends on where it is asked for
    fused = fuse_block(tuple(nests), facts, Limits.of(target))
    several = target.threads > 0 and isinstance(loop.extent, int) and loop.extent <= target.blocks
    if several and not all(_is_chain(s, given) for s in fused):
        fused = fuse_block(tuple(nests), facts, Limits(0))
    if len(fused) > 1 and not several or not all(_is_chain(s, given) for s in fused):
        return None
    (made,) = shrink((replace(loop, body=(*numbers, *fused)),), kept=_outside(body, loop))
    return made if isinstance(made, For) else None


def _is_chain(stmt: Stmt, given: set[str]) -> bool:
    """Whether a statement is independent loops with nothing between them, as long whatever these variables are."""
    if not isinstance(stmt, For) or stmt.kind != "par" or symbols_of(stmt.extents) & given:
        return False
    if len(stmt.body) == 1 and isinstance(stmt.body[0], For):
        return _is_chain(stmt.body[0], given)
    return all(isinstance(s, (Store, Bind)) for s in stmt.body)


def _is_number(stmt: Stmt) -> bool:
    """Whether a statement gives a variable a value that costs next to nothing."""
    variable = isinstance(stmt, Bind) or isinstance(stmt, Store) and not stmt.buf.dims and stmt.monoid is None
    return variable and dearest(stmt) <= CHEAP


def _is_plain(stmt: Stmt) -> bool:
    """Whether it is an operation on arrays whose elements do not depend on one another."""
    return (
        isinstance(stmt, Nest)
        and bool(stmt.axes)
        and not stmt.first
        and all(axis.kind == "par" for axis in stmt.axes)
        and all(isinstance(s, Bind) or isinstance(s, Store) and s.monoid is None for s in stmt.body)
    )


def _outside(block: Iterable[Stmt], loop: For) -> frozenset[Buf]:
    """What is used outside of a loop."""
    used: frozenset[Buf] = frozenset()
    for stmt in block:
        if stmt is loop:
            continue
        if any(inner is loop for inner in walk((stmt,))):
            used = used.union(named(stmt))
            used = used.union(*(_outside(inner, loop) for inner in stmt.blocks))
        else:
            used |= used_inside(stmt)
    return used


def _nests(loop: For, independence: Independence, fn: Fn) -> tuple[Stmt, ...]:
    """The nests of a loop of chains; none where iterations depend on one another."""
    roles = independence.roles(loop)
    if roles is None or roles.sums or roles.counts:
        return ()
    numbers = [s for s in loop.body if not isinstance(s, For)]
    chains = [s for s in loop.body if isinstance(s, For)]
    arrays = [buf for buf in roles.private if buf.dims]
    if arrays and len(chains) == 1:
        return ()
    wholes = {buf: (Buf(buf.name, buf.dtype, (loop.extent, *buf.dims)), (Sym(loop.index),)) for buf in arrays}
    rows = []
    for chain in chains:
        needed: list[Stmt] = []
        for stmt in reversed(numbers):
            given = {stmt.binds, *(buf.name for buf in touched(stmt))}
            if given & read_before_given((*needed, chain))[0]:
                needed.insert(0, stmt)
        axes = [Axis(loop.index, loop.extent), Axis(chain.index, chain.extent)]
        body = chain.body
        while isinstance(inner := body[0], For):
            axes.append(Axis(inner.index, inner.extent))
            body = inner.body
        body = tuple(with_parts(s, wholes) for s in (*needed, *body))
        place = [name for s in body if isinstance(s, Store) for e in s.index for name in sorted(index_symbols((e,)))]
        axes.sort(key=lambda axis: place.index(axis.name) if axis.name in place else -1)
        rows.append(_own(Nest(tuple(axes), body, span=chain.span), [loop, *needed], fn))
    return tuple(rows)


def _own(nest: Nest, given: Iterable[Stmt], fn: Fn) -> Nest:
    """The nest with variables of its own in the place of those that statements give."""
    names = {s.binds: fn.names.fresh(s.binds) for s in given if s.binds is not None}
    storages = {buf: local(fn.names.fresh(buf.name), buf.dtype) for s in given for buf in touched(s) if not buf.dims}
    axes = tuple(replace(axis, name=names.get(axis.name, axis.name)) for axis in nest.axes)
    for axis in axes:
        fn.facts.learn(axis.name, 0, axis.extent - 1)
    return replace(nest, axes=axes, body=tuple(with_storages(rebound(s, names), storages) for s in nest.body))


__all__ = ["perfect"]
