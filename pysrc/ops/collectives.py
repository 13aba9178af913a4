"""What the lanes of a named axis tell each other: `psum pmax pmin all_gather psum_scatter all_to_all ppermute
axis_index`.

In: an operand of one lane, the label and the size of the axis. Out: what all lanes' operands make. `batch` along that
axis puts ordinary operations in their place (`MAPPED`), along any other axis it maps them on, so no program that runs
has one. By themselves they mean what they do on an axis of one lane.

    s: f64 = psum(x, axis_name="i", axis_size=4)       # x in each of 4 lanes
    s: f64 = reduce_sum(x, axes=(0,))                  # x: f64[4], mapped over "i"

`axis` of the last three is the dim that counts lanes: `all_gather` gives it, `psum_scatter` takes it away (lane k has
the sum of all lanes' parts k), `all_to_all` keeps it (part j of lane k was part k of lane j).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.calls import derived
from ..core.dims import DimLike
from ..core.ir import ConstantArray, Function, Let
from ..core.native import Region
from ..core.primitive import NotLinear, Primitive, Together
from ..core.relation import ALONG, NO_OPERANDS, POINTWISE, Dims, without
from ..core.types import Array, i64
from .arithmetic import div, mul
from .arrays import constant, dim_value, iota
from .compare import eq, select
from .families import broadcast_to, expand_batch, like, require
from .indexing import gather
from .reduce import reduce_max, reduce_min, reduce_sum
from .shape import broadcast, convert, lanes_first, permute

Mapped = Callable[..., tuple[Any, bool]]
MAPPED: dict[str, Mapped] = {}  # rule(size, x, batched, **attributes) -> (result, whether it differs from lane to lane)
ALIKE = ("psum", "pmax", "pmin", "all_gather")  # what they give is the same in all lanes


def _only_lane(axis_size: DimLike) -> None:
    if axis_size != 1:
        raise ValueError(f"a collective over {axis_size} lanes was not mapped over its axis")


def _alone(meaning: Callable[..., Any]) -> Callable[..., Any]:
    """The meaning on an axis of one lane."""

    def numpy(*args: Any, axis_name: str, axis_size: DimLike, **attributes: Any) -> Any:
        _only_lane(axis_size)
        return meaning(*args, **attributes)

    return numpy


def _same(x: Array, *, axis_name: str, axis_size: DimLike, perm: tuple = ()) -> Array:
    return x.plain


def _times(x: Any, size: DimLike) -> Any:
    """x, added up over lanes that all have it."""
    if isinstance(size, int):
        return mul(x, like(x, size))
    return mul(x, broadcast_to(convert(dim_value(dim=size), dtype=x.type.dtype), x.type.dims))


def _mapped_psum(size: DimLike, x: Any, batched: bool, **_: Any) -> tuple[Any, bool]:
    return (reduce_sum(x, axes=(0,)) if batched else _times(x, size)), False


psum: Primitive = Primitive(
    "psum",
    type=_same,
    numpy=_alone(lambda x: x),
    jvp=Together(),
    transpose=(lambda y_bar, x, **axis: psum(y_bar, **axis),),
    dims=POINTWISE,
    native=Region("collective"),
    transient=True,
    doc="The sum of all lanes' x, in the operand's dtype.",
)


def _extreme_jvp(x_dot: Any, y: Any, x: Any, **axis: Any) -> Any:
    """The tangent in the lane that has the extreme; the mean of them at ties."""
    here = eq(x, y)
    count = psum(convert(here, dtype=x.type.dtype), **axis)
    return div(psum(select(here, x_dot, like(x, 0)), **axis), count)


def _extreme(name: str, reduction: Primitive) -> Primitive:
    def mapped(size: DimLike, x: Any, batched: bool, **_: Any) -> tuple[Any, bool]:
        return (reduction(x, axes=(0,)) if batched else x), False

    def rule(x: Array, *, axis_name: str, axis_size: DimLike) -> Array:
        require(x.dtype.kind != "c", lambda: f"{name}: complex numbers have no order, got {x}")
        return x.plain

    MAPPED[name] = mapped
    return Primitive(
        name,
        type=rule,
        numpy=_alone(lambda x: x),
        jvp=(_extreme_jvp,),
        transpose=NotLinear,
        dims=POINTWISE,
        native=Region("collective"),
        transient=True,
        doc="Of all lanes' x; NaN if any is NaN.",
    )


pmax = _extreme("pmax", reduce_max)
pmin = _extreme("pmin", reduce_min)


def _gathered_type(x: Array, *, axis_name: str, axis_size: DimLike, axis: int) -> Array:
    require(0 <= axis <= x.ndim, lambda: f"all_gather: axis {axis} of {x}")
    return x.with_dims((*x.dims[:axis], axis_size, *x.dims[axis:])).plain


def _repeated(x: Any, size: DimLike, axis: int) -> Any:
    """x along a new axis."""
    dims = x.type.dims
    kept = tuple(k for k in range(len(dims) + 1) if k != axis)
    return broadcast(x, shape=(*dims[:axis], size, *dims[axis:]), axes=kept)


def _lanes_at(x: Any, axis: int) -> Any:
    """x with its first axis at `axis`."""
    return permute(x, axes=(*range(1, axis + 1), 0, *range(axis + 1, x.type.ndim))) if axis else x


def _mapped_gather(size: DimLike, x: Any, batched: bool, *, axis: int, **_: Any) -> tuple[Any, bool]:
    return (_lanes_at(x, axis) if batched else _repeated(x, size, axis)), False


all_gather: Primitive = Primitive(
    "all_gather",
    type=_gathered_type,
    numpy=_alone(lambda x, *, axis: np.expand_dims(x, axis)),
    jvp=Together(),
    transpose=(lambda y_bar, x, **attributes: psum_scatter(y_bar, **attributes),),
    dims=Dims(lambda x, *, axis, **_: ((range(x.ndim),), ([*range(axis), None, *range(axis, x.ndim)],))),
    native=Region("collective"),
    transient=True,
    doc="All lanes' x along a new dim `axis`.",
)


def _needs_lanes(name: str, x: Array, axis_size: DimLike, axis: int) -> None:
    fits = 0 <= axis < x.ndim and x.dims[axis] == axis_size
    require(fits, lambda: f"{name}: dim {axis} of {x} is not the number of lanes, {axis_size}")


def _scattered_type(x: Array, *, axis_name: str, axis_size: DimLike, axis: int) -> Array:
    _needs_lanes("psum_scatter", x, axis_size, axis)
    return x.with_dims((*x.dims[:axis], *x.dims[axis + 1 :])).plain


def _mapped_scatter(size: DimLike, x: Any, batched: bool, *, axis: int, **_: Any) -> tuple[Any, bool]:
    return lanes_first(reduce_sum(x, axes=(0,)) if batched else _times(x, size), axis), True


psum_scatter: Primitive = Primitive(
    "psum_scatter",
    type=_scattered_type,
    numpy=_alone(lambda x, *, axis: np.take(x, 0, axis)),
    jvp=Together(),
    transpose=(lambda y_bar, x, **attributes: all_gather(y_bar, **attributes),),
    dims=Dims(lambda x, *, axis, **_: ((without(x, [axis]),), ([k for k in range(x.ndim) if k != axis],))),
    native=Region("collective"),
    transient=True,
    doc="In lane k part k along dim `axis` of the sum of all lanes' x.",
)


def _exchanged_type(x: Array, *, axis_name: str, axis_size: DimLike, axis: int) -> Array:
    _needs_lanes("all_to_all", x, axis_size, axis)
    return x.plain


def _mapped_exchange(size: DimLike, x: Any, batched: bool, *, axis: int, **_: Any) -> tuple[Any, bool]:
    if not batched:
        return _repeated(lanes_first(x, axis), size, axis + 1), True
    order = list(range(x.type.ndim))
    order[0], order[axis + 1] = axis + 1, 0
    return permute(x, axes=tuple(order)), True


all_to_all: Primitive = Primitive(
    "all_to_all",
    type=_exchanged_type,
    numpy=_alone(lambda x, *, axis: x),
    jvp=Together(),
    transpose=(lambda y_bar, x, **attributes: all_to_all(y_bar, **attributes),),
    dims=ALONG,
    native=Region("collective"),
    transient=True,
    doc="Part j along dim `axis` of lane k is part k of lane j.",
)


def _sent(x: Any, *, perm: tuple) -> Any:
    return x if perm else np.zeros_like(x)


def _mapped_permute(size: DimLike, x: Any, batched: bool, *, perm: tuple, **_: Any) -> tuple[Any, bool]:
    """Lane `to` has what lane `at` had, for each (at, to); zeros where nobody sends."""
    assert isinstance(size, int)
    if not perm:
        return like(x, 0), batched
    source = {to: at for at, to in perm}
    if batched:
        at = np.array([source.get(to, 0) for to in range(size)], i64)
        x = gather(x, constant(value=ConstantArray(at)), axes=(0,))
    elif len(source) < size:
        x = expand_batch(size, x, False)
    if len(source) < size:
        has = constant(value=ConstantArray(np.array([to in source for to in range(size)])))
        x = select(broadcast(has, shape=x.type.dims, axes=(0,)), x, like(x, 0))
    return x, batched or len(source) < size


ppermute: Primitive = Primitive(
    "ppermute",
    type=_same,
    numpy=_alone(_sent),
    jvp=Together(),
    transpose=(
        lambda y_bar, x, *, perm, **axis: ppermute(y_bar, perm=tuple(sorted((to, at) for at, to in perm)), **axis),
    ),
    dims=POINTWISE,
    native=Region("collective"),
    transient=True,
    doc="In lane `to` the x of lane `at`, for each (at, to) in `perm`; zeros in a lane that is sent nothing.",
)

axis_index: Primitive = Primitive(
    "axis_index",
    type=lambda *, axis_name, axis_size: Array(i64),
    numpy=_alone(lambda: np.int64(0)),
    jvp=(),
    transpose=NotLinear,
    dims=NO_OPERANDS,
    native=Region("collective"),
    transient=True,
    doc="The number of the lane.",
)

MAPPED |= {
    "psum": _mapped_psum,
    "all_gather": _mapped_gather,
    "psum_scatter": _mapped_scatter,
    "all_to_all": _mapped_exchange,
    "ppermute": _mapped_permute,
    "axis_index": lambda size, **_: (iota(length=size, dtype=i64), True),
}


def named_in(function: Function) -> frozenset[str]:
    """The labels of the axes that collectives in a program are over."""
    return derived(function, "named axes", lambda: frozenset().union(*map(axes_of, function.lets)))


def axes_of(let: Let) -> frozenset[str]:
    """The labels of the axes that an operation is over, or that collectives in its regions are."""
    own = let.attributes.get("axis_name")
    return frozenset([] if own is None else [own]).union(*map(named_in, let.regions()))


def is_over(let: Let, axis: str | None) -> bool:
    """Whether an operation is itself a collective over the axis."""
    return axis is not None and let.attributes.get("axis_name") == axis


def alike(let: Let, operands: Sequence[bool]) -> list[bool]:
    """Whether what a collective over an axis gives is the same in all its lanes, as its operands are or are not."""
    sends_all = let.primitive is ppermute and len(let.attributes["perm"]) == let.attributes["axis_size"]
    return [let.primitive.name in ALIKE or sends_all and all(operands)]


__all__ = [
    "MAPPED",
    "alike",
    "all_gather",
    "all_to_all",
    "axes_of",
    "axis_index",
    "is_over",
    "named_in",
    "pmax",
    "pmin",
    "ppermute",
    "psum",
    "psum_scatter",
]
