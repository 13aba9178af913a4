"""Transposed reads in strips, and transposes that are stored into an argument: values to the bit, and the loops.

In: moves of axes over arrays of many shapes and dtypes. Out: NumPy's values; which loops are cut; what is in place.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.schedule import target

ORDERS = [(1, 0), *itertools.permutations(range(3))]
SHAPES = {
    2: [(1, 1), (7, 9), (8, 8), (16, 33), (100, 3), (3, 100), (40, 57)],
    3: [(1, 2, 3), (17, 16, 15), (9, 33, 20)],
}


def moved(x, order):
    return np.transpose(x, order).copy()


def added(x, y):
    return x + 2 * y.T, (x.T - y)[::-1]


def exponentials(x):
    return np.exp(x.T)


@pytest.fixture(params=[False, True])
def small_parts(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(target, "CPU", replace(target.CPU, a_part=20, few=2))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i1", "bool"])
def test_values(order, dtype, small_parts):
    for shape in SHAPES[len(order)]:
        x = (np.arange(np.prod(shape)).reshape(shape) % 100).astype(dtype)
        got = mp.jit(lambda x: moved(x, order))(x)  # noqa: B023 - of this order
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, moved(x, order))


def test_sums_with_a_transpose(small_parts):
    for n in (1, 8, 9, 40, 65):
        x, y = np.random.default_rng(n).normal(size=(2, n, n))
        for got, wanted in zip(mp.jit(added)(x, y), added(x, y)):
            np.testing.assert_allclose(got, wanted, rtol=1e-15)


def test_what_is_cut():
    x = np.ones((240, 40))

    def innermost(function, x):
        text = mp.source(function, x, stage="loops")
        return [line.split("range")[1] for line in text.splitlines() if "range(8)" in line or "range(16)" in line]

    assert innermost(lambda x: x.T.copy(), x) == ["(8):"]
    assert innermost(lambda x: x.T.copy(), x.astype(np.float32)) == ["(16):"]
    assert innermost(exponentials, x) == []  # vectors of functions are worth more
    assert innermost(lambda x: x + 1, x) == []
    assert innermost(lambda x: x.T.copy(), np.ones((240, 3))) == []


# ---- into arguments ----------------------------------------------------------------------------------------


def transposed(a, b):
    a[:] = b.T


def and_back(a, b):
    a[:] = b.T
    b[:] = a.T


def changed_behind(a, b):
    a[:] = b.T
    b[:] = b + 1


def exchanged(a, b):
    t = a.copy()
    a[:] = b.T
    b[:] = t.T


def of_itself(a, b):
    a[:] = a.T


def reversed_both(a, b):
    a[:] = a[::-1]
    b[:] = a.T


def cleared(a, b):
    a[:] = 0.0
    b[:] = a.T + b


def given_back(a, b):
    a[:] = np.flip(b, 0)
    return a, b.T


def rows_spread(a, b):
    a[:] = np.broadcast_to(b[0], a.shape)
    b[0] = a[-1] + 1


def read_before(a, b):
    before = a[0] * 2
    a[:] = b[::-1].T
    return before, a.sum()


STORED = [transposed, and_back, changed_behind, exchanged, of_itself, reversed_both, cleared, given_back, rows_spread]


@pytest.mark.parametrize("function", [*STORED, read_before])
def test_stores_into_arguments(function, small_parts):
    jitted = mp.jit(function)
    for n in (1, 5, 8, 40, 2):
        for same in (False, True):
            a, b = np.random.default_rng(n).normal(size=(2, n, n))
            ours = [a.copy(), b.copy()]
            if same:  # one array twice
                b, ours[1] = a, ours[0]
            wanted, got = function(a, b), jitted(*ours)
            np.testing.assert_array_equal(ours[0], a)
            np.testing.assert_array_equal(ours[1], b)
            for one, other in zip(got or (), wanted or ()):
                np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("function", [transposed, and_back, cleared])
def test_nothing_is_made_apart(function):
    x = np.ones((30, 30))
    assert "empty(" not in mp.source(function, x, x + 1, stage="loops")
