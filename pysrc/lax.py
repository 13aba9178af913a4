"""`metaphrase.lax`: the names of `jax.lax` that programs use, over NumPy arrays.

In: arrays and functions. Out: arrays. Control flow is in `_control`; the elementwise names are NumPy's own
functions, so NumPy's promotion applies (JAX's are stricter).

>>> dynamic_slice(np.arange(10), (7,), (5,))
array([5, 6, 7, 8, 9])
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special as _special_functions

from . import tree
from ._control import associative_scan, cond, fori_loop, map, scan, switch, while_loop  # noqa: F401
from ._implicit import custom_fixed_point, custom_linear_solve, custom_root  # noqa: F401
from ._special import erf_inv  # noqa: F401
from .api.collectives import (  # noqa: F401
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
)
from .ops.elementary import stop_gradient as _stop_gradient
from .ops.indexing import slice as _slice
from .ops.indexing import slice_update as _slice_update

# ---- elementwise, by NumPy's names ----------------------------------------------------------------------

abs, neg, sign, floor, ceil = np.abs, np.negative, np.sign, np.floor, np.ceil
exp, exp2, expm1, log, log1p, sqrt, cbrt = np.exp, np.exp2, np.expm1, np.log, np.log1p, np.sqrt, np.cbrt
sin, cos, tan, asin, acos, atan, atan2 = np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2
sinh, cosh, tanh, asinh, acosh, atanh = np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh
add, sub, mul, pow = np.add, np.subtract, np.multiply, np.power
max, min, nextafter, square, is_finite = np.maximum, np.minimum, np.nextafter, np.square, np.isfinite
eq, ne, lt, le, gt, ge = np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal
bitwise_and, bitwise_or, bitwise_xor, bitwise_not = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.bitwise_not)
shift_left, shift_right_arithmetic = np.left_shift, np.right_shift
real, imag, conj = np.real, np.imag, np.conj
erf, erfc, lgamma, digamma = (
    _special_functions.erf,
    _special_functions.erfc,
    _special_functions.gammaln,
    _special_functions.digamma,
)


def __getattr__(name: str) -> Any:
    from ._jax_names import missing

    raise missing(__name__, name)


class Precision(enum.Enum):
    """Accepted where JAX takes it; products are always computed in the precision of their operands."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def stop_gradient(x: Any) -> Any:
    """x, a constant for every derivative."""
    leaves, structure = tree.flatten(x)
    return structure.unflatten([_stop_gradient(leaf) for leaf in leaves])


def rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def integer_pow(x: Any, y: int) -> Any:
    return x**y


