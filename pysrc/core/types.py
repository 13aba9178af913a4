"""Types: an element type and a tuple of dims; and an i64 scalar whose value is known to be a dim.

In: numpy dtypes, ints, `Dim`s. Out: `Array`, printed as legal Python.

>>> from metaphrase.core.dims import Sym
>>> Array(np.dtype("float64"), (Sym("n"), 3)), Array(np.dtype("int32"), ()), Size(Sym("n"))
(f64[n, 3], i32, size[n])
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..late import dataclass
from .dims import NO_SYMBOLS, Dim, DimLike, substitute, symbols, symbols_of


class _Dtypes(Mapping[str, np.dtype]):
    """dtypes by their short names. The one of bfloat16 is ml_dtypes', which is imported for who asks for it."""

    def __init__(self, **known: np.dtype | None):
        self.known = known

    def __getitem__(self, name: str) -> np.dtype:
        dtype = self.known[name]
        if dtype is None:
            try:
                dtype = self.known[name] = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
            except ImportError as error:
                raise ImportError(f"{name} is a type of ml_dtypes, which can't be imported: {error}") from None
        return dtype

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


class _Names(dict[np.dtype, str]):
    """Short names of dtypes; who has one of bfloat16 has imported ml_dtypes."""

    def __missing__(self, dtype: np.dtype) -> str:
        if is_bfloat16(dtype):
            return "bf16"
        raise KeyError(dtype)

    def __contains__(self, dtype: object) -> bool:
        return super().__contains__(dtype) or isinstance(dtype, np.dtype) and is_bfloat16(dtype)


def is_bfloat16(dtype: np.dtype) -> bool:
    return dtype.kind == "V" and dtype.name == "bfloat16"


def is_half(dtype: np.dtype) -> bool:
    """True for floating types of two bytes."""
    return dtype.kind == "f" and dtype.itemsize == 2 or is_bfloat16(dtype)


SHORT = _Dtypes(
    f64=np.dtype("float64"),
    f32=np.dtype("float32"),
    f16=np.dtype("float16"),
    bf16=None,
    i64=np.dtype("int64"),
    i32=np.dtype("int32"),
    i16=np.dtype("int16"),
    i8=np.dtype("int8"),
    u64=np.dtype("uint64"),
    u32=np.dtype("uint32"),
    u16=np.dtype("uint16"),
    u8=np.dtype("uint8"),
    bool=np.dtype("bool"),
    c128=np.dtype("complex128"),
    c64=np.dtype("complex64"),
)
NAMES = _Names({dtype: name for name, dtype in SHORT.known.items() if dtype is not None})
f64, f32, i64, i32, u32, bool_, c128, c64 = (SHORT[n] for n in "f64 f32 i64 i32 u32 bool c128 c64".split())


class CoreTypeError(TypeError):
    """Operands that a primitive's type rule does not accept. `remedy`: what to do, where it can be said."""

    remedy = ""

    def __init__(self, message: str, remedy: str = ""):
        super().__init__(message)
        self.remedy = remedy or self.remedy


@dataclass(frozen=True, slots=True, repr=False)
class Array:
    """The type of every core value. `dims` are ints or `Dim`s. `value`, for i64 scalars only: the dim it
    equals."""

    dtype: np.dtype
    dims: tuple[DimLike, ...] = ()
    value: DimLike | None = None

    def __post_init__(self) -> None:
        for dim in self.dims:
            if isinstance(dim, int) and dim < 0:
                raise CoreTypeError("negative dimensions are not allowed")

    @property
    def shape(self) -> tuple[DimLike, ...]:
        return self.dims

    @property
    def ndim(self) -> int:
        return len(self.dims)

    def with_dims(self, dims: tuple[DimLike, ...]) -> Array:
        return Array(self.dtype, tuple(dims))

    def with_dtype(self, dtype: np.dtype) -> Array:
        return Array(np.dtype(dtype), self.dims)

    @property
    def plain(self) -> Array:
        """The same type without what is known of the value."""
        return self if self.value is None else Array(self.dtype, self.dims)

    def __repr__(self) -> str:
        if self.value is not None:
            return f"size[{self.value}]"
        name = NAMES[self.dtype]
        return f"{name}[{', '.join(map(str, self.dims))}]" if self.dims else name


def Size(dim: DimLike) -> Array:
    """The type of an i64 scalar whose value is `dim`."""
    return Array(i64, (), dim)


def dtype_name(dtype: np.dtype) -> str:
    """`f64` for float64, and so on. Raises CoreTypeError for a dtype that core does not have."""
    try:
        return NAMES[np.dtype(dtype)]
    except KeyError:
        raise CoreTypeError(
            f"arrays of dtype {dtype} are not supported; supported are {', '.join(SHORT)}", _remedy(np.dtype(dtype))
        ) from None


def _remedy(dtype: np.dtype) -> str:
    """What to do with an array of a dtype that core does not have."""
    if not dtype.isnative:
        return f"convert it before: x.astype({dtype.newbyteorder('=').name!r})"
    if dtype.kind in "mM":
        return "take its integers before: x.astype('int64')"
    if dtype.kind in "US":
        return "give numbers for the texts: np.unique(texts, return_inverse=True)[1]"
    if dtype.kind == "V":
        return "give its fields one by one, as arrays of numbers"
    if dtype.kind in "fc":
        return f"convert it before: x.astype({'float64' if dtype.kind == 'f' else 'complex128'!r})"
    return "convert it to numbers before: x.astype(float)"


def type_of(value: object) -> Array:
    """The type of a concrete array or scalar."""
    array: Any = value if hasattr(value, "dtype") and hasattr(value, "shape") else np.asarray(value)
    dtype_name(array.dtype)
    return Array(np.dtype(array.dtype), array.shape)


def type_symbols(type_: Array) -> frozenset[str]:
    """Size symbols a type mentions."""
    if not type_.dims and type_.value is None:
        return NO_SYMBOLS
    return symbols_of(type_.dims) | (NO_SYMBOLS if type_.value is None else symbols(type_.value))


def substitute_type(type_: Array, values: Mapping[str, DimLike]) -> Array:
    if not values:
        return type_
    value = None if type_.value is None else substitute(type_.value, values)
    return Array(type_.dtype, tuple(substitute(d, values) for d in type_.dims), value)


def is_float(dtype: np.dtype) -> bool:
    """True for real floating types, bfloat16 included."""
    return np.dtype(dtype).kind == "f" or is_bfloat16(np.dtype(dtype))


def is_inexact(dtype: np.dtype) -> bool:
    return is_float(dtype) or np.dtype(dtype).kind == "c"


def is_integer(dtype: np.dtype) -> bool:
    return np.dtype(dtype).kind in "iu"


def has_tangent(type_: Array) -> bool:
    """Whether values of this type carry a tangent: real and complex floats do."""
    return is_inexact(type_.dtype)


__all__ = [
    "SHORT",
    "NAMES",
    "Array",
    "Size",
    "CoreTypeError",
    "Dim",
    "dtype_name",
    "type_of",
    "type_symbols",
    "substitute_type",
    "is_bfloat16",
    "is_float",
    "is_half",
    "is_inexact",
    "is_integer",
    "has_tangent",
    "f64",
    "f32",
    "i64",
    "i32",
    "u32",
    "bool_",
    "c128",
    "c64",
]
