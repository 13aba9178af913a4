"""Loops over the grid whose threads take several elements at a time, which memory gives and takes as one.

In: a kernel each of whose threads does iterations of its own. Out: the same, its loop marked (`For.width`) where its
iterations are numbered as the elements of its arrays are. Example, of 4-byte numbers:

    for i in range(n): y[i] = 2*x[i] + b           # width 4: a thread reads x[4*k] to x[4*k + 3] by one instruction

Memory is busy when enough bytes are on their way: a GPU's threads have to ask for some 16 each, and elements have 1 to
8. Loops with much to compute are left alone, whose threads would want more registers, and small ones, which need all
threads that there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from metaphrase.core.dims import floordiv, product

from .nest import Bind, Fn, For, Stmt, Store, loaded, operations, runs_along
from .target import Target

_OWN = ("frame", "shared", "stack")  # where arrays of a thread or block lie


def wide(fn: Fn, target: Target) -> Fn:
    """The kernel, its threads taking as many elements at a time as pays."""
    kernel = fn.kernel
    if kernel is None or kernel.together or kernel.count is None:
        return fn
    places = [k for k, stmt in enumerate(fn.body) if isinstance(stmt, For)]
    if len(places) != 1:
        return fn
    outer = fn.body[places[0]]
    assert isinstance(outer, For)
    loops, body = [outer], outer.body
    while len(body) == 1 and isinstance(inner := body[0], For) and inner.on == "grid":
        loops.append(inner)
        body = inner.body
    total = product([loop.extent for loop in loops])
    width = _width(loops, body, target)
    if outer.on != "grid" or width < 2 or isinstance(total, int) and total < target.wide_from:
        return fn
    rows = (*fn.body[: places[0]], replace(outer, width=width), *fn.body[places[0] + 1 :])
    return replace(fn, body=rows, kernel=replace(kernel, count=floordiv(total + width - 1, width)))


def _width(loops: Sequence[For], body: Sequence[Stmt], target: Target) -> int:
    """How many elements a thread takes at a time; less than 2 where it should take one."""
    if not all(isinstance(stmt, (Store, Bind)) for stmt in body):
        return 0
    if sum(map(operations, body)) > target.wide_work:
        return 0
    places = [(load.buf, load.index) for stmt in body for load in loaded(stmt)]
    places += [(stmt.buf, stmt.index) for stmt in body if isinstance(stmt, Store)]
    along = {buf for buf, index in places if buf.dims and runs_along(buf, index, loops)}
    stored = {stmt.buf for stmt in body if isinstance(stmt, Store) and stmt.buf.dims}
    others = {buf for buf, index in places if buf.dims and not runs_along(buf, index, loops)}
    if not stored <= along - others or any(buf.space in _OWN for buf in along | others):
        return 0
    if any(buf.dtype.kind == "c" for buf in along):
        return 0
    return target.wide // max((buf.dtype.itemsize for buf in along), default=target.wide)


__all__ = ["wide"]
