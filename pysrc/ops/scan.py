"""Running combinations along an axis.

In: an array, `axis`, and `reverse` (run from the end). Out: an array of the same type.

    c: f64[n] = cumsum(x, axis=0, reverse=False)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.build import Builder, literal
from ..core.ir import Roles
from ..core.native import Scan
from ..core.primitive import NotLinear, Primitive, Together
from ..core.relation import ALONG
from ..core.types import Array, i64
from .arithmetic import add, mul, sub
from .arrays import iota, zeros
from .compare import eq, select
from .families import NoOrder, like, require
from .shape import broadcast, permute


def _scan_type(name: str, ordered: bool) -> Callable[..., Array]:
    def rule(x: Array, *, axis: int, reverse: bool) -> Array:
        require(0 <= axis < x.ndim, lambda: f"{name}: axis {axis} does not fit {x}")
        require(x.dtype != bool, lambda: f"{name}: needs numbers, got {x}")
        if ordered and x.dtype.kind == "c":
            raise NoOrder(f"{name}: complex numbers have no order here, got {x}")
        return x.plain

    return rule


def _scan(name: str, ufunc: np.ufunc, monoid: str, jvp: Any, transpose: Any = NotLinear) -> Primitive:
    def numpy(x: Any, *, axis: int, reverse: bool) -> Any:
        if not reverse:
            return ufunc.accumulate(x, axis=axis, dtype=x.dtype)
        return np.flip(ufunc.accumulate(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)

    made = Primitive(
        name,
        type=_scan_type(name, monoid in ("max", "min")),
        numpy=numpy,
        jvp=jvp,
        transpose=transpose,
        dims=ALONG,
        native=Scan(monoid),
        doc=f"Running {monoid} along `axis`, from the end if `reverse`.",
    )
    return made


cumsum: Primitive = _scan(
    "cumsum",
    np.add,
    "sum",
    jvp=Together(),
    transpose=(lambda y_bar, x, *, axis, reverse: cumsum(y_bar, axis=axis, reverse=not reverse),),
)


def _cumprod_jvp(x_dot: Any, y: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """y_dot[k] = x[k] y_dot[k-1] + x_dot[k] y[k-1], as a loop: exact where factors are zero."""
    from .indexing import slice, start
    from .regions import loop
    from .structure import pad

    rank, length = x.type.ndim, x.type.dims[axis]
    edge, none = tuple(int(k == axis) for k in range(rank)), (0,) * rank
    longer = pad(
        y, like(Array(y.type.dtype), 1), low=none if reverse else edge, high=edge if reverse else none, interior=none
    )
    first = [int(reverse and k == axis) for k in range(rank)]
    before = slice(longer, *map(start, first), shape=x.type.dims, step=(1,) * rank)
    order = (axis, *(k for k in range(rank) if k != axis))
    rows = [permute(a, axes=order) if axis else a for a in (x, x_dot, before)]
    row = rows[0].type.with_dims(rows[0].type.dims[1:])
    with Builder("cumprod_tangent") as body:
        body.parameter("i", Array(i64))
        running, x_k, x_dot_k, before_k = (body.parameter(n, row) for n in ("running", "x", "x_dot", "before"))
        tangent = add(mul(x_k, running), mul(x_dot_k, before_k))
        function = body.function((tangent, tangent))
    _, stacked = loop(
        zeros(row), *rows, body=function, cond=None, length=length, roles=Roles(0, 1, 0, 3), reverse=reverse
    )
    return permute(stacked, axes=tuple(sorted(range(rank), key=order.__getitem__))) if axis else stacked


cumprod = _scan("cumprod", np.multiply, "prod", jvp=(_cumprod_jvp,))


def _running_extreme_jvp(x_dot: Any, y: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """The tangent of the latest element that equals the running extreme."""
    from .indexing import gather, start

    dims = x.type.dims
    indices = [broadcast(iota(length=d, dtype=i64), shape=dims, axes=(k,)) for k, d in enumerate(dims)]
    here = eq(x, y)
    if reverse:
        end = sub(start(dims[axis]), literal(1, i64))
        indices[axis] = cummin(
            select(here, indices[axis], broadcast(end, shape=dims, axes=())), axis=axis, reverse=True
        )
    else:
        indices[axis] = cummax(select(here, indices[axis], like(indices[axis], 0)), axis=axis, reverse=False)
    return gather(x_dot, *indices, axes=tuple(range(len(dims))))


cummax = _scan("cummax", np.maximum, "max", jvp=(_running_extreme_jvp,))
cummin = _scan("cummin", np.minimum, "min", jvp=(_running_extreme_jvp,))

__all__ = ["cumsum", "cumprod", "cummax", "cummin"]
