"""Loops that walk across memory are turned inside out: Python's numbers, sizes around a block; and which stay."""

import copy
import re

import numpy as np
import pytest
from thread_counts import thread_counts

import metaphrase as mp

random = np.random.default_rng(3)
SIZES = ((1, 1), (3, 7), (9, 128), (5, 129), (20, 256), (2, 513), (40, 600))


def product(a, b):
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s
    return c


def filtered(x, a):
    y = np.empty_like(x)
    for j in range(x.shape[1]):
        y[0, j] = x[0, j]
        for i in range(1, x.shape[0]):
            y[i, j] = a * y[i - 1, j] + x[i, j]
    return y


def moments(x):
    out = np.empty((2, x.shape[1]))
    for j in range(x.shape[1]):
        s, squares = 0.0, x[0, j] * 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
            squares += x[i, j] ** 2
        out[0, j] = s / x.shape[0]
        out[1, j] = squares / x.shape[0] - out[0, j] ** 2
    return out


def peaks(x):
    out = np.empty(x.shape[1])
    for j in range(x.shape[1]):
        big, s = 0.0, 0.0
        for i in range(x.shape[0]):
            big = max(big, abs(x[i, j]))
            s += x[i, j] ** 2
        out[j] = np.sqrt(s) / big
    return out


def last_of(x):
    """The value of the last column is wanted behind the loop."""
    s = 0.0
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
    return s


def running(x):
    """Each column begins where the one before it ended."""
    y = np.empty(x.shape[1])
    s = 0.0
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            s += x[i, j]
        y[j] = s
    return y


def triangle(x):
    y = np.zeros(x.shape[1])
    for j in range(x.shape[1]):
        for i in range(min(j, x.shape[0])):
            y[j] += x[i, j]
    return y


def mixed(x, y):
    """One array lies along the inner loop, the other across it."""
    out = np.zeros((x.shape[0], x.shape[1]))
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            out[i, j] = x[i, j] + y[j, i]
    return out


TURNED = [product, filtered, moments, peaks]
STAYING = [last_of, running, triangle, mixed]


def arguments(function, rows, columns):
    x = random.standard_normal((rows, columns))
    others = {product: (random.standard_normal((4, rows)), x), filtered: (x, 0.9), mixed: (x, x.T.copy())}
    return others.get(function, (x,))


@pytest.mark.turns(3)
@pytest.mark.parametrize("function", TURNED + STAYING, ids=lambda f: f.__name__)
def test_values(function):
    jitted = mp.jit(function)
    for rows, columns in SIZES:
        args = arguments(function, rows, columns)
        want = function(*copy.deepcopy(args))
        runs = [jitted(*args) for _ in thread_counts(1, 2)]
        np.testing.assert_allclose(runs[0], want, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(runs[0], runs[1])


@pytest.mark.parametrize("function", TURNED, ids=lambda f: f.__name__)
def test_gradients(function):
    args = arguments(function, 6, 150)
    with mp.disable_jit():
        want = mp.grad(lambda *a: np.sum(np.sin(function(*a))))(*args)
    np.testing.assert_allclose(mp.jit(mp.grad(lambda *a: np.sum(np.sin(function(*a)))))(*args), want, rtol=1e-10)


TYPES = {product: ("f64[n,m]", "f64[m,p]"), filtered: ("f64[n,m]", "f64"), mixed: ("f64[n,m]", "f64[m,n]")}
INNERMOST = {
    product: "s_2[l] = s_2[l] + a[first + i, 4*k]*b[4*k, 256*j + l]",
    filtered: "y[j + 1, first_1 + 512*i + k] = a*y[j, first_1 + 512*i + k] + x[j + 1, first_1 + 512*i + k]",
    peaks: "big_2[k] = big_1",
    moments: "squares_1_1[k] = squares_1_1[k] + t_1_4*t_1_4",
}


@pytest.mark.parametrize("function", TURNED + STAYING, ids=lambda f: f.__name__)
def test_the_innermost_loop_runs_along_memory(function):
    text = mp.source(function, *TYPES.get(function, ("f64[n,m]",)), stage="loops")
    if function in TURNED:
        assert INNERMOST[function] in text
    else:
        assert not re.search(r"i64\(min\(\d+, count", text)


def test_strict_sums_keep_their_order():
    """To the bit: each column is summed up in the order of the text."""
    x = random.standard_normal((700, 300)) * 10.0 ** random.integers(-8, 8, (700, 300))

    def sums(x):
        out = np.empty(x.shape[1])
        for j in range(x.shape[1]):
            s = 0.0
            for i in range(x.shape[0]):
                s += x[i, j]
            out[j] = s
        return out

    np.testing.assert_array_equal(mp.jit(sums)(x), sums(x))
