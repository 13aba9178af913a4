"""Sorting, by NumPy's vectors and by digits: every dtype, lengths on both sides of where each begins, NaN and both
zeros, any layout."""

import ml_dtypes
import numpy as np
import pytest

import metaphrase as mp

RANDOM = np.random.default_rng(11)
DTYPES = ["f8", "f4", "f2", "bfloat16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]


def ordered(x):
    return np.sort(x), np.argsort(x, kind="stable"), np.sort(x[::-2])


def along(m):
    return np.sort(m, axis=0), np.sort(m, axis=1), np.argsort(m, axis=0, kind="stable"), np.argsort(m, 1, "stable")


def numbers(count, dtype):
    dtype = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    if dtype.kind in "iub":
        return (
            np.frombuffer(RANDOM.bytes(count * dtype.itemsize), dtype)
            if dtype.kind != "b"
            else RANDOM.random(count) > 0.5
        )
    x = (RANDOM.normal(size=count) * 10.0 ** RANDOM.integers(-3, 4, count)).astype(dtype)
    x[RANDOM.random(count) < 0.2] = 1.0
    for value in (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0):
        x[RANDOM.random(count) < 0.05] = value
    return x


@pytest.mark.turns(5)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_length(dtype):
    jitted = mp.jit(ordered)
    for count in (0, 1, 2, 17, 255, 256, 300, 767, 768, 5000):
        x = numbers(count, dtype)
        wide = x.astype(np.float32) if dtype == "bfloat16" else x
        values, places, part = jitted(x)
        want = np.argsort(wide, kind="stable")
        np.testing.assert_array_equal(places, want)
        np.testing.assert_array_equal(values.astype(wide.dtype), wide[want])
        np.testing.assert_array_equal(part.astype(wide.dtype), np.sort(wide[::-2]))
        if x.dtype.kind not in "iub":  # equal numbers keep their order, those of both zeros too
            got, expected = (part[wide[want] == 0].astype(np.float64) for part in (values, wide[want]))
            np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


@pytest.mark.turns(3)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u8", "u4"])
def test_lines_without_minus_zero(dtype):
    jitted = mp.jit(lambda x: (np.sort(x, axis=1), np.sort(x, axis=0)))
    for shape in ((40, 3), (7, 40), (3, 700), (2, 3000)):
        x = numbers(shape[0] * shape[1], dtype).reshape(shape)
        x = np.where(x == 0, np.zeros(1, x.dtype), x)
        for got, want in zip(jitted(x), (np.sort(x, axis=1), np.sort(x, axis=0)), strict=True):
            np.testing.assert_array_equal(got, want)


def test_numbers_of_few_digits_and_tables():
    x = RANDOM.integers(-3, 4, 3000)
    for got, want in zip(mp.jit(ordered)(x), ordered(x), strict=True):
        np.testing.assert_array_equal(got, want)
    table = RANDOM.normal(size=(300, 270))
    for got, want in zip(mp.jit(along)(table), along(table), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(mp.jit(np.unique)(x), np.unique(x))
    np.testing.assert_allclose(mp.jit(np.median)(table[0]), np.median(table[0]), rtol=1e-15)


def test_gradients_follow_the_order():
    weights = np.arange(400.0)
    x = RANDOM.normal(size=400)
    got = mp.jit(mp.grad(lambda v: np.sum(np.sort(v) * weights)))(x)
    np.testing.assert_array_equal(got[np.argsort(x)], weights)
