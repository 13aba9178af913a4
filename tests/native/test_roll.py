"""`np.roll` of arrays whose sizes only the run knows: read where their elements are, as of those that are known."""

import numpy as np
import pytest

import metaphrase as mp

SHIFTS = (0, 1, -1, 3, -7, 100)


def rolled(x):
    both = [np.roll(x, k, axis) for k in SHIFTS for axis in (0, 1, None)]
    return [*both, np.roll(x, (1, -2), (0, 1)), np.roll(x, (2, 3), (1, 1))]


@pytest.mark.turns(3)
@pytest.mark.parametrize("shape", [(2, 2), (0, 3), (3, 0), (1, 1), (1, 5), (4, 4), (30, 41), (2, 7), (200, 3)])
def test_any_size(shape):
    jitted, x = mp.jit(rolled), np.random.default_rng(1).random(shape)
    jitted(np.ones((5, 6))), jitted(np.ones((7, 9)))  # from now on for all sizes from 2 on
    for got, want in zip(jitted(x), rolled(x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_it_is_read_where_it_is():
    def laplacian(x):
        return np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1) - 4 * x

    text = mp.source(laplacian, "f64[n, m]", stage="core")
    assert "gather" not in text and text.count("roll(x, shift=") == 4
    x = np.random.default_rng(2).random((9, 8))
    slope = mp.jit(mp.grad(lambda x: np.sum(laplacian(x) * np.sin(x))))
    for size in (5, 6, 8):
        part = x[:size, : size + 1]
        want = laplacian(np.sin(part)) + laplacian(part) * np.cos(part)  # the Laplacian is its own transpose
        np.testing.assert_allclose(slope(part), want, rtol=1e-12, atol=1e-12)


def test_shifts_by_half_a_size():
    def shifted(x):
        return np.fft.fftshift(x), np.fft.ifftshift(x, axes=1), np.roll(x, x.shape[0], 1), np.fft.fftfreq(x.shape[1])

    jitted = mp.jit(shifted)
    jitted(np.ones((4, 5))), jitted(np.ones((5, 6)))
    for shape in ((2, 2), (7, 4), (30, 41), (1, 3)):
        x = np.random.default_rng(3).random(shape)
        for got, want in zip(jitted(x), shifted(x), strict=True):
            np.testing.assert_array_equal(got, want)
