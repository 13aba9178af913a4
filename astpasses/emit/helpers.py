"""The C that generated Cython leans on: one small inline function for each operation that C or Cython spells
otherwise.

In: a helper's name (`f64_max`). Out: its C text, its Cython declaration, the helpers it needs. NumPy's
results are the rule: NaN goes through `max`, x // 0 is 0 for integers, shifts by the width or more give 0,
products wrap around.

    >>> helper("i64_mod").c.splitlines()[0]
    'static inline i64 i64_mod(i64 a, i64 b) {'
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from metaphrase.core.scalars import Scalar, facts
from metaphrase.ops.counters import PARITY, ROTATIONS

FLOATS = {"f64": ("double", ""), "f32": ("float", "f")}
INTEGERS = {
    "i64": ("long long", 64),
    "i32": ("int", 32),
    "i16": ("short", 16),
    "i8": ("signed char", 8),
    "u64": ("unsigned long long", 64),
    "u32": ("unsigned int", 32),
    "u16": ("unsigned short", 16),
    "u8": ("unsigned char", 8),
}
COMPLEX = {"c128": "f64", "c64": "f32"}
HALVES = {"f16": "unsigned short", "bf16": "unsigned short"}


@dataclass(frozen=True)
class Helper:
    """`c`: the definition. `declaration`: for Cython. `needs`: names of other helpers."""

    name: str
    c: str
    declaration: str
    needs: tuple[str, ...] = ()


def _function(name: str, result: str, params: str, body: str, needs: tuple[str, ...] = ()) -> Helper:
    body = body.strip("\n")
    lines = body.splitlines()
    text = (
        f"static inline {result} {name}({params}) {{ {body} }}"
        if len(lines) == 1
        else (
            f"static inline {result} {name}({params}) {{\n"
            + "\n".join("    " + x.strip() for x in lines)
            + "\n}"
        )
    )
    return Helper(name, text, f"{result} {name}({params})", needs)


@functools.cache
def helper(name: str) -> Helper:
    """The helper called `type_operation`."""
    t, operation = name.split("_", 1)
    if operation.startswith("bits_of_"):
        source = operation.removeprefix("bits_of_")
        body = f"union {{ {source} from; {t} to; }} bits = {{ x }};\nreturn bits.to;"
        made: Helper | None = _function(name, t, f"{source} x", body)
    elif t in FLOATS:
        made = _float(name, t, operation)
    elif t in INTEGERS:
        made = _integer(name, t, operation)
    elif t in COMPLEX:
        from .helpers_complex import complex_helper

        made = complex_helper(name, t, operation)
    elif t == "b1":
        made = {"select": _function(name, "b1", "b1 c, b1 a, b1 b", "return c ? a : b;")}.get(operation)
    elif t in HALVES:
        made = _half(name, t, operation)
    else:
        made = None
    if made is None:
        raise KeyError(f"no native spelling for {operation} on {t}")
    return made


def with_needs(names: set[str]) -> list[Helper]:
    """The helpers of `names` and all they need, each after what it needs."""
    done: dict[str, Helper] = {}

    def add(name: str) -> None:
        if name not in done:
            made = helper(name)
            for need in made.needs:
                add(need)
            done[name] = made

    for name in sorted(names):
        add(name)
    return list(done.values())


def _declared(scalar: Scalar, kind: str) -> tuple[str, str, str] | None:
    """The C that the declaration of an operation gives for operands of a kind."""
    text = dict(scalar.texts).get(kind)
    return None if text is None else (text.result, text.parameters, text.body)


def _float(name: str, t: str, operation: str) -> Helper | None:
    suffix = FLOATS[t][1]
    scalar = facts(operation)
    params = ", ".join(f"{t} {x}" for x in "xyz"[: scalar.operands])
    if scalar.library:
        # glibc has vector versions of some: with MP_SIMD gcc uses them in loops. The asm label keeps gcc from
        # taking the name for its builtin and merging sin and cos into one scalar call.
        simd = "MP_SIMD " if scalar.side_by_side else ""
        declaration = f"{t} {name}({params})"
        return Helper(name, f'{simd}{declaration} __asm__("{scalar.library}{suffix}");', declaration)
    if scalar.builtin:
        call = f"__builtin_{scalar.builtin}{suffix}({', '.join('xyz'[: scalar.operands])})"
        return _function(name, t, params, f"return {call};")
    if operation in ("special_inf", "special_nan"):
        text = f"__builtin_inf{suffix}()" if operation == "special_inf" else f'__builtin_nan{suffix}("")'
        return _function(name, t, "void", f"return {text};")
    body = _declared(scalar, "f") or _FLOAT_BODIES.get(operation)
    if body is None:
        from .helpers_special import special_helper

        return special_helper(name, t, operation)
    result, params, text = body
    text = re.sub(r"\bT\b", t, text.replace("T_", t + "_")).replace("$", suffix)
    needs = tuple(sorted(set(re.findall(rf"\b{t}_\w+", text)) - {name}))
    return _function(name, result.replace("T", t), params.replace("T", t), text, needs)


# operation -> (result, parameters, body); T is the type, T_x another helper of it, $ the suffix of C's names.
_FLOAT_BODIES: dict[str, tuple[str, str, str]] = {
    "select": ("T", "b1 c, T a, T b", "return c ? a : b;"),
    # Of 0.0 and -0.0, which are equal, the second, as NumPy gives it.
    "max": ("T", "T a, T b", "return (a > b) | (a != a) ? a : b;"),
    "min": ("T", "T a, T b", "return (a < b) | (a != a) ? a : b;"),
    "sign": ("T", "T x", "return x != x ? x : (x > 0) - (x < 0);"),
    "isnan": ("b1", "T x", "return x != x;"),
    "isinf": ("b1", "T x", "return __builtin_fabs$(x) == __builtin_inf$();"),
    "isfinite": ("b1", "T x", "return __builtin_fabs$(x) < __builtin_inf$();"),
    "signbit": ("b1", "T x", "return __builtin_signbit(x) != 0;"),
    "bits": ("i64", "T x", "union { T f; i64 i; } v = { x };\nreturn v.i;"),
    # Powers by roots, within 2 ulp; -0.0 and -inf as pow has them.
    "pow_1_2": ("T", "T x", "return x == -__builtin_inf$() ? -x : __builtin_sqrt$(x + 0);"),
    "pow_3_2": ("T", "T x", "x += 0; return x == -__builtin_inf$() ? -x : x*__builtin_sqrt$(x);"),
    "pow_m1_2": ("T", "T x", "return x == -__builtin_inf$() ? 0 : 1/__builtin_sqrt$(x + 0);"),
    "pow_m3_2": ("T", "T x", "x += 0; return x == -__builtin_inf$() ? 0 : 1/x*(1/__builtin_sqrt$(x));"),
    "mod": (
        "T",
        "T a, T b",
        """
