"""A few elements of an array that a loop combines into are variables while it runs.

In: loops over small arrays of totals and states, and some whose places may be one another. Out: Python's results, and
which arrays a loop still names.
"""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp

random = np.random.default_rng(8)


def moments(x, k):
    m = np.zeros(4)
    for v in x:
        m[0] += 1
        m[1] += v
        m[2] += v * v
        m[3] += v * v * v
    return m


def inertia(x, k):
    t = np.zeros((3, 3))
    for i in range(2, len(x)):
        a, b, c = x[i - 2], x[i - 1], x[i]
        t[0, 0] += b * b + c * c
        t[1, 1] += a * a + c * c
        t[0, 1] -= a * b
    return t


def orbit(x, k):
    s = np.array([1.0, 0.0, 0.0, 1.0])
    for v in x:
        s[0] += 0.01 * s[2]
        s[1] += 0.01 * s[3]
        s[2] -= 0.01 * s[0] * v
        s[3] -= 0.01 * s[1]
    return s


def filtered(x, k):
    s = np.array([0.0, 1.0])
    out = np.empty_like(x)
    for i in range(len(x)):
        p = s[1] + 0.01
        gain = p / (p + 0.1)
        s[0] += gain * (x[i] - s[0])
        s[1] = (1 - gain) * p
        out[i] = s[0]
    return out, s


def steps(x, k):
    p = np.zeros(2)
    far = 0.0
    for v in x:
        if v < -0.5:
            p[0] += 1.0
        elif v < 0.5:
            p[1] -= 1.0
        d = p[0] * p[0] + p[1] * p[1]
        if d > far:
            far = d
    return p, far


def of_argument(x, k):
    """The caller's array is changed, which may have no second element."""
    for i in range(2, len(x)):
        x[0] += x[i]
        x[1] -= x[i]
    return x


def maybe_the_same(x, k):
    """A place that data name may be one of the others."""
    h = np.zeros(5)
    for i in range(len(x)):
        h[0] += x[i]
        h[1] += 1
        h[k[i]] += 2
    return h


def first_and_last(x, k):
    """Of an array of one element both are one place."""
    h = np.ones(len(x))
    for i in range(len(x)):
        h[0] += x[i]
        h[-1] += 2 * h[0]
    return h


def read_as_a_whole(x, k):
    h = np.zeros(3)
    s = 0.0
    for v in x:
        h[0] += v
        h[2] += 1
        s += h.sum()
    return h, s


def overwritten(x, k):
    h = np.zeros(2)
    for v in x:
        h[0] += v
        if v > 0:
            h[1] = v
    return h


def in_rounds(x, k):
    """The totals begin anew in each round of a loop around."""
    out = np.zeros((4, 2))
    for r in range(4):
        for v in x:
            out[r, 0] += v * r
            out[r, 1] += 1
    return out


KEPT = (moments, inertia, orbit, filtered, steps, in_rounds)
OTHERS = (of_argument, maybe_the_same, first_and_last, read_as_a_whole, overwritten)
X = {"many": random.normal(size=50), "two": np.array([0.5, -1.0]), "one": np.array([2.0]), "none": np.zeros(0)}


def flat(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("kind", X)
@pytest.mark.parametrize("function", [*KEPT, *OTHERS], ids=lambda f: f.__name__)
def test_values(function, kind):
    x, k = X[kind], random.integers(0, 5, len(X[kind]))
    with mp.config(contract=False):
        got, wanted = mp.jit(function)(x.copy(), k), function(x.copy(), k)
    for mine, theirs in zip(flat(got), flat(wanted), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("function", [*KEPT, *OTHERS], ids=lambda f: f.__name__)
def test_gradients(function):
    x, k = random.normal(size=7), random.integers(0, 5, 7)

    def total(x):
        return np.sum(np.sin(flat(function(x.copy(), k))[0]))

    got = mp.jit(mp.grad(total))(x)
    for i in range(len(x)):
        d = np.zeros(len(x))
        d[i] = 1e-6
        assert abs(got[i] - (total(x + d) - total(x - d)) / 2e-6) < 1e-6


@pytest.mark.parametrize("function", [*KEPT, *OTHERS], ids=lambda f: f.__name__)
def test_which_are_kept(function):
    text = mp.source(function, "f64[n]", "i64[n]", stage="loops")
    assert ("total" in text) == (function in KEPT)
