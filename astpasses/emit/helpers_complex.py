"""Complex arithmetic for generated code: NumPy's algorithms on a pair of reals, the C library for the rest.

In: a helper's name (`c128_mul`). Out: its `Helper`. Division is Smith's, as in NumPy; C's own needs libgcc.
"""

from __future__ import annotations

import re

from metaphrase.core.scalars import facts

from .helpers import COMPLEX, FLOATS, Helper, _declared, _function

# operation -> (result, parameters, body): C is the complex type, R its real type, $ the suffix of C's names.
_BODIES: dict[str, tuple[str, str, str]] = {
    "of": ("C", "R re, R im", "return __builtin_complex(re, im);"),
    "real": ("R", "C z", "return __real__ z;"),
    "imag": ("R", "C z", "return __imag__ z;"),
    "conj": ("C", "C z", "return __builtin_complex(__real__ z, -__imag__ z);"),
    "neg": ("C", "C z", "return __builtin_complex(-__real__ z, -__imag__ z);"),
    "add": ("C", "C a, C b", "return __builtin_complex(__real__ a + __real__ b, __imag__ a + __imag__ b);"),
    "sub": ("C", "C a, C b", "return __builtin_complex(__real__ a - __real__ b, __imag__ a - __imag__ b);"),
    "mul": (
        "C",
        "C a, C b",
        """
R p = __real__ a, q = __imag__ a, r = __real__ b, s = __imag__ b;
return __builtin_complex(p*r - q*s, p*s + q*r);
""",
    ),
    "div": (
        "C",
        "C a, C b",
        """
R p = __real__ a, q = __imag__ a, r = __real__ b, s = __imag__ b;
R size_r = __builtin_fabs$(r), size_s = __builtin_fabs$(s);
if (size_r >= size_s) {
if (size_r == 0 && size_s == 0) return __builtin_complex(p/size_r, q/size_s);
R ratio = s/r, scale = 1/(r + s*ratio);
return __builtin_complex((p + q*ratio)*scale, (q - p*ratio)*scale);
}
R ratio = r/s, scale = 1/(s + r*ratio);
return __builtin_complex((p*ratio + q)*scale, (q*ratio - p)*scale);
""",
    ),
    "abs": ("R", "C z", "return __builtin_hypot$(__real__ z, __imag__ z);"),
    "eq": ("b1", "C a, C b", "return (__real__ a == __real__ b) & (__imag__ a == __imag__ b);"),
    "ne": ("b1", "C a, C b", "return (__real__ a != __real__ b) | (__imag__ a != __imag__ b);"),
    "isnan": ("b1", "C z", "return (__real__ z != __real__ z) | (__imag__ z != __imag__ z);"),
    "isfinite": (
        "b1",
        "C z",
        "return (__builtin_fabs$(__real__ z) < __builtin_inf$()) & "
        "(__builtin_fabs$(__imag__ z) < __builtin_inf$());",
    ),
    "isinf": (
        "b1",
        "C z",
        "return (__builtin_fabs$(__real__ z) == __builtin_inf$()) | "
        "(__builtin_fabs$(__imag__ z) == __builtin_inf$());",
    ),
    "select": ("C", "b1 c, C a, C b", "return c ? a : b;"),
    "sign": (
        "C",
        "C z",
        """
R size = __builtin_hypot$(__real__ z, __imag__ z);
if (size == 0) return z;
if (__builtin_isinf(size)) {
int wide = __builtin_isinf(__real__ z), high = __builtin_isinf(__imag__ z);
R nan = __builtin_nan$("");
if (wide && high) return __builtin_complex(nan, nan);
if (wide) return __builtin_complex(__builtin_copysign$(1, __real__ z), (R)0);
if (high) return __builtin_complex((R)0, __builtin_copysign$(1, __imag__ z));
}
return __builtin_complex(__real__ z/size, __imag__ z/size);
""",
    ),
    "log2": (
        "C",
        "C z",
        "C w = C_log(z);\nR k = (R)1.442695040888963407359924681001892137;\n"
        "return __builtin_complex(__real__ w*k, __imag__ w*k);",
    ),
    "log10": (
        "C",
        "C z",
        "C w = C_log(z);\nR k = (R)0.434294481903251827651128918916605082;\n"
        "return __builtin_complex(__real__ w*k, __imag__ w*k);",
    ),
    "log1p": (
        "C",
        "C z",
        """
R x = __real__ z, y = __imag__ z, size = __builtin_hypot$(x + 1, y);
return __builtin_complex(R_log(size), R_arctan2(y, x + 1));
""",
    ),
    "expm1": (
        "C",
        "C z",
        """
R x = __real__ z, y = __imag__ z, s = R_sin(y/2);
return __builtin_complex(R_expm1(x)*R_cos(y) - 2*s*s, R_exp(x)*R_sin(y));
""",
    ),
    "exp2": (
        "C",
        "C z",
        "R k = (R)0.693147180559945309417232121458176568;\n"
        "return C_exp(__builtin_complex(__real__ z*k, __imag__ z*k));",
    ),
    "pow": (
        "C",
        "C a, C b",
        """
R r = __real__ b, s = __imag__ b;
if (r == 0 && s == 0) return __builtin_complex((R)1, (R)0);
if (__real__ a == 0 && __imag__ a == 0) {
if (r > 0 && s == 0) return __builtin_complex((R)0, (R)0);
return __builtin_complex(__builtin_nan$(""), __builtin_nan$(""));
}
int n = r > -100 && r < 100 ? (int)r : 100;
if (s == 0 && r == n && n < 100) {
C p = a, out = __builtin_complex((R)1, (R)0);
for (int k = n < 0 ? -n : n; k; k >>= 1) { if (k & 1) out = C_mul(out, p); p = C_mul(p, p); }
return n < 0 ? C_div(__builtin_complex((R)1, (R)0), out) : out;
}
return C_libpow(a, b);
""",
    ),
}


def complex_helper(name: str, t: str, operation: str) -> Helper | None:
    """The helper of one operation on complex numbers."""
    real = COMPLEX[t]
    suffix = FLOATS[real][1]
    function = "cpow" if operation == "libpow" else facts(operation).of_complex
    if function:
        declaration = f"{t} {name}({f'{t} z, {t} w' if operation == 'libpow' else f'{t} z'})"
        return Helper(name, f'{declaration} __asm__("{function}{suffix}");', declaration)
    rows = _declared(facts(operation), "c") or _BODIES.get(operation)
    if rows is None:
        return None
    result, params, body = (re.sub(r"\bR\b", real, re.sub(r"\b[CT]\b", t, x)) for x in rows)
    body = body.replace("C_", t + "_").replace("R_", real + "_").replace("$", suffix)
    needs = tuple(sorted(set(re.findall(rf"\b(?:{t}|{real})_\w+", body)) - {name}))
    return _function(name, result, params, body, needs)
