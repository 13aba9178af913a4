"""Arrays put together: `concatenate` and `pad`.

In: arrays; static axis and widths. Out: one array.

    c: f64[m + n] = concatenate(a, b, axis=0)
    p: f64[n + 3] = pad(x, 0.0, low=(1,), high=(2,), interior=(0,))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.build import literal
from ..core.dims import DimLike, dim_max
from ..core.native import Move, Piece
from ..core.primitive import Accumulate, Primitive, Together
from ..core.relation import ALONG, Dims, Relation
from ..core.types import Array
from .arrays import zeros
from .compare import select
from .families import expand_batch, require
from .indexing import accumulate, region, slice, slice_update, start
from .reduce import reduce_sum
from .shape import broadcast


def _concatenate_type(*xs: Array, axis: int) -> Array:
    require(len(xs) > 0 and 0 <= axis < xs[0].ndim, lambda: f"concatenate: axis {axis} does not fit {xs}")
    first, total = xs[0], xs[0].dims[axis]
    for x in xs[1:]:
        fits = x.ndim == first.ndim and all(d == e for k, (d, e) in enumerate(zip(x.dims, first.dims)) if k != axis)
        require(x.dtype == first.dtype and fits, f"concatenate: {x} does not fit {first} along axis {axis}")
        total = total + x.dims[axis]
    return first.with_dims((*first.dims[:axis], total, *first.dims[axis + 1 :]))


def _concatenate_transpose(out_bars: Any, accs: dict, args: Any, *, axis: int) -> dict:
    (y_bar,) = out_bars
    if y_bar is None:
        return accs
    accs, offset = dict(accs), 0
    for position, x in enumerate(args):
        if position in accs:
            first = [offset if k == axis else 0 for k in range(x.type.ndim)]
            part = slice(y_bar, *map(start, first), shape=x.type.dims, step=(1,) * x.type.ndim)
            accs[position] = accumulate(accs[position], part)
        offset = offset + x.type.dims[axis]
    return accs


def _concatenate_pieces(index: tuple, types: Any, *, axis: int) -> tuple:
    pieces, offset = [], 0
    for position, type_ in enumerate(types):
        inner = tuple(i - offset if k == axis else i for k, i in enumerate(index))
        end = offset + type_.dims[axis]
        pieces.append(Piece(position, inner, ((offset, index[axis], end),)))
        offset = end
    return tuple(pieces)


concatenate = Primitive(
    "concatenate",
    type=_concatenate_type,
    numpy=lambda *xs, axis: np.concatenate(xs, axis=axis),
    jvp=Together(None),
    transpose=Accumulate(_concatenate_transpose),
    dims=ALONG,
    native=Move(_concatenate_pieces),
    doc="The operands one after another along `axis`.",
)


def padded(dim: DimLike, low: DimLike, high: DimLike, interior: int) -> DimLike:
    """The size of a padded dim: `interior` values between neighbours, `low` before, `high` after."""
    if interior == 0:
        return low + dim + high
    return low + dim_max(dim + (dim - 1) * interior, 0) + high


def _pad_type(x: Array, value: Array, *, low: tuple, high: tuple, interior: tuple) -> Array:
    require(
        len(low) == len(high) == len(interior) == x.ndim,
        lambda: f"pad: widths {low}, {high}, {interior} do not fit {x}",
    )
    require(value.dtype == x.dtype and not value.dims, lambda: f"pad: needs a {x.dtype} scalar to pad {x}, got {value}")
    require(all(not isinstance(w, int) or w >= 0 for w in (*low, *high, *interior)), "pad: widths are not negative")
    return x.with_dims(tuple(map(padded, x.dims, low, high, interior)))


def _pad_numpy(x: Any, value: Any, *, low: tuple, high: tuple, interior: tuple) -> Any:
    x = np.asarray(x)
    shape: Any = tuple(map(padded, x.shape, low, high, interior))
    out = np.full(shape, value, x.dtype)
    out[region(low, x.shape, tuple(i + 1 for i in interior))] = x
    return out[()]


def _pad_transpose(out_bars: Any, accs: dict, args: Any, *, low: tuple, high: tuple, interior: tuple) -> dict:
    (y_bar,), (x, _) = out_bars, args
    if y_bar is None:
        return accs
    accs, first, step = dict(accs), tuple(map(start, low)), tuple(i + 1 for i in interior)
    if 0 in accs:
        accs[0] = accumulate(accs[0], slice(y_bar, *first, shape=x.type.dims, step=step))
    if 1 in accs:
        rest = slice_update(y_bar, zeros(x.type.plain), *first, step=step)
        accs[1] = accumulate(accs[1], reduce_sum(rest, axes=tuple(range(x.type.ndim))))
    return accs


def _pad_dims(x: Array, value: Array, *, low: tuple, high: tuple, interior: tuple) -> Relation:
    mapped = [k if low[k] == high[k] == interior[k] == 0 else None for k in range(x.ndim)]
    return (mapped, ()), (mapped,)


def _pad_batch(size: DimLike, args: Any, batched: Any, **how: tuple) -> tuple | None:
    """Where each lane has a value of its own to pad with."""
    x, value = args
    if not batched[1]:
        return None
    x = expand_batch(size, x, batched[0])
    how = {key: (0, *each) for key, each in how.items()}
    out = pad(x, literal(0, x.type.dtype), **how)
    inside = zeros(Array(np.dtype(bool), x.type.dims))
    border = pad(inside, literal(True), **how)
    return select(border, broadcast(value, shape=out.type.dims, axes=(0,)), out), True


def _pad_pieces(index: tuple, types: Any, *, low: tuple, high: tuple, interior: tuple) -> tuple:
    inner, guard = [], []
    for i, dim, first, between in zip(index, types[0].dims, low, interior):
        offset = i - first
        inner.append(offset // (between + 1))
        guard.append((0, offset, dim * (between + 1) - between))
        if between:
            guard.append((0, offset % (between + 1), 1))
    return Piece(0, tuple(inner), tuple(guard)), Piece(1, ())


pad = Primitive(
    "pad",
    type=_pad_type,
    numpy=_pad_numpy,
    jvp=Together(2),
    transpose=Accumulate(_pad_transpose),
    dims=Dims(_pad_dims, arrays=1),
    batch=_pad_batch,
    native=Move(_pad_pieces),
    doc="pad(x, value; low, high, interior): x with `value` before, after and between its elements.",
)

__all__ = ["concatenate", "pad"]
