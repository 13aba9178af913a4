"""Kernels whose threads take several elements at a time: where arrays begin, how they end, what is left alone.

In: elementwise functions of arrays whose lengths are not known, called with views that begin anywhere. Out: NumPy's
values, and nothing stored beside them.
"""

from __future__ import annotations

import numpy as np
import pytest
import stand_in as cupy

import metaphrase as mp

LENGTHS = (2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 100, 300)


@pytest.fixture(autouse=True)
def installed():
    with cupy.installed():
        yield


def kernels(f, *types):
    return mp.source(f, *types, stage="cuda")


def test_how_many_elements_a_thread_takes():
    for kind, most in (("f32", 4), ("f64", 2), ("i8", 16), ("f16", 8), ("bool", 16), ("bf16", 8)):
        text = kernels(lambda x: x == x, f"{kind}[n]")
        assert f"mp_write<{most}>" in text and f"mp_pack<b1, {most}>" in text
    assert "mp_read<2>" in kernels(lambda x, y: x * y, "f32[n]", "f64[n]")  # as the widest wants
    assert "mp_read<4>" in kernels(lambda x, b: np.maximum(x + b, 0), "f32[n, m]", "f32[m]")


@pytest.mark.parametrize(
    "f, types",
    [
        (lambda x: x * 2, ("f32[1000]",)),  # each element has a thread: there are more of these
        (lambda z: z * 2, ("c64[n]",)),
        (lambda x: np.sin(x) + np.cos(x) + np.tan(x) + np.arctan(x) + np.exp(x) + np.log(x), ("f32[n]",)),
    ],
)
def test_what_is_left_alone(f, types):
    assert "mp_read" not in kernels(f, *types)


def scaled(x, y):
    return x * 2 + y, x > y, (x - y[::-1]).astype(np.float32)


@pytest.mark.parametrize("first, second", [("f4", "f4"), ("f8", "f4"), ("i1", "u1"), ("f2", "f2"), ("i8", "f8")])
def test_ends_and_beginnings(first, second):
    f = mp.jit(scaled)
    rng = np.random.default_rng(3)
    for n in LENGTHS:
        for a, b in ((0, 0), (1, 0), (2, 3)):
            x, y = (rng.integers(0, 9, n + 4).astype(kind) for kind in (first, second))
            on_device = cupy.asarray(x)[a : a + n], cupy.asarray(y)[b : b + n]
            for got, want in zip(f(*on_device), scaled(x[a : a + n], y[b : b + n])):
                np.testing.assert_array_equal(got.get(), want)
                assert got.dtype == want.dtype
    assert f.cache_info().currsize == 2


def test_stores_into_what_is_given():
    def raised(x, y):
        x += y
        x[:] = x * x

    f = mp.jit(raised)
    for n in LENGTHS:
        for a in (0, 1, 3):
            whole = np.arange(n + 8.0, dtype=np.float32)
            given, want = cupy.asarray(whole), whole.copy()
            f(given[a : a + n], cupy.asarray(whole[:n]))
            raised(want[a : a + n], whole[:n])
            np.testing.assert_array_equal(given.get(), want)


def test_a_broadcast_and_a_number_of_an_iteration():
    f = mp.jit(lambda x, b: np.maximum(x + b, 0) * np.arange(x.shape[0])[:, None])
    for n, m in ((2, 3), (3, 5), (7, 9), (16, 16), (5, 1000)):
        x, b = np.arange(n * m, dtype="f4").reshape(n, m) - 5, np.arange(m, dtype="f4")
        want = np.maximum(x + b, 0) * np.arange(n)[:, None]
        np.testing.assert_array_equal(f(cupy.asarray(x), cupy.asarray(b)).get(), want)


def test_places_that_data_name():
    def picked(x, k):
        return x[k] * 2 + k

    f = mp.jit(picked)
    for n in LENGTHS:
        k = np.arange(n)[::-1] * 3 % n
        x = np.arange(n) * 1.5
        np.testing.assert_array_equal(f(cupy.asarray(x), cupy.asarray(k)).get(), picked(x, k))
