"""`math` and `cmath`: at every kind of number, what Python gives or raises."""

from __future__ import annotations

import cmath
import itertools
import linecache
import math

import numpy as np
import pytest

import metaphrase as mp

INF, NAN = math.inf, math.nan
REALS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, -3.0, 171.0, 710.0, 1e308]
COMPLEX = [complex(a, b) for a in (0.0, -0.0, 1.0, -2.0, 0.5, 710.0, INF, NAN, -INF) for b in (0.0, 1.0, -INF, NAN)]
TO_INT = {"ceil", "floor", "trunc"}  # of 1e308: an int of Python's that 64 bits do not hold


def accepts(function, count):
    try:
        function(*[1.0] * count)
    except TypeError:
        return False
    except (ValueError, ZeroDivisionError):
        pass
    return True


def names(module, count):
    found = [n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n))]
    return [n for n in found if accepts(getattr(module, n), count)]


def program(module, name, count):
    """A function of this many numbers, with a source."""
    parameters = ", ".join("ab"[:count])
    text = f"def program({parameters}):\n    return {module.__name__}.{name}({parameters})\n"
    file = f"<{module.__name__}.{name} of {count}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {module.__name__: module}
    exec(compile(text, file, "exec"), scope)
    return scope["program"]


def outcome(function, *args):
    try:
        return function(*args)
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        return f"{type(error).__name__}: {error}" if str(error).startswith("math") else type(error).__name__


def alike(want, got):
    if isinstance(want, str) or isinstance(got, str):
        return want == got
    if isinstance(want, tuple):
        return len(want) == len(got) and all(map(alike, want, got))
    if isinstance(want, float) and want == want and math.copysign(1.0, want) != math.copysign(1.0, got):
        return False
    return np.allclose(want, got, rtol=1e-13, atol=0, equal_nan=True)


def compared(function, values, count):
    jitted = mp.jit(function)
    for args in itertools.product(values, repeat=count):
        want = outcome(function, *args)
        if isinstance(want, int) and abs(want) > 2**62:
            continue
        got = outcome(jitted, *args)
        assert alike(want, got), (args, want, got)


@pytest.mark.parametrize(("name", "count"), [(n, c) for c in (1, 2) for n in names(math, c)])
def test_math(name, count):
    with mp.config(native=False):
        compared(program(math, name, count), REALS, count)


@pytest.mark.parametrize("name", names(cmath, 1))
def test_cmath(name):
    with mp.config(native=False):
        compared(program(cmath, name, 1), COMPLEX, 1)


@pytest.mark.parametrize(
    ("name", "count"),
    [("exp", 1), ("sqrt", 1), ("log", 1), ("acos", 1), ("sin", 1), ("pow", 2), ("fmod", 2), ("lgamma", 1)],
)
def test_math_natively(name, count):
    compared(program(math, name, count), REALS, count)


def annealed(x):
    """As people write it: the overflow is expected."""
    total = 0.0
    for k in range(len(x)):
        try:
            p = math.exp(x[k])
        except OverflowError:
            p = 1.0
        total += p
    return total


def test_an_overflow_that_is_caught():
    x = np.array([0.5, 800.0, -900.0])
    assert mp.jit(annealed)(x) == annealed(x) == math.exp(0.5) + 1.0
