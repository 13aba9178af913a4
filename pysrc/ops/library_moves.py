"""NumPy's functions that move elements or repeat them: flip, rot90, roll, repeat, tile, resize.

In: operands as a user gave them (see promotion.py) and static parameters. Out: core atoms.

    later = roll(x, 1, axis=0)
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dims import Dim, product
from ..core.dims import mod as size_mod
from ..core.ir import Atom, Literal
from ..core.types import i64
from ..source import ShapeError, UnsupportedError
from .arithmetic import mod, sub
from .arrays import iota
from .indexing import slice as slice_region
from .indexing import start
from .library_shapes import concatenate, in_a_row, part, ravel, reshape, reshaped, swapaxes
from .limits import repeat_count
from .promotion import Operand, axes_of, axis_of, lift, result_type, scalar_dim, shape_of, to_dtype
from .promotion import broadcast_to as broadcast_atom
from .shape import broadcast
from .shape import reshape as reshape_primitive
from .shape import roll as roll_primitive


def flip(x: Operand, axis: Any = None) -> Atom:
    x = lift(x)
    dims, axes = x.type.dims, axes_of(axis, x.type.ndim)
    if not axes:
        return x
    first = [start(d - 1) if k in axes else start(0) for k, d in enumerate(dims)]
    return slice_region(x, *first, shape=dims, step=tuple(-1 if k in axes else 1 for k in range(len(dims))))


def fliplr(x: Operand) -> Atom:
    return flip(x, 1)


def flipud(x: Operand) -> Atom:
    return flip(x, 0)


def rot90(x: Operand, k: int = 1, axes: Sequence[int] = (0, 1)) -> Atom:
    x = lift(x)
    a, b = (axis_of(v, x.type.ndim) for v in axes)
    turns = {
        0: lambda: x,
        1: lambda: swapaxes(flip(x, b), a, b),
        2: lambda: flip(x, (a, b)),
        3: lambda: flip(swapaxes(x, a, b), b),
    }
    return turns[k % 4]()


def roll(x: Operand, shift: Any, axis: Any = None) -> Atom:
    x = lift(x)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.type.dims)
    axes = [axis_of(a, x.type.ndim) for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    shifts = list(shift) if isinstance(shift, (list, tuple)) else [shift] * len(axes)
    for a, s in zip(axes, shifts):
        x = _rolled(x, s, a)
    return x


def _rolled(x: Atom, shift: Any, axis: int) -> Atom:
    size = x.type.dims[axis]
    if isinstance(shift, Literal):
        shift = shift.value
    if isinstance(shift, (int, np.integer)):
        return roll_primitive(x, shift=int(shift), axis=axis) if shift != 0 else x
    if isinstance(shift, Dim):
        cut = size_mod(-shift, size)
        parts = [part(x, axis, cut, size - cut), part(x, axis, 0, cut)]
        return concatenate(parts, axis) if cut != 0 else x
    where = mod(
        sub(iota(length=size, dtype=i64), broadcast_atom(to_dtype(shift, i64), (size,))),
        broadcast_atom(scalar_dim(size, i64), (size,)),
    )
    from .library_search import take

    return take(x, where, axis, checked=True)


def repeat(x: Operand, repeats: Any, axis: Any = None) -> Atom:
    x = lift(x)
    x = in_a_row(x, axis)
    axis = axis_of(0 if axis is None else axis, x.type.ndim)
    if isinstance(repeats, (list, tuple, np.ndarray)):
        counts = np.asarray(repeats)
        if counts.size != 1:
            if counts.shape != (x.type.dims[axis],):
                raise ShapeError(f"{counts.size} counts do not fit {x.type.dims[axis]} elements", code="repeat")
            from .library_search import take

            return take(x, np.repeat(np.arange(counts.size), counts), axis, checked=True)
        repeats = int(counts.ravel()[0])
    elif not isinstance(repeats, Dim) and result_type(repeats).kind == "b":
        repeats = to_dtype(repeats, i64)
    dims = x.type.dims
    times = repeat_count(repeats, dims[axis])
    wide = broadcast(
        x,
        shape=(*dims[: axis + 1], times, *dims[axis + 1 :]),
        axes=tuple(k if k <= axis else k + 1 for k in range(len(dims))),
    )
    return reshape_primitive(wide, shape=(*dims[:axis], dims[axis] * times, *dims[axis + 1 :]))


def tile(x: Operand, reps: Any) -> Atom:
    x, times = lift(x), shape_of(reps)
    rank = builtins.max(x.type.ndim, len(times))
    times = (1,) * (rank - len(times)) + times
    dims = (1,) * (rank - x.type.ndim) + x.type.dims
    x = reshaped(x, dims)
    shape = tuple(d for pair in zip(times, dims) for d in pair)
    wide = broadcast(x, shape=shape, axes=tuple(range(1, 2 * rank, 2)))
    return reshaped(wide, tuple(t * d for t, d in zip(times, dims)))


def resize(x: Operand, new_shape: Any) -> Atom:
    x, shape = ravel(x), shape_of(new_shape)
    size, total = x.type.dims[0], product(shape)
    if not isinstance(size, int) or not isinstance(total, int):
        raise UnsupportedError("resize needs known sizes", code="resize")
    if not size:
        return broadcast_atom(to_dtype(0, x.type.dtype), shape)
    return reshape(part(tile(x, -(-total // size)), 0, 0, total), shape)
