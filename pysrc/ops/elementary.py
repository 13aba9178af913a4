"""The elementary functions, rounding, and tests of floating-point numbers, elementwise.

In: floating (some: complex) arrays. Out: arrays of that type, or bools.

    y: f64[n] = log1p(x)
    ok: bool[n] = isfinite(y)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.primitive import Primitive, Unsupported, Zero
from ..core.scalars import CHEAP, FREE, MEDIUM, Scalar, Text, instruction, library, ours
from ..core.types import Array
from .arithmetic import abs_, add, div, integer_pow, mul, neg, sub
from .compare import flat, ne, select
from .families import elementwise, float_bool, floating, inexact, like

LN2, LN10 = math.log(2.0), math.log(10.0)


def _square(x: Any) -> Any:
    return integer_pow(x, exponent=2)


def _one_minus_square(x: Any) -> Any:
    """(1 - x)(1 + x): exact near the ends of [-1, 1]."""
    return mul(sub(like(x, 1), x), add(like(x, 1), x))


def _root(a: Any, b: Any) -> Any:
    """sqrt(a b); factor by factor for complex numbers, on the principal branches."""
    return mul(sqrt(a), sqrt(b)) if a.type.dtype.kind == "c" else sqrt(mul(a, b))


# --- exponentials and logarithms ---------------------------------------------------------------------------

exp = elementwise(
    "exp",
    np.exp,
    spellings=(math.exp,),
    type=inexact,
    scalar=ours("exp", of_complex=True, overflows=True),
    jvp=(lambda x_dot, y, x: mul(x_dot, y),),
)

# What the C library lacks of complex numbers.
_EXPM1 = """\
R x = re(z), y = im(z), s = R_sin(y/2);
return pair(R_expm1(x)*R_cos(y) - 2*s*s, R_exp(x)*R_sin(y));
"""
_LOG1P = """\
R x = re(z), y = im(z), size = hypot$(x + 1, y);
return pair(R_log(size), R_arctan2(y, x + 1));
"""
_EXP2 = "R k = (R)0.693147180559945309417232121458176568;\nreturn T_exp(pair(re(z)*k, im(z)*k));"


def _scaled_log(factor: str) -> Text:
    return Text("c", f"T w = T_log(z);\nR k = (R){factor};\nreturn pair(re(w)*k, im(w)*k);", "z")


exp2 = elementwise(
    "exp2",
    np.exp2,
    spellings=(math.exp2,) if hasattr(math, "exp2") else (),
    type=inexact,
    scalar=ours("exp2", Text("c", _EXP2, "z"), overflows=True),
    jvp=(lambda x_dot, y, x: mul(x_dot, mul(y, like(y, LN2))),),
)
expm1 = elementwise(
    "expm1",
    np.expm1,
    spellings=(math.expm1,),
    type=inexact,
    scalar=ours("expm1", Text("c", _EXPM1, "z"), overflows=True),
    jvp=(lambda x_dot, y, x: mul(x_dot, add(y, like(y, 1))),),
)
log = elementwise(
    "log",
    np.log,
    type=inexact,
    jvp=(lambda x_dot, y, x: div(x_dot, x),),
    scalar=ours("log", of_complex=True, outside=("le", 0.0)),
    domain=((0.2, 5),),
)
log1p = elementwise(
    "log1p",
    np.log1p,
    spellings=(math.log1p,),
    type=inexact,
    scalar=ours("log1p", Text("c", _LOG1P, "z"), outside=("le", -1.0)),
    domain=((0.2, 5),),
    jvp=(lambda x_dot, y, x: div(x_dot, add(x, like(x, 1))),),
)
log2 = elementwise(
    "log2",
    np.log2,
    spellings=(math.log2,),
    type=inexact,
    scalar=ours("log2", _scaled_log("1.442695040888963407359924681001892137"), outside=("le", 0.0)),
    domain=((0.2, 5),),
    jvp=(lambda x_dot, y, x: div(x_dot, mul(x, like(x, LN2))),),
)
log10 = elementwise(
    "log10",
    np.log10,
    spellings=(math.log10,),
    type=inexact,
    scalar=ours("log10", _scaled_log("0.434294481903251827651128918916605082"), outside=("le", 0.0)),
    domain=((0.2, 5),),
    jvp=(lambda x_dot, y, x: div(x_dot, mul(x, like(x, LN10))),),
)
sqrt = elementwise(
    "sqrt",
    np.sqrt,
    spellings=(math.sqrt,),
    type=inexact,
    scalar=instruction(MEDIUM, builtin="sqrt", of_complex=True, outside=("lt", 0.0)),
    domain=((0.2, 5),),
    jvp=(lambda x_dot, y, x: div(mul(x_dot, like(y, 0.5)), y),),
)
cbrt = elementwise(
    "cbrt",
    np.cbrt,
    spellings=(math.cbrt,) if hasattr(math, "cbrt") else (),
    type=floating,
    scalar=ours("cbrt"),
    domain=((0.6, 3.3),),
    jvp=(lambda x_dot, y, x: div(x_dot, mul(like(y, 3), _square(y))),),
)


# --- circular and hyperbolic functions ---------------------------------------------------------------------

sin: Primitive = elementwise(
    "sin",
    np.sin,
    spellings=(math.sin,),
    type=inexact,
    scalar=library("sin", circular=True, of_complex=True, outside=("size", "eq", math.inf)),
    jvp=(lambda x_dot, y, x: mul(x_dot, cos(x)),),
)
cos: Primitive = elementwise(
    "cos",
    np.cos,
    spellings=(math.cos,),
    type=inexact,
    scalar=library("cos", circular=True, of_complex=True, outside=("size", "eq", math.inf)),
    jvp=(lambda x_dot, y, x: neg(mul(x_dot, sin(x))),),
)
tan = elementwise(
    "tan",
    np.tan,
    spellings=(math.tan,),
    type=inexact,
    scalar=library("tan", circular=True, of_complex=True, outside=("size", "eq", math.inf)),
    domain=((-1.4, 1.4),),
    jvp=(lambda x_dot, y, x: mul(x_dot, add(like(y, 1), _square(y))),),
)
arcsin = elementwise(
    "arcsin",
    np.arcsin,
    spellings=(math.asin,),
    type=inexact,
    scalar=ours("asin", of_complex=True, outside=("size", "gt", 1.0)),
    domain=((-0.95, 0.95),),
    jvp=(lambda x_dot, y, x: div(x_dot, _root(sub(like(x, 1), x), add(like(x, 1), x))),),
)
arccos = elementwise(
    "arccos",
    np.arccos,
    spellings=(math.acos,),
    type=inexact,
    scalar=ours("acos", of_complex=True, outside=("size", "gt", 1.0)),
    domain=((-0.95, 0.95),),
    jvp=(lambda x_dot, y, x: neg(div(x_dot, _root(sub(like(x, 1), x), add(like(x, 1), x)))),),
)
arctan = elementwise(
    "arctan",
    np.arctan,
    spellings=(math.atan,),
    type=inexact,
    scalar=ours("atan", of_complex=True),
    jvp=(lambda x_dot, y, x: div(x_dot, add(like(x, 1), _square(x))),),
)
sinh: Primitive = elementwise(
    "sinh",
    np.sinh,
    spellings=(math.sinh,),
    type=inexact,
    scalar=ours("sinh", of_complex=True, overflows=True),
    jvp=(lambda x_dot, y, x: mul(x_dot, cosh(x)),),
)
cosh: Primitive = elementwise(
    "cosh",
    np.cosh,
    spellings=(math.cosh,),
    type=inexact,
    scalar=ours("cosh", of_complex=True, overflows=True),
    jvp=(lambda x_dot, y, x: mul(x_dot, sinh(x)),),
)
tanh = elementwise(
    "tanh",
    np.tanh,
    spellings=(math.tanh,),
    type=inexact,
    scalar=ours("tanh", of_complex=True),
    jvp=(lambda x_dot, y, x: mul(x_dot, sub(like(y, 1), mul(y, y))),),
)
arcsinh = elementwise(
    "arcsinh",
    np.arcsinh,
    spellings=(math.asinh,),
    type=inexact,
    scalar=ours("asinh", of_complex=True),
    jvp=(lambda x_dot, y, x: div(x_dot, sqrt(add(_square(x), like(x, 1)))),),
)
arccosh = elementwise(
    "arccosh",
    np.arccosh,
    spellings=(math.acosh,),
    type=inexact,
    scalar=ours("acosh", of_complex=True, outside=("lt", 1.0)),
    domain=((1.1, 4),),
    jvp=(lambda x_dot, y, x: div(x_dot, _root(sub(x, like(x, 1)), add(x, like(x, 1)))),),
)
arctanh = elementwise(
    "arctanh",
    np.arctanh,
    spellings=(math.atanh,),
    type=inexact,
    scalar=ours("atanh", of_complex=True, outside=("size", "ge", 1.0)),
    domain=((-0.95, 0.95),),
    jvp=(lambda x_dot, y, x: div(x_dot, _one_minus_square(x)),),
)
arctan2 = elementwise(
    "arctan2",
    np.arctan2,
    spellings=(math.atan2,),
    type=floating,
    scalar=ours("atan2", operands=2),
    domain=((-3, 3), (0.5, 3)),
    jvp=(
        lambda a_dot, y, a, b: mul(a_dot, div(b, flat(add(_square(a), _square(b))))),
        lambda b_dot, y, a, b: neg(mul(b_dot, div(a, flat(add(_square(a), _square(b)))))),
    ),
    doc="The angle of the point (b, a).",
)

# --- rounding, signs and the make-up of a float ------------------------------------------------------------

floor = elementwise(
    "floor", np.floor, type=floating, jvp=(Zero,), scalar=instruction(MEDIUM, builtin="floor"), domain=((0.6, 3.3),)
)
ceil = elementwise(
    "ceil", np.ceil, type=floating, jvp=(Zero,), scalar=instruction(MEDIUM, builtin="ceil"), domain=((0.6, 3.3),)
)
trunc = elementwise(
    "trunc",
    np.trunc,
    spellings=(np.fix,),
    type=floating,
    jvp=(Zero,),
    scalar=instruction(MEDIUM, builtin="trunc"),
    domain=((0.6, 3.3),),
)
rint = elementwise(
    "rint",
    np.rint,
    type=floating,
    jvp=(Zero,),
    doc="The nearest integer, halves to even.",
    scalar=instruction(MEDIUM, builtin="rint"),
    domain=((0.6, 3.3),),
)


def _test(of_part: str, joined: str = "|") -> Scalar:
    """A test of a float, and of a complex number by its parts."""
    of_parts = f" {joined} ".join(f"({of_part.replace('x', part)})" for part in ("re(x)", "im(x)"))
    return instruction(CHEAP, Text("f", of_part), Text("c", of_parts), predicate=True)


isnan = elementwise("isnan", np.isnan, spellings=(math.isnan,), type=float_bool, jvp=(Zero,), scalar=_test("x != x"))
isinf = elementwise(
    "isinf", np.isinf, spellings=(math.isinf,), type=float_bool, jvp=(Zero,), scalar=_test("fabs$(x) == inf$()")
)
isfinite = elementwise(
    "isfinite",
    np.isfinite,
    spellings=(math.isfinite,),
    type=float_bool,
    jvp=(Zero,),
    scalar=_test("fabs$(x) < inf$()", "&"),
)
signbit = elementwise(
    "signbit",
    np.signbit,
    jvp=(Zero,),
    scalar=Scalar(CHEAP, predicate=True, texts=(Text("f", "signbit$(x) != 0"), Text("h", "u16_bits_of_T(x) >> 15"))),
    domain=((0.6, 3.3),),
    type=lambda x: floating(x).with_dtype(np.dtype(bool)),
    doc="True for -0.0 as well.",
)
copysign = elementwise(
    "copysign",
    np.copysign,
    spellings=(math.copysign,),
    type=floating,
    scalar=Scalar(MEDIUM, builtin="copysign", operands=2),
    domain=((0.5, 3), (-3, 3)),
    jvp=(lambda a_dot, y, a, b: select(ne(signbit(a), signbit(b)), neg(a_dot), a_dot), Zero),
    doc="|a| with the sign of b.",
)


def _next_half(dtype: str, infinity: int) -> Text:
    """By its bits: those of a half without its sign count up from 0 to `infinity`."""
    body = """\
