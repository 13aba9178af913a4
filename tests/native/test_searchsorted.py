"""Searches in sorted arrays, sixteen at once: every dtype, lengths around sixteen, NaN, any layout."""

import ml_dtypes
import numpy as np
import pytest

import metaphrase as mp

RANDOM = np.random.default_rng(7)
DTYPES = ["f8", "f4", "f2", "bfloat16", "i1", "i4", "i8", "u2", "u8", "?"]


def sides(a, v):
    return np.searchsorted(a, v), np.searchsorted(a, v, side="right")


def numbers(count, dtype):
    dtype = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    return (RANDOM.random(count) * 100 - (0 if dtype.kind in "ub" else 50)).astype(dtype)


@pytest.mark.turns(5)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_length(dtype):
    jitted = mp.jit(sides)
    for known in (0, 1, 2, 17, 100):
        for asked in (0, 1, 16, 50):
            a, v = numbers(known, dtype), numbers(asked, dtype)
            wide = np.float32 if dtype == "bfloat16" else a.dtype
            a = np.sort(a.astype(wide)).astype(a.dtype)
            if asked > 3 and a.dtype.kind not in "iub":
                v[1], v[2] = np.nan, np.inf
                a[known * 9 // 10 :] = np.nan
            if known:
                v[3:5] = a[known // 2]
            want = sides(a.astype(wide), v.astype(wide))
            for one, other in zip(jitted(a, v), want, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"{known} {asked}")


def test_layouts_and_lanes():
    a, v = np.sort(RANDOM.normal(size=80)), RANDOM.normal(size=(6, 40))
    jitted = mp.jit(sides)
    for x, y in ((a[::2], v), (a, v.T), (a[::4], v[:, ::-2]), (a, v[2, 3]), (a[10:60], v[1])):
        for one, other in zip(jitted(x, y), sides(x, y), strict=True):
            np.testing.assert_array_equal(one, other)
    rows = np.sort(RANDOM.normal(size=(6, 9)), axis=1)
    for one, other in zip(mp.jit(mp.vmap(sides, (None, 0)))(a, v), sides(a, v), strict=True):
        np.testing.assert_array_equal(one, other)
    for k, line in enumerate(mp.jit(mp.vmap(sides))(rows, v)[0]):
        np.testing.assert_array_equal(line, np.searchsorted(rows[k], v[k]))
