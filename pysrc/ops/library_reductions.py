"""NumPy's functions that reduce or run along axes: sums, means, extremes, cumulative ones.

In: operands and static `axis`, `keepdims`, `dtype`. Out: core atoms.

    m = mean(x, axis=0, keepdims=True)
    s = std(x, ddof=1)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.build import known_facts, literal
from ..core.dims import dim_min, product
from ..core.ir import Atom
from ..core.primitive import Primitive
from ..core.types import i64, is_half
from ..source import DTypeError, ShapeError, SourceError, UnsupportedError
from . import reduce, scan
from .arithmetic import abs_ as absolute
from .arithmetic import add, div, integer_pow, max_, mul, sub
from .arrays import iota
from .compare import and_, eq, gt, ne, not_, select
from .complex_numbers import conj, imag, real
from .complex_order import running
from .effects import check
from .elementary import isfinite, isnan, sqrt
from .families import like
from .indexing import gather
from .library_shapes import in_a_row, part
from .promotion import (
    Operand,
    axes_of,
    axis_of,
    broadcast_to,
    folded_axes,
    inexact_dtype,
    lift,
    mask_of,
    scalar_dim,
    surely_differ,
    to_dtype,
    ufunc,
)
from .shape import broadcast, permute, reshape
from .structure import pad
from .sums import root_of_sum


def kept(y: Atom, x: Atom, axes: tuple, keepdims: Any) -> Atom:
    """The reduced array with dims of size 1 where `axes` were, if asked for."""
    if not keepdims or keepdims is np._NoValue:
        return y
    shape = tuple(1 if k in axes else d for k, d in enumerate(x.type.dims))
    return broadcast(y, shape=shape, axes=tuple(k for k in range(x.type.ndim) if k not in axes))


def respread(y: Atom, x: Atom, axes: tuple) -> Atom:
    """The reduced array over all of x's dims again."""
    return broadcast(y, shape=x.type.dims, axes=tuple(k for k in range(x.type.ndim) if k not in axes))


def _masked(x: Atom, where: Any, identity: Any) -> Atom:
    if where is True or where is np._NoValue:
        return x
    other = like(x, identity) if isinstance(identity, (int, bool)) else broadcast_to(identity, x.type.dims)
    return select(mask_of(where, x.type.dims), x, other)


def _given(value: Any) -> bool:
    return value is not None and value is not np._NoValue


def _sum_dtype(x: Atom, dtype: Any) -> np.dtype:
    if dtype is not None:
        return np.dtype(dtype)
    if x.type.dtype.kind in "bi" and x.type.dtype.itemsize < 8:
        return np.dtype(np.int64)
    if x.type.dtype.kind == "u" and x.type.dtype.itemsize < 8:
        return np.dtype(np.uint64)
    return x.type.dtype


def _folded(name: str, primitive: Primitive, combine: np.ufunc, identity: int) -> Callable[..., Atom]:
    def call(
        a: Operand, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
    ) -> Atom:
        x = lift(a)
        x = to_dtype(x, _sum_dtype(x, dtype))
        axes = folded_axes(axis, x.type.ndim)
        half = is_half(x.type.dtype) and primitive is reduce.reduce_sum
        working = to_dtype(x, np.float32) if half else x
        y = primitive(_masked(working, where, identity), axes=axes) if axes else _masked(working, where, identity)
        y = to_dtype(y, x.type.dtype)
        y = ufunc(combine, y, to_dtype(initial, x.type.dtype)) if _given(initial) else y
        return kept(y, x, axes, keepdims)

    call.__name__ = name
    return call


sum_ = _folded("sum", reduce.reduce_sum, np.add, 0)
prod = _folded("prod", reduce.reduce_prod, np.multiply, 1)


