"""Special functions, elementwise: sinc, the error function and its inverse, log-gamma and its derivatives.

In: f32 or f64 arrays. Out: arrays of that type. Their meaning is SciPy's, of `sinc` NumPy's.

    y: f64[n] = erf(x)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.foreign import Foreign
from ..core.primitive import Primitive
from ..core.scalars import Scalar, Text, library
from ..core.types import Array
from .arithmetic import abs_, add, div, mul, neg, sub
from .compare import lt, select
from .elementary import cos, exp
from .families import elementwise, inexact, library_float, like, require

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _gauss(x: Any) -> Any:
    """The derivative of erf: 2/sqrt(pi) exp(-x*x)."""
    return mul(like(x, TWO_OVER_ROOT_PI), exp(neg(mul(x, x))))


# --- in C, where its library has none -----------------------------------------------------------------------

_ERFINV = """\
if (y != y || y < -1 || y > 1) return nan$("");
if (y == 1 || y == -1) return y*inf$();
if (fabs$(y) < 1e-8) return y*0.88622692545275801365;
T w = -T_log((1 - y)*(1 + y)), p;
if (w < 6.25) {
w -= 3.125;
p = -3.6444120640178196996e-21;
T c[] = { -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17,
-1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15, -4.0545662729752068639e-14,
-8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
-1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352, -0.00074070253416626697512,
-0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356 };
for (int k = 0; k < 22; k++) p = c[k] + p*w;
} else if (w < 16) {
w = sqrt$(w) - 3.25;
p = 2.2137376921775787049e-09;
T c[] = { 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05,
-4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107,
0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635 };
for (int k = 0; k < 18; k++) p = c[k] + p*w;
} else {
w = sqrt$(w) - 5;
p = -2.7109920616438573243e-11;
T c[] = { -2.5556418169965252055e-10, 1.5076572693500548083e-09, -3.7894654401267369937e-09,
7.6157012080783393804e-09, -1.4960026627149240478e-08, 2.9147953450901080826e-08, -6.7711997758452339498e-08,
2.2900482228026654717e-07, -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
4.8499064014085844221 };
for (int k = 0; k < 16; k++) p = c[k] + p*w;
}
T x = p*y;
T slope = 1.12837916709551257390*T_exp(-x*x), step;
if (y > 0.5) step = -(((1 - y) - T_erfc(x)))/slope;
else if (y < -0.5) step = ((1 + y) - T_erfc(-x))/slope;
else step = (y - T_erf(x))/slope;
return slope > 0 ? x + step : x;
"""
_DIGAMMA = """\
if (x == 0) return copysign$(inf$(), -x);
if (x == -inf$()) return nan$("");
T shift = 0;
if (x < 0) {
T whole = trunc$(x), part = x - whole;
if (part == 0) return nan$("");
shift = -3.14159265358979323846/T_tan(3.14159265358979323846*part);
x = 1 - x;
}
if (x == inf$()) return x;
while (x < 10) { shift -= 1/x; x += 1; }
T z = 1/(x*x);
T tail = z*(8.33333333333333333333e-2 - z*(8.33333333333333333333e-3 - z*(3.96825396825396825397e-3
- z*(4.16666666666666666667e-3 - z*(7.57575757575757575758e-3 - z*(2.10927960927960927961e-2
- z*8.33333333333333333333e-2))))));
return shift + T_log(x) - 0.5/x - tail;
"""
_POLYGAMMA = """\
int n = (int)order;
T s = n + 1, factorial = 1, total = 0;
for (int k = 2; k <= n; k++) factorial *= k;
if (x <= 0 && floor$(x) == x) return n & 1 ? inf$() : -inf$();
if (x < 0) {
T low = x;
while (low < 0) { total += T_pow(low, -s); low += 1; }
x = low;
}
while (x < 12) { total += T_pow(x, -s); x += 1; }
T b[] = { 1./6, -1./30, 1./42, -1./30, 5./66, -691./2730, 7./6, -3617./510 };
total += T_pow(x, 1 - s)/(s - 1) + 0.5*T_pow(x, -s);
T rise = s, power = T_pow(x, -s - 1), count = 2;
for (int k = 0; k < 8; k++) {
total += b[k]*rise/count*power;
rise *= (s + 2*k + 1)*(s + 2*k + 2);
power /= x*x;
count *= (2*k + 3)*(2*k + 4);
}
return (n & 1 ? 1 : -1)*factorial*total;
"""
_LGAMMA = "int sign;\nreturn x == -inf$() ? x : 1/x == inf$() ? 1/x : lgamma_r$(x, &sign);"  # no global sign


def _of_doubles(name: str, body: str, parameters: str = "x", cuda: str | None = None) -> Scalar:
    """The declaration of a function that is computed in double precision, for floats too."""
    of_floats = Text("f32", f"(T)f64_{name}({parameters})", parameters)
    return Scalar(texts=(Text("f64", body, parameters), of_floats), cuda=cuda)


erf = elementwise(
    "erf",
    Foreign("scipy.special", "erf"),
    spellings=(math.erf,),
    type=library_float,
    scalar=library("erf"),
    jvp=(lambda x_dot, y, x: mul(x_dot, _gauss(x)),),
)
erfc = elementwise(
    "erfc",
    Foreign("scipy.special", "erfc"),
    spellings=(math.erfc,),
    type=library_float,
    scalar=library("erfc"),
    jvp=(lambda x_dot, y, x: neg(mul(x_dot, _gauss(x))),),
)
erfinv = elementwise(
    "erfinv",
    Foreign("scipy.special", "erfinv"),
    type=library_float,
    domain=((-0.95, 0.95),),
    scalar=_of_doubles("erfinv", _ERFINV, "y", cuda="erfinv"),
    jvp=(lambda x_dot, y, x: mul(x_dot, mul(like(y, 1 / TWO_OVER_ROOT_PI), exp(mul(y, y)))),),
)
lgamma = elementwise(
    "lgamma",
    Foreign("scipy.special", "gammaln"),
    spellings=(math.lgamma,),
    domain=((0.2, 9),),
    type=library_float,
    jvp=(lambda x_dot, y, x: mul(x_dot, digamma(x)),),
    scalar=_of_doubles("lgamma", _LGAMMA),
    doc="log(|gamma(x)|).",
)
digamma: Primitive = elementwise(
    "digamma",
    Foreign("scipy.special", "digamma"),
    type=library_float,
    domain=((0.2, 9),),
    jvp=(lambda x_dot, y, x: mul(x_dot, polygamma(x, order=1)),),
    scalar=_of_doubles("digamma", _DIGAMMA),
    doc="Derivative of lgamma.",
)

tgamma = elementwise(
    "tgamma",
    Foreign("scipy.special", "gamma"),
    type=library_float,
    scalar=library("tgamma", side_by_side=False),
    domain=((0.2, 5),),
    jvp=(lambda x_dot, y, x: mul(x_dot, mul(y, digamma(x))),),
    doc="The gamma function.",
)


_polygamma_of_scipy = Foreign("scipy.special", "polygamma")


def _polygamma_type(x: Array, *, order: int) -> Array:
    require(isinstance(order, int) and order >= 1, lambda: f"polygamma: order {order!r} is not a positive integer")
    return library_float(x)


def _polygamma_numpy(x: Any, *, order: int) -> Any:
    return np.asarray(_polygamma_of_scipy(order, x)).astype(np.asarray(x).dtype)[()]


polygamma: Primitive = elementwise(
    "polygamma",
    _polygamma_numpy,
    spellings=(_polygamma_of_scipy,),
    type=_polygamma_type,
    jvp=(lambda x_dot, y, x, *, order: mul(x_dot, polygamma(x, order=order + 1)),),
    scalar=_of_doubles("polygamma", _POLYGAMMA, "order, x"),
    doc="The derivative of digamma of the given order.",
)

# Of a tiny y sin(y)/y is 1, to the last bit; a branch would be in the way of vectors.
_SINC = "T y = x == 0 ? (T)1e-20 : (T)3.141592653589793238462643383279502884*x;\nreturn T_sin(y)/y;"
_COMPLEX_SINC = """\
if (re(x) == 0 && im(x) == 0) return pair((R)1, (R)0);
R k = (R)3.141592653589793238462643383279502884;
T y = pair(k*re(x), k*im(x));
return T_div(T_sin(y), y);
"""


def _sinc_slope(y: Any, x: Any) -> Any:
    """(cos(pi x) - sinc(x)) / x; near 0, where these cancel, the first terms of its series, whose rest is lost in
    rounding there."""
    near = lt(abs_(x), like(abs_(x), 1 / 32))
    square = mul(x, x)
    terms = [(-1) ** k * math.pi ** (2 * k) * 2 * k / math.factorial(2 * k + 1) for k in range(1, 6)]
    series = like(x, terms.pop())
    while terms:
        series = add(like(x, terms.pop()), mul(square, series))
    away = select(near, like(x, 1), x)
    return select(near, mul(x, series), div(sub(cos(mul(like(x, math.pi), away)), y), away))


def _sinc_type(x: Array) -> Array:
    require(x.dtype.itemsize > 2, lambda: f"sinc: needs floats of 4 bytes or more, got {x}")
    return inexact(x)


sinc = elementwise(
    "sinc",
    np.sinc,
    type=_sinc_type,
    scalar=Scalar(side_by_side=True, texts=(Text("f", _SINC), Text("c", _COMPLEX_SINC))),
    jvp=(lambda x_dot, y, x: mul(x_dot, _sinc_slope(y, x)),),
    doc="sin(pi x) / (pi x), and 1 at 0.",
)

__all__ = ["sinc", "erf", "erfc", "erfinv", "lgamma", "tgamma", "digamma", "polygamma"]
