"""The discrete Fourier transform along one axis, and its inverse without the factor 1/n.

In: complex arrays. Out: complex arrays of that type. The transform is linear, and its matrix is symmetric:
it is its own transpose.

    y: c128[n] = fft(x, axis=0, inverse=False)
    z: c128[n//2 + 1] = rfft(w, axis=0)               # w: f64[n]
    w_bar: f64[n] = rfft_transposed(z_bar, axis=0, size=n)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.build import literal
from ..core.dims import DimLike, floordiv
from ..core.native import Composite, Lib
from ..core.primitive import Primitive, Together
from ..core.relation import ALONG
from ..core.types import Array, c64, c128, f32, f64, i64
from .complex_numbers import complex_, real
from .families import like, require
from .indexing import slice as slice_
from .structure import pad


def _fft_type(x: Array, *, axis: int, inverse: bool) -> Array:
    require(x.dtype.kind == "c", lambda: f"fft: needs complex numbers, got {x}")
    require(0 <= axis < x.ndim, lambda: f"fft: axis {axis} does not fit {x}")
    return x.plain


def _fft_numpy(x: Any, *, axis: int, inverse: bool) -> Any:
    if x.shape[axis] == 0:
        return np.zeros_like(x)
    return np.fft.ifft(x, axis=axis, norm="forward") if inverse else np.fft.fft(x, axis=axis)


fft: Primitive = Primitive(
    "fft",
    type=_fft_type,
    numpy=_fft_numpy,
    jvp=Together(),
    transpose=(lambda y_bar, x, **how: fft(y_bar, **how),),
    dims=ALONG,
    native=Lib("fft"),
    doc="Sums of x[k] exp(-2 pi i j k / n), or with the opposite sign if `inverse`.",
)


# --- of real numbers: half of the frequencies tells the others ---------------------------------------------


def _rfft_type(x: Array, *, axis: int) -> Array:
    require(x.dtype in (f32, f64), lambda: f"rfft: needs real numbers, got {x}")
    require(0 <= axis < x.ndim, lambda: f"rfft: axis {axis} does not fit {x}")
    dims = (*x.dims[:axis], floordiv(x.dims[axis], 2) + 1, *x.dims[axis + 1 :])
    return Array(c64 if x.dtype == f32 else c128, dims)


def _rfft_numpy(x: Any, *, axis: int) -> Any:
    if x.shape[axis] == 0:
        return np.zeros([1 if k == axis else d for k, d in enumerate(x.shape)], (x.dtype.type(0) + 0j).dtype)
    return np.fft.rfft(x, axis=axis)


def _rfft_written(x: Any, *, axis: int) -> Any:
    whole = fft(complex_(x, like(x, 0)), axis=axis, inverse=False)
    half = rfft.type(x.type, axis=axis).dims
    return slice_(whole, *[literal(0, i64)] * len(half), shape=half, step=(1,) * len(half))


def _half_type(y: Array, *, axis: int, size: DimLike) -> Array:
    require(y.dtype in (c64, c128), lambda: f"rfft_transposed: needs complex numbers, got {y}")
    require(y.dims[axis] == floordiv(size, 2) + 1, lambda: f"rfft_transposed: {y} is no half of {size}")
    return Array(f32 if y.dtype == c64 else f64, (*y.dims[:axis], size, *y.dims[axis + 1 :]))


def _half_numpy(y: Any, *, axis: int, size: int) -> Any:
    if size == 0:
        return np.zeros([0 if k == axis else d for k, d in enumerate(y.shape)], y.real.dtype)
    return np.fft.fft(y, size, axis=axis).real


def _half_written(y: Any, *, axis: int, size: DimLike) -> Any:
    widths = tuple(size - d if k == axis else 0 for k, d in enumerate(y.type.dims))
    none = (0,) * y.type.ndim
    whole = pad(y, literal(0, y.type.dtype), low=none, high=widths, interior=none)
    return real(fft(whole, axis=axis, inverse=False))


rfft: Primitive = Primitive(
    "rfft",
    type=_rfft_type,
    numpy=_rfft_numpy,
    jvp=Together(),
    transpose=(lambda y_bar, x, *, axis: rfft_transposed(y_bar, axis=axis, size=x.type.dims[axis]),),
    dims=ALONG,
    native=Composite(_rfft_written, library="rfft"),
    doc="The first n//2 + 1 elements of the transform of real numbers.",
)

rfft_transposed: Primitive = Primitive(
    "rfft_transposed",
    type=_half_type,
    numpy=_half_numpy,
    jvp=Together(),
    transpose=(lambda out_bar, y, *, axis, size: rfft(out_bar, axis=axis),),
    dims=ALONG,
    native=Composite(_half_written, library="rfft_transposed"),
    doc="The real part of the transform of y, filled with zeros to `size` elements.",
)

__all__ = ["fft", "rfft", "rfft_transposed"]
