"""Short rows whose elements are chosen: gcc 12 wrote zeros into them (`stays_rolled`, cython_simd.py)."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp

LENGTHS = [2, 3, 5, 6, 7, 9, 12, 13, 16, 17]


def chosen(x, y, a):
    m = x > a
    return np.where(m, 100.0, x), np.where(m, 200.0, y)


def branched(x, y, a):
    out, other = np.zeros(x.shape), np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > a:
                out[i, j] = 100.0
                other[i, j] = 200.0
            else:
                out[i, j] = x[i, j]
                other[i, j] = y[i, j]
    return out, other


@pytest.mark.turns(4)
@pytest.mark.parametrize("function", [chosen, branched], ids=lambda f: f.__name__)
@pytest.mark.parametrize("length", LENGTHS)
def test_rows(function, length):
    jitted, rng = mp.jit(function), np.random.default_rng(length)
    for a in (-0.5, 0.0, 0.5):
        x, y = rng.normal(size=(2, 3, length))
        for want, got in zip(function(x, y, a), jitted(x, y, a)):
            np.testing.assert_array_equal(got, want)
