"""Views: a value as a part of one stored array, with one stride a dim.

In: a Value of a Block. Out: its View, where its elements lie so; or that of a copy. Example:

    view = strided(block, x)                              # None where x is computed, or lies in pieces
    view = operand(block, x, lambda v: v.strides[-1] == 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metaphrase.core.dims import Dim, DimLike, product, substitute, symbols

from .expressions import merge_split_indices
from .lower import Block
from .nest import Load, Sym, View
from .values import Indices, Place, Value, stored


def strided(block: Block, value: Value) -> View | None:
    """`value` as a part of one Buf with one stride a dim, if it is one."""
    axes, index = [], []
    for d in value.dims:
        name = block.shared.symbol("i", 0, d - 1)
        axes.append(name)
        index.append(Sym(name))
    e = value.at(tuple(index))
    if not isinstance(e, Load) or not e.buf.dims or e.buf.dtype != value.dtype:
        return None
    offset: DimLike = 0
    for entry, extent in zip(*merge_split_indices(list(e.index), list(e.buf.dims))):
        if not isinstance(entry, (int, Dim)):
            return None
        offset = offset * extent + entry
    zero: dict[str, DimLike] = {a: 0 for a in axes}
    strides = []
    for name in axes:
        stride = substitute(offset, {**zero, name: 1}) - substitute(offset, zero)
        strides.append(stride)
    linear: DimLike = substitute(offset, zero)
    for name, stride in zip(axes, strides):
        if symbols(stride) & set(axes):
            return None
        linear = linear + Sym(name) * stride
    if linear != offset:
        return None
    start = tuple(substitute(entry, zero) for entry in e.index)  # type: ignore[arg-type]
    return View(e.buf, start, value.dims, tuple(strides))


def operand(block: Block, value: Value, fits: Callable[[View], bool] = lambda view: True) -> View:
    """`value` as it lies, where that fits, else a copy."""
    view = strided(block, value)
    if view is None or not fits(view):
        place = block.temp("packed", value.dtype, value.dims)
        block.fill(place, value.at)
        view = strided(block, stored(place))
    assert view is not None
    return view


def row_strides(dims: Sequence[DimLike]) -> tuple[DimLike, ...]:
    return tuple(product(dims[k + 1 :]) for k in range(len(dims)))


def in_rows(view: View) -> bool:
    """Whether the elements stand one behind the other, the last index fastest."""
    wanted = row_strides(view.extents)
    return all(s == w or d == 1 for s, w, d in zip(view.strides, wanted, view.extents))


def view_part(view: View, axes: Sequence[int], index: Indices) -> View:
    """The part of a view at an index of its dims `axes`. A dim that lies along one of the Buf's moves the index along
    that, another one the last index."""
    start: list[Any] = [*view.index]
    places = {stride: k for k, stride in enumerate(row_strides(view.buf.dims))}
    for d, i in zip(axes, index):
        if view.strides[d] in places:
            start[places[view.strides[d]]] += i
        else:
            start[-1] += i * view.strides[d]
    rest = [d for d in range(len(view.extents)) if d not in axes]
    return View(view.buf, tuple(start), tuple(view.extents[d] for d in rest), tuple(view.strides[d] for d in rest))


def part_of(place: Place, axes: Sequence[int], index: Indices) -> View:
    """The part of a result at an index of its dims `axes`."""
    at = dict(zip(axes, index))
    dims, strides = place.dims, row_strides(place.dims)
    rest = [d for d in range(len(dims)) if d not in at]
    start = (*place.prefix, *(at.get(d, 0) for d in range(len(dims))))
    return View(place.buf, start, tuple(dims[d] for d in rest), tuple(strides[d] for d in rest))


def collapse(extents: Sequence[DimLike], strides: Sequence[DimLike]) -> tuple[DimLike, DimLike] | None:
    """One extent and stride for several dims that lie in memory as one."""
    pairs = [(e, s) for e, s in zip(extents, strides) if e != 1]
    if not pairs:
        return 1, 0
    for (_, outer), (extent, inner) in zip(pairs, pairs[1:]):
        if outer != inner * extent:
            return None
    return product(e for e, _ in pairs), pairs[-1][1]


__all__ = ["collapse", "in_rows", "operand", "part_of", "row_strides", "strided", "view_part"]
