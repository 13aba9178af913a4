"""Reductions over any axes.

In: an array and attribute `axes`. Out: an array without those axes.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..core.native import Reduce
from ..core.primitive import Primitive
from ..core.types import Array
from .families import require


def reduced_type(x: Array, *, axes: tuple) -> Array:
    """Type rule: the dims not in `axes`."""
    require(all(0 <= a < x.ndim for a in axes) and len(set(axes)) == len(axes), f"axes {axes} do not fit {x}")
    return x.with_dims(tuple(d for k, d in enumerate(x.dims) if k not in axes)).plain


def spread(y: Any, x: Any, axes: tuple) -> Any:
    """Broadcast a reduced array back over `axes` of x (x: a Var or Linear)."""
    from .shape import broadcast
    kept = tuple(k for k in range(x.type.ndim) if k not in axes)
    return broadcast(y, shape=x.type.dims, axes=kept)


def batch_axes(primitive: Any) -> Any:
    """Batch rule of reductions: the same axes, one further right."""
    def batch(size: Any, args: Any, batched: Any, *, axes: tuple, **attributes: Any) -> tuple:
        return primitive()(args[0], axes=tuple(a + 1 for a in axes), **attributes), True
    return batch


reduce_sum = Primitive(
    "reduce_sum", type=reduced_type,
    numpy=lambda x, *, axes: np.sum(x, axis=axes, dtype=np.asarray(x).dtype),
    jvp=(lambda x_dot, y, x, *, axes: reduce_sum(x_dot, axes=axes),),
    transpose=(lambda y_bar, x, *, axes: spread(y_bar, x, axes),),
    batch=batch_axes(lambda: reduce_sum), native=Reduce("sum"), doc="Sum over `axes`, in the operand's dtype.")
