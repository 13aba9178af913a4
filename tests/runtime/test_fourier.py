"""Fourier transforms in native code: NumPy's to the bit where NumPy has what is expected of it, else our own."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import metaphrase as mp

SOURCE = np.random.default_rng(3)
WITHOUT = """
import numpy.fft
sys.modules["numpy.fft._pocketfft_umath"] = None  # as in a NumPy that has no such module
del numpy.fft._pocketfft_umath
"""
CHANGED = """
import numpy.fft._pocketfft_umath as numpys
transform = numpys.fft
numpys.fft = lambda *args, **how: transform(*args, **how)  # as in a NumPy where it is no ufunc
"""
PROGRAM = """
import sys
{}
import numpy as np
import metaphrase as mp
n = np.arange(35)
x = np.random.default_rng(3).normal(size=(6, 35)) + 1j
y = mp.jit(lambda x: np.fft.fft(x, axis=1))(x)
print(np.abs(y - x @ np.exp(-2j * np.pi * np.outer(n, n) / 35)).max() < 1e-12, y.tobytes().hex())
"""


def complex_(*shape, dtype=np.complex128):
    return (SOURCE.normal(size=shape) + 1j * SOURCE.normal(size=shape)).astype(dtype)


@pytest.mark.turns(4)
@pytest.mark.parametrize("dtype", (np.complex128, np.complex64))
@pytest.mark.parametrize("shape", [(1,), (2,), (60,), (1009,), (4, 30), (3, 1), (1, 7), (2, 3, 35), (0, 5)])
def test_numpys_numbers(shape, dtype):
    x = complex_(*shape, dtype=dtype)
    for axis in [k for k, n in enumerate(shape) if n]:
        for function in (np.fft.fft, np.fft.ifft):
            got = mp.jit(lambda x, f=function, axis=axis: f(x, axis=axis, norm="backward"))(x)
            want = function(x, axis=axis)
            assert got.dtype == want.dtype
            largest = np.abs(want).max(initial=1)
            np.testing.assert_allclose(got, want, rtol=0, atol=2 * np.finfo(dtype).eps * largest)
    assert np.array_equal(mp.jit(lambda x: np.fft.fft(x, axis=-1))(x), np.fft.fft(x, axis=-1))


@pytest.mark.turns(4)
@pytest.mark.parametrize("dtype", (np.float64, np.float32))
@pytest.mark.parametrize("n", (1, 2, 5, 6, 35, 64, 1009))
def test_real_numbers(n, dtype):
    x = SOURCE.normal(size=(3, n, 4)).astype(dtype)
    half = np.fft.rfft(x, axis=1)
    got = mp.jit(lambda x: np.fft.rfft(x, axis=1))(x)
    back = mp.jit(lambda y: np.fft.irfft(y, n, axis=1))(half)
    assert got.dtype == half.dtype and back.dtype == dtype
    np.testing.assert_allclose(got, half, rtol=0, atol=2 * np.finfo(dtype).eps * np.abs(half).max())
    np.testing.assert_allclose(back, x, rtol=0, atol=8 * np.finfo(dtype).eps * np.abs(x).max())
    assert dtype == np.float32 or np.array_equal(got, half)
    assert dtype == np.float32 or np.array_equal(back, np.fft.irfft(half, n, axis=1))


@pytest.mark.turns(4)
@pytest.mark.parametrize("norm", ("backward", "ortho", "forward"))
@pytest.mark.parametrize("n", (None, 1, 2, 7, 8))
def test_halves_cut_or_filled(n, norm):
    """Imaginary parts of the first frequency, and of the middle one of an even number, count for nothing."""
    for half in (complex_(3, 2), complex_(3, 5), SOURCE.normal(size=(3, 5))):
        got = mp.jit(lambda x: np.fft.irfft(x, n, norm=norm))(half)
        np.testing.assert_allclose(got, np.fft.irfft(half, n, norm=norm), rtol=0, atol=1e-14)


def test_any_number_of_frequencies():
    back = mp.jit(lambda x: np.fft.irfft(x))
    for m in (4, 5, 9):
        half = complex_(2, m)
        assert np.array_equal(back(half), np.fft.irfft(half))
    with pytest.raises(ValueError, match=r"Invalid number of FFT data points \(0\) specified"):
        back(half[:, :1])


def test_lines_at_any_distance():
    x = complex_(12, 40)
    for view in (x[::2], x[:, ::3], x[::-1, ::-1], x.T, x[3:9, 5:36]):
        for axis in (0, 1):
            got = mp.jit(lambda x, axis=axis: np.fft.fft(x, axis=axis))(view)
            assert np.array_equal(got, np.fft.fft(np.ascontiguousarray(view), axis=axis))
    picked = mp.jit(lambda x: np.fft.fft(x[::2, 1::3], axis=0) + np.fft.fft(x[::2, 1::3].T, axis=1).T)
    want = np.fft.fft(x[::2, 1::3], axis=0)
    np.testing.assert_allclose(picked(x), 2 * want, rtol=1e-14)


def test_in_loops_batches_and_derivatives():
    def waves(x):
        for _ in range(3):
            x = np.fft.ifft(np.fft.fft(x) * 2)
        return x

    x = complex_(5, 64)
    np.testing.assert_allclose(mp.jit(mp.vmap(waves))(x), waves(x), rtol=1e-13)
    power = mp.grad(lambda x: (np.abs(np.fft.fft(x)) ** 2).sum())
    np.testing.assert_allclose(power(x[0].real), 2 * 64 * x[0].real, rtol=1e-12)


def test_what_another_numpy_has():
    """Without the module, or with one that gives other numbers, programs have transforms of their own."""

    def bits(change):
        done = subprocess.run([sys.executable, "-c", PROGRAM.format(change)], capture_output=True, text=True)
        right, numbers = done.stdout.split()
        assert right == "True", done.stderr
        return numbers

    x = np.random.default_rng(3).normal(size=(6, 35)) + 1j
    assert bits("") == np.fft.fft(x, axis=1).tobytes().hex()
    assert bits(WITHOUT) == bits(CHANGED) != bits("")
