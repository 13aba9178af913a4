"""Numbers on a line are NumPy's to the bit, natively and contracted, too: a product is rounded before what is added."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp


def lines(start, stop, count, step):
    return np.linspace(start, stop, count), np.linspace(start, stop), np.arange(start, stop, step)


@pytest.mark.parametrize("native", [True, False])
def test_lines(native):
    rng = np.random.default_rng(0)
    jitted = mp.jit(lines)
    with mp.config(native=native):
        for digits in (1, 2, 3):
            for _ in range(60):
                start, stop = np.round(rng.normal(size=2) * 3, digits)
                given = start, stop, int(rng.integers(1, 60)), round(abs(rng.normal()) * 0.3 + 0.01, digits) or 0.1
                for got, wanted in zip(jitted(*given), lines(*given)):
                    np.testing.assert_array_equal(got, wanted)


def test_what_users_look_for():
    middle = mp.jit(lambda a: np.linspace(a, 1.0, 11)[5])
    assert middle(-1.0) == 0.0
    counted = mp.jit(lambda x: np.histogram(x, 100)[0])
    x = np.arange(-5.0, 6.0)
    np.testing.assert_array_equal(counted(x), np.histogram(x, 100)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_other_dtypes_and_derivatives(dtype):
    jitted = mp.jit(lambda a, b: np.linspace(a, b, 30))
    a, b = dtype(-0.3), dtype(1.7)
    np.testing.assert_allclose(jitted(a, b), np.linspace(a, b, 30), rtol=1e-6 if dtype is np.float32 else 1e-14)
    if dtype is np.float32:
        return
    for function in (lambda a, b: np.sum(np.sin(np.linspace(a, b, 7))), lambda a, b: np.sum(np.arange(a, b, 0.3) ** 2)):
        slopes = mp.jit(mp.grad(function, (0, 1)))(-0.3, 1.7)
        for k, slope in enumerate(slopes):
            step = np.eye(2)[k] * 1e-6
            ends = [function(*(np.array([-0.3, 1.7]) + s * step)) for s in (1, -1)]
            np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, atol=1e-7)


def test_bins_without_width_and_lengths_below_zero():
    with pytest.raises(ValueError, match="Too many bins for data range. Cannot create 10 finite-sized bins"):
        mp.jit(lambda x: np.histogram(x, 10))(np.array([1e16]))
    with pytest.raises(ValueError, match="'minlength' must not be negative"):
        mp.jit(lambda x: np.bincount(x, minlength=-1))(np.array([1, 2]))
