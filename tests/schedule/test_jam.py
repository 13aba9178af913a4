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


@pytest.mark.turns(3)
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


SUMS = {
    "products": lambda a, v: a @ v,
    "with ends": lambda a, v: np.sqrt((a * v).sum(1) ** 2 + 1) / (1 + a[:, 0] ** 2),
    "extremes": lambda a, v: (a - v).max(axis=1),
    "of parts": lambda a, v: a[:, 1:] @ v[1:],
}


@pytest.mark.parametrize("name", SUMS)
def test_rows_that_are_added_up(name):
    """Rows that are equal have equal sums, however many are done together."""
    f = SUMS[name]
    jitted = mp.jit(f)
    for n, m in ((1, 90), (3, 100), (7, 100), (64, 100), (1001, 300)):
        a, v = random.normal(size=(n, m)), random.normal(size=m)
        np.testing.assert_allclose(jitted(a, v), f(a, v), rtol=1e-11, atol=1e-12)
        same = jitted(np.repeat(a[:1], n, 0), v)
        assert (same == same[0]).all()


def test_sums_of_rows_go_together():
    text = mp.source(SUMS["products"], "f64[1000, 100]", "f64[100]", stage="loops")
    assert "total_4 = total_4 + " in text, text
    for other in ("f64[1000, 5000]", "f64[1000, 3]"):  # long rows have several sums each, and short ones are no loop
        m = other[:-1].split()[1]
        text = mp.source(SUMS["products"], other, f"f64[{m}]", stage="loops")
        assert "total_4 = total_4 + " not in text, text


def scaled(a, b, u, v):
    """Each row is added up, and then added to the columns' sums."""
    for _ in range(3):
        u = a / (1 + (b @ v) ** 2)
        v = 1 / (1 + (b.T @ u) ** 2)
    return u, v, (u * u).sum()


def test_rows_and_columns():
    jitted = mp.jit(scaled)
    for n, m in ((3, 20), (8, 100), (301, 130)):
        given = random.normal(size=n), random.normal(size=(n, m)), np.ones(n), random.normal(size=m)
        for got, want in zip(jitted(*given), scaled(*given), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11)
