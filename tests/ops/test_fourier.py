"""`numpy.fft` in native code: every kind of size, both precisions, derivatives and batches."""

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.config import config

RNG = np.random.default_rng(2)
SIZES = [1, 2, 3, 4, 5, 7, 8, 12, 16, 30, 61, 67, 97, 128, 134, 210, 1009, 1024]


def both_ways(x):
    return np.fft.fft(x), np.fft.ifft(x)


def test_every_size():
    made = mp.jit(both_ways)
    for n in SIZES:
        x = RNG.normal(size=n) + 1j * RNG.normal(size=n)
        for got, want in zip(made(x), both_ways(x)):
            np.testing.assert_allclose(got, want, atol=2e-15 * n, rtol=1e-13)


def signal(x, y):
    wave = np.fft.rfft(x * y, axis=1)
    turned = np.fft.irfft(wave * np.conj(np.fft.rfft(x)), x.shape[1])
    return turned, np.fft.fft2(y, norm="ortho"), np.fft.fftshift(x)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("native", [False, True])
def test_signals(dtype, native):
    x, y = RNG.normal(size=(2, 3, 10)).astype(dtype)
    with config(native=native):
        got = mp.jit(signal)(x, y)
    for g, w in zip(got, signal(x, y)):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-12 if dtype is np.float64 else 1e-4, atol=1e-5)


def power(x):
    return np.sum(np.abs(np.fft.rfft(x)) ** 2 * np.arange(x.shape[-1] // 2 + 1)) + np.sum(
        np.fft.irfft(np.fft.rfft(x) ** 2, 9) ** 3
    )


def test_derivatives_and_batches():
    x, direction, h = RNG.normal(size=8), RNG.normal(size=8), 1e-5
    want = (power(x + h * direction) - power(x - h * direction)) / (2 * h)
    np.testing.assert_allclose(mp.jit(mp.grad(power))(x) @ direction, want, rtol=1e-7)
    rows = RNG.normal(size=(4, 8))
    np.testing.assert_allclose(mp.jit(mp.vmap(power))(rows), [power(row) for row in rows], rtol=1e-12)