def _extreme(name: str, primitive: Primitive, combine: np.ufunc, lowest: bool) -> Callable[..., Atom]:
    def _complex_extreme(x: Atom, axes: tuple) -> Atom:
        """The element at the place of the extreme, so that derivatives are those of an element."""
        rest = tuple(k for k in range(x.type.ndim) if k not in axes)
        front = tuple(x.type.dims[k] for k in rest)
        rows = reshape(permute(x, axes=(*rest, *axes)), shape=(*front, product(x.type.dims[k] for k in axes)))
        place = _complex_position(rows, (len(front),), primitive)
        indices = [broadcast(iota(length=d, dtype=i64), shape=front, axes=(k,)) for k, d in enumerate(front)]
        return gather(rows, *indices, place, axes=tuple(range(len(front) + 1)))

    def call(a: Operand, axis: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Atom:
        x = lift(a)
        axes = folded_axes(axis, x.type.ndim)
        initial = to_dtype(initial, x.type.dtype) if _given(initial) else None
        if not _given(initial):
            message = f"zero-size array to reduction operation {combine.__name__} which has no identity"
            not_empty(x, axes, message, "pass initial=")
        if where is not True and where is not np._NoValue and not _given(initial):
            raise UnsupportedError(f"numpy.{name} with where= needs initial=", code="ufunc-where")
        x = _masked(x, where, initial)
        started = _started(x, axes, initial) if axes else x
        y = (_complex_extreme if x.type.dtype.kind == "c" else primitive)(started, axes=axes) if axes else x
        y = ufunc(combine, initial, y) if _given(initial) else y  # of 0.0 and -0.0 the second is the maximum
        return kept(y, x, axes, keepdims)

    call.__name__ = name
    return call


def _complex_position(x: Atom, axes: tuple, extreme: Primitive) -> Atom:
    """Where along the one axis the extreme first is: by the real part, then the imaginary one; NaNs come before all."""
    limit = -np.inf if extreme is reduce.reduce_max else np.inf
    missing = isnan(x)
    here = not_(missing)
    for share in (real(x), imag(x)):
        share = select(here, share, like(share, limit))
        here = and_(here, eq(share, respread(extreme(share, axes=axes), x, axes)))
    here = select(respread(reduce.reduce_any(missing, axes=axes), x, axes), missing, here)
    return reduce.argmax(here, axes=axes)


def not_empty(x: Atom, axes: tuple, message: str, remedy: str = "", error: type[SourceError] = ShapeError) -> None:
    """Refuse what has no elements along `axes`; where a size is only known at run time, check it there."""
    for size in (x.type.dims[k] for k in axes):
        if isinstance(size, int):
            if size == 0:
                raise error(message, remedy=remedy, code="empty")
        elif not known_facts().less(0, size):
            kind = "IndexError" if issubclass(error, IndexError) else "ValueError"
            check(gt(scalar_dim(size, i64), literal(0)), exception=kind, message=message)


def _started(x: Atom, axes: tuple, initial: Any) -> Atom:
    """x with an element `initial` more along each axis that may have none."""
    if not _given(initial):
        return x
    none = (0,) * x.type.ndim
    more = tuple(int(k in axes and not known_facts().less(0, d)) for k, d in enumerate(x.type.dims))
    return pad(x, to_dtype(initial, x.type.dtype), low=none, high=more, interior=none) if any(more) else x


amax = _extreme("max", reduce.reduce_max, np.maximum, True)
amin = _extreme("min", reduce.reduce_min, np.minimum, False)


def _truth(name: str, primitive: Primitive) -> Callable[..., Atom]:
    def call(a: Operand, axis: Any = None, keepdims: Any = False, where: Any = True) -> Atom:
        x = to_bool(a)
        axes = folded_axes(axis, x.type.ndim)
        x = _masked(x, where, name == "all")
        return kept(primitive(x, axes=axes) if axes else x, x, axes, keepdims)

    call.__name__ = name
    return call


def to_bool(a: Operand) -> Atom:
    """Whether each element is not zero."""
    x = lift(a)
    return x if x.type.dtype == bool else ne(x, like(x, 0))


any_, all_ = _truth("any", reduce.reduce_any), _truth("all", reduce.reduce_all)


def _position(name: str, primitive: Primitive, extreme: Primitive) -> Callable[..., Atom]:
    def call(a: Operand, axis: Any = None, keepdims: Any = False) -> Atom:
        x = lift(a)
        flat = in_a_row(x, axis)
        axes = (axis_of(0 if axis is None else axis, flat.type.ndim),)
        not_empty(flat, axes, f"attempt to get {name} of an empty sequence")
        y = primitive(flat, axes=axes) if flat.type.dtype.kind != "c" else _complex_position(flat, axes, extreme)
        return kept(y, x, folded_axes(axis, x.type.ndim), keepdims)

    call.__name__ = name
    return call


argmax = _position("argmax", reduce.argmax, reduce.reduce_max)
argmin = _position("argmin", reduce.argmin, reduce.reduce_min)


def ptp(a: Operand, axis: Any = None, keepdims: Any = False) -> Atom:
    return sub(amax(a, axis, keepdims), amin(a, axis, keepdims))


def count_nonzero(a: Operand, axis: Any = None, keepdims: Any = False) -> Atom:
    return sum_(to_bool(a), axis, i64, keepdims)


def _count(x: Atom, axes: tuple, where: Any, dtype: Any) -> Atom:
    """How many elements each reduction takes, as a number of `dtype`."""
    if where is True or where is np._NoValue:
        return scalar_dim(product(x.type.dims[k] for k in axes), dtype)
    return reduce.reduce_sum(to_dtype(mask_of(where, x.type.dims), dtype), axes=axes)


def mean(a: Operand, axis: Any = None, dtype: Any = None, keepdims: Any = False, where: Any = True) -> Atom:
    x = lift(a)
    result = np.dtype(dtype) if dtype is not None else inexact_dtype(x.type.dtype)
    working = np.dtype(np.float32) if is_half(result) else result
    x = to_dtype(x, working)
    axes = axes_of(axis, x.type.ndim)
    total = sum_(x, axes, where=where)
    if working == np.complex64:  # NumPy divides by an int64: in double precision
        total = to_dtype(total, np.complex128)
    y = div(total, broadcast_to(_count(x, axes, where, total.type.dtype), total.type.dims))
    return kept(to_dtype(y, result), x, axes, keepdims)


def average(a: Operand, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: Any = False) -> Any:
    x = lift(a)
    if weights is None:
        y = mean(x, axis, keepdims=keepdims)
        total = broadcast_to(_count(x, axes_of(axis, x.type.ndim), True, y.type.dtype), y.type.dims)
    else:
        w = lift(weights)
        if w.type.ndim != x.type.ndim or any(map(surely_differ, w.type.dims, x.type.dims)):
            if axis is None:
                words = "Axis must be specified when shapes of a and weights differ."
                raise DTypeError(words, remedy="give the weights the shape of what they weigh", code="axis")
            # an axis of the weights for each that is averaged
            named = [axis_of(k, x.type.ndim) for k in (axis if isinstance(axis, (list, tuple)) else (axis,))]
            if len(named) != w.type.ndim or any(
                surely_differ(size, x.type.dims[k]) for size, k in zip(w.type.dims, named)
            ):
                raise ShapeError(
                    "Shape of weights must be consistent with shape of a along specified axis.", code="shape"
                )
            sizes = dict(zip(named, w.type.dims))
            w = permute(w, axes=tuple(sorted(range(len(named)), key=named.__getitem__)))
            spread = tuple(sizes.get(k, 1) for k in range(x.type.ndim))
            w = broadcast_to(broadcast(w, shape=spread, axes=tuple(sorted(named))), x.type.dims)
        known = np.result_type(x.type.dtype, w.type.dtype)
        working = known if x.type.dtype.kind in "fc" else np.result_type(known, np.float64)
        weighted = ufunc(np.multiply, to_dtype(x, working), to_dtype(w, working))
        total = sum_(broadcast_to(to_dtype(w, weighted.type.dtype), x.type.dims), axis, keepdims=keepdims)
        check(
            ne(total, like(total, 0)), exception="ZeroDivisionError", message="Weights sum to zero, can't be normalized"
        )
        y = div(sum_(weighted, axis, keepdims=keepdims), total)
    return (y, total) if returned else y


def var(
    a: Operand,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Atom:
    x = lift(a)
    result = np.dtype(dtype) if dtype is not None else inexact_dtype(x.type.dtype)
    working = np.dtype(np.float32) if is_half(result) else result
    axes = axes_of(axis, x.type.ndim)
    of_reals = x.type.dtype.kind in "iuf"  # a complex dtype of real numbers gives complex results
    centre = _mean(x, axes, working, keepdims=True, where=where) if not _given(mean) else to_dtype(mean, working)
    working = np.result_type(working, np.complex64) if x.type.dtype.kind == "c" else working
    x, centre = to_dtype(x, working), to_dtype(centre, working)
    away = sub(x, broadcast_to(centre, x.type.dims))
    square = integer_pow(away, exponent=2) if of_reals or working.kind != "c" else real(mul(away, conj(away)))
    total = sum_(square, axes, where=where)
    count = _count(x, axes, where, square.type.dtype)
    ddof = correction if _given(correction) else ddof
    free = max_(sub(count, like(count, ddof)), like(count, 0)) if ddof else count
    y = div(total, broadcast_to(free, total.type.dims))
    y = to_dtype(y, result) if working.kind != "c" or dtype is not None else y
    return kept(y, x, axes, keepdims)


_mean = mean


def _root(squares: Atom) -> Atom:
    return sqrt(squares) if squares.type.dtype.kind == "c" else root_of_sum(squares)


def std(
    a: Operand,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Atom:
    return _root(var(a, axis, dtype, ddof, keepdims, where, mean, correction))


# --- without NaNs ------------------------------------------------------------------------------------------


def _without_nan(a: Operand, fill: Any) -> Atom:
    x = lift(a)
    return select(isnan(x), like(x, fill), x) if x.type.dtype.kind in "fc" else x


def nansum(
    a: Operand, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Atom:
    return sum_(_without_nan(a, 0), axis, dtype, keepdims, initial, where)


def nanprod(
    a: Operand, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Atom:
    return prod(_without_nan(a, 1), axis, dtype, keepdims, initial, where)


def _nan_extreme(x: Atom, axis: Any, keepdims: Any, initial: Any, where: Any, fill: float, function: Callable) -> Atom:
    if x.type.dtype.kind not in "fc":
        return function(x, axis, keepdims, initial, where)
    y = function(_without_nan(x, fill), axis, keepdims, initial, where)
    return y if _given(initial) else select(all_(isnan(x), axis, keepdims), like(y, np.nan), y)


def nanmax(a: Operand, axis: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Atom:
    return _nan_extreme(lift(a), axis, keepdims, initial, where, -np.inf, amax)


def nanmin(a: Operand, axis: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Atom:
    return _nan_extreme(lift(a), axis, keepdims, initial, where, np.inf, amin)


def _numbers(x: Atom, where: Any) -> Any:
    """`where`, without the places where x is NaN."""
    if x.type.dtype.kind not in "fc":
        return where
    numbers = not_(isnan(x))
    if where is True or not _given(where):
        return numbers
    return and_(numbers, mask_of(where, x.type.dims))


def nanmean(a: Operand, axis: Any = None, dtype: Any = None, keepdims: Any = False, where: Any = True) -> Atom:
    x = lift(a)
    return mean(x, folded_axes(axis, x.type.ndim), dtype, keepdims, _numbers(x, where))


def nanvar(
    a: Operand,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Atom:
    x = lift(a)
    return var(_without_nan(x, 0), axis, dtype, ddof, keepdims, _numbers(x, where), mean, correction)


def nanstd(
    a: Operand,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Atom:
    return _root(nanvar(a, axis, dtype, ddof, keepdims, where, mean, correction))


# --- cumulative --------------------------------------------------------------------------------------------


def _running(name: str, primitive: Primitive, widen: bool) -> Callable[..., Atom]:
    def call(a: Operand, axis: Any = None, dtype: Any = None) -> Atom:
        x = lift(a)
        x = to_dtype(x, _sum_dtype(x, dtype)) if widen else x
        x = in_a_row(x, axis)
        at = axis_of(0 if axis is None else axis, x.type.ndim)
        if x.type.dtype.kind == "c" and not widen:
            return running(np.maximum if primitive is scan.cummax else np.minimum, x, at)
        return primitive(x, axis=at, reverse=False)

    call.__name__ = name
    return call


cumsum, cumprod = _running("cumsum", scan.cumsum, True), _running("cumprod", scan.cumprod, True)


def _accumulated(primitive: Primitive, widen: bool) -> Callable[..., Atom]:
    def call(array: Operand, axis: Any = 0, dtype: Any = None) -> Atom:
        rank = lift(array).type.ndim
        if rank == 0:
            raise DTypeError("cannot accumulate on a scalar", remedy="give it an array", code="axis")
        if axis is None and rank > 1:
            raise ShapeError("accumulate does not allow multiple axes", remedy="give it one axis", code="axis")
        call = _running("accumulate", primitive, widen)
        if not widen and lift(array).type.dtype == bool:
            return to_dtype(call(to_dtype(array, np.int8), axis, dtype), bool)
        return call(array, axis, dtype)

    return call


add_accumulate, multiply_accumulate = _accumulated(scan.cumsum, True), _accumulated(scan.cumprod, True)
maximum_accumulate, minimum_accumulate = _accumulated(scan.cummax, False), _accumulated(scan.cummin, False)


def reduced_by(function: Callable[..., Atom]) -> Callable[..., Atom]:
    """`ufunc.reduce`: like the function, but over axis 0 unless told otherwise."""

    def call(
        array: Operand, axis: Any = 0, dtype: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
    ) -> Atom:
        given = {k: v for k, v in (("dtype", dtype), ("initial", initial)) if _given(v)}
        return function(array, axis, keepdims=keepdims, where=where, **given)

    return call


add_reduce, multiply_reduce = reduced_by(sum_), reduced_by(prod)
maximum_reduce, minimum_reduce = reduced_by(amax), reduced_by(amin)
logical_and_reduce, logical_or_reduce = reduced_by(all_), reduced_by(any_)


def nancumsum(a: Operand, axis: Any = None, dtype: Any = None) -> Atom:
    return cumsum(_without_nan(a, 0), axis, dtype)


# --- comparisons of whole arrays ---------------------------------------------------------------------------


def isclose(a: Operand, b: Operand, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Atom:
    dtype = np.result_type(*(lift(v).type.dtype for v in (a, b)), np.float32)
    x, y = broadcast_pair(to_dtype(a, dtype), to_dtype(b, dtype))
    size = absolute(y)
    limit = add(like(size, atol), mul(like(size, rtol), size))
    near = and_(ufunc(np.less_equal, absolute(sub(x, y)), limit), isfinite(y))
    near = ufunc(np.bitwise_or, near, eq(x, y))
    return ufunc(np.bitwise_or, near, and_(isnan(x), isnan(y))) if equal_nan else near


def broadcast_pair(a: Atom, b: Atom) -> list[Atom]:
    from .promotion import broadcast_arrays

    return broadcast_arrays(a, b)


def allclose(a: Operand, b: Operand, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Atom:
    return all_(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a: Operand, b: Operand, equal_nan: bool = False) -> Any:
    x, y = lift(a), lift(b)
    if x.type.ndim != y.type.ndim or any(map(surely_differ, x.type.dims, y.type.dims)):
        return literal(False)
    fits = literal(True)
    for axis, (a_size, b_size) in enumerate(zip(x.type.dims, y.type.dims)):
        if a_size != b_size:  # what both have is compared, and the sizes
            fits = and_(fits, eq(scalar_dim(a_size, i64), scalar_dim(b_size, i64)))
            shared = dim_min(a_size, b_size)
            x, y = part(x, axis, 0, shared), part(y, axis, 0, shared)
    same = ufunc(np.equal, x, y)
    if equal_nan and x.type.dtype.kind in "fc":
        same = ufunc(np.bitwise_or, same, and_(isnan(x), isnan(y)))
    return and_(fits, all_(same))
