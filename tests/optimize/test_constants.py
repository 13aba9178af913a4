"""What is computed from arrays that are written in a function stands in its program; what NumPy gives, and no more."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.astpasses.optimize import optimize


def operations(function, *args) -> set[str]:
    """The primitives of the program as code is made of it."""
    return {let.primitive.name for let in optimize(stage(function, args).function, before_transform=False).lets}


def binomial(x):
    w = np.array([1.0, 4.0, 6.0, 4.0, 1.0]) / 16
    return w[::-1].sum() * x + w[3] + np.cumsum(w)[1] + w.reshape(5, 1).max()


def determinant(x):
    m = np.array([[1.0, 2.0], [3.0, 4.0]])
    return x * (m[0, 0] * m[1, 1] - m[0, 1] * m.T[0, 1])


def picked(x):
    order = np.array([2, 0, 1])
    weights = np.array([0.5, 1.5, 2.5])
    return x * weights[order[1]] + weights[order][0]


def of_no_elements(x):
    return x + np.array([1.0, 2.0])[2:].sum()


def in_bits(x):
    masks = np.array([1, 2, 4, 8], dtype=np.uint8)
    return x + ((masks << 1) | 1).astype(np.float64)[3] + np.where(masks > 2, 1.0, -0.0)[0]


@pytest.mark.parametrize("function", [binomial, determinant, picked, of_no_elements, in_bits])
def test_values(function):
    for x in (2.0, -0.5):
        assert mp.jit(function)(x) == function(x)
        assert mp.grad(function)(x) == pytest.approx((function(x + 1) - function(x - 1)) / 2)
        assert operations(function, x) <= {"add", "mul"} or function is of_no_elements


def test_a_table_that_data_index_is_one_table():
    def smoothed(x):
        w = np.array([1.0, 2.0, 1.0]) / 4
        out = np.zeros(len(x))
        for i in range(1, len(x) - 1):
            for j in range(3):
                out[i] += w[j] * x[i + j - 1]
        return out

    x = np.arange(8.0)
    assert operations(smoothed, x) == {"constant", "broadcast", "loop"}
    assert np.array_equal(mp.jit(smoothed)(x), smoothed(x))


def test_equal_elements_are_one_number():
    def halves(x):
        return x + np.array([2.0, 2.0, 2.0]) / 4

    assert operations(halves, np.ones(3)) == {"broadcast", "add"}


def test_no_table_grows():
    """A product of small tables may be large: it is computed when the function runs."""

    def outer(x):
        row = np.array([float(k * k) for k in range(100)])
        return x + row[:, None] * row

    x = np.ones((100, 100))
    assert "mul" in operations(outer, x) and np.array_equal(mp.jit(outer)(x), outer(x))


def test_an_index_that_is_out_of_range_is_an_error_when_it_is_reached():
    def far(x, often):
        w = np.array([1.0, 2.0, 3.0])
        for k in range(often):
            x += w[k]
        return x

    assert mp.jit(far)(1.0, 3) == 7.0
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        mp.jit(far)(1.0, 4)
