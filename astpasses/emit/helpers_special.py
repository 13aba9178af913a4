"""Special functions that the C library lacks: erfinv, digamma, polygamma; and lgamma without its global sign.

In: a helper's name. Out: its `Helper`. Computed in double precision for both float types; meanings are
SciPy's.
"""

from __future__ import annotations

import re

from .helpers import Helper, _function

_BODIES: dict[str, tuple[str, str]] = {
    "lgamma": (
        "f64 x",
        """
int sign;
if (x == -__builtin_inf()) return x;
return 1/x == __builtin_inf() ? 1/x : f64_lgamma_r(x, &sign);
""",
    ),
    "digamma": (
        "f64 x",
        """
if (x == 0) return __builtin_copysign(__builtin_inf(), -x);
if (x == -__builtin_inf()) return __builtin_nan("");
f64 shift = 0;
if (x < 0) {
f64 whole = __builtin_trunc(x), part = x - whole;
if (part == 0) return __builtin_nan("");
shift = -3.14159265358979323846/f64_tan(3.14159265358979323846*part);
x = 1 - x;
}
if (x == __builtin_inf()) return x;
while (x < 10) { shift -= 1/x; x += 1; }
f64 z = 1/(x*x);
f64 tail = z*(8.33333333333333333333e-2 - z*(8.33333333333333333333e-3 - z*(3.96825396825396825397e-3
- z*(4.16666666666666666667e-3 - z*(7.57575757575757575758e-3 - z*(2.10927960927960927961e-2
- z*8.33333333333333333333e-2))))));
return shift + f64_log(x) - 0.5/x - tail;
""",
    ),
    "erfinv": (
        "f64 y",
        """
if (y != y || y < -1 || y > 1) return __builtin_nan("");
if (y == 1 || y == -1) return y*__builtin_inf();
if (__builtin_fabs(y) < 1e-8) return y*0.88622692545275801365;
f64 w = -f64_log((1 - y)*(1 + y)), p;
if (w < 6.25) {
w -= 3.125;
p = -3.6444120640178196996e-21;
f64 c[] = { -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17,
-1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15, -4.0545662729752068639e-14,
-8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
-1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352, -0.00074070253416626697512,
-0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356 };
for (int k = 0; k < 22; k++) p = c[k] + p*w;
} else if (w < 16) {
w = __builtin_sqrt(w) - 3.25;
p = 2.2137376921775787049e-09;
f64 c[] = { 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05,
-4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107,
0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635 };
for (int k = 0; k < 18; k++) p = c[k] + p*w;
} else {
w = __builtin_sqrt(w) - 5;
p = -2.7109920616438573243e-11;
f64 c[] = { -2.5556418169965252055e-10, 1.5076572693500548083e-09, -3.7894654401267369937e-09,
7.6157012080783393804e-09, -1.4960026627149240478e-08, 2.9147953450901080826e-08, -6.7711997758452339498e-08,
2.2900482228026654717e-07, -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
4.8499064014085844221 };
for (int k = 0; k < 16; k++) p = c[k] + p*w;
}
f64 x = p*y;
f64 slope = 1.12837916709551257390*f64_exp(-x*x), step;
if (y > 0.5) step = -(((1 - y) - f64_erfc(x)))/slope;
else if (y < -0.5) step = ((1 + y) - f64_erfc(-x))/slope;
else step = (y - f64_erf(x))/slope;
return slope > 0 ? x + step : x;
""",
    ),
    "polygamma": (
        "f64 order, f64 x",
        """
int n = (int)order;
f64 s = n + 1, factorial = 1, total = 0;
for (int k = 2; k <= n; k++) factorial *= k;
if (x <= 0 && __builtin_floor(x) == x) return n & 1 ? __builtin_inf() : -__builtin_inf();
if (x < 0) {
f64 low = x;
while (low < 0) { total += f64_pow(low, -s); low += 1; }
x = low;
}
while (x < 12) { total += f64_pow(x, -s); x += 1; }
f64 b[] = { 1./6, -1./30, 1./42, -1./30, 5./66, -691./2730, 7./6, -3617./510 };
total += f64_pow(x, 1 - s)/(s - 1) + 0.5*f64_pow(x, -s);
f64 rise = s, power = f64_pow(x, -s - 1), count = 2;
for (int k = 0; k < 8; k++) {
total += b[k]*rise/count*power;
rise *= (s + 2*k + 1)*(s + 2*k + 2);
power /= x*x;
count *= (2*k + 3)*(2*k + 4);
}
return (n & 1 ? 1 : -1)*factorial*total;
""",
    ),
}


def special_helper(name: str, t: str, operation: str) -> Helper | None:
    """The helper of a special function at f64; at f32 by way of f64."""
    if operation == "lgamma_r":
        return Helper(
            name, f'f64 {name}(f64 x, int* sign) __asm__("lgamma_r");', f"f64 {name}(f64 x, int* sign)"
        )
    if operation not in _BODIES:
        return None
    params, body = _BODIES[operation]
    if t == "f32":
        args = ", ".join(p.split()[1] for p in params.split(","))
        return _function(
            name,
            "f32",
            params.replace("f64", "f32"),
            f"return (f32)f64_{operation}({args});",
            (f"f64_{operation}",),
        )
    needs = tuple(sorted(set(re.findall(r"\bf64_\w+", body))))
    return _function(name, "f64", params, body, needs)
