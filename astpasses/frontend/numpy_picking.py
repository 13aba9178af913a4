"""Functions that pick elements: take, diagonals, triangles, and `np.add.at`.

In: arrays and where to look. Out: copies of what stands there.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.core.dims import DimLike, dim_min
from metaphrase.core.ir import Atom
from metaphrase.ops.arithmetic import add
from metaphrase.ops.arrays import iota
from metaphrase.ops.indexing import gather, scatter_add
from metaphrase.ops.shape import broadcast

from .arithmetic import operand, spread
from .calls import handles
from .creation import array_from
from .numpy_reduce import as_array, axes_of
from .numpy_shapes import broadcast_to, pad, ravel
from .session import Session, session
from .values import StagedArray


@handles(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    x = as_array(a)
    x = ravel(x) if axis is None else x
    (at,) = axes_of(0 if axis is None else axis, x.ndim)
    indices = operand(indices)
    if isinstance(indices, (list, tuple)):
        indices = array_from(indices)
    if mode == "wrap":
        indices = indices % x.shape[at]
    elif mode == "clip":
        from .calls import call_value
        indices = call_value(np.clip, (indices, 0, x.shape[at] - 1), {})
    return x[(*(slice(None),) * at, indices)]


@handles(np.take_along_axis)
def take_along_axis(a: Any, indices: Any, axis: Any = -1) -> StagedArray:
    here, x, positions = session(), as_array(a), as_array(indices)
    (at,) = axes_of(axis, x.ndim)
    dims = positions.type.dims
    picks: list[Any] = []
    for k in range(x.ndim):
        if k == at:
            picks.append(positions)
        else:
            count = here.emit(iota, length=dims[k], dtype=np.dtype("int64"))
            picks.append(here.array(here.emit(broadcast, count, shape=dims, axes=(k,))))
            picks[-1].box.origin = "positions"
    return x[tuple(picks)]


def take_diagonal(here: Session, atom: Atom, first: int, second: int, offset: int = 0) -> Atom:
    """The diagonal of two axes, as a new last axis."""
    rows, columns = atom.type.dims[first], atom.type.dims[second]
    length: DimLike = dim_min(rows + min(offset, 0), columns - max(offset, 0))
    count = here.emit(iota, length=length, dtype=np.dtype("int64"))
    moved = here.emit(add, count, spread(here, literal(abs(offset)), (length,))) if offset else count
    down, across = (count, moved) if offset >= 0 else (moved, count)
    out = here.emit(gather, atom, down, across, axes=(first, second))
    if out.type.ndim == 1:
        return out
    from metaphrase.ops.shape import permute
    return here.emit(permute, out, axes=(*range(1, out.type.ndim), 0))


@handles(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> StagedArray:
    here, x = session(), as_array(a)
    return here.array(take_diagonal(here, x.read(), axis1 % x.ndim, axis2 % x.ndim, offset))


@handles(np.diag)
def diag(v: Any, k: int = 0) -> StagedArray:
    x = as_array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    from .creation import eye
    n = x.shape[0] + abs(k)
    mask = eye(n, k=k, dtype=bool)
    wide = pad(x, ((max(k, 0), max(-k, 0)),)) if k else x
    rows = wide[None, :] if k >= 0 else pad(x, ((0, -k),))[None, :]
    from .calls import call_value
    return call_value(np.where, (mask, broadcast_to(rows, mask.shape), np.zeros((), x.dtype)[()]), {})


@handles(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, **ignored: Any) -> Any:
    return diagonal(a, offset, axis1, axis2).sum(axis=-1)


def _triangle(keep: Callable[[Any, Any, int], Any]) -> Callable:
    def handler(m: Any, k: int = 0) -> StagedArray:
        from .calls import call_value
        from .creation import arange
        x = as_array(m)
        rows, columns = arange(x.shape[-2])[:, None], arange(x.shape[-1])[None, :]
        mask = broadcast_to(keep(rows, columns, k), x.shape)
        return call_value(np.where, (mask, x, np.zeros((), x.dtype)[()]), {})
    return handler


handles(np.tril)(_triangle(lambda rows, columns, k: columns <= rows + k))
handles(np.triu)(_triangle(lambda rows, columns, k: columns >= rows + k))


def add_at(target: StagedArray, indices: Any, values: Any) -> None:
    """`np.add.at`: every index counts, also one that occurs twice."""
    from .indexing import _advanced, _fit, _moved_back, parse, write_view
    here = session()
    parsed = parse(target, indices)
    if not parsed.advanced:
        target[indices] = target[indices] + values
        return
    plan = _advanced(target, parsed)
    base = plan.base.read()
    rest = tuple(d for k, d in enumerate(plan.base.type.dims) if k not in plan.axes)
    shape = (*rest[:plan.target], *plan.dims, *rest[plan.target:])
    atom = _moved_back(here, _fit(here, values, shape, target.dtype), len(plan.dims), plan.target)
    write_view(plan.base, here.emit(scatter_add, base, atom, *plan.indices, axes=plan.axes))


@handles(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> StagedArray:
    from .creation import zeros
    from .demand import need_concrete
    x = as_array(x)
    if not minlength:
        need_concrete(x, "the largest value in np.bincount", int, "give minlength")
    out = zeros(minlength, np.dtype("int64") if weights is None else np.dtype("float64"))
    add_at(out, x, 1 if weights is None else weights)
    return out
