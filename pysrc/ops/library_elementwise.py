"""NumPy's elementwise functions that are not one primitive: powers, logic, rounding, angles, choice.

In: operands. Out: core atoms with NumPy's promotion and broadcasting.

    y = clip(x, 0, 1)
    z = where(x > 0, x, 0)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.build import literal
from ..core.ir import Atom, Literal
from ..core.types import is_bfloat16, is_integer
from ..source import DTypeError, ShapeError, UnsupportedError
from . import complex_numbers as parts
from . import special
from .arithmetic import abs_ as absolute_value
from .arithmetic import div, integer_pow, max_, min_, mul, sign, sub
from .compare import and_, eq, ge, gt, le, lt, ne, not_, or_, select, xor
from .elementary import isfinite, isinf, isnan, rint, sqrt, trunc
from .elementary import stop_gradient as stop_gradient_primitive
from .families import like
from .library_reductions import to_bool
from .promotion import (
    Operand,
    Weak,
    broadcast_arrays,
    cast,
    inexact_dtype,
    is_weak,
    lift,
    promote,
    resolve,
    result_type,
    to_dtype,
    ufunc,
    weak_type,
)
from .shape import convert
from .sums import logistic
from .weak_integers import is_narrow


def as_inexact(x: Operand) -> Atom:
    """Integers and bools as f64."""
    x = lift(x)
    return to_dtype(x, inexact_dtype(x.type.dtype))


def operands_of(function: np.ufunc, *xs: Operand) -> list[Atom]:
    """Operands in the dtypes in which NumPy computes a ufunc: f16 for integers of one byte, f32 for two."""
    return [to_dtype(x, dtype) for x, dtype in zip(xs, resolve(function, *xs))]


# --- powers ------------------------------------------------------------------------------------------------


def power(x: Operand, y: Operand, dtype: Any = None) -> Atom:
    """Known whole exponents become products, 0.5 a root, as in NumPy's operator."""
    if dtype is None and not is_weak(x):
        exponent = _known(y)
        if exponent is not None:
            base = to_dtype(lift(x), resolve(np.power, x, y)[0])
            if is_integer(base.type.dtype) and isinstance(exponent, int):
                if exponent < 0:
                    return ufunc(np.power, x, y, dtype=dtype)
                return integer_pow(base, exponent=exponent)
            if base.type.dtype.kind in "fc" and float(exponent).is_integer() and abs(exponent) <= 64:
                return integer_pow(base, exponent=int(exponent))
            if base.type.dtype.kind in "fc" and exponent == 0.5:
                return sqrt(base)
    return ufunc(np.power, x, y, dtype=dtype)


def _known(y: Any) -> int | float | None:
    """The exponent if it is a known real number that does not change the dtype of a float base."""
    if isinstance(y, Literal) and not y.type.dims and y.type.dtype.kind in "iuf":
        y = y.value.item()
    return y if type(y) in (int, float) else None


def float_power(x: Operand, y: Operand) -> Atom:
    wide = np.result_type(result_type(x, y), np.float64)
    return ufunc(np.power, to_dtype(x, wide), to_dtype(y, wide))


def square(x: Operand) -> Atom:
    x = lift(x)
    return integer_pow(convert(x, dtype=np.dtype(np.int8)) if x.type.dtype == bool else x, exponent=2)


def reciprocal(x: Operand) -> Atom:
    (x,) = operands_of(np.reciprocal, x)
    if is_integer(x.type.dtype):
        unit = or_(eq(x, like(x, 1)), eq(x, like(x, -1))) if x.type.dtype.kind == "i" else eq(x, like(x, 1))
        return select(unit, x, like(x, 0))
    return div(like(x, 1), x)


def positive(x: Operand) -> Atom:
    x = lift(x)
    if x.type.dtype == bool:
        raise DTypeError("numpy.positive takes no bools", code="dtype", remedy="convert them with .astype first")
    return x


def absolute(x: Operand) -> Atom:
    return absolute_value(lift(x))


def fabs(x: Operand) -> Atom:
    return absolute_value(*operands_of(np.fabs, x))


# --- logic -------------------------------------------------------------------------------------------------


def _logical(name: str, primitive: Any) -> Callable[..., Atom]:
    def call(*xs: Operand) -> Atom:
        return primitive(*broadcast_arrays(*map(to_bool, xs)))

    call.__name__ = name
    return call


logical_and, logical_or = _logical("logical_and", and_), _logical("logical_or", or_)
logical_xor, logical_not = _logical("logical_xor", xor), _logical("logical_not", not_)


