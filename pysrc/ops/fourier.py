"""The discrete Fourier transform along one axis, and its inverse without the factor 1/n.

In: complex arrays. Out: complex arrays of that type. The transform is linear, and its matrix is symmetric:
it is its own transpose.

    y: c128[n] = fft(x, axis=0, inverse=False)
    z: c128[n//2 + 1] = rfft(w, axis=0)               # w: f64[n]
    v: f64[n] = irfft(z, axis=0, size=n)
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
from .arithmetic import add, mul
from .arrays import dim_value, iota
from .compare import eq, or_, select
from .complex_numbers import complex_, conj, real
from .families import like, require
from .indexing import slice as slice_
from .shape import broadcast, convert
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


def _irfft_type(y: Array, *, axis: int, size: DimLike) -> Array:
    require(y.dtype in (c64, c128), lambda: f"irfft: needs complex numbers, got {y}")
    require(y.dims[axis] == floordiv(size, 2) + 1, lambda: f"irfft: {y} is no half of {size}")
    return Array(f32 if y.dtype == c64 else f64, (*y.dims[:axis], size, *y.dims[axis + 1 :]))


def _irfft_numpy(y: Any, *, axis: int, size: int) -> Any:
    if size == 0:
        return np.zeros([0 if k == axis else d for k, d in enumerate(y.shape)], y.real.dtype)
    return np.fft.irfft(y, size, axis=axis, norm="forward")


def _irfft_written(y: Any, *, axis: int, size: DimLike) -> Any:
    y = _turned(y, axis, size, 2)
    widths = tuple(size - d if k == axis else 0 for k, d in enumerate(y.type.dims))
    none = (0,) * y.type.ndim
    whole = pad(y, literal(0, y.type.dtype), low=none, high=widths, interior=none)
    return real(fft(whole, axis=axis, inverse=False))


def _turned(y: Any, axis: int, size: DimLike, weight: float) -> Any:
    """The conjugate of half of the frequencies, those that stand for two among all `size` times `weight`."""
    k = iota(length=y.type.dims[axis], dtype=i64)
    count = literal(size, i64) if isinstance(size, int) else dim_value(dim=size)
    count = broadcast(count, shape=k.type.dims, axes=())
    once = or_(eq(k, like(k, 0)), eq(add(k, k), count))  # the first, and the middle one of an even number
    one, other = (broadcast(literal(w, f64), shape=k.type.dims, axes=()) for w in (1.0, weight))
    factor = convert(select(once, one, other), dtype=y.type.dtype)
    return mul(conj(y), broadcast(factor, shape=y.type.dims, axes=(axis,)))


rfft: Primitive = Primitive(
    "rfft",
    type=_rfft_type,
    numpy=_rfft_numpy,
    jvp=Together(),
    transpose=(
        lambda y_bar, x, *, axis: irfft(
            _turned(y_bar, axis, x.type.dims[axis], 0.5), axis=axis, size=x.type.dims[axis]
        ),
    ),
    dims=ALONG,
    native=Composite(_rfft_written, library="rfft"),
    doc="The first n//2 + 1 elements of the transform of real numbers.",
)

irfft: Primitive = Primitive(
    "irfft",
    type=_irfft_type,
    numpy=_irfft_numpy,
    jvp=Together(),
    transpose=(lambda x_bar, y, *, axis, size: _turned(rfft(x_bar, axis=axis), axis, size, 2),),
    dims=ALONG,
    native=Composite(_irfft_written, library="irfft"),
    doc="`size` real numbers, of the first size//2 + 1 elements of their transform; without the factor 1/size.",
)

__all__ = ["fft", "rfft", "irfft"]
