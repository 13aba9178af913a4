"""Kernels whose blocks do several short rows at a time, a warp each.

In: a kernel each of whose blocks does iterations of its own. Out: the same, with `Kernel.rows` iterations at a time,
where a warp has threads enough for each. Example, of rows of 100 elements:

    for i in range(n):                            # eight rows a block, a row by 32 threads
        for j in range(100): t = max(t, x[i, j])

The threads of a warp combine what they have by shuffles and wait for one another alone; those of a block meet in shared
memory. A row of its own block would keep at most as many threads busy as it has elements, and too few blocks fit.
"""

from __future__ import annotations

from dataclasses import replace

from metaphrase.core.dims import floordiv, product

from .nest import Bind, Fn, For, Grow, Store, loaded, touched, walk
from .target import Target


def by_warps(fn: Fn, target: Target) -> Fn:
    """The kernel, a warp for each of its iterations where that pays."""
    kernel = fn.kernel
    if kernel is None or not kernel.together or kernel.count is None:
        return fn
    if isinstance(kernel.count, int) and kernel.count < target.rows_from:
        return fn
    rows = min(target.threads // target.warp, target.shared_bytes // max(_shared_bytes(fn), 1))
    if rows < 2 or not _is_short(fn, target):
        return fn
    count = floordiv(kernel.count + rows - 1, rows)
    return replace(fn, kernel=replace(kernel, count=count, threads=rows * target.warp, rows=rows))


def _is_short(fn: Fn, target: Target) -> bool:
    """Whether all loops that a block divides stand in those of the grid, and have few rounds each."""
    for stmt in fn.body:
        if not isinstance(stmt, (Store, Bind)) and not (isinstance(stmt, For) and stmt.on == "grid"):
            return False
    for stmt in walk(fn.body):
        if isinstance(stmt, Grow):
            return False
        if isinstance(stmt, For) and stmt.on == "block" and not _rounds(stmt) <= target.warp_most:
            return False
    return True


def _rounds(loop: For) -> float:
    """How many iterations the threads divide; infinitely many, where that is not known."""
    extents = [loop.extent]
    while len(loop.body) == 1 and isinstance(inner := loop.body[0], For) and inner.on == "block":
        extents.append(inner.extent)
        loop = inner
    total = product(extents)
    return total if isinstance(total, int) else float("inf")


def _shared_bytes(fn: Fn) -> int:
    """What an iteration keeps in the memory that threads share."""
    inside = list(walk(fn.body))
    bufs = {buf for s in inside for buf in (*touched(s), *(load.buf for load in loaded(s))) if buf.space == "shared"}
    sizes = [product(buf.dims) for buf in bufs]
    return sum(size * buf.dtype.itemsize for size, buf in zip(sizes, bufs) if isinstance(size, int))


__all__ = ["by_warps"]
