"""Loops whose counter is divided by a size: repeated, tiled and reshaped arrays, of known lengths and of others."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp

RANDOM = np.random.default_rng(2)


def thrice(x):
    return np.repeat(x, 3) * 2.0


def many(x):
    return np.repeat(x, 50) + 1.0


def tiled(x):
    return np.tile(x, 40) - x[0]


def interleaved(x):
    return np.stack([x, x * 2.0, -x], axis=1).ravel()


def columns(x):
    return (np.repeat(x, 6) * 0.5).reshape(-1, 6)[:, ::-1].ravel() + np.tile(np.arange(6.0), len(x))


def blocks(x):
    return np.repeat(np.repeat(x, 4).reshape(len(x), 4), 5, axis=1).ravel()


def halves(x):
    return x[np.arange(2 * len(x)) // 2] + x[np.arange(2 * len(x)) % len(x)]


@pytest.mark.turns(3)
@pytest.mark.parametrize("function", [thrice, many, tiled, interleaved, columns, blocks, halves])
def test_numbers(function):
    jitted = mp.jit(function)
    for n in (40, 7, 1, 2, 1001):
        x = RANDOM.normal(size=n)
        np.testing.assert_array_equal(jitted(x), function(x))
    rows = RANDOM.normal(size=(4, 12))
    np.testing.assert_array_equal(mp.jit(mp.vmap(function))(rows), [function(row) for row in rows])
    weights = RANDOM.normal(size=len(function(rows[0])))
    slope = mp.jit(mp.grad(lambda x: weights @ function(x)))(rows[0])
    want = [weights @ (function(rows[0] + unit) - function(rows[0] - unit)) / 2 for unit in np.eye(12)]
    np.testing.assert_allclose(slope, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("function", [thrice, many, tiled, interleaved, columns])
def test_nothing_is_divided(function):
    x = RANDOM.normal(size=40)
    text = mp.source(function, x, stage="loops")
    assert "//" not in text and "%" not in text, text


def test_what_no_digit_fits_stays():
    def third(x):
        return x[np.arange(40) // 3]

    x = RANDOM.normal(size=40)
    np.testing.assert_array_equal(mp.jit(third)(x), third(x))
    assert "//" in mp.source(third, x, stage="loops")


def test_a_size_that_only_the_run_knows():
    def tiles(x):
        return np.tile(x, (1, 3)), np.tile(x, 2)

    text = mp.source(tiles, "f64[n, m]", stage="loops")
    assert "% (m)" not in text and "for j in range(3):" in text, text
    jitted = mp.jit(tiles)
    jitted(np.ones((4, 5))), jitted(np.ones((5, 6)))
    for shape in ((0, 3), (3, 0), (1, 1), (2, 7), (30, 4)):
        x = RANDOM.normal(size=shape)
        for got, want in zip(jitted(x), tiles(x), strict=True):
            np.testing.assert_array_equal(got, want)
