"""Arrays that loops and branches have in another form than they are given: stores into them copy nothing.

In: loops that store into a reshaped view. Out: what NumPy stores, in the view and in its base, and how often an array
is gone through.
"""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp

random = np.random.default_rng(4)


def flipped(x):
    g = np.where(x > 0, 1.0, -1.0).reshape(6, 4)
    for k in range(len(x)):
        i, j = int(5 * abs(x[k])) % 6, k % 4
        e = g[i, j] * (g[(i + 1) % 6, j] + g[i, (j + 1) % 4])
        if e <= 0 or x[k] > 0.5:
            g[i, j] = -g[i, j]
    return g


def rows(x):
    g = (2 * x).reshape(4, 6)
    for k in range(4):
        g[k] = g[k] + g[k - 1]
    return g


def in_both_forms(x):
    """Elements are read in one form and stored in the other."""
    flat = 2 * x
    g = flat.reshape(4, 6)
    for k in range(4):
        g[k, k] = flat[3 * k] + 1
    return flat, g


def exchanged(x):
    """Two arrays in two forms change places."""
    a, b = (x + 1).reshape(4, 6), (x - 1).reshape(4, 6)
    for k in range(5):
        a[k % 4, k] = b[k % 4, k] + 1
        a, b = b, a
    return a, b


def until(x):
    g = (x * 3).reshape(2, 3, 4)
    n = 0
    while g[0, 0, 0] < 10 and n < 30:
        g[0, n % 3, 0] += 2
        g[1] = g[1] * 0.5
        n += 1
    return g, n


def of_argument(x):
    g = x.reshape(6, 4)
    for i in range(6):
        for j in range(4):
            if g[i, j] > 0:
                g[i, j] *= 2
    return x


def kept_each_time(x):
    g = (x + 0).reshape(4, 6)
    seen = []
    for k in range(4):
        g[k, 0] = k
        seen.append(g.sum())
    return g, np.array(seen)


def sized(x):
    n = len(x) // 4
    g = np.zeros(4 * n).reshape(4, n)
    for j in range(n):
        g[j % 4, j] = x[j]
    return g


PROGRAMS = (flipped, rows, in_both_forms, exchanged, until, of_argument, kept_each_time, sized)


def flat(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("native", [True, False], ids=["native", "numpy"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_values(function, native):
    x = random.normal(size=24)
    mine, theirs = x.copy(), x.copy()
    with mp.config(native=native):
        got = mp.jit(function)(mine)
    for a, b in zip(flat(got), flat(function(theirs)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("function", [f for f in PROGRAMS if f is not flipped], ids=lambda f: f.__name__)
def test_gradients(function):
    x = random.normal(size=24)

    def total(x):
        return np.sum(np.sin(flat(function(x.copy()))[0]))

    got = mp.jit(mp.grad(total))(x)
    for k in range(24):
        d = np.zeros(24)
        d[k] = 1e-6
        assert abs(got[k] - (total(x + d) - total(x - d)) / 2e-6) < 1e-5


@pytest.mark.parametrize(
    "function, loops", [(flipped, 4), (rows, 5), (sized, 3)], ids=lambda f: getattr(f, "__name__", f)
)
def test_nothing_is_copied(function, loops):
    """The first array, its form, and the user's loop with what is in it."""
    text = mp.source(function, "f64[24]", stage="loops")
    assert text.count("for ") <= loops, text


def through_a_row(x, count):
    """Each iteration takes the matrix apart and puts it together again: two forms, one after the other."""
    matrix = np.arange(9.0).reshape(3, 3)
    for k in range(count):
        row = matrix.reshape(-1)
        row[k] = x * k
    return matrix


def through_a_row_if(x, count):
    matrix = np.arange(9.0).reshape(3, 3)
    if x > 0:
        row = matrix.reshape(-1)
        row[count] = x * x
    return matrix


def through_a_row_never(x, count):
    matrix = np.arange(9.0).reshape(3, 3)
    while count < 3 and x < x:
        count += 1
        row = matrix.reshape(-1)
        row[0] = x
    return matrix


@pytest.mark.parametrize("function", [through_a_row, through_a_row_if, through_a_row_never], ids=lambda f: f.__name__)
def test_two_forms_one_after_the_other(function):
    jitted, slope = mp.jit(function), mp.jit(mp.grad(lambda x, count: np.sum(function(x, count) ** 2)))
    for count in (0, 1, 5):
        for x in (2.5, -1.5):
            np.testing.assert_array_equal(jitted(x, count), function(x, count))
            step = [np.sum(function(x + d, count) ** 2) for d in (1e-6, -1e-6)]
            assert abs(slope(x, count) - (step[0] - step[1]) / 2e-6) < 1e-5
