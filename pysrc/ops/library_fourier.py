"""`numpy.fft`: transforms of complex and real arrays along one or more axes, and the order of frequencies.

In: operands; `n` or `s`, axes and `norm` as NumPy has them. Out: core atoms.

    y = rfft(x)         z = irfft(y, n)         w = fft2(a, norm="ortho")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.build import known_facts
from ..core.dims import DimLike, dim_min, floordiv
from ..core.ir import Atom
from ..core.types import i64, is_half
from . import fourier
from .arithmetic import div, mul, sub
from .arrays import iota
from .compare import ne
from .complex_numbers import complex_, conj
from .effects import check
from .families import like
from .library_moves import roll
from .library_reductions import not_empty
from .library_shapes import concatenate, part
from .promotion import Operand, axis_of, broadcast_to, dim_of, inexact_dtype, is_weak, lift, scalar_dim, to_dtype


def _numbers(a: Operand) -> Atom:
    x = lift(a)
    dtype = inexact_dtype(x.type.dtype)
    return to_dtype(x, np.float32 if is_half(dtype) else dtype)


def _as_complex(x: Atom) -> Atom:
    return x if x.type.dtype.kind == "c" else complex_(x, like(x, 0))


def _fitted(x: Atom, n: Any, axis: int) -> Atom:
    """x cut, or filled with zeros, to n elements along an axis."""
    if n is None:
        return x
    have, wanted = x.type.dims[axis], dim_of(n)
    if have == wanted:
        return x
    if isinstance(wanted, int) and wanted < 1:
        raise ValueError(f"Invalid number of FFT data points ({wanted}) specified.")
    kept = dim_min(have, wanted)
    zeros = tuple(wanted - kept if k == axis else d for k, d in enumerate(x.type.dims))
    x = x if kept == have else part(x, axis, 0, kept)
    return x if kept == wanted else concatenate([x, broadcast_to(to_dtype(0, x.type.dtype), zeros)], axis)


def _scaled(x: Atom, size: DimLike, norm: str | None, inverse: bool, dtype: np.dtype) -> Atom:
    """The factor that `norm` asks for, in half precision for such numbers; the transforms have none."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    if norm == "ortho":
        power = -0.5
    elif (norm == "forward") != inverse:
        power = -1.0
    else:
        return x
    if isinstance(size, int):
        factor = float(size) ** power
        return mul(x, like(x, float(np.asarray(factor, dtype)) if is_half(dtype) else factor))
    base = dtype if is_half(dtype) else np.float32 if x.type.dtype == np.complex64 else np.float64
    from .library_elementwise import power as raised

    return mul(x, broadcast_to(to_dtype(raised(scalar_dim(size, base), power), x.type.dtype), x.type.dims))


def _transform(a: Operand, n: Any, axis: Any, norm: str | None, inverse: bool) -> Atom:
    a = lift(a)
    x = _as_complex(_numbers(a))
    at = axis_of(axis, x.type.ndim)
    x = _fitted(x, n, at)
    not_empty(x, (at,), "Invalid number of FFT data points (0) specified.")
    return _scaled(fourier.fft(x, axis=at, inverse=inverse), x.type.dims[at], norm, inverse, a.type.dtype)


def fft(a: Operand, n: Any = None, axis: Any = -1, norm: str | None = None) -> Atom:
    return _transform(a, n, axis, norm, False)


def ifft(a: Operand, n: Any = None, axis: Any = -1, norm: str | None = None) -> Atom:
    return _transform(a, n, axis, norm, True)


def rfft(a: Operand, n: Any = None, axis: Any = -1, norm: str | None = None) -> Atom:
    """The half of the frequencies that tells the others, of real numbers."""
    x = _numbers(a)
    if x.type.dtype.kind == "c":
        raise TypeError("rfft takes real numbers")
    at = axis_of(axis, x.type.ndim)
    x = _fitted(x, n, at)
    not_empty(x, (at,), "Invalid number of FFT data points (0) specified.")
    return _scaled(fourier.rfft(x, axis=at), x.type.dims[at], norm, False, lift(a).type.dtype)


def irfft(a: Operand, n: Any = None, axis: Any = -1, norm: str | None = None) -> Atom:
    """The real numbers of which these are half of the frequencies. Half precision is kept."""
    a = lift(a)
    x = _as_complex(_numbers(a))
    at = axis_of(axis, x.type.ndim)
    size = (x.type.dims[at] - 1) * 2 if n is None else dim_of(n)
    if isinstance(size, int) and size < 1:
        raise ValueError(f"Invalid number of FFT data points ({size}) specified.")
    x = _fitted(x, floordiv(size, 2) + 1, at)
    numbers = fourier.irfft(x, axis=at, size=size)
    not_empty(numbers, (at,), "Invalid number of FFT data points (0) specified.")
    numbers = _scaled(numbers, size, norm, True, a.type.dtype)
    return to_dtype(numbers, a.type.dtype) if is_half(a.type.dtype) else numbers


