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
from ..core.scalars import CHEAP, FREE, MEDIUM, Scalar, Text, declare, instruction, library
from ..core.types import Array
from .compare import and_, eq, flat, ge, select
from .families import elementwise, inexact, like, numeric, ordered, real, real_dtype, require

neg: Primitive = elementwise(
    "neg",
    np.negative,
    spellings=(operator.neg,),
    type=numeric,
    scalar=instruction(FREE, Text("c", "pair(-re(x), -im(x))"), sign="-"),
    jvp=(lambda x_dot, y, x: neg(x_dot),),
    transpose=(lambda y_bar, x: neg(y_bar),),
)

add = elementwise(
    "add",
    np.add,
    spellings=(operator.add,),
    scalar=instruction(
        CHEAP, Text("c", "pair(re(a) + re(b), im(a) + im(b))", "a, b"), commutes=True, sign="+", of_bools="or"
    ),
    jvp=(lambda a_dot, y, a, b: a_dot, lambda b_dot, y, a, b: b_dot),
    transpose=(lambda y_bar, a, b: y_bar, lambda y_bar, a, b: y_bar),
)

sub = elementwise(
    "sub",
    np.subtract,
    spellings=(operator.sub,),
    type=numeric,
    scalar=instruction(CHEAP, Text("c", "pair(re(a) - re(b), im(a) - im(b))", "a, b"), sign="-"),
    jvp=(lambda a_dot, y, a, b: a_dot, lambda b_dot, y, a, b: neg(b_dot)),
    transpose=(lambda y_bar, a, b: y_bar, lambda y_bar, a, b: neg(y_bar)),
)

mul: Primitive = elementwise(
    "mul",
    np.multiply,
    spellings=(operator.mul,),
    scalar=instruction(
        CHEAP,
        Text("c", "R p = re(a), q = im(a), r = re(b), s = im(b);\nreturn pair(p*r - q*s, p*s + q*r);", "a, b"),
        commutes=True,
        sign="*",
        of_bools="and",
    ),
    jvp=(lambda a_dot, y, a, b: mul(a_dot, b), lambda b_dot, y, a, b: mul(a, b_dot)),
    transpose=(lambda y_bar, a, b: mul(y_bar, b), lambda y_bar, a, b: mul(a, y_bar)),
)

_SMITHS = """\
R p = re(a), q = im(a), r = re(b), s = im(b);
R size_r = fabs$(r), size_s = fabs$(s);
if (size_r >= size_s) {
if (size_r == 0 && size_s == 0) return pair(p/size_r, q/size_s);
R ratio = s/r, scale = 1/(r + s*ratio);
return pair((p + q*ratio)*scale, (q - p*ratio)*scale);
}
R ratio = r/s, scale = 1/(s + r*ratio);
return pair((p*ratio + q)*scale, (q*ratio - p)*scale);
"""  # as NumPy divides; C's own division needs libgcc
div: Primitive = elementwise(
    "div",
    np.true_divide,
    spellings=(operator.truediv,),
    type=inexact,
    scalar=Scalar(MEDIUM, side_by_side=True, sign="/", texts=(Text("c", _SMITHS, "a, b"),)),
    jvp=(lambda a_dot, y, a, b: div(a_dot, b), lambda b_dot, y, a, b: neg(mul(b_dot, div(y, b)))),
    transpose=(lambda y_bar, a, b: div(y_bar, b), None),
    doc="Quotient of floating operands; integers are converted first.",
)

