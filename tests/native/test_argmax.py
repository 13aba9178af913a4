"""The first place of an extreme: lines around every length that is told apart, ties, NaN, arrays that are computed."""

import numpy as np
import pytest

import metaphrase as mp

RANDOM = np.random.default_rng(9)
LENGTHS = (600, 1, 5, 63, 64, 65, 511, 512, 513, 639, 640, 5000)


def lines(n, dtype):
    """No two alike, many alike, all alike, the extremes at the ends, and numbers that are none."""
    numbers = RANDOM.permutation(n).astype(dtype)
    yield numbers
    yield RANDOM.integers(0, 3, n).astype(dtype)
    yield np.ones(n, dtype)
    if np.dtype(dtype).kind == "f":
        yield np.full(n, -np.inf, dtype)
        yield np.full(n, np.nan, dtype)
        for k in {0, n // 2, n - 1, max(n - 30, 0)}:
            x = numbers.copy()
            x[k] = np.nan
            x[n - 1] = np.inf if k < n - 1 else np.nan
            yield x


@pytest.mark.turns(4)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i1", "u8", "?"])
def test_every_length(dtype):
    """The first call is of a known length, the others of any."""

    def places(x):
        return np.argmax(x), np.argmin(x), x.argmax(), np.argmin(x[::-1])

    jitted = mp.jit(places)
    for n in LENGTHS:
        for x in lines(n, dtype):
            assert [int(k) for k in jitted(x)] == [int(k) for k in places(x)], (n, x)


def test_rows_columns_and_what_is_computed():
    def places(x):
        return (
            np.argmax(x, axis=1),
            np.argmin(x, axis=0),
            np.argmax(np.sin(x) * 3.0, axis=-1),
            np.argmin(x.astype(np.float32)),
            np.argmax(np.abs(x[1]) + x[0]),
            np.argmax(x.T, axis=1),
            np.argmax(x[:, ::2], axis=1, keepdims=True),
        )

    jitted = mp.jit(places)
    for shape in ((3, 1000), (2, 512), (600, 2), (7, 1500)):
        for x in (RANDOM.normal(size=shape), np.round(RANDOM.normal(size=shape))):
            for got, want in zip(jitted(x), places(x), strict=True):
                np.testing.assert_array_equal(got, want)
    each = mp.jit(mp.vmap(lambda r: np.argmax(r**2)))(x)
    np.testing.assert_array_equal(each, np.argmax(x**2, axis=1))
