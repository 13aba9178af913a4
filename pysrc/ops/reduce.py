"""Reductions over any axes.

In: an array and attribute `axes`. Out: an array without those axes.

    s: f64[n] = reduce_sum(a, axes=(1,))
    k: i64[n] = argmax(a, axes=(1,))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dims import product
from ..core.native import Reduce
from ..core.primitive import NotLinear, Primitive, Together, Zero
from ..core.relation import REDUCED, Dims, Relation, without
from ..core.types import Array, i64
from .arithmetic import div, mul
from .compare import eq, select
from .families import NoOrder, like, require
from .shape import broadcast, convert, permute, reshape


def reduced_type(x: Array, *, axes: tuple) -> Array:
    """Type rule: the dims not in `axes`."""
    require(all(0 <= a < x.ndim for a in axes) and len(set(axes)) == len(axes), lambda: f"axes {axes} do not fit {x}")
    return x.with_dims(tuple(d for k, d in enumerate(x.dims) if k not in axes)).plain


def spread(y: Any, x: Any, axes: tuple) -> Any:
    """Broadcast a reduced array back over `axes` of x (x: a Var or Linear)."""
    kept = tuple(k for k in range(x.type.ndim) if k not in axes)
    return broadcast(y, shape=x.type.dims, axes=kept)


reduce_sum: Primitive = Primitive(
    "reduce_sum",
    type=reduced_type,
    numpy=lambda x, *, axes: np.add.reduce(x, axis=axes, dtype=x.dtype),
    jvp=Together(),
    transpose=(lambda y_bar, x, *, axes: spread(y_bar, x, axes),),
    dims=REDUCED,
    native=Reduce("sum"),
    nonnegative=all,
    doc="Sum over `axes`, in the operand's dtype.",
)


def product_of_others(x: Any, axes: tuple) -> Any:
    """At each element, the product of all others of its reduction: exact where some are zero."""
    from .indexing import slice, start
    from .scan import cumprod
    from .structure import pad

    kept = tuple(k for k in range(x.type.ndim) if k not in axes)
    order = (*kept, *axes)
    front = tuple(x.type.dims[k] for k in kept)
    flat = (*front, product(x.type.dims[a] for a in axes))
    rows = reshape(permute(x, axes=order), shape=flat)
    last, ones = len(front), like(Array(x.type.dtype), 1)
    sides = []
    for reverse in (False, True):
        running = cumprod(rows, axis=last, reverse=reverse)
        edge = tuple(int(k == last) for k in range(last + 1))
        none = (0,) * (last + 1)
        longer = pad(running, ones, low=none if reverse else edge, high=edge if reverse else none, interior=none)
        first = [1 if reverse and k == last else 0 for k in range(last + 1)]
        sides.append(slice(longer, *map(start, first), shape=flat, step=(1,) * (last + 1)))
    others = reshape(mul(*sides), shape=tuple(x.type.dims[k] for k in order))
    return permute(others, axes=tuple(sorted(range(len(order)), key=order.__getitem__)))


reduce_prod: Primitive = Primitive(
    "reduce_prod",
    type=reduced_type,
    numpy=lambda x, *, axes: np.multiply.reduce(x, axis=axes, dtype=x.dtype),
    jvp=(lambda x_dot, y, x, *, axes: reduce_sum(mul(x_dot, product_of_others(x, axes)), axes=axes),),
    transpose=NotLinear,
    dims=REDUCED,
    native=Reduce("prod"),
    doc="Product over `axes`.",
)


def _extreme_type(name: str) -> Callable[..., Array]:
    def rule(x: Array, *, axes: tuple) -> Array:
        if x.dtype.kind == "c":
            raise NoOrder(f"{name.removeprefix('reduce_')}: complex numbers have no order here, got {x}")
        require(all(x.dims[a] != 0 for a in axes if a < x.ndim), lambda: f"{name}: {x} is empty along axes {axes}")
        return reduced_type(x, axes=axes)

    return rule


def _extreme_jvp(x_dot: Any, y: Any, x: Any, *, axes: tuple) -> Any:
    """The tangent at the extreme; the mean of them at ties."""
    here = eq(x, spread(y, x, axes))
    count = reduce_sum(convert(here, dtype=x.type.dtype), axes=axes)
    return div(reduce_sum(select(here, x_dot, like(x, 0)), axes=axes), count)


def _extreme(name: str, ufunc: np.ufunc, monoid: str) -> Primitive:
    made = Primitive(
        name,
        type=_extreme_type(name),
        numpy=lambda x, *, axes: ufunc.reduce(x, axis=axes),
        jvp=(_extreme_jvp,),
        transpose=NotLinear,
        dims=REDUCED,
        native=Reduce(monoid),
        doc="Over `axes`; NaN if any is NaN.",
    )
    return made


reduce_max = _extreme("reduce_max", np.maximum, "max")
reduce_min = _extreme("reduce_min", np.minimum, "min")


def _logical(name: str, ufunc: np.ufunc, monoid: str) -> Primitive:
    def rule(x: Array, *, axes: tuple) -> Array:
        require(x.dtype == bool, lambda: f"{name}: needs bools, got {x}")
        return reduced_type(x, axes=axes)

    made = Primitive(
        name,
        type=rule,
        numpy=lambda x, *, axes: ufunc.reduce(x, axis=axes),
        jvp=(None,),
        transpose=NotLinear,
        dims=REDUCED,
        native=Reduce(monoid),
        doc="Of bools, over `axes`.",
    )
    return made


reduce_any = _logical("reduce_any", np.logical_or, "any")
reduce_all = _logical("reduce_all", np.logical_and, "all")


def _position_dims(x: Array, *, axes: tuple) -> Relation:
    """The axis is needed whole: a part of it does not tell where it begins."""
    return (without(x, axes),), REDUCED.relation(x, axes=axes)[1]


def _position(name: str, numpy: Callable) -> Primitive:
    kind = _extreme_type(name)

    def rule(x: Array, *, axes: tuple) -> Array:
        require(len(axes) == 1, lambda: f"{name}: needs one axis, got {axes}")
        return kind(x, axes=axes).with_dtype(i64)

    made = Primitive(
        name,
        type=rule,
        numpy=lambda x, *, axes: numpy(x, axis=axes[0]),
        jvp=(Zero,),
        transpose=NotLinear,
        dims=Dims(_position_dims),
        native=Reduce(name),
        doc="Where along the one axis the extreme first is; the first NaN comes before all.",
    )
    return made


argmax = _position("argmax", np.argmax)
argmin = _position("argmin", np.argmin)

__all__ = [
    "reduce_sum",
    "reduce_prod",
    "reduce_max",
    "reduce_min",
    "reduce_any",
    "reduce_all",
    "argmax",
    "argmin",
    "product_of_others",
    "reduced_type",
    "spread",
]