_FLOOR_DIV = """\
if (b == 0) return a/b;
T m = T_fmod(a, b), d = (a - m)/b;
if (m != 0 && (b < 0) != (m < 0)) d -= 1;
if (d == 0) return copysign$((T)0, a/b);
T f = floor$(d);
return d - f > (T)0.5 ? f + 1 : f;
"""
_SIGNED_FLOOR_DIV = """\
if (b == 0) return 0;
if (b == -1) return (T)-a;
return a/b - ((a%b != 0) & ((a < 0) != (b < 0)));
"""
_MOD = """\
T m = T_fmod(a, b);
if (b == 0) return m;
if (m != 0) return (b < 0) != (m < 0) ? m + b : m;
return copysign$((T)0, b);
"""
_SIGNED_MOD = """\
if (a >= 0 && a < b) return a;
if (b == 0 || b == -1) return 0;
T m = a%b;
return (m != 0) & ((m < 0) != (b < 0)) ? m + b : m;
"""
# Vectors have no division of 64-bit numbers, nor the high half of a product. A quotient of doubles is off by less than
# 2**13/b + 1; that of what it leaves is off by one at most. For b from 2 to 2**31, nothing leaves 64 bits.
_LANES_FLOOR_DIV = """\
#ifdef __AVX512DQ__
const double part = 1.0/(double)b;
T q = (T)((double)a*part), rest = a - q*b, more = (T)((double)rest*part);
rest -= more*b;
return q + more + (rest >= b) - (rest < 0);
#else
T sign = -(a < 0);
return (T)((unsigned long long)(a ^ sign)/(unsigned long long)b) ^ sign;
#endif
"""
declare("floor_div_lanes", Scalar(texts=(Text("i", _LANES_FLOOR_DIV, "a, b"),)))
declare("mod_lanes", Scalar(texts=(Text("i", "a - T_floor_div_lanes(a, b)*b", "a, b"),)))
# What is left of a after trunc(a/b) times b has no rounding: it is a multiple of b's last digit that is less than b.
# The quotient is at most rounded up to the next whole number; then what is left is negative.
_FMOD = """\
#if defined(__FP_FAST_FMA) && !defined(__FAST_MATH__)
T x = fabs$(a), y = fabs$(b), quotient = x/y;
if (x < y) return a;
if (quotient < (T)(sizeof(T) == 4 ? 0x1p24 : 0x1p53)) {
    T rest = fma$(-trunc$(quotient), y, x);
    return copysign$(rest < 0 ? rest + y : rest, a);
}
#endif
return T_library_fmod(a, b);
"""
declare("library_fmod", library("fmod", operands=2, side_by_side=False))
_SIGNED_FMOD = Text("i", "b == 0 || b == -1 ? 0 : a%b", "a, b")
_UNSIGNED_MOD = Text("u", "b == 0 ? 0 : a%b", "a, b")
floor_div = elementwise(
    "floor_div",
    np.floor_divide,
    spellings=(operator.floordiv,),
    type=real,
    scalar=Scalar(
        texts=(
            Text("f", _FLOOR_DIV, "a, b"),
            Text("i", _SIGNED_FLOOR_DIV, "a, b"),
            Text("u", "b == 0 ? 0 : a/b", "a, b"),
        ),
        in_lanes="floor_div_lanes",
        of_power="shift_right",
    ),
    jvp=(Zero, Zero),
    doc="Quotient rounded down; an integer divided by zero gives 0, as in NumPy.",
)
mod = elementwise(
    "mod",
    np.remainder,
    spellings=(operator.mod,),
    type=real,
    scalar=Scalar(
        texts=(Text("f", _MOD, "a, b"), Text("i", _SIGNED_MOD, "a, b"), _UNSIGNED_MOD),
        in_lanes="mod_lanes",
        of_power="and",
    ),
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
    scalar=Scalar(texts=(Text("f", _FMOD, "a, b"), _SIGNED_FMOD, _UNSIGNED_MOD)),
    doc="Remainder with the sign of a, as in C.",
)


