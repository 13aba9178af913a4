"""Primitives that move elements without computing: broadcast, reshape, permute, roll, convert.

In: an array. Out: the same elements elsewhere (or in another dtype).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dims import mod, product
from ..core.native import Move, Piece, Point
from ..core.primitive import Primitive, Together, Zero
from ..core.relation import ALONG, Dims, Relation, places
from ..core.scalars import FREE, instruction
from ..core.types import Array, dtype_name, has_tangent
from .families import elementwise, require


def _broadcast_type(x: Array, *, shape: tuple, axes: tuple) -> Array:
    require(
        len(axes) == x.ndim and all(shape[a] == d for a, d in zip(axes, x.dims)),
        lambda: f"broadcast: {x} does not fit {shape} at axes {axes}",
    )
    require(list(axes) == sorted(set(axes)), lambda: f"broadcast: axes {axes} must increase")
    return Array(x.dtype, tuple(shape))


def _broadcast_numpy(x: Any, *, shape: tuple, axes: tuple) -> Any:
    x = np.asarray(x)
    full = x.reshape([shape[k] if k in axes else 1 for k in range(len(shape))])
    return np.broadcast_to(full, shape)[()] if shape else x[()]


def _broadcast_transpose(y_bar: Any, x: Any, *, shape: tuple, axes: tuple) -> Any:
    from .reduce import reduce_sum

    rest = tuple(k for k in range(len(shape)) if k not in axes)
    if all(shape[k] == 1 for k in rest):
        return reshape(y_bar, shape=x.type.dims) if rest else y_bar
    return reduce_sum(y_bar, axes=rest)


broadcast: Primitive = Primitive(
    "broadcast",
    type=_broadcast_type,
    numpy=_broadcast_numpy,
    jvp=Together(),
    transpose=(_broadcast_transpose,),
    dims=Dims(lambda x, *, shape, axes: ((axes,), (range(len(shape)),)), axes=places),
    native=Move(lambda index, types, *, shape, axes: (Piece(0, tuple(index[a] for a in axes)),)),
    doc="Repeat x: dim k of x becomes dim axes[k] of `shape`.",
)


def _reshape_type(x: Array, *, shape: tuple) -> Array:
    require(
        product(x.dims) == product(shape) or not isinstance(product(x.dims) - product(shape), int),
        lambda: f"reshape: {x} has {product(x.dims)} elements, {shape} has {product(shape)}",
    )
    return Array(x.dtype, tuple(shape))


def _reshape_pieces(index: tuple, types: Any, *, shape: tuple) -> tuple:
    """Dims that stay and dims of size 1 keep their own index; only what is merged or cut is counted."""
    dims, source = types[0].dims, []
    i = j = 0
    while i < len(dims):
        if dims[i] == 1:
            source.append(0)
            i += 1
        elif j < len(shape) and shape[j] == 1:
            j += 1
        else:
            p, q = _equal_group(dims[i:], shape[j:])
            source += [index[j]] if p == q == 1 else unravel(ravel(index[j : j + q], shape[j : j + q]), dims[i : i + p])
            i, j = i + p, j + q
    return (Piece(0, tuple(source)),)


def _reshape_dims(x: Array, *, shape: tuple) -> Relation:
    """The first dims that stay; what is merged or cut behind them is needed whole."""
    kept = next((k for k, (a, b) in enumerate(zip(x.dims, shape)) if a != b), min(x.ndim, len(shape)))
    rows = [[k if k < kept else None for k in range(rank)] for rank in (x.ndim, len(shape))]
    return rows[:1], rows[1:]


def _equal_group(dims: tuple, shape: tuple) -> tuple[int, int]:
    """The fewest leading dims on either side that hold equally many elements."""
    for total in range(2, len(dims) + len(shape) + 1):
        for p in range(max(1, total - len(shape)), min(len(dims), total - 1) + 1):
            if product(dims[:p]) == product(shape[: total - p]):
                return p, total - p
    return len(dims), len(shape)


reshape: Primitive = Primitive(
    "reshape",
    type=_reshape_type,
    numpy=lambda x, *, shape: np.reshape(x, shape)[()],
    jvp=Together(),
    transpose=(lambda y_bar, x, *, shape: reshape(y_bar, shape=x.type.dims),),
    dims=Dims(_reshape_dims),
    native=Move(_reshape_pieces),
    doc="The same elements in row-major order under another shape.",
)


def ravel(index: tuple, dims: tuple) -> Any:
    """The row-major position of `index` in an array of shape `dims`."""
    position: Any = 0
    for i, d in zip(index, dims):
        position = position * d + i
    return position


def unravel(position: Any, dims: tuple) -> tuple:
    """The index at a row-major position; where there are no elements, none is asked for."""
    if 0 in dims:
        return (0,) * len(dims)
    index: list[Any] = []
    for k, d in enumerate(dims):
        below = product(dims[k + 1 :])
        step = position // below if below != 1 else position
        index.append(step % d if k else step)
    return tuple(index)


def _permute_type(x: Array, *, axes: tuple) -> Array:
    require(sorted(axes) == list(range(x.ndim)), lambda: f"permute: {axes} is no permutation of the axes of {x}")
    return x.with_dims(tuple(x.dims[a] for a in axes))


def inverse(axes: tuple) -> tuple:
    """The permutation that undoes `axes`."""
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


permute: Primitive = Primitive(
    "permute",
    type=_permute_type,
    numpy=lambda x, *, axes: np.transpose(x, axes),
    jvp=Together(),
    transpose=(lambda y_bar, x, *, axes: permute(y_bar, axes=inverse(axes)),),
    dims=Dims(lambda x, *, axes: ((range(x.ndim),), (axes,)), axes=places),
    native=Move(lambda index, types, *, axes: (Piece(0, tuple(index[a] for a in inverse(axes))),)),
    doc="Transposition: dim k of the result is dim axes[k] of x.",
)


def _roll_type(x: Array, *, shift: int, axis: int) -> Array:
    require(0 <= axis < x.ndim, lambda: f"roll: {x} has no axis {axis}")
    return x.plain


def _roll_pieces(index: tuple, types: Any, *, shift: int, axis: int) -> tuple:
    place = mod(index[axis] - shift, types[0].dims[axis])
    return (Piece(0, (*index[:axis], place, *index[axis + 1 :])),)


roll: Primitive = Primitive(
    "roll",
    type=_roll_type,
    numpy=lambda x, *, shift, axis: np.roll(x, shift, axis),
    jvp=Together(),
    transpose=(lambda y_bar, x, *, shift, axis: roll(y_bar, shift=-shift, axis=axis),),
    dims=ALONG,
    native=Move(_roll_pieces),
    doc="Element i along `axis` is element i - shift of x; before the first stands the last one.",
)


def lanes_first(x: Any, at: int) -> Any:
    """x with axis `at` in front."""
    return permute(x, axes=(at, *range(at), *range(at + 1, x.type.ndim))) if at else x


def _convert_type(x: Array, *, dtype: np.dtype) -> Array:
    dtype_name(dtype)
    return x.plain.with_dtype(dtype)


def _convert_numpy(x: Any, *, dtype: np.dtype) -> Any:
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real  # complex to real drops the imaginary part, and NumPy would warn
    return x.astype(dtype)


def _bitcast_type(x: Array, *, dtype: np.dtype) -> Array:
    dtype_name(dtype)
    require(
        x.dtype.itemsize == dtype.itemsize and not {x.dtype.kind, dtype.kind} & set("bc"),
        lambda: f"bitcast: {x} can't be read as {dtype}",
    )
    return x.plain.with_dtype(dtype)


bitcast = elementwise(
    "bitcast",
    lambda x, *, dtype: np.asarray(x).view(dtype)[()],
    type=_bitcast_type,
    native=Point("bitcast"),
    scalar=instruction(FREE),
    jvp=(Zero,),
    doc="The same bits as another real dtype of the same width.",
)

convert: Primitive = elementwise(
    "convert",
    _convert_numpy,
    type=_convert_type,
    native=Point("convert"),
    scalar=instruction(FREE),
    jvp=(lambda x_dot, y, x, *, dtype: convert(x_dot, dtype=dtype) if has_tangent(y.type) else None,),
    transpose=(lambda y_bar, x, *, dtype: convert(y_bar, dtype=x.type.dtype),),
    doc="Change of dtype with NumPy's `astype` meaning.",
)