u16 i = u16_bits_of_T(a), j = u16_bits_of_T(b);
int m = i & 0x7fff, n = j & 0x7fff, from = i >> 15 ? -m : m, to = j >> 15 ? -n : n;
if (n > INFINITY) return b;
if (m > INFINITY || from == to) return a;
return T_bits_of_u16(m == 0 ? (u16)((j & 0x8000) | 1) : (u16)(i + ((to > from) == (from > 0) ? 1 : -1)));
"""
    return Text(dtype, body.replace("INFINITY", hex(infinity)), "a, b")


nextafter = elementwise(
    "nextafter",
    np.nextafter,
    spellings=(math.nextafter,),
    type=floating,
    scalar=library("nextafter", _next_half("f16", 0x7C00), _next_half("bf16", 0x7F80), operands=2, side_by_side=False),
    jvp=(lambda a_dot, y, a, b: a_dot, Zero),
    doc="The float next to a on the way to b.",
)


def _identity(x: Array) -> Array:
    return x.plain


stop_gradient = elementwise(
    "stop_gradient",
    lambda x: x,
    type=_identity,
    jvp=(Zero,),
    native="identity",
    scalar=instruction(FREE),
    doc="x, whose derivative is said to be zero.",
)

sampled = elementwise(
    "sampled",
    lambda x: x,
    type=_identity,
    native="identity",
    jvp=(
        Unsupported(
            "samples that are drawn until one is accepted do not change smoothly with parameters; "
            "hold those constant: lax.stop_gradient(parameter)"
        ),
    ),
    doc="x, a parameter of a sampler that rejects.",
)

__all__ = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "cbrt",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "arctan2",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "copysign",
    "nextafter",
    "stop_gradient",
    "sampled",
    "abs_",
]