# --- extremes that pass NaNs by, and steps -----------------------------------------------------------------


def _ignoring_nan(name: str, function: np.ufunc) -> Callable[..., Atom]:
    def call(x: Operand, y: Operand) -> Atom:
        a, b = broadcast_arrays(*promote(x, y))
        if a.type.dtype.kind not in "fc":
            return ufunc(function, a, b)
        return select(isnan(b), a, select(isnan(a), b, ufunc(function, a, b)))

    call.__name__ = name
    return call


fmax, fmin = _ignoring_nan("fmax", np.maximum), _ignoring_nan("fmin", np.minimum)


def heaviside(x: Operand, at_zero: Operand) -> Atom:
    a, b = broadcast_arrays(*operands_of(np.heaviside, x, at_zero))
    step = select(lt(a, like(a, 0)), like(a, 0), like(a, 1))
    return select(isnan(a), a, select(eq(a, like(a, 0)), b, step))


def clip(a: Operand, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Atom:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    y = lift(a)
    if y.type.dtype.kind in "iu":
        low, high = _limit(low, y.type.dtype, True), _limit(high, y.type.dtype, False)
    dtype = result_type(y, *(v for v in (low, high) if v is not None))
    y = to_dtype(y, dtype)
    if low is not None:  # of 0.0 and -0.0 the second: a zero at the limit keeps its sign
        y = ufunc(np.maximum, to_dtype(low, dtype), y)
    return y if high is None else ufunc(np.minimum, to_dtype(high, dtype), y)


def _limit(bound: Any, dtype: np.dtype, low: bool) -> Any:
    """A Python int that no element can be beyond is no limit."""
    if not is_weak(bound) or weak_type(bound) is not int:
        return bound
    limits = np.iinfo(dtype)
    if isinstance(bound, int):
        return None if (bound <= limits.min if low else bound >= limits.max) else bound
    edge = int(limits.min if low else limits.max)
    if not is_narrow(dtype) or edge >= 2**63:
        return bound
    return Weak((max_ if low else min_)(bound.atom, literal(edge, bound.atom.type.dtype)), int)


def where(condition: Operand, *choices: Operand) -> Any:
    if not choices:
        from .library_search import nonzero

        return nonzero(condition)
    if len(choices) != 2:
        raise DTypeError("where takes a condition alone, or a condition and two values", code="where")
    if all(map(is_weak, choices)):
        python = np.result_type(*(weak_type(c)(0) for c in choices))
        choices = tuple(to_dtype(c, python) for c in choices)
    dtype = result_type(*choices)
    a, b = (cast(c, dtype) for c in choices)
    return select(*broadcast_arrays(to_bool(condition), a, b))


def select_where(condlist: Any, choicelist: Any, default: Any = 0) -> Atom:
    """numpy.select: the first choice whose condition holds."""
    if len(condlist) != len(choicelist):
        raise ShapeError("list of cases must be same length as list of conditions", code="where")
    if not len(condlist):
        raise ShapeError("select with an empty condition list is not possible", code="where")
    for k, condition in enumerate(condlist):
        if lift(condition).type.dtype != bool:
            raise DTypeError(f"invalid entry {k} in condlist: should be boolean ndarray", code="where")
    y: Any = default
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        y = where(condition, choice, y)
    return lift(y)


def piecewise(x: Operand, condlist: Any, funclist: Any, *args: Any, **keywords: Any) -> Atom:
    x = lift(x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    functions = list(funclist)
    y: Any = functions.pop() if len(functions) == len(conditions) + 1 else 0
    y = y(x, *args, **keywords) if callable(y) else y
    for condition, function in reversed(list(zip(conditions, functions))):
        y = where(condition, function(x, *args, **keywords) if callable(function) else function, y)
    return to_dtype(y, x.type.dtype)


# --- rounding and remainders -------------------------------------------------------------------------------


def _rounding(function: np.ufunc) -> Callable[..., Atom]:
    def call(x: Operand) -> Atom:
        x = lift(x)
        return x if x.type.dtype.kind not in "fc" else ufunc(function, x)

    call.__name__ = function.__name__
    return call


floor_, ceil_, trunc_ = _rounding(np.floor), _rounding(np.ceil), _rounding(np.trunc)


def rint_(x: Operand) -> Atom:
    x = lift(x)
    if x.type.dtype.kind == "c":
        return parts.complex_(rint(parts.real(x)), rint(parts.imag(x)))
    return ufunc(np.rint, x)


def round_(a: Operand, decimals: int = 0) -> Atom:
    x = lift(a)
    if is_integer(x.type.dtype):
        if decimals >= 0:
            return x
        unit = 10**-decimals
        return to_dtype(
            mul(
                rint(div(to_dtype(x, np.float64), like(to_dtype(x, np.float64), unit))),
                like(to_dtype(x, np.float64), unit),
            ),
            x.type.dtype,
        )
    if x.type.dtype.kind == "c":
        return parts.complex_(round_(parts.real(x), decimals), round_(parts.imag(x), decimals))
    if x.type.dtype.kind == "b" and decimals != 0:
        raise DTypeError("np.round of bools to decimals", remedy="convert them with .astype first", code="dtype")
    (x,) = operands_of(np.rint, x)
    if decimals == 0:
        return rint(x)
    unit = like(x, 10.0 ** abs(decimals))
    return div(rint(mul(x, unit)), unit) if decimals > 0 else mul(rint(div(x, unit)), unit)


def divmod_(x: Operand, y: Operand) -> tuple[Atom, Atom]:
    return ufunc(np.floor_divide, x, y), ufunc(np.remainder, x, y)


def modf(x: Operand) -> tuple[Atom, Atom]:
    (x,) = operands_of(np.modf, x)
    whole = trunc(x)
    rest = ufunc(np.copysign, select(isinf(x), like(x, 0), sub(x, whole)), x)
    return rest, whole


# --- angles and special shapes of functions ----------------------------------------------------------------


def deg2rad(x: Operand) -> Atom:
    (x,) = operands_of(np.deg2rad, x)
    return _scaled(x, math.pi / 180)


def rad2deg(x: Operand) -> Atom:
    (x,) = operands_of(np.rad2deg, x)
    return _scaled(x, 180 / math.pi)


def _scaled(x: Atom, factor: float) -> Atom:
    """A product that rounds once in half precision."""
    wide = to_dtype(x, np.float32) if x.type.dtype.itemsize == 2 else x
    return to_dtype(mul(wide, like(wide, factor)), x.type.dtype)


def sinc(x: Operand) -> Atom:
    x = as_inexact(x)
    if x.type.dtype.itemsize > 2:
        return special.sinc(x)
    zero = eq(x, like(x, 0))  # halves are rounded on the way, as NumPy rounds them
    angle = mul(like(x, math.pi), select(zero, like(x, 1), x))
    return select(zero, like(x, 1), div(ufunc(np.sin, angle), angle))


def sigmoid(x: Operand) -> Atom:
    """scipy.special.expit, without overflow on either side."""
    return logistic(as_inexact(x))


def logit(x: Operand) -> Atom:
    x = as_inexact(x)
    return sub(ufunc(np.log, x), ufunc(np.log1p, ufunc(np.negative, x)))


def ndtr(x: Operand) -> Atom:
    """The normal distribution's, by `erfc`: no digits are lost far below 0."""
    x = as_inexact(x)
    return mul(special.erfc(mul(x, like(x, -math.sqrt(0.5)))), like(x, 0.5))


def xlogy(x: Operand, y: Operand) -> Atom:
    return _times_log(np.log, 0, x, y)


def xlog1py(x: Operand, y: Operand) -> Atom:
    return _times_log(np.log1p, -1, x, y)


def polygamma(n: int, x: Operand) -> Atom:
    """SciPy's: the derivative of digamma of the order n, in double precision."""
    if not isinstance(n, (int, np.integer)) or n < 0:
        raise UnsupportedError(
            "polygamma of an order that is no constant, or negative",
            code="numpy-function",
            remedy="give it as a Python int from 0 on",
        )
    x = to_dtype(x, np.float64)
    return special.polygamma(x, order=int(n)) if n else special.digamma(x)


def _times_log(log: np.ufunc, end: int, x: Operand, y: Operand) -> Atom:
    """x log(y), and 0 where x is 0, but for NaN. Up to `end` the logarithm is no number: there its part of a
    product with 0 is left out."""
    a, b = broadcast_arrays(*promote(as_inexact(x), as_inexact(y)))
    inside = ne(b, like(b, end)) if b.type.dtype.kind == "c" else not_(or_(le(b, like(b, end)), eq(b, like(b, np.inf))))
    empty = and_(eq(a, like(a, 0)), not_(inside))
    return mul(a, ufunc(log, select(empty, like(b, 1 + end), b)))


def stop_gradient(x: Operand) -> Atom:
    return stop_gradient_primitive(lift(x))


# --- parts of complex numbers, and what kind of number -----------------------------------------------------


def real(x: Operand) -> Atom:
    x = lift(x)
    return parts.real(x) if x.type.dtype.kind == "c" else x


def imag(x: Operand) -> Atom:
    x = lift(x)
    return parts.imag(x) if x.type.dtype.kind == "c" else like(x, 0)


def conjugate(x: Operand) -> Atom:
    x = lift(x)
    if x.type.dtype == bool:
        return convert(x, dtype=np.dtype(np.int8))
    return parts.conj(x) if x.type.dtype.kind == "c" else x


def angle(x: Operand, deg: bool = False) -> Atom:
    x = lift(x)
    y = ufunc(np.arctan2, *(parts.imag(x), parts.real(x)) if x.type.dtype.kind == "c" else (0, x))
    return mul(y, like(y, 180 / math.pi)) if deg else y


def sign_(x: Operand) -> Atom:
    return sign(lift(x))


def isreal(x: Operand) -> Atom:
    x = lift(x)
    return eq(parts.imag(x), like(parts.imag(x), 0)) if x.type.dtype.kind == "c" else like_bool(x, True)


def iscomplex(x: Operand) -> Atom:
    return not_(isreal(x))


def like_bool(x: Atom, value: bool) -> Atom:
    return like(x.type.with_dtype(np.dtype(bool)), value)


def isposinf(x: Operand) -> Atom:
    (x,) = operands_of(np.signbit, x)
    return eq(x, like(x, np.inf))


def isneginf(x: Operand) -> Atom:
    (x,) = operands_of(np.signbit, x)
    return eq(x, like(x, -np.inf))


def _kind_test(name: str, primitive: Any, otherwise: bool) -> Callable[..., Atom]:
    """`isnan` and its like, which NumPy answers for integers too."""

    def call(x: Operand) -> Atom:
        x = lift(x)
        return primitive(x) if x.type.dtype.kind in "fc" or is_half(x) else like_bool(x, otherwise)

    call.__name__ = name
    return call


def is_half(x: Atom) -> bool:
    return is_bfloat16(x.type.dtype)


isnan_, isinf_ = _kind_test("isnan", isnan, False), _kind_test("isinf", isinf, False)
isfinite_ = _kind_test("isfinite", isfinite, True)


def nan_to_num(x: Operand, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Atom:
    x = lift(x)
    if x.type.dtype.kind == "c":
        return parts.complex_(*(nan_to_num(f(x), copy, nan, posinf, neginf) for f in (parts.real, parts.imag)))
    if x.type.dtype.kind != "f":
        return x
    top = np.finfo(x.type.dtype)
    y = select(isnan(x), broadcast_arrays(x, to_dtype(nan, x.type.dtype))[1], x)
    y = select(
        gt(x, like(x, top.max)),
        broadcast_arrays(x, to_dtype(top.max if posinf is None else posinf, x.type.dtype))[1],
        y,
    )
    return select(
        lt(x, like(x, top.min)),
        broadcast_arrays(x, to_dtype(top.min if neginf is None else neginf, x.type.dtype))[1],
        y,
    )


def polyval(coefficients: Operand, x: Operand) -> Atom:
    p = lift(coefficients)
    if not isinstance(p.type.dims[0], int):
        raise UnsupportedError("polyval needs a known number of coefficients", code="size")
    from .library_shapes import part

    x = lift(x)
    y: Any = like(x, 0)
    for k in range(p.type.dims[0]):
        y = ufunc(np.add, ufunc(np.multiply, y, x), part(p, 0, k, 1, squeezed=True))
    return y


def complex_of(re: Operand, im: Operand = 0.0) -> Atom:
    """lax.complex, and `re + 1j * im` put together exactly."""
    dtype = np.result_type(result_type(re, im), np.float32)
    a, b = broadcast_arrays(to_dtype(re, dtype), to_dtype(im, dtype))
    return parts.complex_(a, b)


def math_isclose(a: Operand, b: Operand, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Atom:
    x, y = broadcast_arrays(*promote(as_inexact(a), as_inexact(b)))
    if x.type.dtype.kind == "c":
        raise DTypeError(
            "math.isclose takes real numbers, not complex", code="dtype", remedy="use cmath.isclose or numpy.isclose"
        )
    larger = ufunc(np.maximum, absolute_value(x), absolute_value(y))
    limit = ufunc(np.maximum, mul(like(larger, rel_tol), larger), like(larger, abs_tol))
    near = and_(ge(limit, absolute_value(sub(x, y))), and_(isfinite(x), isfinite(y)))
    return or_(near, eq(x, y))
