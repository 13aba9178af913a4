"""Whether elements are among others: every dtype, few and many, close together and far apart, any layout, lanes."""

import ml_dtypes
import numpy as np
import pytest

import metaphrase as mp

RANDOM = np.random.default_rng(11)
DTYPES = ["f8", "f4", "f2", "bfloat16", "i1", "i4", "i8", "u1", "u8", "?", "c16"]


def both(v, a):
    return np.isin(v, a), np.isin(v, a, invert=True)


def numbers(count, dtype, spread):
    dtype = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    whole = np.round(RANDOM.random(count) * spread - (0 if dtype.kind in "ub" else spread / 2))
    return whole.astype(dtype)


@pytest.mark.turns(5)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_number(dtype):
    jitted = mp.jit(both)
    for known in (0, 1, 9, 300):
        for asked in (0, 17, 600):
            a, v = numbers(known, dtype, 120), numbers(asked, dtype, 120)
            if a.dtype.kind not in "iub" and known > 8 and asked > 8:
                v[:4] = a[:4] = np.nan, np.inf, -0.0, 7
                v[4:6] = 0.0, -np.inf
            wide = np.float32 if dtype == "bfloat16" else a.dtype
            for one, other in zip(jitted(v, a), both(v.astype(wide), a.astype(wide)), strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"{known} {asked}")


@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "u8"])
def test_far_apart(dtype):
    """Whole numbers over all of their range, over more than a table has room for, and just within it."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    ends = np.array([least, most, least + 1, most - 1], dtype)
    jitted = mp.jit(both)
    for spread in (255, 256, 4000, 10**6, most // 2):
        v = (RANDOM.random(999) * spread).astype(dtype)
        a = np.concatenate([v[:20], (RANDOM.random(30) * spread).astype(dtype), np.array([spread], dtype)])
        asked = np.concatenate([v, a, ends])
        for known in (a, np.concatenate([a, ends[:2]])):
            for one, other in zip(jitted(asked, known), both(asked, known), strict=True):
                np.testing.assert_array_equal(one, other)


def test_mixed_types_layouts_and_lanes():
    v, a = RANDOM.integers(-50, 50, (6, 40)), RANDOM.integers(-50, 50, (5, 12))
    jitted = mp.jit(both)
    for x, y in ((v.T, a), (v[::2, ::-3], a[::-1, 1::2]), (v[2, 3], a), (v, a * 0.5), (v.astype("u1"), a), (v > 0, a)):
        for one, other in zip(jitted(x, y), both(x, y), strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(mp.jit(mp.vmap(both, (0, None)))(v, a), both(v, a), strict=True):
        np.testing.assert_array_equal(one, other)
    for k, line in enumerate(mp.jit(mp.vmap(both))(v[:5], a)[0]):
        np.testing.assert_array_equal(line, np.isin(v[k], a[k]))
    kept = mp.grad(lambda x, y: (x**2)[np.isin(x, y)].sum())
    x = np.arange(30.0)
    np.testing.assert_array_equal(mp.jit(kept)(x, x[3:20]), np.where((x >= 3) & (x < 20), 2 * x, 0))


def test_source_is_numpys():
    v, a = np.arange(30), np.arange(9)
    assert "np.isin(" in mp.source(lambda v, a: np.isin(v, a), v, a, stage="numpy")