T m = T_fmod(a, b);
if (b == 0) return m;
if (m != 0) return (b < 0) != (m < 0) ? m + b : m;
return __builtin_copysign$(0, b);
""",
    ),
    "floor_div": (
        "T",
        "T a, T b",
        """
if (b == 0) return a/b;
T m = T_fmod(a, b), d = (a - m)/b;
if (m != 0 && (b < 0) != (m < 0)) d -= 1;
if (d == 0) return __builtin_copysign$(0, a/b);
T f = __builtin_floor$(d);
return d - f > (T)0.5 ? f + 1 : f;
""",
    ),
    "logaddexp": (
        "T",
        "T a, T b",
        """
if (a == b) return a + (T)0.693147180559945309417232121458176568;
T d = a - b;
if (d > 0) return a + T_log1p(T_exp(-d));
if (d <= 0) return b + T_log1p(T_exp(d));
return d;
""",
    ),
    "logaddexp2": (
        "T",
        "T a, T b",
        """
if (a == b) return a + 1;
T d = a - b;
if (d > 0) return a + (T)1.442695040888963407359924681001892137*T_log1p(T_exp2(-d));
if (d <= 0) return b + (T)1.442695040888963407359924681001892137*T_log1p(T_exp2(d));
return d;
""",
    ),
}


def _integer(name: str, t: str, operation: str) -> Helper | None:
    width, signed = INTEGERS[t][1], t[0] == "i"
    bodies = {
        "select": ("b1 c, T a, T b", "return c ? a : b;"),
        "max": ("T a, T b", "return a > b ? a : b;"),
        "min": ("T a, T b", "return a < b ? a : b;"),
        "abs": ("T x", "return x < 0 ? (T)-x : x;" if signed else "return x;"),
        "sign": ("T x", "return (x > 0) - (x < 0);" if signed else "return x > 0;"),
        "floor_div": (
            "T a, T b",
            """
if (b == 0) return 0;
if (b == -1) return (T)-a;
return a/b - ((a%b != 0) & ((a < 0) != (b < 0)));
"""
            if signed
            else "return b == 0 ? 0 : a/b;",
        ),
        "mod": (
            "T a, T b",
            """
