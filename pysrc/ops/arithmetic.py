"""Arithmetic, elementwise: the operators of the language, powers, absolute value, extremes.

In: equal-typed arrays. Out: one array of that type. Derivatives are those of calculus; at ties `max` and
`min` share.

    y: f64[n] = mul(x, x)
    r: f64[n] = mod(x, y)
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..core.primitive import Primitive, Zero
from ..core.scalars import CHEAP, FREE, MEDIUM, Scalar, instruction, library
from ..core.types import Array
from .compare import eq, select
from .families import elementwise, inexact, like, numeric, ordered, real, real_dtype, require

neg: Primitive = elementwise(
    "neg",
    np.negative,
    spellings=(operator.neg,),
    type=numeric,
    scalar=instruction(FREE),
    jvp=(lambda x_dot, y, x: neg(x_dot),),
    transpose=(lambda y_bar, x: neg(y_bar),),
)

add = elementwise(
    "add",
    np.add,
    spellings=(operator.add,),
    scalar=instruction(commutes=True),
    jvp=(lambda a_dot, y, a, b: a_dot, lambda b_dot, y, a, b: b_dot),
    transpose=(lambda y_bar, a, b: y_bar, lambda y_bar, a, b: y_bar),
)

sub = elementwise(
    "sub",
    np.subtract,
    spellings=(operator.sub,),
    type=numeric,
    scalar=instruction(),
    jvp=(lambda a_dot, y, a, b: a_dot, lambda b_dot, y, a, b: neg(b_dot)),
    transpose=(lambda y_bar, a, b: y_bar, lambda y_bar, a, b: neg(y_bar)),
)

mul: Primitive = elementwise(
    "mul",
    np.multiply,
    spellings=(operator.mul,),
    scalar=instruction(commutes=True),
    jvp=(lambda a_dot, y, a, b: mul(a_dot, b), lambda b_dot, y, a, b: mul(a, b_dot)),
    transpose=(lambda y_bar, a, b: mul(y_bar, b), lambda y_bar, a, b: mul(a, y_bar)),
)

div: Primitive = elementwise(
    "div",
    np.true_divide,
    spellings=(operator.truediv,),
    type=inexact,
    scalar=Scalar(MEDIUM, side_by_side=True),
    jvp=(lambda a_dot, y, a, b: div(a_dot, b), lambda b_dot, y, a, b: neg(mul(b_dot, div(y, b)))),
    transpose=(lambda y_bar, a, b: div(y_bar, b), None),
    doc="Quotient of floating operands; integers are converted first.",
)

floor_div = elementwise(
    "floor_div",
    np.floor_divide,
    spellings=(operator.floordiv,),
    type=real,
    jvp=(Zero, Zero),
    doc="Quotient rounded down; an integer divided by zero gives 0, as in NumPy.",
)
mod = elementwise(
    "mod",
    np.remainder,
    spellings=(operator.mod,),
    type=real,
    jvp=(lambda a_dot, y, a, b: a_dot, lambda b_dot, y, a, b: neg(mul(b_dot, floor_div(a, b)))),
    doc="Remainder with the sign of b; an integer modulo zero is 0, as in NumPy.",
)


def _fmod_by(b_dot: Any, y: Any, a: Any, b: Any) -> Any:
    from .elementary import trunc

    return neg(mul(b_dot, trunc(div(a, b))))


fmod = elementwise(
    "fmod",
    np.fmod,
    type=real,
    jvp=(lambda a_dot, y, a, b: a_dot, _fmod_by),
    scalar=library("fmod", operands=2, side_by_side=False),
    doc="Remainder with the sign of a, as in C.",
)


def _integer_pow_type(x: Array, *, exponent: int) -> Array:
    require(isinstance(exponent, int), lambda: f"integer_pow: exponent {exponent!r} is not an integer")
    require(
        x.dtype != bool and (exponent >= 0 or x.dtype.kind not in "iu"),
        lambda: f"integer_pow: {x} to the {exponent}",
    )
    return x.plain


def _integer_pow_numpy(x: Any, *, exponent: int) -> Any:
    if exponent == 2:
        return np.square(x)
    if 3 <= exponent <= 8:  # products of few factors are far cheaper than the library's power, within 2 ulp
        square = np.square(x)
        high = square if exponent < 4 else np.square(square) if exponent < 8 else np.square(np.square(square))
        if exponent in (4, 8):
            return high
        rest = {3: x, 5: x, 6: square, 7: x}[exponent]
        return high * rest if exponent != 7 else high * square * rest
    return np.power(x, np.asarray(exponent, np.asarray(x).dtype)[()])


def _integer_pow_jvp(x_dot: Any, y: Any, x: Any, *, exponent: int) -> Any:
    if exponent in (0, 1):
        return x_dot if exponent else None
    lower = x if exponent == 2 else integer_pow(x, exponent=exponent - 1)
    return mul(x_dot, mul(like(x, exponent), lower))


integer_pow = elementwise(
    "integer_pow",
    _integer_pow_numpy,
    type=_integer_pow_type,
    jvp=(_integer_pow_jvp,),
    doc="x to a power that is known when the program is made.",
)


def _pow_numpy(a: Any, b: Any) -> Any:
    kind = a.dtype.kind if hasattr(a, "dtype") else "O"
    if kind == "i" and np.min(b, initial=0) < 0:  # NumPy refuses; here 1/a rounded towards zero
        small = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b & 1), 0))
        return np.where(b < 0, small, np.power(a, np.maximum(b, 0))).astype(a.dtype)[()]
    return np.power(a, b)


def _pow_base(a_dot: Any, y: Any, a: Any, b: Any) -> Any:
    # no 0 * inf where the power is constant
    lower = select(eq(b, like(b, 0)), like(b, 1), sub(b, like(b, 1)))
    return mul(a_dot, mul(b, pow_(a, lower)))


def _pow_exponent(b_dot: Any, y: Any, a: Any, b: Any) -> Any:
    from .elementary import log

    return mul(b_dot, mul(log(select(eq(a, like(a, 0)), like(a, 1), a)), y))


pow_ = elementwise(
    "pow",
    _pow_numpy,
    spellings=(np.power, np.float_power, operator.pow, pow),
    type=numeric,
    scalar=library("pow", operands=2),
    jvp=(_pow_base, _pow_exponent),
    doc="a to the power b, equal dtypes.",
)


def _sign_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    """Zero on the reals; on complex numbers the part of x_dot that turns x, over |x|."""
    if x.type.dtype.kind != "c":
        return None
    from .complex_numbers import complex_, conj, real

    length = abs_(x)
    along = real(mul(x_dot, conj(y)))
    turn = sub(x_dot, mul(y, complex_(along, like(along, 0))))
    return div(turn, complex_(length, like(length, 0)))


sign = elementwise(
    "sign",
    np.sign,
    type=numeric,
    jvp=(_sign_jvp,),
    doc="-1, 0 or 1; x/|x| for complex x.",
    scalar=Scalar(CHEAP),
)


def _abs_type(x: Array) -> Array:
    return x.plain.with_dtype(real_dtype(x.dtype))


def _abs_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    if x.type.dtype.kind != "c":
        return mul(x_dot, sign(x))
    from .complex_numbers import conj, real

    return real(mul(x_dot, conj(sign(x))))


abs_ = elementwise(
    "abs",
    np.abs,
    spellings=(np.fabs, abs, operator.abs),
    type=_abs_type,
    jvp=(_abs_jvp,),
    scalar=instruction(builtin="fabs"),
    doc="Absolute value; of a complex number its length.",
)


def _share(x_dot: Any, y: Any, x: Any, other: Any) -> Any:
    """Half of the tangent each where both operands are the extreme, as JAX does."""
    both = eq(x, other)
    weight = select(both, like(x, 0.5), like(x, 1.0))
    return select(eq(x, y), mul(x_dot, weight), like(x, 0))


def _extreme(name: str, numpy: np.ufunc, doc: str) -> Primitive:
    return elementwise(
        name,
        numpy,
        type=ordered,
        doc=doc,
        scalar=instruction(),
        jvp=(lambda a_dot, y, a, b: _share(a_dot, y, a, b), lambda b_dot, y, a, b: _share(b_dot, y, b, a)),
    )


max_ = _extreme("max", np.maximum, "The larger; NaN if either is NaN.")
min_ = _extreme("min", np.minimum, "The smaller; NaN if either is NaN.")

__all__ = [
    "neg",
    "add",
    "sub",
    "mul",
    "div",
    "floor_div",
    "mod",
    "fmod",
    "integer_pow",
    "pow_",
    "sign",
    "abs_",
    "max_",
    "min_",
]
