"""Order: `sort`, `argsort`, `ranked`, `searchsorted`, `contains`; and `nonzero`, which keeps the order of what it
picks.

In: real arrays, masks. Out: sorted values, positions. NaN stands last, as in NumPy; `argsort` is stable.

    s: f64[n] = sort(x, axis=0)
    r: f64[k] = ranked(x, places, axis=0)             # s[places]
    p: i64[count] = nonzero(mask, axis=0, length=count)
    k: i64[m] = searchsorted(s, v, right=False)
    b: bool[m] = contains(s, v)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.build import literal
from ..core.dims import DimLike
from ..core.native import Composite, Lib
from ..core.primitive import Joint, NotLinear, Primitive, Zero
from ..core.relation import ALONG, Dims, without
from ..core.types import Array, i64
from .arrays import dim_value, iota
from .compare import and_, eq, le, lt, ne, not_, or_
from .families import require
from .indexing import gather
from .reduce import reduce_any, reduce_sum
from .shape import broadcast, convert
from .structure import pad


def _sort_type(x: Array, *, axis: int) -> Array:
    require(0 <= axis < x.ndim, lambda: f"sort: axis {axis} does not fit {x}")
    require(x.dtype.kind != "c", lambda: f"sort: complex numbers have no order here, got {x}")
    return x.plain


def along_axis(x: Any, positions: Any, axis: int) -> Any:
    """Element positions[..., k, ...] along `axis` of x, at each index of `positions`."""
    dims = positions.type.dims
    indices = [
        positions if k == axis else broadcast(iota(length=d, dtype=i64), shape=dims, axes=(k,))
        for k, d in enumerate(dims)
    ]
    return gather(x, *indices, axes=tuple(range(len(dims))))


def _sort_jvp(args: tuple, dots: tuple, *, axis: int) -> tuple:
    order = argsort(args[0], axis=axis)
    return (along_axis(args[0], order, axis),), (along_axis(dots[0], order, axis),)


sort: Primitive = Primitive(
    "sort",
    type=_sort_type,
    numpy=lambda x, *, axis: np.sort(x, axis=axis),
    jvp=Joint(_sort_jvp),
    transpose=NotLinear,
    dims=ALONG,
    native=Lib("sort"),
    doc="Increasing along `axis`, NaN last.",
)

argsort: Primitive = Primitive(
    "argsort",
    type=lambda x, *, axis: _sort_type(x, axis=axis).with_dtype(i64),
    numpy=lambda x, *, axis: np.argsort(x, axis=axis, kind="stable"),
    jvp=(Zero,),
    transpose=NotLinear,
    dims=ALONG,
    native=Lib("argsort"),
    places=True,
    doc="The positions that sort x along `axis`; equal elements keep their order.",
)


def _ranked_type(x: Array, places: Array, *, axis: int) -> Array:
    require(places.ndim == 1 and places.dtype == i64, lambda: f"ranked: {places} are no places in a line")
    x = _sort_type(x, axis=axis)
    return x.with_dims((*x.dims[:axis], places.dims[0], *x.dims[axis + 1 :]))


def _ranked_jvp(args: tuple, dots: tuple, *, axis: int) -> tuple:
    order = _picked(argsort(args[0], axis=axis), args[1], axis)
    return (along_axis(args[0], order, axis),), (along_axis(dots[0], order, axis),)


def _picked(x: Any, places: Any, axis: int) -> Any:
    """Elements `places` along an axis, the same ones of each line."""
    dims = tuple(places.type.dims[0] if k == axis else d for k, d in enumerate(x.type.dims))
    return along_axis(x, broadcast(places, shape=dims, axes=(axis,)), axis)


def _ranked_batch(size: DimLike, args: Any, batched: Any, *, axis: int) -> tuple | None:
    """Where each lane has places of its own, it picks them of what is sorted."""
    x, places = args
    if not batched[1]:
        return None
    dims = x.type.dims if batched[0] else (size, *x.type.dims)
    ordered = broadcast(sort(x, axis=axis + batched[0]), shape=dims, axes=tuple(range(1 - batched[0], len(dims))))
    picked = tuple(places.type.dims[1] if k == axis + 1 else d for k, d in enumerate(dims))
    return along_axis(ordered, broadcast(places, shape=picked, axes=(0, axis + 1)), axis + 1), True


ranked: Primitive = Primitive(
    "ranked",
    type=_ranked_type,
    numpy=lambda x, places, *, axis: np.sort(x, axis=axis).take(places, axis),
    jvp=Joint(_ranked_jvp),
    transpose=NotLinear,
    dims=Dims(lambda x, places, *, axis: ((without(x, [axis]), (None,)), (without(x, [axis]),)), alone=True),
    batch=_ranked_batch,
    native=Composite(lambda x, places, *, axis: _picked(sort(x, axis=axis), places, axis), library="ranked"),
    doc="The elements that stand at `places` when each line along `axis` is sorted.",
)


def _nonzero_type(x: Array, *, axis: int, length: DimLike) -> Array:
    require(0 <= axis < x.ndim, lambda: f"nonzero: axis {axis} does not fit {x}")
    require(x.dtype == bool, lambda: f"nonzero: needs a mask, got {x}")
    return x.plain.with_dims((*x.dims[:axis], length, *x.dims[axis + 1 :])).with_dtype(i64)


def _nonzero_numpy(x: Any, *, axis: int, length: int | None = None) -> Any:
    count = int(np.count_nonzero(x)) if length is None else length
    return np.argsort(~x, axis=axis, kind="stable").take(np.arange(count), axis)


nonzero: Primitive = Primitive(
    "nonzero",
    type=_nonzero_type,
    numpy=_nonzero_numpy,
    jvp=(Zero,),
    transpose=NotLinear,
    dims=ALONG,
    native=Lib("nonzero"),
    places=True,
    doc="Where a mask is True along `axis`, in order; `length` is how often it is, in each line.",
)


def _search_type(a: Array, v: Array, *, right: bool) -> Array:
    require(a.ndim == 1 and a.dtype == v.dtype and a.dtype.kind != "c", lambda: f"searchsorted: {a} and {v} do not fit")
    return v.plain.with_dtype(i64)


def _before(a: Any, v: Any, right: bool) -> Any:
    """Whether a stands before the place of v: a < v, or a <= v if `right`, NaN after all numbers."""
    number, missing = (le if right else lt)(a, v), ne(v, v)
    return or_(number, missing if right else and_(missing, not_(ne(a, a))))


def _pairs(size: DimLike, args: Any, batched: Any) -> tuple:
    """The arrays that lanes have of their own, and what each lane looks for, side by side along a new last axis."""
    a, v = args
    dims = (size, *(v.type.dims[1:] if batched[1] else v.type.dims), a.type.dims[1])
    last = len(dims) - 1
    rows = broadcast(a, shape=dims, axes=(0, last))
    return rows, broadcast(v, shape=dims, axes=tuple(range(0 if batched[1] else 1, last))), last


def _search_batch(size: DimLike, args: Any, batched: Any, *, right: bool) -> tuple | None:
    """Where each lane has an array of its own: count what stands before."""
    if not batched[0]:
        return None
    rows, wanted, last = _pairs(size, args, batched)
    return reduce_sum(convert(_before(rows, wanted, right), dtype=i64), axes=(last,)), True


searchsorted = Primitive(
    "searchsorted",
    type=_search_type,
    numpy=lambda a, v, *, right: np.searchsorted(a, v, side="right" if right else "left"),
    jvp=(Zero, Zero),
    transpose=NotLinear,
    dims=Dims(lambda a, v, **_: (((None,), range(v.ndim)), (range(v.ndim),)), alone=True),
    batch=_search_batch,
    native=Lib("searchsorted"),
    doc="Where in the sorted array a to insert each v: before equal elements, after them if `right`.",
)


def _contains_type(a: Array, v: Array) -> Array:
    require(a.ndim == 1 and a.dtype == v.dtype and a.dtype.kind != "c", lambda: f"contains: {a} and {v} do not fit")
    return v.plain.with_dtype(np.dtype(bool))


def _contains_written(a: Any, v: Any) -> Any:
    """What stands where v belongs is v, or it is nowhere."""
    place, size = searchsorted(a, v, right=False), a.type.dims[0]
    count = broadcast(literal(size, i64) if isinstance(size, int) else dim_value(dim=size), shape=v.type.dims, axes=())
    longer = pad(a, literal(0, a.type.dtype), low=(0,), high=(1,), interior=(0,))
    return and_(lt(place, count), eq(gather(longer, place, axes=(0,)), v))


def _contains_batch(size: DimLike, args: Any, batched: Any) -> tuple | None:
    if not batched[0]:
        return None
    rows, wanted, last = _pairs(size, args, batched)
    return reduce_any(eq(rows, wanted), axes=(last,)), True


contains = Primitive(
    "contains",
    type=_contains_type,
    numpy=lambda a, v: np.isin(v, a)[()],
    jvp=(Zero, Zero),
    transpose=NotLinear,
    dims=Dims(lambda a, v: (((None,), range(v.ndim)), (range(v.ndim),)), alone=True),
    batch=_contains_batch,
    native=Composite(_contains_written, library="contains"),
    doc="Whether each v is among the elements of the sorted array a.",
)

__all__ = ["sort", "argsort", "ranked", "nonzero", "searchsorted", "contains", "along_axis"]
