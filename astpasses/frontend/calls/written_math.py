"""Functions of `math`, and loops around functions that NumPy calls, in plain Python: staged like a user's.

In: the arguments of the call. Out: what `math` or NumPy give; loops stay loops.

    math.gcd(k, 12)   is   gcd(k, 12), a while loop, where k is staged
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..operators.arithmetic import operand, resolve
from ..operators.kinds import dtype_of
from ..operators.protocols import operate
from ..values.staged_values import Number
from .call import answers, call_value, handles
from .creation import array_from
from .methods import item


def staged_as_written(function: Callable) -> Callable:
    """A handler that stages what we wrote as it stages what users write."""
    return functools.wraps(function)(lambda *args, **keywords: call_value(function, args, keywords))


def of_integers(function: Callable) -> Callable:
    """The same, for a function that takes no floats, and computes with Python's ints."""
    whole = lambda given: {name: _whole(value) for name, value in given.items()}
    return functools.wraps(function)(lambda *a, **k: call_value(function, tuple(map(_whole, a)), whole(k)))


def _whole(value: Any) -> Any:
    if isinstance(value, (Number, float, complex)) and np.dtype(getattr(value, "dtype", type(value))).kind in "fc":
        kind = type(value) if not isinstance(value, Number) else value.python or value.dtype.type
        raise TypeError(f"'{kind.__name__}' object cannot be interpreted as an integer")
    return call_value(int, (value,), {}) if isinstance(value, (Number, np.integer)) else value


# --- math ---


def gcd_of_two(a, b):
    a, b = abs(a), abs(b)
    while b != 0:
        a, b = b, a % b
    return a


def gcd(*integers):
    total = 0
    for value in integers:
        total = gcd_of_two(total, value)
    return total