def _integer_pow_type(x: Array, *, exponent: int) -> Array:
    require(isinstance(exponent, int), lambda: f"integer_pow: exponent {exponent!r} is not an integer")
    require(
        x.dtype != bool and (exponent >= 0 or x.dtype.kind not in "iu"), lambda: f"integer_pow: {x} to the {exponent}"
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
    # no 0 * inf at 0 to the power 0
    nothing = and_(eq(a, like(a, 0)), eq(b, like(b, 0)))
    lower = select(nothing, like(b, 1), sub(b, like(b, 1)))
    return mul(a_dot, mul(b, pow_(a, lower)))


def _pow_exponent(b_dot: Any, y: Any, a: Any, b: Any) -> Any:
    """log(a) y; 0 at the power of 0 that is not negative, as next to it."""
    from .elementary import log

    nothing = eq(a, like(a, 0))
    if b.type.dtype.kind != "c":
        nothing = and_(nothing, ge(b, like(b, 0)))
    return mul(b_dot, mul(log(select(nothing, like(a, 1), a)), y))


_SQUARINGS = """\
T r = 1;
while (b) { if (b & 1) r = (T)((u64)r*(u64)a); a = (T)((u64)a*(u64)a); b >>= 1; }
return r;
"""
_NEGATIVE_POWERS = "if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;\n"
_COMPLEX_POW = """\
R r = re(b), s = im(b);
if (r == 0 && s == 0) return pair((R)1, (R)0);
if (re(a) == 0 && im(a) == 0) {
if (r > 0 && s == 0) return pair((R)0, (R)0);
return pair(nan$(""), nan$(""));
}
int n = r > -100 && r < 100 ? (int)r : 100;
if (s == 0 && r == n && n < 100) {
T p = a, out = pair((R)1, (R)0);
for (int k = n < 0 ? -n : n; k; k >>= 1) { if (k & 1) out = T_mul(out, p); p = T_mul(p, p); }
return n < 0 ? T_div(pair((R)1, (R)0), out) : out;
}
return T_principal_pow(a, b);
"""
declare("principal_pow", library("pow", operands=2, of_complex=True))  # exp(b log(a))
# Powers by roots, within 2 ulp; -0.0 and -inf as pow has them.
_ROOTS = {
    0.5: ("pow_1_2", "x == -inf$() ? -x : sqrt$(x + 0)"),
    1.5: ("pow_3_2", "x += 0;\nreturn x == -inf$() ? -x : x*sqrt$(x);"),
    -0.5: ("pow_m1_2", "x == -inf$() ? 0 : 1/sqrt$(x + 0)"),
    -1.5: ("pow_m3_2", "x += 0;\nreturn x == -inf$() ? 0 : 1/x*(1/sqrt$(x));"),
}
for _root, _text in _ROOTS.values():
    declare(_root, Scalar(texts=(Text("f", _text),)))
pow_ = elementwise(
    "pow",
    _pow_numpy,
    spellings=(np.power, np.float_power, operator.pow, pow),
    type=numeric,
    scalar=library(
        "pow",
        Text("i", _NEGATIVE_POWERS + _SQUARINGS, "a, b"),
        Text("u", _SQUARINGS, "a, b"),
        Text("c", _COMPLEX_POW, "a, b"),
        operands=2,
        powers=tuple((exponent, name) for exponent, (name, _) in _ROOTS.items()),
    ),
    jvp=(_pow_base, _pow_exponent),
    doc="a to the power b, equal dtypes.",
)


def _sign_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    """Zero on the reals; on complex numbers the part of x_dot that turns x, over |x|."""
    if x.type.dtype.kind != "c":
        return None
    from .complex_numbers import complex_, conj, real

    length = flat(abs_(x))
    along = real(mul(x_dot, conj(y)))
    turn = sub(x_dot, mul(y, complex_(along, like(along, 0))))
    return div(turn, complex_(length, like(length, 0)))


_DIRECTION = """\
R size = hypot$(re(x), im(x));
if (size == 0) return x;
if (isinf$(size)) {
int wide = isinf$(re(x)), high = isinf$(im(x));
if (wide && high) return pair(nan$(""), nan$(""));
if (wide) return pair(copysign$((R)1, re(x)), (R)0);
if (high) return pair((R)0, copysign$((R)1, im(x)));
}
return pair(re(x)/size, im(x)/size);
"""
sign = elementwise(
    "sign",
    np.sign,
    type=numeric,
    jvp=(_sign_jvp,),
    doc="-1, 0 or 1; x/|x| for complex x.",
    scalar=Scalar(
        CHEAP,
        texts=(
            Text("f", "x != x ? x : (x > 0) - (x < 0)"),
            Text("i", "(x > 0) - (x < 0)"),
            Text("u", "x > 0"),
            Text("c", _DIRECTION),
        ),
    ),
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
    scalar=instruction(
        CHEAP,
        Text("i", "x < 0 ? (T)-x : x"),
        Text("u", "x"),
        Text("c", "R_hypot(re(x), im(x))", result="R"),
        builtin="fabs",
        of_bools="identity",
    ),
    doc="Absolute value; of a complex number its length.",
)


def _share(x_dot: Any, y: Any, x: Any, other: Any) -> Any:
    """Half of the tangent each where both operands are the extreme, as JAX does."""
    both = eq(x, other)
    weight = select(both, like(x, 0.5), like(x, 1.0))
    return select(eq(x, y), mul(x_dot, weight), like(x, 0))


def _extreme(name: str, numpy: np.ufunc, sign: str, of_bools: str, nonnegative: Any, doc: str) -> Primitive:
    # Of 0.0 and -0.0, which are equal, the second, as NumPy gives it. The first line is one instruction.
    floats = Text("f", f"T extreme = a {sign} b ? a : b;\nreturn a != a ? a : extreme;", "a, b")
    return elementwise(
        name,
        numpy,
        type=ordered,
        doc=doc,
        nonnegative=nonnegative,
        scalar=instruction(CHEAP, floats, Text("iu", f"a {sign} b ? a : b", "a, b"), of_bools=of_bools),
        jvp=(lambda a_dot, y, a, b: _share(a_dot, y, a, b), lambda b_dot, y, a, b: _share(b_dot, y, b, a)),
    )


max_ = _extreme("max", np.maximum, ">", "or", any, "The larger; NaN if either is NaN.")
min_ = _extreme("min", np.minimum, "<", "and", all, "The smaller; NaN if either is NaN.")

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