if (b == 0 || b == -1) return 0;
T m = a%b;
return (m != 0) & ((m < 0) != (b < 0)) ? m + b : m;
"""
            if signed
            else "return b == 0 ? 0 : a%b;",
        ),
        "fmod": ("T a, T b", "return b == 0 || b == -1 ? 0 : a%b;" if signed else "return b == 0 ? 0 : a%b;"),
        "shift_left": ("T a, T b", f"return (U)b < {width} ? (T)((U)a << b) : 0;"),
        "shift_right": (
            "T a, T b",
            f"return (U)b < {width} ? a >> b : {'(T)(a < 0 ? -1 : 0)' if signed else '0'};",
        ),
        "popcount": (
            "T x",
            f"U size = {'x < 0 ? -(U)x : (U)x' if signed else 'x'};\n"
            f"return __builtin_popcountll((unsigned long long)size & (~0ULL >> {64 - width}));",
        ),
        "pow": (
            "T a, T b",
            ("if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;\n" if signed else "")
            + """
T r = 1;
while (b) { if (b & 1) r = (T)((U)r*(U)a); a = (T)((U)a*(U)a); b >>= 1; }
return r;
""",
        ),
    }
    if t == "u64":
        bodies["threefry"] = ("T a, T b", _threefry())
    bodies["remainder"] = bodies["mod"]
    declared = _declared(facts(operation), t[0])
    if declared is None and operation not in bodies:
        return None
    result, params, body = declared or ("T", *bodies[operation])
    unsigned = "u64" if width == 64 else "u32"  # narrow products are made in 32 bits and cut
    if not signed:
        body = body.replace("b == 0 || b == -1", "b == 0")
    text = re.sub(r"\bT\b", t, body)
    text = re.sub(r"\bU\b", unsigned if operation == "pow" else "u" + t[1:], text)
    return _function(name, re.sub(r"\bT\b", t, result), re.sub(r"\bT\b", t, params), text)


def _threefry() -> str:
    """Twenty rounds in five groups of four; after each the key's words go in, in turn."""
    rows = [f"unsigned int k0 = a >> 32, k1 = a, k2 = k0 ^ k1 ^ {PARITY}u, x = (b >> 32) + k0, y = b + k1;"]
    for step in range(5):
        for bits in ROTATIONS[step % 2]:
            rows.append(f"x += y; y = (y << {bits} | y >> {32 - bits}) ^ x;")
        rows.append(f"x += k{(step + 1) % 3}; y += k{(step + 2) % 3} + {step + 1};")
    return "\n".join([*rows, "return (T)x << 32 | y;"])


_NEXT_HALF = """
union { T f; u16 i; } x = { a }, y = { b };
int m = x.i & 0x7fff, n = y.i & 0x7fff, from = x.i >> 15 ? -m : m, to = y.i >> 15 ? -n : n;
if (n > INF) return b;
if (m > INF || from == to) return a;
x.i = m == 0 ? (u16)((y.i & 0x8000) | 1) : (u16)(x.i + ((to > from) == (from > 0) ? 1 : -1));
return x.f;
"""


def _half(name: str, t: str, operation: str) -> Helper | None:
    """Two bytes in memory, f32 in arithmetic."""
    if operation == "select":
        return _function(name, t, f"b1 c, {t} a, {t} b", "return c ? a : b;")
    if operation == "nextafter":
        infinity = "0x7c00" if t == "f16" else "0x7f80"
        return _function(name, t, f"{t} a, {t} b", _NEXT_HALF.replace("INF", infinity).replace("T ", f"{t} "))
    if operation == "to_f32" and t == "f16":
        return _function(name, "f32", "f16 x", "return (f32)x;")
    if operation == "of_f32" and t == "f16":
        return _function(name, "f16", "f32 x", "return (f16)x;")
    if operation == "of_f64" and t == "f16":
        return _function(name, "f16", "f64 x", "return (f16)x;")
    if operation == "to_f32":
        return _function(name, "f32", "bf16 x", "union { u32 i; f32 f; } v = { (u32)x << 16 };\nreturn v.f;")
    if operation == "of_f32":
        return _function(
            name,
            "bf16",
            "f32 x",
            """
union { f32 f; u32 i; } v = { x };
if (x != x) return (bf16)(v.i >> 16 & 0x8000u) | 0x7fc0u;
return (bf16)((v.i + 0x7fffu + (v.i >> 16 & 1u)) >> 16);
""",
        )
    if operation == "of_f64":
        return _function(name, "bf16", "f64 x", "return bf16_of_f32((f32)x);", ("bf16_of_f32",))
    return None
