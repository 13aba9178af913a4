"""Several rounds at a time, where elements have nothing to do with one another: Python's numbers to the bit."""

import copy

import numpy as np
import pytest

import metaphrase as mp

random = np.random.default_rng(8)


def product(a, b):
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            t = 2.0 * a[i, k]
            for j in range(b.shape[1]):
                c[i, j] = c[i, j] - t * b[k, j]
    return c


def sums(a, b):
    """Two sums, one of them of what the other one has after each round."""
    x, y = np.zeros((a.shape[0], b.shape[1])), np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for k in range(b.shape[0]):
            for j in range(b.shape[1]):
                x[i, j] = x[i, j] + b[k, j]
                y[i, j] = y[i, j] * 0.5 + x[i, j]
    return x, y


def neighbours(a, b):
    """An element needs what the round before left beside it."""
    x = b[0].copy()
    for k in range(b.shape[0]):
        for j in range(b.shape[1] - 1):
            x[j] = x[j + 1] + b[k, j]
    return x


def mirrored(a, b):
    x = b[0].copy()
    for _ in range(b.shape[0]):
        y = x[::-1].copy()
        for j in range(b.shape[1]):
            x[j] = x[j] * 0.5 + y[j]
    return x


def changing(a, b):
    """What a variable is comes from what the round before stored."""
    x = b[0].copy()
    for k in range(b.shape[0]):
        t = x[0]
        for j in range(b.shape[1]):
            x[j] = x[j] + t * b[k, j]
    return x


def last_variable(a, b):
    t, x = 0.0, np.zeros(b.shape[1])
    for k in range(b.shape[0]):
        t = b[k, 0]
        for j in range(b.shape[1]):
            x[j] = x[j] + t
    return x, t


JAMMED, OTHERS = [product, sums], [neighbours, mirrored, changing, last_variable]


@pytest.mark.parametrize("function", JAMMED + OTHERS, ids=lambda f: f.__name__)
def test_values(function):
    jitted = mp.jit(function)
    for rows in (1, 3, 4, 5, 8, 22):
        for columns in (1, 9, 200):
            # of such numbers all products and sums are exact
            args = random.integers(-9, 9, (3, rows)) / 4, random.integers(-9, 9, (rows, columns)) / 4
            want = function(*copy.deepcopy(args))
            got = jitted(*args)
            for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("function", JAMMED + OTHERS, ids=lambda f: f.__name__)
def test_which_loops_go_together(function):
    text = mp.source(function, "f64[n,m]", "f64[m,p]", stage="loops")
    assert ("// (4))):" in text) == (function in JAMMED), text
