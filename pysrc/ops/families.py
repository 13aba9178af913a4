"""Families of primitives that derive their common rules, and the helpers that rules are written with.

In: the rules that differ. Out: Primitives.

    sin = elementwise("sin", np.sin, spellings=(math.sin,), jvp=(lambda x_dot, y, x: mul(x_dot, cos(x)),))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.build import literal
from ..core.dims import DimLike
from ..core.foreign import Foreign
from ..core.ir import Atom
from ..core.native import Point
from ..core.primitive import NotLinear, Primitive
from ..core.relation import POINTWISE
from ..core.scalars import Scalar, declare
from ..core.types import Array, CoreTypeError, is_float, is_inexact, is_integer


class NoOrder(CoreTypeError):
    """Complex numbers where an order is needed."""

    remedy = "compare their real parts or absolute values"


class WrongKind(CoreTypeError):
    """Operands of a dtype for which an operation is not defined."""

    remedy = "convert the operands with .astype(...)"


def require(condition: bool, message: str | Callable[[], str]) -> None:
    """Raise CoreTypeError(message) unless `condition`. A message that shows types is a function: to print
    them takes longer than to compare them, and nearly always nobody reads it."""
    if not condition:
        raise CoreTypeError(message if isinstance(message, str) else message())


def same_type(*types: Array) -> Array:
    """The type rule of elementwise operations: all operands alike, and so is the result."""
    first = types[0].plain
    require(all(t.plain == first for t in types[1:]), lambda: f"operands differ: {', '.join(map(repr, types))}")
    return first


def like(x: Any, value: Any) -> Any:
    """`value` in the dtype of x, at each element of x (x: an atom or a type)."""
    type_ = x if isinstance(x, Array) else x.type
    scalar = literal(value, type_.dtype)
    return scalar if not type_.dims else broadcast_to(scalar, type_.dims)


def broadcast_to(x: Any, dims: Sequence[DimLike]) -> Any:
    """Broadcast by NumPy's rule: x's dims align with the last of `dims`; size-1 dims stretch."""
    from .shape import broadcast, reshape

    dims = tuple(dims)
    have = x.type.dims
    if have == dims:
        return x
    offset = len(dims) - len(have)
    keep = [k for k, d in enumerate(have) if d != 1 or dims[offset + k] == 1]
    if len(keep) != len(have):
        x = reshape(x, shape=tuple(have[k] for k in keep))
    return broadcast(x, shape=dims, axes=tuple(offset + k for k in keep))


def expand_batch(size: DimLike, x: Atom, batched: bool) -> Atom:
    """x with a leading batch axis: as it is when it has one, else repeated."""
    from .shape import broadcast

    if batched:
        return x
    return broadcast(x, shape=(size, *x.type.dims), axes=tuple(range(1, len(x.type.dims) + 1)))


def elementwise(
    name: str,
    numpy: Callable,
    *,
    jvp: Any,
    native: Any = None,
    transpose: Any = NotLinear,
    spellings: tuple | None = (),
    type: Callable = same_type,
    scalar: Scalar | None = None,
    domain: Sequence[tuple[float, float]] | None = None,
    nonnegative: Callable | None = None,
    doc: str = "",
) -> Primitive:
    """A scalar function lifted over equal-shaped arrays. `native` defaults to the scalar operation `name`, of
    which `scalar` says what is known. `spellings` None: no call of a user means it, not even one of `numpy`.
    `domain`: a range for each operand in which the function is smooth; tests take samples there."""

    def rule(*types: Array, **attributes: Any) -> Array:
        dims = types[0].dims
        require(
            all(t.dims == dims for t in types),
            lambda: f"{name}: operands differ in shape: {', '.join(map(repr, types))}",
        )
        return type(*types, **attributes)

    point = native if isinstance(native, Point) else Point(native or name)
    if scalar is not None:
        require(isinstance(point.expression, str), f"{name} is written in other operations: no `scalar` fits")
        declare(str(point.expression), scalar)
    own = (numpy,) if isinstance(numpy, (np.ufunc, Foreign)) else ()
    made = Primitive(
        name,
        spellings=() if spellings is None else own + spellings,
        type=rule,
        numpy=numpy,
        jvp=jvp,
        transpose=transpose,
        dims=POINTWISE,
        native=point,
        nonnegative=nonnegative,
        doc=doc,
    )
    made.domain = tuple(domain or ((-3.0, 3.0),) * len(jvp)) if isinstance(jvp, tuple) else None
    return made


def _kind(description: str, accepts: Callable[[np.dtype], bool]) -> Callable[..., Array]:
    def rule(*types: Array, **attributes: Any) -> Array:
        type_ = same_type(*types)
        if not accepts(type_.dtype):
            raise WrongKind(f"needs {description}, got {type_}")
        return type_

    return rule


# Type rules for equal operands of some kinds; the result is like them.
inexact = _kind("a floating or complex dtype", is_inexact)
floating = _kind("a real floating dtype", is_float)
library_float = _kind("f32 or f64", lambda dtype: dtype in (np.float32, np.float64))
numeric = _kind("numbers, not bools", lambda dtype: dtype.kind != "b")


def ordered(*types: Array, **attributes: Any) -> Array:
    """Type rule of what needs an order: the result is like the operands."""
    type_ = same_type(*types)
    if type_.dtype.kind == "c":
        raise NoOrder(f"complex numbers have no order here, got {type_}")
    return type_


real = _kind("real numbers", lambda dtype: dtype.kind not in "cb")
integral = _kind("integers", is_integer)
bits = _kind("integers or bools", lambda dtype: dtype.kind in "iub")
complexes = _kind("a complex dtype", lambda dtype: dtype.kind == "c")


def result_bool(*types: Array) -> Array:
    """Type rule of comparisons: equal operands, bool result."""
    return same_type(*types).with_dtype(np.dtype(bool))


def ordered_bool(*types: Array) -> Array:
    """Type rule of comparisons by size: complex numbers have no order."""
    return ordered(*types).with_dtype(np.dtype(bool))


def float_bool(*types: Array) -> Array:
    """Type rule of `isnan` and its like."""
    return inexact(*types).with_dtype(np.dtype(bool))


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex dtype; any other dtype as it is."""
    if dtype.kind != "c":
        return dtype
    return np.dtype("float32") if dtype == np.complex64 else np.dtype("float64")


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """The complex dtype whose parts are f32 or f64."""
    return np.dtype("complex64") if dtype == np.float32 else np.dtype("complex128")
