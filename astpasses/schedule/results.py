"""A result whose size is known on the way only is made where it will lie, as soon as the size is known.

In: the folded body of an entry. Out: the same, where a temporary array that is nothing but copied into such a result is
the result: that is asked for before the array is first written. Example:

    t[...] = ...                              set_dims(out)
    ...                              ->       out[...] = ...
    set_dims(out)                             ...
    for i in range(count): out[i] = t[i]
"""

from __future__ import annotations

from dataclasses import replace

from metaphrase.core.dims import Sym, symbols_of

from .nest import Bind, Buf, Fn, For, Load, SetDims, Stmt, Store, Swap, touched, used_inside, walk
from .rewrite import with_storages
from .target import Target
from .work import binds


def in_results(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body with such arrays as results."""
    body = fn.body
    if target.threads:  # the host of a device's kernels has them where it likes
        return body
    for stmt in fn.body:
        if isinstance(stmt, SetDims):
            body = _made_there(body, stmt, fn)
    return body


def _made_there(body: tuple[Stmt, ...], known: SetDims, fn: Fn) -> tuple[Stmt, ...]:
    place = body.index(known)
    for k in range(place + 1, len(body)):
        if known.buf in used_inside(body[k]):
            made = _copied(body[k], known.buf)
            if made is None or not _may_be(made, known.buf, body, k):
                break
            first = next(j for j, stmt in enumerate(body) if made in used_inside(stmt))
            if not _sizes(known.buf) <= set(fn.sizes).union(*map(_bound, body[:first])):
                break
            left = _without(body[k], known.buf)
            rows = [*body[:first], known, *body[first:place], *body[place + 1 : k], *left, *body[k + 1 :]]
            return tuple(with_storages(stmt, {made: known.buf}) for stmt in rows)
    return body


def _copied(stmt: Stmt, result: Buf) -> Buf | None:
    """The array of which a nest stores each element into the result."""
    loops: list[For] = []
    block: tuple[Stmt, ...] = (stmt,)
    while len(block) == 1 and isinstance(block[0], For):
        loops.append(block[0])
        block = block[0].body
    index = tuple(Sym(loop.index) for loop in loops)
    if tuple(loop.extent for loop in loops) != result.dims:
        return None
    stores = [s for s in block if result in touched(s)]
    if len(stores) != 1 or not isinstance(stores[0], Store) or stores[0].monoid or stores[0].index != index:
        return None
    value = stores[0].value
    return value.buf if isinstance(value, Load) and value.index == index else None


def _may_be(made: Buf, result: Buf, body: tuple[Stmt, ...], copy: int) -> bool:
    """Whether an array may lie where a result does: nothing writes either of them behind the copy."""
    if made.space != "temp" or made.carried or made.unbound or made.dynamic:
        return False
    if made.dtype != result.dtype or made.dims != result.dims:
        return False
    if any(isinstance(stmt, Swap) and made in touched(stmt) for stmt in walk(body)):
        return False
    behind = [access for stmt in walk(body[copy:]) for access in stmt.accesses if access.write]
    return all(access.buf is not made for access in behind) and [a.buf for a in behind].count(result) == 1


def _sizes(buf: Buf) -> frozenset[str]:
    return symbols_of(buf.dims)


def _bound(stmt: Stmt) -> frozenset[str]:
    """The symbols that have their values behind a statement, whichever way it goes."""
    return binds(stmt) if isinstance(stmt, (Bind, Store)) else frozenset()


def _without(stmt: Stmt, result: Buf) -> list[Stmt]:
    """What is left of the nest that copies."""
    if not isinstance(stmt, For):
        return [] if result in touched(stmt) else [stmt]
    body = tuple(left for inner in stmt.body for left in _without(inner, result))
    return [replace(stmt, body=body)] if body else []


__all__ = ["in_results"]
