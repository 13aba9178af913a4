"""The discrete Fourier transform along one axis, and its inverse without the factor 1/n.

In: complex arrays. Out: complex arrays of that type. The transform is linear, and its matrix is symmetric:
it is its own transpose.

    y: c128[n] = fft(x, axis=0, inverse=False)
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..core.native import Lib
from ..core.primitive import Primitive
from ..core.types import Array
from .families import require


def _fft_type(x: Array, *, axis: int, inverse: bool) -> Array:
    require(x.dtype.kind == "c", lambda: f"fft: needs complex numbers, got {x}")
    require(0 <= axis < x.ndim, lambda: f"fft: axis {axis} does not fit {x}")
    return x.plain


def _fft_numpy(x: Any, *, axis: int, inverse: bool) -> Any:
    if x.shape[axis] == 0:
        return np.zeros_like(x)
    return np.fft.ifft(x, axis=axis, norm="forward") if inverse else np.fft.fft(x, axis=axis)


fft: Primitive = Primitive(
    "fft", type=_fft_type, numpy=_fft_numpy,
    jvp=(lambda x_dot, y, x, **how: fft(x_dot, **how),),
    transpose=(lambda y_bar, x, **how: fft(y_bar, **how),),
    batch=lambda size, args, batched, *, axis, inverse: (fft(args[0], axis=axis + 1, inverse=inverse), True),
    native=Lib("fft"), doc="Sums of x[k] exp(-2 pi i j k / n), or with the opposite sign if `inverse`.")

__all__ = ["fft"]
