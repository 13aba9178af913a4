"""Reading and writing parts of arrays: rectangular regions (`slice...`) and integer arrays (`gather`,
`scatter...`).

In: an array, and i64 starts or index arrays that are in bounds and non-negative (the caller has checked).
Out: the part, or the array with the part replaced or added to. Their transposes accumulate: the cost is that
of the part.

    row: f64[1, n] = slice(a, i, 0, shape=(1, n), step=(1, 1))
    b: f64[m, n] = slice_update(a, row, j, 0, step=(1, 1))
    picked: f64[k, n] = gather(a, rows, axes=(0,))
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.build import literal
from ..core.dims import DimLike
from ..core.native import Gather, Put
from ..core.primitive import Accumulate, Joint, Primitive, Together
from ..core.relation import Dims, Relation, same_dims, without
from ..core.types import Array, i64
from .arithmetic import add, mul
from .arrays import dim_value, iota, undefined, zeros
from .compare import eq, select
from .families import broadcast_to, expand_batch, like, require
from .shape import broadcast, permute, reshape


def start(dim: DimLike) -> Any:
    """A known start as an operand: a literal, or the value of a size."""
    return literal(dim, i64) if isinstance(dim, int) else dim_value(dim=dim)


def accumulate(acc: Any, contribution: Any) -> Any:
    """Add to a cotangent so far; None stands for zero."""
    return contribution if acc is None else add(acc, contribution)


# --- regions with starts and steps --------------------------------------------------------------------------


def _check_starts(name: str, x: Array, starts: Sequence[Array], step: tuple) -> None:
    require(
        len(starts) == x.ndim == len(step),
        lambda: f"{name}: {x} needs one start and one step a dim, got {len(starts)} and {len(step)}",
    )
    require(all(s.dtype == i64 and not s.dims for s in starts), lambda: f"{name}: starts are i64 scalars, got {starts}")
    require(
        all(isinstance(s, int) and s != 0 for s in step), lambda: f"{name}: steps are non-zero integers, got {step}"
    )


def _slice_type(x: Array, *starts: Array, shape: tuple, step: tuple) -> Array:
    _check_starts("slice", x, starts, step)
    require(len(shape) == x.ndim, lambda: f"slice: shape {shape} does not fit {x}")
    return x.with_dims(shape)


def _write_type(name: str) -> Any:
    def rule(x: Array, v: Array, *starts: Array, step: tuple) -> Array:
        _check_starts(name, x, starts, step)
        require(v.ndim == x.ndim and v.dtype == x.dtype, lambda: f"{name}: {v} does not fit into {x}")
        return x.plain

    return rule


def _slice_dims(x: Array, *starts: Array, shape: tuple, step: tuple) -> Relation:
    mapped = same_dims(x, x.with_dims(shape), step)
    return (mapped, *[()] * len(starts)), (mapped,)


def _write_dims(x: Array, v: Array, *starts: Array, step: tuple) -> Relation:
    mapped = same_dims(x, v, step)
    return (mapped, mapped, *[()] * len(starts)), (mapped,)


def region(starts: Sequence[Any], shape: Sequence[int], step: Sequence[int]) -> tuple:
    """The NumPy index of a region: element k of a dim is start + k * step."""
    parts = []
    for first, length, stride in zip(starts, shape, step):
        first = int(first)
        stop: int | None = first + (length - 1) * stride + (1 if stride > 0 else -1) if length else first
        if length and stop < 0:  # type: ignore[operator]
            stop = None
        parts.append(builtins.slice(first, stop, stride) if length else builtins.slice(0, 0))
    return tuple(parts)


def _slice_numpy(x: Any, *starts: Any, shape: tuple, step: tuple) -> Any:
    return x[region(starts, shape, step)]


def _slice_update_numpy(x: Any, v: Any, *starts: Any, step: tuple) -> Any:
    out = np.array(x)
    out[region(starts, np.shape(v), step)] = v
    return out[()]


def _slice_add_numpy(x: Any, v: Any, *starts: Any, step: tuple) -> Any:
    out = np.array(x)
    out[region(starts, np.shape(v), step)] += v
    return out[()]


def _slice_transpose(out_bars: Any, accs: dict, args: Any, *, shape: tuple, step: tuple) -> dict:
    (y_bar,), (x, *starts) = out_bars, args
    if y_bar is None:
        return accs
    acc = zeros(x.type.plain) if accs[0] is None else accs[0]
    return {**accs, 0: slice_add(acc, y_bar, *starts, step=step)}


def _added_jvp(primitive: Any) -> Any:
    """Linear in array and value together; where nothing is added the array's tangent is the result's."""

    def rule(args: tuple, dots: tuple, **attributes: Any) -> tuple:
        out = primitive()(*args, **attributes)
        x_dot = zeros(args[0].type.plain) if dots[0] is None and dots[1] is not None else dots[0]
        return (out,), (x_dot if dots[1] is None else primitive()(x_dot, dots[1], *args[2:], **attributes),)

    return rule


def _slice_update_transpose(out_bars: Any, accs: dict, args: Any, *, step: tuple) -> dict:
    (y_bar,), (_, v, *starts) = out_bars, args
    if y_bar is None:
        return accs
    accs = dict(accs)
    if 1 in accs:
        accs[1] = accumulate(accs[1], slice(y_bar, *starts, shape=v.type.dims, step=step))
    if 0 in accs:  # the cotangent itself moves on, less what v has overwritten
        accs[0] = accumulate(accs[0], slice_update(y_bar, zeros(v.type.plain), *starts, step=step))
    return accs


def _slice_add_transpose(out_bars: Any, accs: dict, args: Any, *, step: tuple) -> dict:
    (y_bar,), (_, v, *starts) = out_bars, args
    if y_bar is None:
        return accs
    accs = dict(accs)
    if 1 in accs:
        accs[1] = accumulate(accs[1], slice(y_bar, *starts, shape=v.type.dims, step=step))
    if 0 in accs:
        accs[0] = accumulate(accs[0], y_bar)
    return accs


def _positions(dims: tuple, axis: int, first: Any, stride: int, batched: bool) -> Any:
    """Indices of shape `dims`: first (one a lane, along axis 0, if batched) + stride * index on `axis`."""
    count = broadcast(iota(length=dims[axis], dtype=i64), shape=dims, axes=(axis,))
    steps = count if stride == 1 else mul(count, like(count, stride))
    return add(steps, broadcast(first, shape=dims, axes=(0,) if batched else ()))


def _lanes(dims: tuple) -> Any:
    """The lane number (index along axis 0) at each element of `dims`."""
    return broadcast(iota(length=dims[0], dtype=i64), shape=dims, axes=(0,))


def _slice_batch(size: DimLike, args: Any, batched: Any, *, shape: tuple, step: tuple) -> tuple | None:
    """Where starts differ by lane: cut along the axes whose start all lanes share, then gather along the others."""
    x, *starts = args
    if not any(batched[1:]):
        return None
    rank, lead = len(shape), int(batched[0])
    apart = [d for d in range(rank) if batched[1 + d]]
    first = [start(0) if batched[1 + d] else starts[d] for d in range(rank)]
    cut = [x.type.dims[lead + d] if d in apart else shape[d] for d in range(rank)]
    strides = tuple(1 if d in apart else step[d] for d in range(rank))
    if len(apart) < rank:
        lanes = ((start(0),), (size,), (1,)) if lead else ((), (), ())
        x = slice(x, *lanes[0], *first, shape=(*lanes[1], *cut), step=(*lanes[2], *strides))
    dims = (size, *(shape[d] for d in apart))
    indices = [_positions(dims, 1 + k, starts[d], step[d], True) for k, d in enumerate(apart)]
    axes = tuple(lead + d for d in apart)
    out = gather(x, _lanes(dims), *indices, axes=(0, *axes)) if lead else gather(x, *indices, axes=axes)
    order = apart + [d for d in range(rank) if d not in apart]  # dims of `out` behind the lanes
    return _permuted(out, (0, *(1 + order.index(d) for d in range(rank)))), True


def _permuted(x: Any, axes: tuple) -> Any:
    return x if axes == tuple(range(len(axes))) else permute(x, axes=axes)


def _write_batch(scatter_like: Any, promises: dict) -> Any:
    """Where starts differ by lane: each element is written by its place."""

    def batch(size: DimLike, args: Any, batched: Any, *, step: tuple) -> tuple | None:
        x, v, *starts = args
        if not any(batched[2:]):
            return None
        x, v = expand_batch(size, x, batched[0]), expand_batch(size, v, batched[1])
        dims = v.type.dims
        indices = [_positions(dims, 1 + d, starts[d], step[d], batched[2 + d]) for d in range(len(step))]
        axes = tuple(range(len(dims)))
        return scatter_like()(x, v, _lanes(dims), *indices, axes=axes, **promises), True

    return batch


slice: Primitive = Primitive(
    "slice",
    type=_slice_type,
    numpy=_slice_numpy,
    jvp=Together(),
    transpose=Accumulate(_slice_transpose),
    dims=Dims(_slice_dims, arrays=1, starts=True),
    batch=_slice_batch,
    native=Gather("slice"),
    doc="slice(x, *starts; shape, step): element k of dim d is element starts[d] + k * step[d] of x.",
)

slice_update: Primitive = Primitive(
    "slice_update",
    type=_write_type("slice_update"),
    numpy=_slice_update_numpy,
    jvp=Together(2),
    transpose=Accumulate(_slice_update_transpose),
    dims=Dims(_write_dims, arrays=2, starts=True),
    batch=_write_batch(lambda: scatter, {"unique": True}),
    native=Put("slice"),
    doc="slice_update(x, v, *starts; step): x with the region of v's shape replaced by v.",
)

slice_add: Primitive = Primitive(
    "slice_add",
    type=_write_type("slice_add"),
    numpy=_slice_add_numpy,
    jvp=Joint(_added_jvp(lambda: slice_add)),
    transpose=Accumulate(_slice_add_transpose),
    dims=Dims(_write_dims, arrays=2, starts=True),
    batch=_write_batch(lambda: scatter_add, {}),
    native=Put("slice", "sum"),
    doc="slice_add(x, v, *starts; step): x with v added to the region of v's shape.",
)


# --- integer arrays -----------------------------------------------------------------------------------------


def _gathered(name: str, x: Array, indices: Sequence[Array], axes: tuple) -> tuple:
    """Dims of what `indices` pick: theirs, then those of x that are left."""
    require(
        len(indices) == len(axes) > 0, lambda: f"{name}: {len(axes)} axes need as many index arrays, got {len(indices)}"
    )
    require(
        len(set(axes)) == len(axes) and all(0 <= a < x.ndim for a in axes),
        lambda: f"{name}: axes {axes} do not fit {x}",
    )
    require(
        all(i.dtype == i64 and i.dims == indices[0].dims for i in indices),
        lambda: f"{name}: index arrays are i64 and of one shape, got {indices}",
    )
    return (*indices[0].dims, *(d for k, d in enumerate(x.dims) if k not in axes))


def _gather_type(x: Array, *indices: Array, axes: tuple) -> Array:
    return x.with_dims(_gathered("gather", x, indices, axes))


def _scatter_type(name: str) -> Any:
    def rule(x: Array, v: Array, *indices: Array, axes: tuple, unique: bool = False) -> Array:
        dims = _gathered(name, x, indices, axes)
        require(v.dtype == x.dtype and v.dims == dims, lambda: f"{name}: needs values {x.with_dims(dims)}, got {v}")
        return x.plain

    return rule


def _gather_dims(x: Array, *indices: Array, axes: tuple) -> Relation:
    """The axes that are picked from are needed whole."""
    mapped = without(x, axes)
    picked = range(x.ndim, x.ndim + indices[0].ndim)
    return (mapped, *[picked] * len(indices)), ([*picked, *(k for k in mapped if k is not None)],)


def _scatter_dims(x: Array, v: Array, *indices: Array, axes: tuple, unique: bool = False) -> Relation:
    """So is all that is written: the order of writers counts."""
    mapped, picked = without(x, axes), [None] * indices[0].ndim
    return (mapped, [*picked, *(k for k in mapped if k is not None)], *[picked] * len(indices)), (mapped,)


def _front(x: Any, axes: tuple) -> Any:
    """A view of x with `axes` first."""
    if axes == tuple(range(len(axes))):
        return x
    return x.transpose(*axes, *(k for k in range(x.ndim) if k not in axes))


def _scatter_numpy(x: Any, v: Any, *indices: Any, axes: tuple, unique: bool = False) -> Any:
    out = np.array(x)
    _front(out, axes)[indices] = v
    return out


def _scatter_add_numpy(x: Any, v: Any, *indices: Any, axes: tuple, unique: bool = False) -> Any:
    out = np.array(x)
    if unique or not np.ndim(indices[0]):
        _front(out, axes)[indices] += v
    else:
        np.add.at(_front(out, axes), indices, v)
    return out


def _gather_transpose(out_bars: Any, accs: dict, args: Any, *, axes: tuple) -> dict:
    (y_bar,), (x, *indices) = out_bars, args
    if y_bar is None:
        return accs
    acc = zeros(x.type.plain) if accs[0] is None else accs[0]
    return {**accs, 0: scatter_add(acc, y_bar, *indices, axes=axes)}


def _last_writer(x: Array, indices: Sequence[Any], axes: tuple) -> Any:
    """Bool of the indices' shape: whether no later index names the same place. Costs O(indices): the table of
    writers is read only where it was written."""
    dims = indices[0].type.dims
    count: Any = 1
    for d in dims:
        count = count * d
    order = reshape(iota(length=count, dtype=i64), shape=dims)
    table = undefined(dtype=i64, shape=tuple(x.dims[a] for a in axes))
    whole = tuple(range(len(axes)))
    return eq(gather(scatter(table, order, *indices, axes=whole), *indices, axes=whole), order)


def _scatter_transpose(out_bars: Any, accs: dict, args: Any, *, axes: tuple, unique: bool = False) -> dict:
    (y_bar,), (x, v, *indices) = out_bars, args
    if y_bar is None:
        return accs
    accs = dict(accs)
    if 1 in accs:
        v_bar = gather(y_bar, *indices, axes=axes)
        if not unique and indices[0].type.dims:
            wins = _last_writer(x.type, indices, axes)
            wins = broadcast(wins, shape=v_bar.type.dims, axes=tuple(range(wins.type.ndim)))
            v_bar = select(wins, v_bar, like(v_bar, 0))
        accs[1] = accumulate(accs[1], v_bar)
    if 0 in accs:
        rest = scatter(y_bar, zeros(v.type.plain), *indices, axes=axes, unique=unique)
        accs[0] = accumulate(accs[0], rest)
    return accs


def _scatter_add_transpose(out_bars: Any, accs: dict, args: Any, *, axes: tuple, unique: bool = False) -> dict:
    (y_bar,), (_, _, *indices) = out_bars, args
    if y_bar is None:
        return accs
    accs = dict(accs)
    if 1 in accs:
        accs[1] = accumulate(accs[1], gather(y_bar, *indices, axes=axes))
    if 0 in accs:
        accs[0] = accumulate(accs[0], y_bar)
    return accs


def _gather_batch(size: DimLike, args: Any, batched: Any, *, axes: tuple) -> tuple | None:
    """Where indices differ by lane; if the arrays do too, the lane number is an index more."""
    x, *indices = args
    if not any(batched[1:]):
        return None
    indices = [expand_batch(size, i, b) for i, b in zip(indices, batched[1:])]
    if not batched[0]:
        return gather(x, *indices, axes=axes), True
    return gather(x, _lanes(indices[0].type.dims), *indices, axes=(0, *(a + 1 for a in axes))), True


def _scatter_batch(primitive: Any) -> Any:
    def batch(size: DimLike, args: Any, batched: Any, *, axes: tuple, unique: bool = False) -> tuple:
        x, v, *indices = args
        x, v = expand_batch(size, x, batched[0]), expand_batch(size, v, batched[1])
        inner = tuple(a + 1 for a in axes)
        if any(batched[2:]):
            indices = [expand_batch(size, i, b) for i, b in zip(indices, batched[2:])]
            lanes = _lanes(indices[0].type.dims)
            return primitive()(x, v, lanes, *indices, axes=(0, *inner), unique=unique), True
        rank = indices[0].type.ndim
        v = _permuted(v, (*range(1, rank + 1), 0, *range(rank + 1, v.type.ndim)))
        return primitive()(x, v, *indices, axes=inner, unique=unique), True

    return batch


gather: Primitive = Primitive(
    "gather",
    type=_gather_type,
    numpy=lambda x, *indices, axes: _front(x, axes)[indices],
    jvp=Together(),
    transpose=Accumulate(_gather_transpose),
    dims=Dims(_gather_dims, alone=True),
    batch=_gather_batch,
    native=Gather("gather"),
    doc="gather(x, *indices; axes): the elements of x at `indices` along `axes`; dims of the indices come "
    "first, then those of x that are left.",
)

scatter: Primitive = Primitive(
    "scatter",
    type=_scatter_type("scatter"),
    numpy=_scatter_numpy,
    jvp=Together(2),
    transpose=Accumulate(_scatter_transpose),
    dims=Dims(_scatter_dims),
    batch=_scatter_batch(lambda: scatter),
    native=Put("scatter"),
    doc="scatter(x, v, *indices; axes, unique): x with v written where gather would read; the last writer "
    "wins. `unique` promises that no place is named twice.",
)

scatter_add: Primitive = Primitive(
    "scatter_add",
    type=_scatter_type("scatter_add"),
    numpy=_scatter_add_numpy,
    jvp=Joint(_added_jvp(lambda: scatter_add)),
    transpose=Accumulate(_scatter_add_transpose),
    dims=Dims(_scatter_dims),
    batch=_scatter_batch(lambda: scatter_add),
    native=Put("scatter", "sum"),
    doc="scatter_add(x, v, *indices; axes, unique): x with v added where gather would read.",
)

__all__ = [
    "slice",
    "slice_update",
    "slice_add",
    "gather",
    "scatter",
    "scatter_add",
    "start",
    "accumulate",
    "broadcast_to",
]
