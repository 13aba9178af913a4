"""What the front end writes in simpler functions: natively, differentiated, batched, at two sizes."""

import math

import numpy as np
import pytest

import metaphrase as mp

RNG = np.random.default_rng(9)
X = RNG.normal(size=(4, 6))
X[1, 2] = 1.25


def covariances(x):
    return np.sum(np.cov(x) ** 2) + np.sum(np.corrcoef(x[:2])) + np.cov(x[0], x[1])[0, 1]


def polynomials(x):
    made = np.polymul(x[0], np.polyder(x[1]))
    return np.sum(np.polyint(made)) + np.sum(np.polysub(x[2], x[3, :3])) + np.sum(np.poly(x[0, :3]) ** 2)


def fit(x):
    return np.sum(np.polyfit(x[0], x[1], 2) ** 2)


def nan_statistics(x):
    y = np.where(x > 1.0, np.nan, x)
    return np.nanmedian(y) + np.sum(np.nanquantile(y, [0.2, 0.7], axis=1)) + np.nanpercentile(y, 40)


def by_element(x):
    return np.sum(np.vectorize(lambda v: v * v if v > 0 else -v)(x))


def by_row(x):
    return np.sum(np.apply_along_axis(lambda row: row / np.sqrt(np.sum(row * row)), 1, x) ** 3)


def by_condition(x):
    return np.sum(np.piecewise(x, [x < -0.5, x > 0.5], [lambda v: v * v, np.exp, 0.0]))


def joined(x):
    return np.sum(np.r_[x[0], 1.0, x[1, :2]] ** 3) + np.sum(np.c_[x[0], x[1]][1:3] ** 2)


def chosen(x):
    return np.sum(np.choose(np.array([0, 1, 2, 1, 0, 2]), [x[0], x[1] ** 2, x[2] * x[3]]))


def slopes(x):
    places = np.cumsum(np.exp(x[0]))
    bent = np.interp(x[2], places, x[3], period=9.0)
    return np.sum(np.gradient(x[1], places, edge_order=2) ** 2) + np.sum(bent)


def scalars(x):
    a, b = float(x[0, 0]), float(x[1, 1])
    parts = math.remainder(a, 0.7) + math.modf(b * 3)[0]
    return math.hypot(a, b, 2.0) + parts + math.dist([a, b], [b, 1.0])


def reduced(x):
    return (
        np.sum(np.subtract.reduce(x))
        + np.sum(np.multiply.accumulate(x, axis=1))
        + np.sum(np.add.reduceat(x[0], [0, 2, 4]) ** 2)
        + np.sum(np.multiply.reduceat(x[1], np.argmax(x, axis=1)))
        + np.hypot.reduce(x[1])
    )


CASES = [
    covariances,
    polynomials,
    fit,
    nan_statistics,
    by_element,
    by_row,
    by_condition,
    joined,
    chosen,
    slopes,
    scalars,
    reduced,
]
names = pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)


@pytest.mark.turns(3)
@names
def test_native(function):
    made = mp.jit(function)
    np.testing.assert_allclose(made(X), function(X), rtol=1e-10)
    np.testing.assert_allclose(made(X * 0.5 + 0.1), function(X * 0.5 + 0.1), rtol=1e-10)


@names
def test_gradient(function):
    direction, h = RNG.normal(size=X.shape), 1e-6
    want = (function(X + h * direction) - function(X - h * direction)) / (2 * h)
    np.testing.assert_allclose(np.sum(mp.grad(function)(X) * direction), want, rtol=1e-5, atol=1e-6)


@names
def test_batch(function):
    rows = np.stack([X, X * 0.5 + 0.1, X[::-1] * 0.9])
    np.testing.assert_allclose(mp.vmap(function)(rows), [function(row) for row in rows], rtol=1e-9)


@pytest.mark.parametrize("native", [True, False])
def test_whole_numbers_of_numpys_are_pythons_in_math(native):
    """Where bytes would wrap around: `math` computes with Python's ints and floats."""

    def counted(n, k, x):
        near = math.remainder(n, k)
        return math.comb(n, k), math.perm(n, k), math.comb(k, n), math.factorial(k), math.dist(x, x[::-1]), near

    with mp.config(native=native):
        for kind in (np.uint8, np.int16, np.int64, np.uint64):
            given = kind(100), kind(4), np.array([100, 7, 3], kind)
            want, got = counted(*given), mp.jit(counted)(*given)
            assert got == want and [type(v) for v in got] == [type(v) for v in want]
        assert mp.jit(math.comb)(np.uint8(200), np.uint8(199)) == 200
