"""Arrays made by user code: `np.zeros`, `np.array`, `np.arange`, ... and casts like `np.float32(x)`.

In: shapes (with staged sizes), nested lists, scalars. Out: new staged arrays.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.core.dims import DimLike
from metaphrase.core.types import CoreTypeError, dtype_name
from metaphrase.ops.arithmetic import add, mul
from metaphrase.ops.arrays import iota
from metaphrase.ops.compare import eq
from metaphrase.ops.indexing import slice_update
from metaphrase.ops.shape import broadcast, convert, reshape
from metaphrase.ops.structure import concatenate

from .arithmetic import WEAK, dtype_of, is_number, spread
from .calls import handles, has_staged
from .joins import joined_number
from .session import Session, session
from .values import Number, StagedArray

_i64 = np.dtype("int64")
_KNOWN = 4096


def dtype_given(dtype: Any) -> np.dtype:
    """A dtype as user code spells it."""
    here = session()
    if isinstance(dtype, type) and dtype in WEAK:
        return WEAK[dtype]
    try:
        found = np.dtype(getattr(dtype, "dtype", dtype) if not isinstance(dtype, type) else dtype)
        dtype_name(found)
        return found
    except (TypeError, CoreTypeError) as error:
        raise here.dtype_error(str(error)) from None


def dims_given(here: Session, shape: Any) -> tuple:
    """A shape as user code spells it: an int or a sequence of ints, staged or not."""
    if isinstance(shape, StagedArray):
        shape = [shape[k] for k in range(len(shape))] if shape.ndim else [shape[()]]
    if isinstance(shape, (int, np.integer, Number)):
        shape = (shape,)
    dims = tuple(here.as_dim(d) for d in shape)
    if any(isinstance(d, int) and d < 0 for d in dims):
        raise ValueError("negative dimensions are not allowed")
    return dims


def filled(shape: Any, value: Any, dtype: Any = None) -> StagedArray:
    """An array of `shape` with `value` everywhere."""
    here = session()
    dims = dims_given(here, shape)
    if dtype is None:
        kind = dtype_of(value)
        dtype = WEAK[kind] if isinstance(kind, type) else kind
    atom = here.atom(value, dtype_given(dtype))
    return here.array(spread(here, atom, dims) if dims != atom.type.dims else atom)


@handles(np.zeros)
def zeros(shape: Any, dtype: Any = float, order: Any = "C", **ignored: Any) -> StagedArray:
    return filled(shape, 0, dtype_given(float if dtype is None else dtype))


@handles(np.empty)
def empty(shape: Any, dtype: Any = float, order: Any = "C", **ignored: Any) -> StagedArray:
    return zeros(shape, dtype)


@handles(np.ones)
def ones(shape: Any, dtype: Any = float, order: Any = "C", **ignored: Any) -> StagedArray:
    return filled(shape, 1, dtype_given(float if dtype is None else dtype))


@handles(np.full)
def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **ignored: Any) -> StagedArray:
    if isinstance(fill_value, (list, np.ndarray)):
        fill_value = array_from(fill_value)
    return filled(shape, fill_value, dtype)


def _like(value: Any) -> Callable:
    def handler(a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None,
                **ignored: Any) -> StagedArray:
        a = asarray(a)
        here = session()
        dims = a.type.dims if shape is None else dims_given(here, shape)
        dtype = a.dtype if dtype is None else dtype_given(dtype)
        return here.array(spread(here, literal(value, dtype), dims))
    return handler


handles(np.zeros_like, np.empty_like)(_like(0))
handles(np.ones_like)(_like(1))


@handles(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None,
              **ignored: Any) -> StagedArray:
    a = asarray(a)
    here = session()
    dims = a.type.dims if shape is None else dims_given(here, shape)
    atom = here.atom(fill_value, a.dtype if dtype is None else dtype_given(dtype))
    return here.array(spread(here, atom, dims))


# --- from values ----------------------------------------------------------------------------------------------------

def array_from(value: Any, dtype: Any = None) -> StagedArray:
    """A new array from a number, a nested list, or an array (which is copied)."""
    here = session()
    if isinstance(value, (list, tuple, range)) and has_staged(value):
        parts = [array_from(v) for v in value]
        kinds = [dtype_of(v) if is_number(v) else p.dtype for v, p in zip(value, parts)]
        if dtype is None:
            weak = [k for k in kinds if isinstance(k, type)]
            dtype = joined_number([k(0) for k in weak])[0] if len(weak) == len(kinds) else np.result_type(
                *[k(0) if isinstance(k, type) else k for k in kinds])
        dims = parts[0].type.dims
        for part in parts:
            if part.ndim != len(dims) or any(a != b and isinstance(a, int) and isinstance(b, int)
                                             for a, b in zip(part.type.dims, dims)):
                raise ValueError("setting an array element with a sequence. The requested array has an inhomogeneous "
                                 "shape")
        rows = [here.emit(reshape, here.atom(p, dtype), shape=(1, *dims)) for p in parts]
        return here.array(rows[0] if len(rows) == 1 else here.emit(concatenate, *rows, axis=0))
    if isinstance(value, (StagedArray, Number)):
        kind = dtype_given(dtype) if dtype is not None else value.dtype
        return here.array(here.atom(value, kind))
    known = np.array(value, None if dtype is None else dtype_given(dtype))
    return here.lift(known)


@handles(np.array)
def array(value: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", ndmin: int = 0,
          **ignored: Any) -> StagedArray:
    if copy is not True and isinstance(value, StagedArray):
        return asarray(value, dtype)
    made = array_from(value, dtype)
    while made.ndim < ndmin:
        made = made[None]
    return made


@handles(np.asarray, np.ascontiguousarray, np.asanyarray, np.asfortranarray)
def asarray(value: Any, dtype: Any = None, order: Any = None, **ignored: Any) -> StagedArray:
    if isinstance(value, np.ndarray):
        value = session().lift(value)
    if isinstance(value, StagedArray) and (dtype is None or dtype_given(dtype) == value.dtype):
        return value
    return array_from(value, dtype)


@handles(np.copy)
def copy(value: Any, **ignored: Any) -> StagedArray:
    return array_from(value)


def cast_scalar(cls: type, value: Any = 0) -> Any:
    """`np.float32(x)`: a NumPy scalar; of an array, an array."""
    if not has_staged(value):
        return cls(value) if not isinstance(value, (list, np.ndarray)) else array_from(value, np.dtype(cls))
    here = session()
    dtype = dtype_given(cls)
    if isinstance(value, (list, tuple)):
        return array_from(value, dtype)
    return here.wrap(here.atom(value, dtype))


# --- counting -------------------------------------------------------------------------------------------------------

@handles(np.arange)
def arange(*bounds: Any, dtype: Any = None, step: Any = None, **ignored: Any) -> StagedArray:
    here = session()
    bounds = tuple(b.item() if isinstance(b, StagedArray) else b for b in bounds)
    if len(bounds) == 4:
        bounds, dtype = bounds[:3], bounds[3]
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    stride = bounds[2] if len(bounds) > 2 else 1 if step is None else step
    numbers = (start, stop, stride)
    integral = all(isinstance(n, (int, np.integer)) or isinstance(n, Number) and n.dtype.kind in "iu"
                   for n in numbers)
    known = None
    if not has_staged(numbers):
        known = np.arange(start, stop, stride, dtype=None if dtype is None else dtype_given(dtype))
        length: DimLike = len(known)
        kind = known.dtype
    else:
        if not integral:
            from .demand import need_concrete
            need_concrete(next(n for n in numbers if isinstance(n, Number) and n.dtype.kind not in "iu"),
                          "a bound of np.arange", float)
        from .iteration import staged_range
        length = staged_range(here, start, stop, stride).length
        kind = _i64 if dtype is None else dtype_given(dtype)
    work = np.dtype("float64") if not integral else _i64
    count = here.emit(iota, length=length, dtype=work)
    made = _affine(here, count, start, stride, work)
    atom = here.emit(convert, made, dtype=kind) if made.type.dtype != kind else made
    out = here.array(atom)
    if known is not None and known.size <= _KNOWN:
        out.box.known = known
    return out


def _affine(here: Session, count: Any, start: Any, stride: Any, dtype: np.dtype) -> Any:
    """start + stride * count."""
    if isinstance(stride, Number) or stride != 1:
        count = here.emit(mul, count, spread(here, here.atom(stride, dtype), count.type.dims))
    if isinstance(start, Number) or start != 0:
        count = here.emit(add, count, spread(here, here.atom(start, dtype), count.type.dims))
    return count


@handles(np.linspace)
def linspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
             axis: int = 0) -> Any:
    here = session()
    length = here.as_dim(num)
    gaps = length - 1 if endpoint else length
    kind = np.result_type(*[d(0.0) if isinstance(d, type) else d for d in map(dtype_of, (start, stop))],
                          0.0) if has_staged((start, stop)) else np.dtype("float64")
    a, b = here.atom(start, kind), here.atom(stop, kind)
    first, last = here.wrap(a), here.wrap(b)
    if not (isinstance(start, StagedArray) or isinstance(stop, StagedArray)):
        step = (last - first) / gaps if not isinstance(gaps, int) or gaps > 0 else first * math.nan
        count = here.emit(iota, length=length, dtype=kind)
        scaled = here.emit(mul, count, spread(here, here.atom(step, kind), (length,)))
        made = here.emit(add, scaled, spread(here, a, (length,)))
        if endpoint and isinstance(length, int) and length > 1:
            end = here.emit(reshape, b, shape=(1,))
            made = here.emit(slice_update, made, end, literal(length - 1), step=(1,))
        if dtype is not None and dtype_given(dtype) != kind:
            made = here.emit(convert, made, dtype=dtype_given(dtype))
        return (here.array(made), step) if retstep else here.array(made)
    raise here.dtype_error("np.linspace between arrays is not supported", remedy="start + t[:, None] * (stop - start)")


@handles(np.eye)
def eye(n: Any, m: Any = None, k: int = 0, dtype: Any = float, **ignored: Any) -> StagedArray:
    here = session()
    rows = here.as_dim(n)
    columns = rows if m is None else here.as_dim(m)
    dims = (rows, columns)
    down = here.emit(broadcast, here.emit(iota, length=rows, dtype=_i64), shape=dims, axes=(0,))
    across = here.emit(broadcast, here.emit(iota, length=columns, dtype=_i64), shape=dims, axes=(1,))
    if k:
        down = here.emit(add, down, spread(here, literal(k), dims))
    return here.array(here.emit(convert, here.emit(eq, down, across), dtype=dtype_given(dtype)))


@handles(np.identity)
def identity(n: Any, dtype: Any = float, **ignored: Any) -> StagedArray:
    return eye(n, dtype=float if dtype is None else dtype)


@handles(np.tri)
def tri(n: Any, m: Any = None, k: int = 0, dtype: Any = float, **ignored: Any) -> StagedArray:
    rows, columns = arange(n), arange(n if m is None else m)
    return (rows[:, None] + k >= columns[None, :]).astype(dtype)


@handles(np.indices)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    here = session()
    dims = dims_given(here, dimensions)
    parts = [here.emit(broadcast, here.emit(iota, length=d, dtype=dtype_given(dtype)), shape=dims, axes=(k,))
             for k, d in enumerate(dims)]
    return array_from([here.array(p) for p in parts])
