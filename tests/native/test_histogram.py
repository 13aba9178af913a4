"""Histograms of equal bins: the bin by arithmetic, put right by the edges, is NumPy's, on the edges too."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp

NUMBERS = {
    "floats": lambda rng, n, bins: rng.normal(size=n) * 10.0 ** rng.integers(-5, 6),
    "on the edges": lambda rng, n, bins: np.round(rng.random(n) * bins) / bins,
    "integers": lambda rng, n, bins: rng.integers(-20, 20, n),
    "bytes": lambda rng, n, bins: rng.integers(0, 255, n).astype(np.uint8),
    "single": lambda rng, n, bins: rng.normal(size=n).astype(np.float32),
    "with NaN": lambda rng, n, bins: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
    "one number": lambda rng, n, bins: np.full(n, 3.0),
}


def counted(x, bins):
    return np.histogram(x, bins)


def counted_between(x, bins, low, high):
    return np.histogram(x, bins, (low, high))


def weighed(x, w, bins):
    return np.histogram(x, bins, range=(-1.0, 2.0), weights=w)[0]


def same(got, wanted):
    for a, b in zip(got, wanted):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", NUMBERS)
def test_counts_are_those_of_numpy(name):
    rng = np.random.default_rng(4)
    every, between = mp.jit(counted), mp.jit(counted_between)
    with mp.config(contract=False):  # the edges are products and sums
        for _ in range(60):
            bins = int(rng.integers(1, 40))
            x = NUMBERS[name](rng, int(rng.integers(0, 80)), bins)
            same(between(x, bins, -1.0, 1.5), np.histogram(x, bins, (-1.0, 1.5)))
            if not np.isnan(x).any():
                same(every(x, bins), np.histogram(x, bins))


def test_of_run_time_sizes_and_in_lanes():
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(3, 200)), rng.random((3, 200))
    lanes = mp.jit(mp.vmap(lambda x, w: weighed(x, w, 7)))(x, w)
    for k in range(3):
        np.testing.assert_allclose(lanes[k], weighed(x[k], w[k], 7), rtol=1e-12)
        some = x[k] > 0.3
        picked = mp.jit(lambda x, w: weighed(x[x > 0.3], w[x > 0.3], 7))(x[k], w[k])
        np.testing.assert_allclose(picked, weighed(x[k][some], w[k][some], 7), rtol=1e-12)
    slope = mp.jit(mp.grad(lambda w: np.sum(weighed(x[0], w, 7) ** 2)))(w[0])
    place = np.clip(np.digitize(x[0], np.histogram_bin_edges([], 7, (-1.0, 2.0))) - 1, 0, 6)
    inside = (x[0] >= -1.0) & (x[0] <= 2.0)
    np.testing.assert_allclose(slope, np.where(inside, 2 * weighed(x[0], w[0], 7)[place], 0.0), rtol=1e-12)


def test_it_searches_nothing():
    assert "searchsorted" not in mp.source(counted, "f64[n]", "i64", stage="loops")
