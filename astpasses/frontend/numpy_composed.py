"""NumPy functions written with others: `where`, `clip`, logic, comparisons with a tolerance, small numerics.

In: staged values. Out: staged values. A ufunc is registered with `composed`, any other function with `handles`.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from metaphrase.core.types import is_inexact
from metaphrase.ops.compare import and_, not_, or_, select, xor
from metaphrase.ops.shape import convert

from .arithmetic import (
    SPELLED,
    WEAK,
    broadcast_dims,
    dims_of,
    dtype_of,
    elementwise,
    operand,
    spread,
    weak_type,
)
from .branches import truth_atom
from .calls import call_value, handles, has_staged
from .numpy_calls import composed
from .numpy_reduce import as_array
from .session import session
from .values import Number, StagedArray


def apply(function: Any, *args: Any, **keywords: Any) -> Any:
    """A NumPy function on staged values."""
    return call_value(function, args, keywords)


def bools(value: Any) -> Any:
    """A value as bools: what is not zero."""
    value = operand(value)
    if isinstance(value, (bool, np.bool_)) or getattr(value, "dtype", None) == bool:
        return value
    return value != 0


def _logic(primitive: Any) -> Any:
    def handler(*values: Any) -> Any:
        here = session()
        values = tuple(map(bools, values))
        dims = broadcast_dims([dims_of(v) for v in values])
        return here.wrap(here.emit(primitive, *(spread(here, here.atom(v, np.dtype(bool)), dims) for v in values)))
    return handler


composed(np.logical_and)(_logic(and_))
composed(np.logical_or)(_logic(or_))
composed(np.logical_xor)(_logic(xor))
composed(np.logical_not)(_logic(not_))


@handles(np.where)
def where_(condition: Any, x: Any = None, y: Any = None) -> Any:
    here = session()
    condition = operand(condition)
    if x is None and y is None:
        from .masks import nonzero
        return nonzero(here, as_array(condition))
    if not has_staged((condition, x, y)) and not any(isinstance(v, (np.ndarray, list)) for v in (condition, x, y)):
        return np.where(condition, x, y)
    test, a, b = bools(condition), operand(x), operand(y)
    kinds = [dtype_of(v) for v in (a, b)]
    dtype = np.result_type(*[k(0) if isinstance(k, type) else k for k in kinds])
    dims = broadcast_dims([dims_of(v) for v in (test, a, b)])
    flag = spread(here, here.atom(test, np.dtype(bool)), dims)
    out = here.emit(select, flag, *(spread(here, here.atom(v, dtype), dims) for v in (a, b)))
    return here.wrap(out) if dims else here.array(out)


@handles(np.nonzero)
def nonzero_(a: Any) -> tuple:
    from .masks import nonzero
    return nonzero(session(), as_array(a))


@handles(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    return nonzero_(as_array(a).ravel())[0]


@handles(np.argwhere)
def argwhere(a: Any) -> Any:
    return apply(np.stack, list(nonzero_(a)), axis=1)


@handles(np.select)
def select_(conditions: Any, choices: Any, default: Any = 0) -> Any:
    out = default
    for condition, choice in reversed(list(zip(conditions, choices))):
        out = where_(condition, choice, out)
    return out


@handles(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    index = as_array(a)
    items = list(choices)
    made = items[0]
    for k, item in enumerate(items[1:], start=1):
        made = where_(index == k, item, made)
    return made


@handles(np.clip)
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None,
         **ignored: Any) -> Any:
    low, high = a_min if min is None else min, a_max if max is None else max
    made = operand(a)
    if low is not None:
        made = apply(np.maximum, made, low)
    if high is not None:
        made = apply(np.minimum, made, high)
    if out is not None:
        from .numpy_calls import store_out
        return store_out(out, made)
    return made


# --- ufuncs without a primitive of their own ------------------------------------------------------------------------

@composed(np.square)
def square(x: Any) -> Any:
    return apply(np.multiply, x, x)


@composed(np.positive)
def positive(x: Any) -> Any:
    here = session()
    return here.wrap(here.atom(x)) if not isinstance(x, StagedArray) else here.wrap(x.read())


@composed(np.reciprocal)
def reciprocal(x: Any) -> Any:
    return apply(np.true_divide, 1, x)


@composed(np.fmax)
def fmax(x: Any, y: Any) -> Any:
    return _skipping_nan(np.maximum, x, y)


@composed(np.fmin)
def fmin(x: Any, y: Any) -> Any:
    return _skipping_nan(np.minimum, x, y)


def _skipping_nan(function: Any, x: Any, y: Any) -> Any:
    both = apply(function, x, y)
    return both if not is_inexact(both.dtype) else where_(apply(np.isnan, x), y, where_(apply(np.isnan, y), x, both))


@composed(np.degrees, np.rad2deg)
def degrees(x: Any) -> Any:
    return apply(np.multiply, x, 180.0 / math.pi)


@composed(np.radians, np.deg2rad)
def radians(x: Any) -> Any:
    return apply(np.multiply, x, math.pi / 180.0)


@composed(np.heaviside)
def heaviside(x: Any, middle: Any) -> Any:
    out = where_(apply(np.greater, x, 0), 1.0, where_(apply(np.less, x, 0), 0.0, middle))
    return where_(apply(np.isnan, x), x, out)


@composed(np.divmod)
def divmod_(x: Any, y: Any) -> tuple:
    return apply(np.floor_divide, x, y), apply(np.remainder, x, y)


@composed(np.modf)
def modf(x: Any) -> tuple:
    whole = apply(np.trunc, x)
    return apply(np.copysign, x - whole, x), whole


@handles(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    a, b = operand(a), operand(b)
    near = apply(np.less_equal, abs(a - b), atol + rtol * abs(b))
    finite = apply(np.isfinite, b)
    out = apply(np.logical_or, apply(np.logical_and, near, finite), apply(np.equal, a, b))
    if equal_nan:
        out = apply(np.logical_or, out, apply(np.logical_and, apply(np.isnan, a), apply(np.isnan, b)))
    return out


@handles(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return _python_bool(apply(np.all, isclose(a, b, rtol, atol, equal_nan)))


@handles(np.array_equal)
def array_equal(a: Any, b: Any, equal_nan: bool = False) -> Any:
    a, b = as_array(a), as_array(b)
    if a.ndim != b.ndim or any(isinstance(x, int) and isinstance(y, int) and x != y
                               for x, y in zip(a.type.dims, b.type.dims)):
        return False
    return _python_bool(apply(np.all, apply(np.equal, a, b)))


def _python_bool(value: Any) -> Any:
    here = session()
    return here.wrap(truth_atom(here, value), bool)


# --- rounding, signs, parts -----------------------------------------------------------------------------------------

@handles(np.round, np.around)
def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    a = operand(a)
    dtype = WEAK[weak_type(a)] if weak_type(a) is not None else a.dtype
    if not is_inexact(dtype) and decimals >= 0:
        return positive(a)
    if decimals == 0:
        return apply(np.rint, a)
    scale = 10.0 ** abs(decimals)
    return apply(np.rint, a * scale) / scale if decimals > 0 else apply(np.rint, a / scale) * scale


@handles(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x = operand(x)
    if not is_inexact(x.dtype):
        return positive(x)
    limits = np.finfo(x.dtype)
    out = where_(apply(np.isnan, x), nan, x)
    out = where_(apply(np.equal, x, np.inf), limits.max if posinf is None else posinf, out)
    return where_(apply(np.equal, x, -np.inf), limits.min if neginf is None else neginf, out)


@handles(np.real)
def real(x: Any) -> Any:
    x = operand(x)
    if not hasattr(x, "dtype") or x.dtype.kind != "c":
        return x
    from metaphrase.ops.complex_numbers import real as core_real
    here = session()
    return here.wrap(here.emit(core_real, here.atom(x)), float if weak_type(x) else None)


@handles(np.imag)
def imag(x: Any) -> Any:
    x = operand(x)
    here = session()
    if x.dtype.kind != "c":
        return apply(np.zeros_like, x) if isinstance(x, StagedArray) else x * 0
    from metaphrase.ops.complex_numbers import imag as core_imag
    return here.wrap(here.emit(core_imag, here.atom(x)), float if weak_type(x) else None)


@composed(np.conjugate)
def conjugate(x: Any) -> Any:
    if x.dtype.kind != "c":
        return positive(x)
    from metaphrase.ops.complex_numbers import conj
    here = session()
    return here.wrap(here.emit(conj, here.atom(x)), weak_type(x))


def _whole(function: Any) -> None:
    @composed(function)
    def handler(x: Any) -> Any:
        """Integers are whole already."""
        if x.dtype.kind in "iub":
            return positive(x)
        return elementwise(SPELLED[function], [x], [x.dtype])


def _class(function: Any, of_integers: bool) -> None:
    @composed(function)
    def handler(x: Any) -> Any:
        """Integers are neither NaN nor infinite."""
        if not is_inexact(x.dtype):
            here = session()
            return here.wrap(spread(here, here.atom(of_integers), dims_of(x)))
        return elementwise(SPELLED[function], [x], [x.dtype])


for _function in (np.floor, np.ceil, np.trunc):
    _whole(_function)
for _function, _answer in ((np.isnan, False), (np.isinf, False), (np.isfinite, True)):
    _class(_function, _answer)


@handles(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    out = apply(np.arctan2, imag(z), real(z))
    return out * (180.0 / math.pi) if deg else out


# --- small numerics -------------------------------------------------------------------------------------------------

@handles(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, **ignored: Any) -> Any:
    x = as_array(a)
    lead = (slice(None),) * (axis % x.ndim)
    for _ in range(n):
        x = x[(*lead, slice(1, None))] - x[(*lead, slice(None, -1))]
    return x


@handles(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = as_array(y)
    lead = (slice(None),) * (axis % y.ndim)
    gaps = dx if x is None else diff(x) if as_array(x).ndim == 1 and axis % y.ndim == y.ndim - 1 else diff(x, axis=axis)
    return (gaps * (y[(*lead, slice(1, None))] + y[(*lead, slice(None, -1))]) / 2.0).sum(axis=axis)


@handles(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    p = as_array(p)
    x = operand(x)
    out = apply(np.zeros_like, x) if isinstance(x, StagedArray) else 0
    for k in range(len(p)):
        out = out * x + p[k]
    return out


@handles(np.cross)
def cross(a: Any, b: Any, **ignored: Any) -> Any:
    a, b = as_array(a), as_array(b)
    x, y = [a[..., k] for k in range(3)], [b[..., k] for k in range(3)]
    return apply(np.stack, [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]], axis=-1)


@handles(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, xp, fp = operand(x), as_array(xp), as_array(fp)
    n = xp.shape[0]
    k = clip(apply(np.searchsorted, xp, x, side="right") - 1, 0, n - 2)
    slope = (fp[k + 1] - fp[k]) / (xp[k + 1] - xp[k])
    out = slope * (x - xp[k]) + fp[k]
    out = where_(apply(np.less, x, xp[0]), fp[0] if left is None else left, out)
    out = where_(apply(np.greater, x, xp[-1]), fp[-1] if right is None else right, out)
    return out if isinstance(x, StagedArray) and x.ndim else out[()]


@handles(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    here, x = session(), as_array(x)
    if not is_inexact(x.dtype):
        x = here.array(here.emit(convert, x.read(), dtype=np.dtype("float64")))
    if ord is None or (ord == 2 and (x.ndim == 1 or isinstance(axis, int))) or ord == "fro":
        squares = x * x if x.dtype.kind != "c" else abs(x) ** 2
        return apply(np.sqrt, apply(np.sum, squares, axis=axis, keepdims=keepdims))
    if x.ndim == 1 or isinstance(axis, int):
        size = abs(x)
        if ord == np.inf:
            return apply(np.max, size, axis=axis, keepdims=keepdims)
        if ord == -np.inf:
            return apply(np.min, size, axis=axis, keepdims=keepdims)
        if ord == 0:
            return apply(np.sum, (x != 0).astype(x.dtype), axis=axis, keepdims=keepdims)
        if ord == 1:
            return apply(np.sum, size, axis=axis, keepdims=keepdims)
        return apply(np.sum, size ** ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)
    raise here.dtype_error(f"np.linalg.norm with ord={ord!r} of a matrix is not supported")


@handles(np.result_type)
def result_type(*args: Any) -> np.dtype:
    kinds = [dtype_of(a) if isinstance(a, (StagedArray, Number)) else a for a in args]
    return np.result_type(*[k(0) if isinstance(k, type) and k in WEAK else k for k in kinds])


@handles(np.isscalar)
def isscalar(value: Any) -> bool:
    return isinstance(value, Number) or np.isscalar(value)


@handles(np.iscomplexobj)
def iscomplexobj(value: Any) -> bool:
    return getattr(value, "dtype", np.dtype(float)).kind == "c"
