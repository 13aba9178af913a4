"""Sliding products: few taps and many, short lines and long, all modes, infinite numbers, derivatives."""

import numpy as np
import pytest

import metaphrase as mp

RANDOM = np.random.default_rng(8)
MODES = ("full", "same", "valid")


def slid(x, y):
    return [f(a, b, m) for f in (np.convolve, np.correlate) for a, b in ((x, y), (y, x)) for m in MODES]


def numbers(n, dtype):
    x = RANDOM.normal(size=n) * 9
    return (x + 1j * RANDOM.normal(size=n)).astype(dtype) if dtype == "c16" else x.astype(dtype)


@pytest.mark.turns(6)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
@pytest.mark.parametrize("n, m", [(1, 1), (9, 1), (12, 3), (11, 3), (32, 8), (36, 9), (35, 9), (5000, 20)])
def test_all_modes(n, m, dtype):
    x, y = numbers(n, dtype), numbers(m, dtype)
    for got, want in zip(mp.jit(slid)(x, y), slid(x, y), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(
            got, want, rtol=1e-4 if dtype == "f4" else 1e-11, atol=1e-3 if dtype == "f4" else 1e-9
        )


def test_only_what_is_there_is_multiplied():
    """An infinite tap makes no NaN of places where nothing is."""
    for m in (3, 12):
        x, y = np.abs(numbers(60, "f8")), np.abs(numbers(m, "f8"))
        y[0], y[m // 2] = np.inf, np.inf
        for mode in MODES:
            np.testing.assert_allclose(
                mp.jit(lambda x, y, m=mode: np.convolve(x, y, m))(x, y), np.convolve(x, y, mode), rtol=1e-14
            )


def test_other_lengths_lanes_and_derivatives():
    smooth = mp.jit(lambda x, y: np.convolve(x, y, "same"))
    for n in (100, 50, 9, 4, 2):
        x, y = numbers(n, "f8"), numbers(4, "f8")
        np.testing.assert_allclose(smooth(x, y), np.convolve(x, y, "same"), rtol=1e-12, atol=1e-12)
    rows, weights = RANDOM.normal(size=(3, 80)), RANDOM.normal(size=80)
    for m in (3, 11):
        y = numbers(m, "f8")
        each = mp.jit(mp.vmap(lambda x, y: np.convolve(x, y, "same"), (0, None)))(rows, y)
        np.testing.assert_allclose(each, [np.convolve(x, y, "same") for x in rows], rtol=1e-12, atol=1e-12)
        by_x, by_y = mp.jit(mp.grad(lambda x, y: weights @ np.convolve(x, y, "same"), (0, 1)))(rows[0], y)
        want_x = [weights @ np.convolve(unit, y, "same") for unit in np.eye(80)]
        want_y = [weights @ np.convolve(rows[0], unit, "same") for unit in np.eye(m)]
        np.testing.assert_allclose(by_x, want_x, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(by_y, want_y, rtol=1e-11, atol=1e-11)


def test_a_filter_written_as_a_loop_goes_over_memory_once():
    def filtered(x, y):
        out = np.zeros(len(x) - len(y) + 1)
        for k in range(len(y)):
            out = out + x[k : k + len(out)] * y[k]
        return out

    x, y = numbers(20_000, "f8"), numbers(30, "f8")
    np.testing.assert_allclose(mp.jit(filtered)(x, y), np.correlate(x, y), rtol=1e-11, atol=1e-10)
    text = mp.source(filtered, x, y, stage="loops")
    assert "1024*" in text, text