def logistic(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    from .nn import sigmoid

    return sigmoid(x)


class RoundingMethod(enum.IntEnum):
    """Where `round` takes halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """Nearest integers; halves away from zero, or to even."""
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return np.round(x)
    x = np.asarray(x)
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def _integers(x: Any, y: Any) -> bool:
    return np.asarray(x).dtype.kind in "iu" and np.asarray(y).dtype.kind in "iu"


def div(x: Any, y: Any) -> Any:
    """x / y; of integers the quotient cut towards zero, and -1 where y is 0."""
    if not _integers(x, y):
        return np.true_divide(x, y)
    x, y = np.asarray(x), np.asarray(y)
    zero = np.zeros_like(y)
    divisor = np.where(y == zero, np.ones_like(y), y)
    down = np.floor_divide(x, divisor)
    cut = (np.fmod(x, divisor) != 0) & ((x < 0) != (divisor < 0))
    return np.where(y == zero, ~zero, down + cut.astype(down.dtype))


def rem(x: Any, y: Any) -> Any:
    """What `div` leaves, with the sign of x; of integers x where y is 0."""
    if not _integers(x, y):
        return np.fmod(x, y)
    x, y = np.asarray(x), np.asarray(y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, np.ones_like(y), y)))


def complex(x: Any, y: Any) -> Any:
    """x + iy, of two floats of one dtype."""
    x, y = np.asarray(x), np.asarray(y)
    shape = np.broadcast_shapes(x.shape, y.shape)
    made = np.empty(shape, np.complex64 if x.dtype == np.float32 else np.complex128)
    made.real, made.imag = x, y  # x + 1j * y is NaN beside an infinite y
    return made[()]


def population_count(x: Any) -> Any:
    """How many bits are one."""
    x = np.asarray(x)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return np.bitwise_count(x.astype(unsigned)).astype(x.dtype)


def clamp(min: Any, x: Any, max: Any) -> Any:
    return np.minimum(np.maximum(x, min), max)


def shift_right_logical(x: Any, y: Any) -> Any:
    """Shift zeros in from the left, whatever the sign."""
    x = np.asarray(x)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return (x.astype(unsigned) >> np.asarray(y).astype(unsigned)).astype(x.dtype)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Elementwise choice between arrays of one shape and dtype."""
    on_true, on_false = np.asarray(on_true), np.asarray(on_false)
    if on_true.shape != on_false.shape or on_true.dtype != on_false.dtype:
        raise TypeError(
            f"lax.select chooses between arrays of one type, and got {on_true.dtype}{list(on_true.shape)} "
            f"and {on_false.dtype}{list(on_false.shape)}; np.where broadcasts and promotes"
        )
    return np.where(pred, on_true, on_false)


def select_n(which: Any, *cases: Any) -> Any:
    """cases[which], elementwise; `which` is bool for two cases, or an integer."""
    chosen = cases[0]
    for position, case in enumerate(cases[1:], start=1):
        chosen = np.where(which == position, case, chosen)
    return chosen


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    return np.asarray(operand).astype(new_dtype)


# ---- shapes ----------------------------------------------------------------------------------------------


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    return np.full(shape, fill_value, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    return np.full(np.shape(x) if shape is None else shape, fill_value, np.asarray(x).dtype if dtype is None else dtype)


def iota(dtype: Any, size: int) -> Any:
    return np.arange(size, dtype=dtype)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Any:
    """The index along `dimension`, at every element."""
    counts = np.reshape(
        np.arange(shape[dimension], dtype=dtype), [shape[dimension] if k == dimension else 1 for k in range(len(shape))]
    )
    return np.broadcast_to(counts, shape)


def reshape(operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> Any:
    return np.reshape(operand if dimensions is None else np.transpose(operand, dimensions), new_sizes)


def broadcast(operand: Any, sizes: Sequence[int]) -> Any:
    """New leading axes of these sizes."""
    return np.broadcast_to(operand, (*sizes, *np.shape(operand)))


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Any:
    """The axes of `operand` become `broadcast_dimensions` of an array of `shape`."""
    sizes = [1] * len(shape)
    for axis, dimension in enumerate(broadcast_dimensions):
        sizes[dimension] = np.shape(operand)[axis]
    return np.broadcast_to(np.reshape(operand, sizes), shape)


def expand_dims(array: Any, dimensions: Sequence[int]) -> Any:
    return np.expand_dims(array, tuple(dimensions))


def squeeze(array: Any, dimensions: Sequence[int]) -> Any:
    return np.squeeze(array, tuple(dimensions))


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    return np.transpose(operand, permutation)


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    return np.flip(operand, tuple(dimensions))


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Parts of these sizes along `axis`, which they fill."""
    ends = np.cumsum(np.asarray(sizes)).tolist()
    if not ends or ends[-1] != np.shape(operand)[axis]:
        raise ValueError(f"lax.split: the sizes {tuple(sizes)} do not fill axis {axis} of shape {np.shape(operand)}")
    return np.split(operand, ends[:-1], axis=axis)


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """The axes from `start_dimension` to before `stop_dimension` as one."""
    shape = np.shape(operand)
    first, last, _ = np.s_[start_dimension:stop_dimension].indices(len(shape))
    return np.reshape(operand, (*shape[:first], -1, *shape[last:]))


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    return np.concatenate(operands, axis=dimension)


# ---- slicing ---------------------------------------------------------------------------------------------


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Any:
    """A part between static bounds."""
    steps = [1] * len(start_indices) if strides is None else strides
    return operand[tuple(np.s_[a:b:s] for a, b, s in zip(start_indices, limit_indices, steps))]


def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Any:
    index: list[Any] = [np.s_[:]] * np.ndim(operand)
    index[axis] = np.s_[start_index:limit_index:stride]
    return operand[tuple(index)]


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    return slice_in_dim(operand, index, index + 1 or None, axis=axis) if keepdims else np.take(operand, index, axis)


def _clipped(start_indices: Any, shape: Sequence[Any], sizes: Sequence[Any]) -> list[Any]:
    """Starts moved so that the window lies inside, as JAX does; a negative start counts from the end."""
    starts = []
    for start, size, width in zip(start_indices, shape, sizes):
        start = np.asarray(start).astype(np.int64)
        start = np.where(start < 0, start + size, start)
        starts.append(np.minimum(np.maximum(start, 0), size - width))
    return starts


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Any:
    """A window of static sizes at a computed place; a window that would stick out is moved inside."""
    operand, sizes = np.asarray(operand), tuple(slice_sizes)
    if len(sizes) != operand.ndim or len(start_indices) != operand.ndim:
        raise TypeError(
            f"lax.dynamic_slice of an array of rank {operand.ndim} takes as many starts and sizes, and got "
            f"{len(start_indices)} starts and {len(sizes)} sizes"
        )
    for size, width in zip(operand.shape, sizes):
        if width > size:
            raise TypeError(
                f"lax.dynamic_slice of sizes {sizes} from an array of shape {operand.shape}: the window does "
                "not fit into it"
            )
    starts = _clipped(start_indices, operand.shape, sizes)
    return _slice(operand, *starts, shape=sizes, step=(1,) * len(sizes))


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Any:
    """A copy with the window at a computed place replaced by `update`."""
    operand, update = np.asarray(operand), np.asarray(update)
    if operand.dtype != update.dtype or operand.ndim != update.ndim:
        raise TypeError(
            f"lax.dynamic_update_slice puts an array into one of its dtype and rank, and got "
            f"{update.dtype}{list(update.shape)} for {operand.dtype}{list(operand.shape)}"
        )
    for size, width in zip(operand.shape, update.shape):
        if width > size:
            raise TypeError(
                f"lax.dynamic_update_slice of an update of shape {update.shape} into an array of shape "
                f"{operand.shape}: the update does not fit into it"
            )
    starts = _clipped(start_indices, operand.shape, update.shape)
    return _slice_update(operand, update, *starts, step=(1,) * operand.ndim)


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Any:
    operand = np.asarray(operand)
    axis = axis % operand.ndim
    sizes = tuple(slice_size if k == axis else size for k, size in enumerate(operand.shape))
    return dynamic_slice(operand, [start_index if k == axis else 0 for k in range(operand.ndim)], sizes)


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    row = dynamic_slice_in_dim(operand, index, 1, axis)
    return row if keepdims else np.squeeze(row, axis)


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Any:
    operand = np.asarray(operand)
    axis = axis % operand.ndim
    return dynamic_update_slice(operand, update, [start_index if k == axis else 0 for k in range(operand.ndim)])


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Any:
    operand, update = np.asarray(operand), np.asarray(update)
    if update.ndim < operand.ndim:
        update = np.expand_dims(update, axis)
    return dynamic_update_slice_in_dim(operand, update, index, axis)


# ---- reductions, order, products -------------------------------------------------------------------------


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    return np.flip(np.cumsum(np.flip(operand, axis), axis), axis) if reverse else np.cumsum(operand, axis)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    return np.flip(np.cumprod(np.flip(operand, axis), axis), axis) if reverse else np.cumprod(operand, axis)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    accumulate = np.maximum.accumulate
    return np.flip(accumulate(np.flip(operand, axis), axis), axis) if reverse else accumulate(operand, axis)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    accumulate = np.minimum.accumulate
    return np.flip(accumulate(np.flip(operand, axis), axis), axis) if reverse else accumulate(operand, axis)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    accumulate = np.logaddexp.accumulate
    return np.flip(accumulate(np.flip(operand, axis), axis), axis) if reverse else accumulate(operand, axis)


def reduce_sum(operand: Any, axes: Sequence[int]) -> Any:
    return np.sum(operand, axis=tuple(axes))


def reduce_prod(operand: Any, axes: Sequence[int]) -> Any:
    return np.prod(operand, axis=tuple(axes))


def reduce_max(operand: Any, axes: Sequence[int]) -> Any:
    return np.max(operand, axis=tuple(axes))


def reduce_min(operand: Any, axes: Sequence[int]) -> Any:
    return np.min(operand, axis=tuple(axes))


def reduce_and(operand: Any, axes: Sequence[int]) -> Any:
    return np.bitwise_and.reduce(operand, axis=tuple(axes))


def reduce_or(operand: Any, axes: Sequence[int]) -> Any:
    return np.bitwise_or.reduce(operand, axis=tuple(axes))


def reduce_xor(operand: Any, axes: Sequence[int]) -> Any:
    return np.bitwise_xor.reduce(operand, axis=tuple(axes))


def argmax(operand: Any, axis: int, index_dtype: Any = int) -> Any:
    return np.argmax(operand, axis=axis).astype(index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any = int) -> Any:
    return np.argmin(operand, axis=axis).astype(index_dtype)


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """An array sorted along `dimension`; a sequence of arrays in the order of its first `num_keys`."""
    if not isinstance(operand, (tuple, list)):
        return np.sort(operand, axis=dimension, kind="stable")
    if not 1 <= num_keys <= len(operand):
        raise ValueError(f"lax.sort of {len(operand)} arrays takes 1 to {len(operand)} keys, not {num_keys}")
    arrays = [np.moveaxis(np.asarray(a), dimension, -1) for a in operand]
    order = np.argsort(arrays[num_keys - 1], axis=-1, kind="stable")
    for key in arrays[: num_keys - 1][::-1]:
        order = np.take_along_axis(order, np.argsort(np.take_along_axis(key, order, -1), -1, "stable"), -1)
    return tuple([np.moveaxis(np.take_along_axis(a, order, -1), -1, dimension) for a in arrays])


def top_k(operand: Any, k: int, *, axis: int = -1) -> tuple[Any, Any]:
    """The k largest along an axis, largest first, and where they are; among equals the first come first. NaN is larger
    than all numbers, as in JAX."""
    operand = np.asarray(operand)
    rising = np.flip(np.argsort(np.flip(operand, axis), axis=axis, kind="stable"), axis)
    places = slice_in_dim(operand.shape[axis] - 1 - rising, 0, k, axis=axis)
    return np.take_along_axis(operand, places, axis), places


def dot(lhs: Any, rhs: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    product = np.dot(lhs, rhs)
    return product if preferred_element_type is None else product.astype(preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    return np.matmul(lhs, rhs)


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """Sum over the paired axes of contraction, elementwise over the paired batch axes, outer over the
    rest."""
    (left_sum, right_sum), (left_batch, right_batch) = dimension_numbers
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    left = list(letters[: np.ndim(lhs)])
    right = list(letters[np.ndim(lhs) : np.ndim(lhs) + np.ndim(rhs)])
    for a, b in (*zip(left_sum, right_sum), *zip(left_batch, right_batch)):
        right[b] = left[a]
    out = [left[a] for a in left_batch]
    out += [letter for a, letter in enumerate(left) if a not in (*left_sum, *left_batch)]
    out += [letter for b, letter in enumerate(right) if b not in (*right_sum, *right_batch)]
    product = np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", lhs, rhs)
    return product if preferred_element_type is None else product.astype(preferred_element_type)
