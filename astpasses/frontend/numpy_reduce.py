"""Reductions, running reductions, extremes, sorting.

In: arrays and `axis`, `keepdims`, `dtype`, `ddof`. Out: NumPy scalars or arrays, in NumPy's result dtypes.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.core.dims import product
from metaphrase.core.primitive import Primitive
from metaphrase.core.types import is_inexact
from metaphrase.ops.compare import ne
from metaphrase.ops.reduce import argmax as core_argmax
from metaphrase.ops.reduce import argmin as core_argmin
from metaphrase.ops.reduce import reduce_all, reduce_any, reduce_max, reduce_min, reduce_prod, reduce_sum
from metaphrase.ops.scan import cumprod as core_cumprod
from metaphrase.ops.scan import cumsum as core_cumsum
from metaphrase.ops.shape import broadcast, reshape
from metaphrase.ops.sorting import argsort as core_argsort
from metaphrase.ops.sorting import searchsorted as core_searchsorted
from metaphrase.ops.sorting import sort as core_sort

from .arithmetic import dims_of, dtype_of, operand
from .calls import call_value, handles
from .creation import array_from, dtype_given
from .session import Session, session
from .values import StagedArray


def as_array(value: Any) -> StagedArray:
    """Numbers as arrays of rank 0, lists as arrays."""
    value = operand(value)
    if isinstance(value, StagedArray):
        return value
    here = session()
    if not hasattr(value, "dtype") and not isinstance(value, (int, float, complex)):
        return array_from(value)
    return new_array(here, here.atom(value))


def new_array(here: Session, atom: Any) -> StagedArray:
    from .values import Box
    return StagedArray(Box(here, atom))


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """`axis` as sorted, non-negative axes."""
    if axis is None:
        return tuple(range(rank))
    items = axis if isinstance(axis, (tuple, list)) else (axis,)
    out = []
    for item in items:
        item = int(item)
        if not -rank <= item < rank:
            raise np.exceptions.AxisError(item, rank)
        out.append(item % rank)
    if len(set(out)) != len(out):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(out))


def reduce_by(primitive: Primitive, x: StagedArray, dtype: Any, axis: Any, keepdims: bool, out: Any = None,
              **attributes: Any) -> Any:
    here = session()
    axes = axes_of(axis, x.ndim)
    atom = here.atom(x, dtype)
    made = here.emit(primitive, atom, axes=axes, **attributes) if axes else atom
    if keepdims:
        made = here.emit(reshape, made, shape=tuple(1 if k in axes else d for k, d in enumerate(x.type.dims)))
    result = here.wrap(made)
    if out is not None:
        from .numpy_calls import store_out
        return store_out(out, result)
    return result


def _total_dtype(x: Any, dtype: Any) -> np.dtype:
    """Sums of bools and small integers are made in 64 bits."""
    if dtype is not None:
        return dtype_given(dtype)
    if x.dtype.kind == "b" or x.dtype.kind == "i":
        return np.dtype("int64")
    return np.dtype("uint64") if x.dtype.kind == "u" else x.dtype


def _where(x: StagedArray, where: Any, neutral: Any) -> StagedArray:
    return x if where is True else as_array(call_value(np.where, (where, x, neutral), {}))


@handles(np.sum)
def sum_(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = 0,
         where: Any = True) -> Any:
    x = _where(as_array(a), where, 0)
    total = reduce_by(reduce_sum, x, _total_dtype(x, dtype), axis, bool(keepdims), out)
    return total if isinstance(initial, int) and initial == 0 else total + initial


@handles(np.prod)
def prod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = 1,
         where: Any = True) -> Any:
    x = _where(as_array(a), where, 1)
    total = reduce_by(reduce_prod, x, _total_dtype(x, dtype), axis, bool(keepdims), out)
    return total if isinstance(initial, int) and initial == 1 else total * initial


def _extreme(primitive: Primitive, name: str) -> Callable:
    def handler(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
                where: Any = True) -> Any:
        x = as_array(a)
        if where is not True:
            x = _where(x, where, initial)
        axes = axes_of(axis, x.ndim)
        if initial is None and any(isinstance(x.type.dims[k], int) and x.type.dims[k] == 0 for k in axes):
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        made = reduce_by(primitive, x, x.dtype, axis, bool(keepdims), out)
        if initial is None:
            return made
        return call_value(np.maximum if primitive is reduce_max else np.minimum, (made, initial), {})
    return handler


handles(np.max, np.amax)(_extreme(reduce_max, "maximum"))
handles(np.min, np.amin)(_extreme(reduce_min, "minimum"))


def _logical(primitive: Primitive) -> Callable:
    def handler(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, where: Any = True) -> Any:
        x = _where(as_array(a), where, primitive is reduce_all)
        if x.dtype != bool:
            here = session()
            atom = x.read()
            zero = literal(0, x.dtype)
            zero = here.emit(broadcast, zero, shape=x.type.dims, axes=()) if x.ndim else zero
            x = new_array(here, here.emit(ne, atom, zero))
        return reduce_by(primitive, x, np.dtype(bool), axis, bool(keepdims), out)
    return handler


handles(np.any)(_logical(reduce_any))
handles(np.all)(_logical(reduce_all))


def _position(primitive: Primitive) -> Callable:
    def handler(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x = as_array(a)
        if any(isinstance(d, int) and d == 0 for d in x.type.dims):
            raise ValueError(f"attempt to get {primitive.name} of an empty sequence")
        if axis is None:
            made = reduce_by(primitive, x.ravel(), x.dtype, 0, False)
            if keepdims:
                made = as_array(made).reshape((1,) * x.ndim)
            return made
        return reduce_by(primitive, x, x.dtype, axis, bool(keepdims))
    return handler


handles(np.argmax)(_position(core_argmax))
handles(np.argmin)(_position(core_argmin))


# --- means ----------------------------------------------------------------------------------------------------------

def _mean_dtype(x: Any, dtype: Any) -> np.dtype:
    if dtype is not None:
        return dtype_given(dtype)
    return x.dtype if is_inexact(x.dtype) else np.dtype("float64")


def _count(x: StagedArray, axis: Any) -> Any:
    return session().size(product(x.type.dims[k] for k in axes_of(axis, x.ndim)))


@handles(np.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *,
         where: Any = True) -> Any:
    x = as_array(a)
    kind = _mean_dtype(x, dtype)
    if where is not True:
        counted = call_value(np.broadcast_to, (where, x.shape), {})
        return sum_(x, axis, kind, None, keepdims, where=where) / sum_(counted, axis, kind, None, keepdims)
    made = reduce_by(reduce_sum, x, kind, axis, bool(keepdims)) / _count(x, axis)
    if out is not None:
        from .numpy_calls import store_out
        return store_out(out, made)
    return made


@handles(np.var)
def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False,
        **ignored: Any) -> Any:
    x = as_array(a)
    kind = _mean_dtype(x, dtype)
    x = x.astype(kind) if x.dtype != kind else x
    apart = x - mean(x, axis, keepdims=True)
    squares = apart * apart if kind.kind != "c" else abs(apart) ** 2
    count = _count(x, axis)
    rest = count - ddof if ddof else count
    return reduce_by(reduce_sum, as_array(squares), squares.dtype, axis, bool(keepdims)) / rest


@handles(np.std)
def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False,
        **ignored: Any) -> Any:
    return call_value(np.sqrt, (var(a, axis, dtype, None, ddof, keepdims),), {})


@handles(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    x, w = as_array(a), as_array(weights)
    if w.ndim != x.ndim and axis is not None:
        shape = [1] * x.ndim
        shape[axes_of(axis, x.ndim)[0]] = w.shape[0]
        w = w.reshape(tuple(shape))
    total = sum_(w, axis, keepdims=keepdims) if w.ndim == x.ndim and dims_of(w) == dims_of(x) else sum_(w)
    made = sum_(x * w, axis, keepdims=keepdims) / total
    return (made, total) if returned else made


@handles(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    x = as_array(a)
    return x.max(axis=axis, keepdims=keepdims) - x.min(axis=axis, keepdims=keepdims)


@handles(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    x = as_array(a)
    return sum_(x if x.dtype == bool else x != 0, axis, keepdims=keepdims)


@handles(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    x = as_array(a)
    x = x.ravel() if axis is None else x
    axis = 0 if axis is None else axes_of(axis, x.ndim)[0]
    x = x.astype(_mean_dtype(x, None)) if not is_inexact(x.dtype) else x
    ordered = sort(x, axis)
    n = ordered.shape[axis]
    lead = (slice(None),) * axis
    low, high = ordered[(*lead, (n - 1) // 2)], ordered[(*lead, n // 2)]
    made = (low + high) / 2
    nan = call_value(np.isnan, (ordered[(*lead, n - 1)],), {})
    return call_value(np.where, (nan, np.nan, made), {}) if as_array(made).ndim else call_value(
        np.where, (nan, np.nan, made), {})[()]


# --- running reductions and sorting ---------------------------------------------------------------------------------

def _running(primitive: Primitive) -> Callable:
    def handler(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        here, x = session(), as_array(a)
        x = x.ravel() if axis is None else x
        axis = 0 if axis is None else axes_of(axis, x.ndim)[0]
        made = here.array(here.emit(primitive, here.atom(x, _total_dtype(x, dtype)), axis=axis, reverse=False))
        if out is not None:
            from .numpy_calls import store_out
            return store_out(out, made)
        return made
    return handler


cumsum, cumprod = _running(core_cumsum), _running(core_cumprod)
handles(np.cumsum)(cumsum)
handles(np.cumprod)(cumprod)


def accumulate(function: np.ufunc, x: Any, axis: int) -> Any:
    """`np.maximum.accumulate` and its like."""
    from metaphrase.ops import scan
    here = session()
    table = {np.add: core_cumsum, np.multiply: core_cumprod, np.maximum: scan.cummax, np.minimum: scan.cummin}
    return here.array(here.emit(table[function], x.read(), axis=axes_of(axis, x.ndim)[0], reverse=False))


@handles(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, **ignored: Any) -> StagedArray:
    here, x = session(), as_array(a)
    x = x.ravel() if axis is None else x
    return here.array(here.emit(core_sort, x.read(), axis=axes_of(-1 if axis is None else axis, x.ndim)[0]))


@handles(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, **ignored: Any) -> StagedArray:
    here, x = session(), as_array(a)
    x = x.ravel() if axis is None else x
    return here.array(here.emit(core_argsort, x.read(), axis=axes_of(-1 if axis is None else axis, x.ndim)[0]))


@handles(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    here, x, y = session(), as_array(a), as_array(v)
    dtype = np.result_type(x.dtype, dtype_of(operand(v)) if not isinstance(dtype_of(operand(v)), type)
                           else dtype_of(operand(v))(0))
    return here.wrap(here.emit(core_searchsorted, here.atom(x, dtype), here.atom(y, dtype), right=side == "right"))


BY_UFUNC: dict[np.ufunc, Callable] = {
    np.add: sum_, np.multiply: prod, np.maximum: _extreme(reduce_max, "maximum"),
    np.minimum: _extreme(reduce_min, "minimum"), np.logical_and: _logical(reduce_all),
    np.logical_or: _logical(reduce_any)}
