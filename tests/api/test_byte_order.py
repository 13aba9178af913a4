"""Arrays in the byte order of another machine are arguments like others; they can't be stored into."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.config import config

DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "u8", "u4", "u2", "c16", "c8"]


def swapped(values, dtype):
    array = np.asarray(values).astype(dtype)
    return array.astype(array.dtype.newbyteorder())


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_as_an_argument(dtype, native):
    x = np.array([1, 2, 3]).astype(dtype)
    with config(native=native):
        doubled = mp.jit(lambda a, b: {"sum": a + b[::-1], "first": a[0]})
        other = swapped(x, dtype)
        for first, second in ((x, other), (other, x), (x, x), (other, other)):
            out = doubled(first, second)
            assert out["sum"].dtype == x.dtype and out["sum"].dtype.isnative and out["first"] == 1
            np.testing.assert_array_equal(out["sum"], x + x[::-1])


def test_under_transformations():
    x = swapped([1.0, 2.0, 3.0], "f8")
    np.testing.assert_array_equal(mp.grad(lambda a: (a * a).sum())(x), [2, 4, 6])
    np.testing.assert_array_equal(mp.vmap(lambda a: a * a)(x), [1, 4, 9])
    np.testing.assert_array_equal(mp.jvp(lambda a: a * a, (x,), (x,))[1], [2, 8, 18])
    np.testing.assert_array_equal(mp.jit(lambda a, i: a[i])(x, swapped([2, 0], "i4")), [3, 1])


def test_as_a_place_to_store_into():
    def stored(a):
        a[0] = 7.0
        return a.sum()

    x = swapped([1.0, 2.0, 3.0], "f8")
    with pytest.raises(ValueError, match="read-only") as refused:
        mp.jit(stored)(x)
    assert x[0] == 1.0 and "byte order" in str(refused.value)


def test_as_a_capture():
    x = swapped([1.0, 2.0, 3.0], "f8")
    with pytest.raises(TypeError, match=r"'x': arrays of dtype >?<?f8 are not supported"):
        mp.jit(lambda a: a * x)(1.0)