def hfft(a: Operand, n: Any = None, axis: Any = -1, norm: str | None = None) -> Atom:
    swapped = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
    a = lift(a)
    return irfft(conj(a) if a.type.dtype.kind == "c" else a, n, axis, swapped[norm])


def ihfft(a: Operand, n: Any = None, axis: Any = -1, norm: str | None = None) -> Atom:
    swapped = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
    return conj(rfft(a, n, axis, swapped[norm]))


# --- several axes ------------------------------------------------------------------------------------------


def _axes(x: Atom, s: Any, axes: Any) -> list[tuple[Any, int]]:
    """The size, and the axis, of each transform, as NumPy counts them."""
    if axes is None:
        axes = range(x.type.ndim) if s is None else range(-len(s), 0)
    sizes = [None] * len(axes) if s is None else [None if v == -1 else v for v in s]
    return [(n, axis_of(k, x.type.ndim)) for n, k in zip(sizes, axes)]


def fftn(a: Operand, s: Any = None, axes: Any = None, norm: str | None = None) -> Atom:
    x = lift(a)
    for n, axis in reversed(_axes(x, s, axes)):
        x = fft(x, n, axis, norm)
    return x


def ifftn(a: Operand, s: Any = None, axes: Any = None, norm: str | None = None) -> Atom:
    x = lift(a)
    for n, axis in reversed(_axes(x, s, axes)):
        x = ifft(x, n, axis, norm)
    return x


def rfftn(a: Operand, s: Any = None, axes: Any = None, norm: str | None = None) -> Atom:
    x = lift(a)
    *others, (n, last) = _axes(x, s, axes)
    x = rfft(x, n, last, norm)
    for n, axis in reversed(others):
        x = fft(x, n, axis, norm)
    return x


def irfftn(a: Operand, s: Any = None, axes: Any = None, norm: str | None = None) -> Atom:
    x = lift(a)
    *others, (n, last) = _axes(x, s, axes)
    for size, axis in others:
        x = ifft(x, size, axis, norm)
    return irfft(x, n, last, norm)


def fft2(a: Operand, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Atom:
    return fftn(a, s, axes, norm)


def ifft2(a: Operand, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Atom:
    return ifftn(a, s, axes, norm)


def rfft2(a: Operand, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Atom:
    return rfftn(a, s, axes, norm)


def irfft2(a: Operand, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Atom:
    return irfftn(a, s, axes, norm)


def _shifted(x: Operand, axes: Any, sign: int) -> Atom:
    a = lift(x)
    chosen = range(a.type.ndim) if axes is None else axes if isinstance(axes, (list, tuple)) else (axes,)
    for axis in chosen:
        size = a.type.dims[axis_of(axis, a.type.ndim)]
        a = roll(a, size // 2 if sign > 0 else -(size // 2), axis)
    return a


def fftshift(x: Operand, axes: Any = None) -> Atom:
    return _shifted(x, axes, 1)


def ifftshift(x: Operand, axes: Any = None) -> Atom:
    return _shifted(x, axes, -1)


def _frequencies(numbers: Atom, n: Any, d: Operand) -> Atom:
    """Whole numbers as frequencies of `n` samples at distance `d`, by one factor as NumPy has it."""
    count, gap = dim_of(n), to_dtype(d, np.float64)
    span = mul(scalar_dim(count, np.dtype(float)), gap)
    surely = known_facts().less(0, count) and isinstance(d, (int, float)) and d != 0
    if is_weak(d) and not surely:  # these are Python's numbers
        check(ne(span, like(span, 0)), exception="ZeroDivisionError", message="float division by zero")
    factor = broadcast_to(div(like(span, 1), span), numbers.type.dims)
    return mul(to_dtype(numbers, np.float64), factor)


def fftfreq(n: Any, d: Operand = 1.0) -> Atom:
    size = dim_of(n)
    below = floordiv(size, 2)
    return _frequencies(
        roll(sub(iota(length=size, dtype=i64), broadcast_to(scalar_dim(below, i64), (size,))), -below), n, d
    )


def rfftfreq(n: Any, d: Operand = 1.0) -> Atom:
    return _frequencies(iota(length=floordiv(dim_of(n), 2) + 1, dtype=i64), n, d)


__all__ = ["fft", "ifft", "rfft", "irfft", "fftn", "fftshift", "fftfreq", "rfftfreq"]