def lcm(*integers):
    total = 1
    for value in integers:
        common = gcd_of_two(total, value)
        total = 0 if common == 0 else abs(total * (value // common))
    return total


def factorial(n):
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    total = 1
    for k in range(2, n + 1):
        total = total * k
    return total


def comb(n, k):
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    total = 1 if k <= n else 0
    for i in range(min(k, n - k)):
        total = total * (n - i) // (i + 1)
    return total


def perm(n, k=None):
    if k is None:
        return factorial(n)
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    total = 1
    for i in range(k):
        total = total * (n - i)
    return total


def isqrt(n):
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    root = min(int(math.sqrt(n)), 3037000499)
    while root * root > n:
        root = root - 1
    while root < 3037000499 and (root + 1) * (root + 1) <= n:
        root = root + 1
    return root


def power_modulo(base, exponent, modulus):
    if modulus == 0:
        raise ValueError("pow() 3rd argument cannot be 0")
    factor = base % modulus
    if exponent < 0:
        common, rest, factor, other = factor, modulus, 1, 0
        while rest != 0:
            common, rest, factor, other = rest, common % rest, other, factor - common // rest * other
        if abs(common) != 1:
            raise ValueError("base is not invertible for the given modulus")
        factor, exponent = factor * common % modulus, -exponent
    total = 1 % modulus
    while exponent > 0:
        if exponent % 2 == 1:
            total = total * factor % modulus
        factor, exponent = factor * factor % modulus, exponent // 2
    return total


def prod(iterable, *, start=1):
    total = start
    for value in iterable:
        total = total * value
    return total


def sumprod(p, q):
    total = 0
    for a, b in zip(p, q, strict=True):
        total = total + a * b
    return total


def dist(p, q):
    total = 0.0
    for a, b in zip(p, q, strict=True):
        total = math.hypot(total, float(a) - float(b))
    return total


def remainder(x, y):
    x, y = float(x), float(y)
    if math.isnan(x) or math.isnan(y):
        return x + y
    if math.isinf(x) or y == 0:
        raise ValueError("math domain error")
    if math.isinf(y):
        return x
    size, unit = abs(x), abs(y)
    rest = math.fmod(size, unit)
    other = unit - rest
    if rest < other:
        near = rest
    elif rest > other:
        near = -other
    else:
        near = rest - 2.0 * math.fmod(0.5 * (size - rest), unit)
    return math.copysign(1.0, x) * near


def modf(x):
    rest, whole = np.modf(float(x))
    return float(rest), float(whole)


def frexp(x):
    part, exponent = np.frexp(float(x))
    return float(part), int(exponent)


def ldexp(x, i):
    made = float(np.ldexp(float(x), i))
    if math.isinf(made) and math.isfinite(x):
        raise OverflowError("math range error")
    return made


def ulp(x):
    x = abs(float(x))
    if math.isinf(x) or math.isnan(x):
        return x
    above = math.nextafter(x, math.inf)
    return x - math.nextafter(x, -math.inf) if math.isinf(above) else above - x


@handles(pow)
def pow_(base: Any, exp: Any, mod: Any = None) -> Any:
    if mod is None:
        return operate("**", base, exp)
    if any(np.dtype(getattr(v, "dtype", type(v))).kind not in "iub" for v in (base, exp, mod)):
        raise TypeError("pow() 3rd argument not allowed unless all arguments are integers")
    return of_integers(power_modulo)(base, exp, mod)


for _written in (prod, dist, remainder, modf, frexp, ldexp, ulp):
    answers(getattr(math, _written.__name__))(staged_as_written(_written))
for _written in (gcd, lcm, factorial, comb, perm, isqrt):
    answers(getattr(math, _written.__name__))(of_integers(_written))
if hasattr(math, "sumprod"):
    answers(math.sumprod)(staged_as_written(sumprod))


# --- NumPy ---


def integers_gcd(a, b):
    while np.any(b != 0):
        done = b == 0
        a, b = np.where(done, a, b), np.where(done, b, a % np.where(done, 1, b))
    return a


def array_gcd(x1, x2, kind, sizes):
    """`sizes`: the unsigned integers that hold the sizes of those of `kind`, the least one's too."""
    a, b = np.broadcast_arrays(np.asarray(x1, dtype=kind), np.asarray(x2, dtype=kind))
    a, b = np.abs(a).astype(sizes), np.abs(b).astype(sizes)
    return integers_gcd(a, b).astype(kind)


def array_lcm(x1, x2, kind, sizes):
    a, b = np.broadcast_arrays(np.asarray(x1, dtype=kind), np.asarray(x2, dtype=kind))
    a, b = np.abs(a).astype(sizes), np.abs(b).astype(sizes)
    common = integers_gcd(a, b)
    return np.where(common == 0, 0, a // np.where(common == 0, 1, common) * b).astype(kind)[()]


def _of_integer_arrays(function: np.ufunc, program: Callable) -> Callable:
    def handler(x1: Any, x2: Any) -> Any:
        values = operand(x1), operand(x2)
        kind = resolve(function, [dtype_of(v) for v in values])[0]
        return call_value(program, (*values, kind, np.dtype(f"u{kind.itemsize}")), {})

    return handler


answers(np.gcd)(_of_integer_arrays(np.gcd, array_gcd))
answers(np.lcm)(_of_integer_arrays(np.lcm, array_lcm))


# --- methods of ufuncs ---


def folded(function, rows, total):
    for row in rows:
        total = function(total, row)
    return total


def folded_parts(function, rows, places, kind):
    made = np.empty((len(places), *rows.shape[1:]), kind)
    for k in range(len(places)):
        first, last = places[k], places[k + 1] if k + 1 < len(places) else len(rows)
        if first < 0 or first >= len(rows):
            raise IndexError(f"index {first} out-of-bounds in {function.__name__}.reduceat [0, {len(rows)})")
        made[k] = rows[first]
        for i in range(first + 1, last):
            made[k] = function(made[k], rows[i])
    return made


def run_along(function, rows, out):
    out[:1] = rows[:1]
    for k in range(1, len(rows)):
        out[k] = function(out[k - 1], rows[k])


# --- functions of the user's, element by element or row by row ---


def each_row(function, results, arrays, count):
    for k in range(count):
        made = function(*[array[k] for array in arrays])
        for result, value in zip(results, made):
            result[k] = value


def apply_rows(function: Callable, arrays: list, dtypes: list | None, elements: bool) -> tuple[list, bool]:
    """`function` of the k-th rows of `arrays`, for every k: the results stacked, and whether it gave a tuple.

    Its first call tells what it gives, as in NumPy.
    """

    def values(row: tuple) -> list:
        return [item(v) if elements and hasattr(v, "dtype") else v for v in row]

    first = call_value(function, tuple(values(tuple(a[0] for a in arrays))), {})
    several = isinstance(first, tuple)
    firsts = [array_from(f) for f in (first if several else (first,))]
    count = len(arrays[0])
    results = []
    for k, found in enumerate(firsts):
        shape = (count, *found.shape)
        dtype = found.dtype if dtypes is None else np.dtype(dtypes[k])
        results.append(call_value(np.empty, (shape,), {"dtype": dtype}))

    def once(*row: Any) -> tuple:
        made = call_value(function, tuple(values(row)), {})
        return made if several else (made,)

    call_value(each_row, (once, results, arrays, count), {})
    return results, several
