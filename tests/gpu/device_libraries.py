"""What CuPy gets from NVIDIA's libraries: products, sorting, linear algebra, Fourier transforms. NumPy does it here.

In: device arrays of the current device (host arrays are refused). Out: new device arrays. Example:
`linalg.solve(a, b)`. Where NumPy raises LinAlgError, CuPy goes on in silence with numbers that mean nothing: here
such a result is full of NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from device_arrays import deliver, ndarray, on_device, placed

# ---- Products, sorting, searching ----------------------------------------------------------------------------------


def matmul(x1: ndarray, x2: ndarray, out: ndarray | None = None) -> ndarray:
    return deliver(np.matmul(*on_device(x1, x2)), out)


def dot(a: ndarray, b: ndarray, out: ndarray | None = None) -> ndarray:
    return deliver(np.dot(*on_device(a, b)), out)


def tensordot(a: ndarray, b: ndarray, axes: Any = 2) -> ndarray:
    return placed(np.tensordot(*on_device(a, b), axes))


def einsum(subscripts: str, *operands: ndarray) -> ndarray:
    if not isinstance(subscripts, str):
        raise NotImplementedError("einsum takes its subscripts as text here")
    return placed(np.einsum(subscripts, *on_device(*operands)))


def sort(a: ndarray, axis: int = -1, kind: str | None = None) -> ndarray:
    return placed(np.sort(*on_device(a), axis, "stable"))


def argsort(a: ndarray, axis: int = -1, kind: str | None = None) -> ndarray:
    return placed(np.argsort(*on_device(a), axis, "stable"))


def searchsorted(a: ndarray, v: ndarray, side: str = "left", sorter: ndarray | None = None) -> ndarray:
    order = None if sorter is None else on_device(sorter)[0]
    return placed(np.searchsorted(*on_device(a, v), side, order))


def nonzero(a: ndarray) -> tuple[ndarray, ...]:
    if a.ndim == 0:
        raise ValueError("nonzero of an array of no dimensions")
    return tuple(placed(places) for places in np.nonzero(*on_device(a)))


def flatnonzero(a: ndarray) -> ndarray:
    return placed(np.flatnonzero(*on_device(a)))


# ---- Linear algebra ------------------------------------------------------------------------------------------------


def of_library(function: Callable[..., Any], arrays: int) -> Callable[..., Any]:
    """`function` on device arrays: its first `arrays` arguments are; whatever arrays it gives back are, too."""

    def on_arrays(*args: Any, **options: Any) -> Any:
        hosts = on_device(*args[:arrays])
        for host in hosts:
            if host.dtype.kind not in "fc" or host.dtype.itemsize == 2:
                raise TypeError(f"{function.__name__}: {host.dtype} is not a type of this library: float32 and up")
        try:
            results = function(*hosts, *args[arrays:], **options)
        except np.linalg.LinAlgError as error:
            if "Singular" not in str(error) and "definite" not in str(error):
                raise
            shape = hosts[-1].shape
            return placed(np.full(shape, np.nan, np.result_type(*hosts)))
        if not isinstance(results, tuple):
            return placed(results)
        whole = [placed(result) for result in results]
        return type(results)(*whole) if hasattr(results, "_fields") else tuple(whole)

    on_arrays.__name__ = function.__name__
    return on_arrays


def module(name: str, **names: Any) -> ModuleType:
    """A module of these names."""
    made = ModuleType(name)
    made.__dict__.update(names)
    return made


linalg = module(
    "linalg",
    solve=of_library(np.linalg.solve, 2),
    cholesky=of_library(np.linalg.cholesky, 1),
    qr=of_library(np.linalg.qr, 1),
    eigh=of_library(np.linalg.eigh, 1),
    eigvalsh=of_library(np.linalg.eigvalsh, 1),
    svd=of_library(np.linalg.svd, 1),
    inv=of_library(np.linalg.inv, 1),
    det=of_library(np.linalg.det, 1),
    slogdet=of_library(np.linalg.slogdet, 1),
    LinAlgError=np.linalg.LinAlgError,
)

# ---- Fourier transforms --------------------------------------------------------------------------------------------


def transform(function: Callable[..., np.ndarray]) -> Callable[..., ndarray]:
    """As CuPy's: single precision stays single."""

    def on_array(a: ndarray, n: int | None = None, axis: int = -1, norm: str | None = None) -> ndarray:
        return placed(function(*on_device(a), n, axis, norm))

    on_array.__name__ = function.__name__
    return on_array


FFT = ("fft", "ifft", "rfft", "irfft")
fft = module("fft", **{name: transform(getattr(np.fft, name)) for name in FFT})
