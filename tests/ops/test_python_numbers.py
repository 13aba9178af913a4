"""Operators over dtypes and kinds of numbers, translated, against NumPy and Python themselves (NEP 50).

What NumPy raises is raised. Where Python leaves 64 bits, or turns an int or a float into another kind of
number that depends on its value, the translation raises; it never gives another number.
"""

import itertools
import math
import warnings

import numpy as np
import pytest
from turns import turn

import metaphrase as mp
from metaphrase.config import config


def added(x, y):
    return x + y


def subtracted(x, y):
    return x - y


def multiplied(x, y):
    return x * y


def divided(x, y):
    return x / y


def floored(x, y):
    return x // y


def remainder(x, y):
    return x % y


def power(x, y):
    return x**y


def both(x, y):
    return x & y


def either(x, y):
    return x | y


def one(x, y):
    return x ^ y


def left(x, y):
    return x << y


def right(x, y):
    return x >> y


def less(x, y):
    return x < y


def less_equal(x, y):
    return x <= y


def equal(x, y):
    return x == y


def different(x, y):
    return x != y


FUNCTIONS = [
    added,
    subtracted,
    multiplied,
    divided,
    floored,
    remainder,
    power,
    both,
    either,
    one,
    left,
    right,
    less,
    less_equal,
    equal,
    different,
]
DTYPES = [np.dtype(t) for t in "? i1 u1 i4 u4 i8 u8 f2 f4 f8 c16".split()]
VALUES = {
    "b": [True, False],
    "i": [-7, 3, 0],
    "u": [7, 3, 0],
    "f": [-2.5, 3.0, 0.0, np.inf, np.nan],
    "c": [1 + 2j, -1j, 0],
}
PYTHON = [True, False, 3, -2, 0, 300, 2**40, 2.5, -1.5, 0.0, 2 + 1j, 2**62, -(2**62)]
SHORT = [3, -2, 300, 2**40, 2.5, 1j, True]
ARRAYS = [np.array(VALUES[d.kind]).astype(d) for d in DTYPES]
SCALARS = [d.type(VALUES[d.kind][0]) for d in DTYPES]


def outcome(function, *args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except Exception as error:
            return error


def agree(got, want):
    if isinstance(want, Exception):
        return isinstance(got, type(want))
    if isinstance(got, Exception):
        return False
    a, b = np.asarray(got), np.asarray(want)
    if a.dtype != b.dtype or a.shape != b.shape or type(got) is not type(want):
        return False
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    return np.allclose(a, b, rtol=1e-2 if a.dtype == np.float16 else 1e-5, equal_nan=True)


def differing(function, pairs, excused, native=False):
    made = mp.jit(function)
    found = []
    for x, y in pairs:
        want = outcome(function, x, y)
        with config(native=native):
            got = outcome(made, x, y)
        if not agree(got, want) and not excused(x, y, want, got):
            found.append(f"{x!r} and {y!r}: {got!r} for {want!r}")
    return found


def refused(x, y, want, got):
    """What is refused, in words: numbers that Python ints and floats turn into, orders of complex numbers."""
    if not isinstance(got, Exception):
        return (
            isinstance(x, complex)
            and isinstance(y, np.float64)  # NumPy's, not Python's, complex
            or isinstance(want, OverflowError)
            and isinstance(x, float)
        )  # inf for a float that overflows
    text = str(got)
    return any(
        words in text
        for words in (
            "does not fit in 64 bits",
            "must not be negative",
            "is complex in Python",
            "complex numbers is not",
        )
    )


@pytest.mark.parametrize("function", turn(FUNCTIONS, 8, first=0), ids=lambda f: f.__name__)
def test_python_numbers(function):
    large = function in (power, left, right)
    pairs = [(x, y) for x, y in itertools.product(PYTHON, PYTHON) if not large or abs(y) < 400]
    assert not differing(function, pairs, refused)


@pytest.mark.parametrize("function", turn(FUNCTIONS, 8, first=1), ids=lambda f: f.__name__)
def test_python_numbers_beside_those_of_numpy(function):
    pairs = list(itertools.product([*ARRAYS, *SCALARS], SHORT))
    pairs = [
        (x, y) for x, y in [*pairs, *((y, x) for x, y in pairs)] if not (function is power and isinstance(y, np.bool_))
    ]
    assert not differing(function, pairs, refused)


@pytest.mark.parametrize("function", turn(FUNCTIONS, 8, first=2), ids=lambda f: f.__name__)
def test_dtypes_beside_each_other(function):
    pairs = [(x, y if x.shape == y.shape else y[:1]) for x, y in itertools.product(ARRAYS, ARRAYS)]
    assert not differing(function, pairs, refused)


@pytest.mark.turns(3)
@pytest.mark.parametrize("function", [added, multiplied, power, left, less, equal], ids=lambda f: f.__name__)
def test_in_native_code(function):
    pairs = [
        (2, 3),
        (2**62, 2**62),
        (-3, 2),
        (3, -2),
        (np.int8([1, -2]), 300),
        (np.uint64([3, 0]), -1),
        (np.int32([2, 3]), np.int32([3, -1])),
        (2**40, np.int16([5])),
        (-8.0, 2.5),
        (0.0, -1.0),
    ]
    pairs = [p for p in pairs if not (function in (left, power) and np.max(np.abs(p[1])) > 400)]
    pairs = [p for p in pairs if not (function is left and any(np.asarray(v).dtype.kind == "f" for v in p))]
    assert not differing(function, pairs, refused, native=True)


def to_int(x):
    return int(x)


def to_floor(x):
    return math.floor(x)


def to_rounded(x):
    return round(x)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("function", [to_int, to_floor, to_rounded], ids=lambda f: f.__name__)
def test_floats_as_ints(function, native):
    made = mp.jit(function)
    for x in (2.5, 3.5, -2.5, -0.5, 0.0, -3.7, 1e15 + 0.5, float("nan"), float("inf"), -float("inf")):
        want = outcome(function, x)
        with config(native=native):
            got = outcome(made, x)
        assert agree(got, want), (x, got, want)
    assert isinstance(outcome(made, 1e300), OverflowError)


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def test_a_sum_that_leaves_64_bits_raises():
    made = mp.jit(fibonacci)
    assert made(90) == fibonacci(90)
    with pytest.raises(OverflowError, match="64 bits"):
        made(100)


def test_sorted_mixes_them():
    """Which comes where only the run knows: they are NumPy's afterwards, int and float are float."""

    def run(x):
        pairs = sorted([(x[0], 1), (2.0, 2), (x[1], 3)], key=lambda pair: pair[0])
        return sorted([5.0, 2, x[1]]), pairs, sorted([x[0], 2.0, x[1]], reverse=True)

    for x in (np.array([1.0, 3.0]), np.array([-1.0, -1.0]), np.array([7.0, 2.0])):
        got, want = mp.jit(run)(x), run(x)
        assert got == want and all(type(v) is np.float64 for v in (*got[0], *got[2]))
