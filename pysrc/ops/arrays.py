"""Arrays from nothing: constants, counting, sizes, and values that no path has bound.

In: attributes. Out: arrays; or an i64 whose value a size symbol names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.build import literal
from ..core.dims import Sym
from ..core.ir import ConstantArray
from ..core.native import Composite, EffectCall, Iota, Point
from ..core.primitive import NotLinear, Primitive, Unsupported
from ..core.relation import NO_OPERANDS
from ..core.scalars import FREE
from ..core.types import Array, Size, i64, is_integer
from .families import require

constant = Primitive(
    "constant",
    type=lambda *, value: Array(value.value.dtype, value.value.shape),
    numpy=lambda *, value: value.value,
    jvp=(),
    transpose=NotLinear,
    dims=NO_OPERANDS,
    native=Iota("constant"),
    doc="An array written into the program; `value` is a ConstantArray.",
)

iota = Primitive(
    "iota",
    type=lambda *, length, dtype: Array(dtype, (length,)),
    numpy=lambda *, length, dtype: np.arange(length, dtype=dtype),
    jvp=(),
    transpose=NotLinear,
    dims=NO_OPERANDS,
    native=Iota(lambda index, *, length, dtype: index[0]),
    places=True,
    doc="0, 1, ..., length - 1.",
)

undefined = Primitive(
    "undefined",
    type=lambda *, dtype, shape: Array(dtype, shape),
    numpy=lambda *, dtype, shape: np.zeros(shape, dtype)[()],
    jvp=(),
    transpose=NotLinear,
    dims=NO_OPERANDS,
    native=Iota("undefined"),
    doc="The value of a variable that no path has bound: never read unguarded.",
)

dim_value = Primitive(
    "dim_value",
    type=lambda *, dim: Size(dim),
    numpy=lambda *, dim: np.int64(dim),
    jvp=(),
    transpose=NotLinear,
    dims=NO_OPERANDS,
    native=Iota(lambda index, *, dim: dim),
    doc="A dim as an i64.",
)


def _as_dim_type(value: Array, *, size: str, counted: bool = False) -> Array:
    require(not value.dims and is_integer(value.dtype), lambda: f"as_dim: needs an integer scalar, got {value}")
    return Size(Sym(size))


def _as_dim_numpy(value: Any, *, size: Any, counted: bool = False) -> Any:
    if value < 0:
        raise ValueError("negative dimensions are not allowed")
    return np.int64(value)


as_dim = Primitive(
    "as_dim",
    type=_as_dim_type,
    numpy=_as_dim_numpy,
    jvp=(None,),
    transpose=NotLinear,
    dims=Unsupported("lanes part before its rule is asked"),
    native=Point("identity"),
    cost=FREE,
    doc="Binds the size symbol `size` to a staged integer; it must not be negative. `counted`: it isn't.",
)


def zeros(type_: Array) -> Any:
    """Zeros of a type."""
    from .shape import broadcast

    zero = literal(0, type_.dtype)
    return zero if not type_.dims else broadcast(zero, shape=type_.dims, axes=())


__all__ = [
    "constant",
    "iota",
    "undefined",
    "dim_value",
    "as_dim",
    "zeros",
    "ConstantArray",
    "Composite",
    "EffectCall",
    "i64",
]
