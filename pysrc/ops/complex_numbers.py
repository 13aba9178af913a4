"""Complex numbers taken apart and put together.

In: complex arrays, or two real ones. Out: parts, conjugates, complex arrays. Transposes are those of the
bilinear form Re(a b), without conjugation, as in JAX.

    z: c128[n] = complex_(x, y)
    r: f64[n] = real(conj(z))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.primitive import Primitive
from ..core.scalars import Scalar, Text
from ..core.types import Array
from .arithmetic import neg
from .families import complex_dtype, complexes, elementwise, library_float, like, real_dtype


def _part_type(x: Array) -> Array:
    return complexes(x).with_dtype(real_dtype(x.dtype))


def _complex_type(re: Array, im: Array) -> Array:
    return library_float(re, im).with_dtype(complex_dtype(re.dtype))


def _complex_numpy(re: Any, im: Any) -> Any:
    out = np.empty(np.shape(re), complex_dtype(np.asarray(re).dtype))
    out.real, out.imag = re, im
    return out[()]


complex_: Primitive = elementwise(
    "complex_",
    _complex_numpy,
    type=_complex_type,
    native="complex",
    jvp=(
        lambda re_dot, z, re, im: complex_(re_dot, like(re_dot, 0)),
        lambda im_dot, z, re, im: complex_(like(im_dot, 0), im_dot),
    ),
    transpose=(lambda z_bar, re, im: real(z_bar), lambda z_bar, re, im: neg(imag(z_bar))),
    scalar=Scalar(texts=(Text("f", "pair(a, b)", "a, b", result="Z"),)),
    doc="re + i im.",
)

real: Primitive = elementwise(
    "real",
    np.real,
    spellings=(np.real,),
    type=_part_type,
    jvp=(lambda x_dot, y, x: real(x_dot),),
    transpose=(lambda y_bar, x: complex_(y_bar, like(y_bar, 0)),),
    scalar=Scalar(texts=(Text("c", "re(x)", result="R"),)),
    doc="The real part.",
)

imag: Primitive = elementwise(
    "imag",
    np.imag,
    spellings=(np.imag,),
    type=_part_type,
    jvp=(lambda x_dot, y, x: imag(x_dot),),
    transpose=(lambda y_bar, x: complex_(like(y_bar, 0), neg(y_bar)),),
    scalar=Scalar(texts=(Text("c", "im(x)", result="R"),)),
    doc="The imaginary part.",
)

conj: Primitive = elementwise(
    "conj",
    np.conjugate,
    type=complexes,
    jvp=(lambda x_dot, y, x: conj(x_dot),),
    transpose=(lambda y_bar, x: conj(y_bar),),
    scalar=Scalar(texts=(Text("c", "pair(re(x), -im(x))"),)),
    doc="The complex conjugate.",
)

__all__ = ["complex_", "real", "imag", "conj"]
