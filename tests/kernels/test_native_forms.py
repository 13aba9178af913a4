"""What the kernels' native code relies on: sums in registers, powers by roots, intermediates read from
their twins."""

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.runtime import cython_translate


def test_a_short_sum_is_marked_and_the_mark_becomes_a_pragma():
    x = np.arange(1.0, 40.0)
    text = mp.source(lambda x: (x * x).sum(), x, stage="cython")
    assert "mp_simd_sum(" in text
    c = cython_translate.translate(text)
    assert '_Pragma("omp simd reduction(+:' in c
    assert not [line for line in c.splitlines() if line.strip().startswith("mp_simd_")]


@pytest.mark.turns(4)
@pytest.mark.parametrize("size", [1, 7, 8, 40, 511, 512, 700])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4"])
def test_short_and_long_reductions(size, dtype):
    x = (np.random.default_rng(size).normal(size=size) * 9).astype(dtype)

    def reductions(x):
        return x.sum(), x.max(), x.min(), (x > 100).any(), (x < 100).all(), (x * x).sum()

    for got, want in zip(mp.jit(reductions)(x), reductions(x)):
        np.testing.assert_allclose(got, want, rtol=2e-5 if dtype == "f4" else 1e-12, atol=1e-4)


@pytest.mark.parametrize("size", [9, 40, 600])
def test_nan_comes_through_max_and_min(size):
    for place in (0, size // 2, size - 1):
        x = np.arange(float(size))
        x[place] = np.nan
        got = mp.jit(lambda x: (x.max(), x.min(), x.sum()))(x)
        assert np.isnan(got).all()


@pytest.mark.parametrize("power", [0.5, 1.5, -0.5, -1.5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_powers_by_roots(power, dtype):
    wide = np.exp(np.random.default_rng(0).uniform(-50, 50, 400)).astype(dtype)
    x = np.concatenate([np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0], dtype), wide])
    with np.errstate(all="ignore"):
        want = np.power(x, dtype(power))
    got = mp.jit(lambda x: np.power(x, power))(x)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    np.testing.assert_array_equal(got[:6], want[:6])
    normal = np.isfinite(want[6:]) & (np.abs(want[6:]) > np.finfo(dtype).tiny)
    np.testing.assert_array_max_ulp(got[6:][normal], want[6:][normal], 4)


def smoothed_twice(a, b):
    b[1:-1] = a[:-2] + a[2:]
    a[1:-1] = b[1:-1] * b[:-2]
    return b[1:-1].sum()


def twin_overwritten(a, b):
    inner = a[:-2] + a[2:]
    b[1:-1] = inner
    b[2] = 100.0
    a[1:-1] = inner * 2
    return inner.max()


@pytest.mark.parametrize("function", [smoothed_twice, twin_overwritten])
def test_twins(function):
    jitted = mp.jit(function)
    for n in (6, 9):
        mine = [np.arange(float(n)) ** 2, np.ones(n)]
        theirs = [x.copy() for x in mine]
        np.testing.assert_allclose(jitted(*mine), function(*theirs), rtol=1e-14)
        np.testing.assert_array_equal(mine, theirs)
    text = mp.source(function, *mine, stage="cython")
    assert ("mp_scratch" in text or "inner" in text) == (function is twin_overwritten)
