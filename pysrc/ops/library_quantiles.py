"""NumPy's quantiles: places in the sorted elements, and what lies between two of them.

In: arrays and shares. Out: core atoms.

    m = median(x, axis=0)
    low, high = percentile(x, [5, 95])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.build import at_least, known_facts, literal
from ..core.dims import DimLike, floordiv, product
from ..core.ir import Atom
from ..core.types import i64, is_half
from ..source import DTypeError, OutOfBounds, UnsupportedError
from . import sorting
from .arithmetic import add, max_, min_, mul, sub
from .compare import and_, ge, select
from .complex_numbers import complex_, real
from .effects import check
from .elementary import ceil, floor, isnan, rint
from .families import like
from .library_elementwise import as_inexact, where
from .library_reductions import any_, not_empty
from .library_search import sort
from .library_shapes import concatenate, expand_dims, part, permuted, ravel, reshape, stack
from .promotion import Operand, axes_of, broadcast_to, inexact_dtype, is_weak, lift, scalar_dim, to_dtype, ufunc


def _rows(x: Atom, axis: Any) -> tuple[Atom, tuple[int, ...]]:
    """The elements to order in the last axis, and the axes that they come from."""
    axes = axes_of(axis, x.type.ndim)
    rest = [k for k in range(x.type.ndim) if k not in axes]
    rows = permuted(x, (*rest, *axes))
    if len(axes) != 1:
        front = tuple(x.type.dims[k] for k in rest)
        rows = reshape(rows, (*front, product(x.type.dims[k] for k in axes)))
    return rows, axes


def quantile(
    a: Operand,
    q: Operand,
    axis: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    refusal: str = "Quantiles must be in the range [0, 1]",
    weak: bool = False,
) -> Atom:
    """Linear interpolation between the sorted elements; lower, higher and nearest pick one of them, and so does linear
    at the ends, if they are given as integers. Places are computed in the type of the share, which has a part in the
    type of what is interpolated, but for a Python number."""
    x, share = lift(a), lift(q)
    given = x.type.dtype
    whole = share.type.dtype.kind in "biu" and method == "linear"
    picks = whole or method in ("nearest", "lower", "higher")
    if given.kind == "c":
        raise DTypeError("a must be an array of real numbers", code="dtype", remedy="take its real part")
    if given.kind == "b" and not picks:
        raise DTypeError(
            "a quantile of bools would subtract them", code="dtype", remedy="convert them with .astype first"
        )
    share = to_dtype(share, i64 if whole else inexact_dtype(share.type.dtype))
    working = inexact_dtype(given)
    if not (picks or weak or is_weak(q)):
        working = np.result_type(given, share.type.dtype)
    if given.kind != "f":
        x = to_dtype(x, working if not picks else np.int8 if given.kind == "b" else given)
    rows, axes = _rows(x, axis)
    *front, count = rows.type.dims
    last = len(front)
    missing = any_(isnan(rows), -1) if x.type.dtype.kind == "f" else None
    check(and_(ge(share, like(share, 0)), ge(like(share, 1), share)), exception="ValueError", message=refusal)
    place = _quantile_place(share, count, method)
    low, high = (place, place) if whole else (floor(place), ceil(place))
    if picks and not whole:
        low = high = rint(place) if method == "nearest" else low if method == "lower" else high
    message = f"index {0 if missing is None else -1} is out of bounds for axis 0 with size 0"
    not_empty(rows, (last,), message, "a quantile needs elements: test the size first", OutOfBounds)
    ranks = [moveaxis_back(x, share.type.ndim) for x in _ranks(rows, [low] if picks else [low, high])]
    below, above = ranks[0], ranks[-1]
    y = below
    if not picks:
        weight = sub(place, low) if method != "midpoint" else mul(sub(high, low), like(place, 0.5))
        weight = reshape(weight, (*weight.type.dims, *(1,) * last)) if last else weight
        gap, rest = sub(above, below), sub(like(weight, 1), weight)
        y = where(
            ufunc(np.less, weight, 0.5),
            ufunc(np.add, below, ufunc(np.multiply, to_dtype(weight, working), gap)),
            ufunc(np.subtract, above, ufunc(np.multiply, to_dtype(rest, working), gap)),
        )
        y = where(ufunc(np.equal, below, above), below, y)
    if missing is not None:
        y = where(missing, np.nan, y) if last else where(missing, like(y, np.nan), y)
    y = to_dtype(y, given if picks else working)
    return expand_dims(y, tuple(share.type.ndim + k for k in axes)) if keepdims else y


def _ranks(rows: Atom, places: list[Atom]) -> list[Atom]:
    """The elements that stand at places when each row is sorted, for each of some arrays of places that are alike."""
    last, dims = rows.type.ndim - 1, places[0].type.dims
    together = stack([to_dtype(p, i64) for p in places], axis=-1)  # those of one share side by side
    ranks = sorting.ranked(rows, ravel(together), axis=last)
    ranks = reshape(ranks, (*rows.type.dims[:last], *dims, len(places)))
    return [part(ranks, ranks.type.ndim - 1, k, 1, squeezed=True) for k in range(len(places))]


# alpha and beta of methods that interpolate (Hyndman & Fan, Sample quantiles in statistical packages, 1996)
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


def _quantile_place(share: Atom, count: DimLike, method: str) -> Atom:
    """Where in the sorted elements a quantile stands, counted from 0."""

    def number(d: DimLike) -> Atom:
        return broadcast_to(scalar_dim(d, share.type.dtype), share.type.dims)

    if method in ("linear", "lower", "higher", "midpoint", "nearest"):
        return mul(share, number(count - 1))
    if method not in _CONTINUOUS:
        raise UnsupportedError(
            f"quantile by {method!r} is not supported",
            remedy="use linear, lower, higher, midpoint, nearest or hazen",
            code="numpy-function",
        )
    alpha, beta = _CONTINUOUS[method]
    shift = add(like(share, alpha), mul(share, like(share, 1 - alpha - beta)))
    place = sub(add(mul(share, number(count)), shift), like(share, 1))
    return max_(min_(place, number(count - 1)), like(share, 0))


def moveaxis_back(x: Atom, count: int) -> Atom:
    """The last `count` axes in front."""
    rank = x.type.ndim
    return permuted(x, (*range(rank - count, rank), *range(rank - count)))


def percentile(
    a: Operand,
    q: Operand,
    axis: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Atom:
    return quantile(
        a,
        ufunc(np.true_divide, q, 100.0),
        axis,
        method=method,
        keepdims=keepdims,
        refusal="Percentiles must be in the range [0, 100]",
        weak=is_weak(q),
    )


def median(a: Operand, axis: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Atom:
    """The mean of the one or two in the middle; complex numbers are ordered by their real parts, then by the
    imaginary ones."""
    x = as_inexact(a)
    rows, axes = _rows(x, axis)
    last, count = rows.type.ndim - 1, rows.type.dims[-1]
    if x.type.dtype.kind == "c":
        not_empty(rows, (last,), "a median needs elements")
    elif not known_facts().less(0, count):  # there may be none: then the median is a NaN
        rows = concatenate(
            [rows, broadcast_to(literal(np.nan, rows.type.dtype), (*rows.type.dims[:-1], at_least(1 - count, 0)))],
            axis=last,
        )
        count = rows.type.dims[-1]
    missing = any_(isnan(rows), -1)
    places = dict.fromkeys(floordiv(d, 2) for d in (count - 1, count))
    if x.type.dtype.kind == "c":
        ordered = sort(rows, -1)
        middle = [part(ordered, last, place, 1, squeezed=True) for place in places]
    else:
        middle = _ranks(rows, [scalar_dim(place, i64) for place in places])
    wide = np.dtype(np.float32) if is_half(x.type.dtype) else x.type.dtype  # in which the sum is taken
    low, high = to_dtype(middle[0], wide), to_dtype(middle[-1], wide)
    y = to_dtype(mul(add(low, high), like(low, 0.5)), x.type.dtype)
    nothing = like(real(y), np.nan) if x.type.dtype.kind == "c" else like(y, np.nan)
    y = select(missing, complex_(nothing, nothing) if x.type.dtype.kind == "c" else nothing, y)
    return expand_dims(y, axes) if keepdims else y
