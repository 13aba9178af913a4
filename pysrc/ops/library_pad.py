"""`numpy.pad`: constants, repeated edges, reflections, and what the elements of an axis amount to.

In: an array and widths. Out: core atoms.

    y = pad(x, ((0, 2), (1, 1)), mode="reflect")
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.build import known_facts, literal
from ..core.dims import DimLike
from ..core.ir import Atom
from ..core.types import i64
from ..source import ShapeError, UnsupportedError
from .arithmetic import max_, min_, mod, sub
from .arrays import iota
from .compare import eq, gt, lt, or_, select
from .effects import check
from .families import like
from .library_shapes import concatenate
from .promotion import Operand, cast, dim_of, lift, scalar_dim, to_dtype
from .promotion import broadcast_to as broadcast_atom
from .structure import pad as pad_primitive


def pad(x: Operand, pad_width: Any, mode: str = "constant", constant_values: Any = 0, **kwargs: Any) -> Atom:
    x = lift(x)
    widths = _widths(pad_width, x.type.ndim)
    if mode == "constant":
        if isinstance(constant_values, (list, tuple, np.ndarray)):
            return _pad_sides(x, widths, constant_values)
        return pad_primitive(
            x,
            cast(constant_values, x.type.dtype),
            low=tuple(a for a, _ in widths),
            high=tuple(b for _, b in widths),
            interior=(0,) * x.type.ndim,
        )
    if mode == "empty":
        return pad(x, pad_width)
    _not_empty(x, widths)
    if mode in ("maximum", "minimum", "mean", "median") and not kwargs:
        return _pad_by_statistic(x, widths, mode)
    if mode not in ("edge", "wrap", "reflect", "symmetric") or kwargs:
        options = f" and {', '.join(kwargs)}=" if kwargs else ""
        raise UnsupportedError(
            f"pad with mode {mode!r}{options} is not supported",
            remedy="use constant, edge, wrap, reflect or symmetric",
            code="pad",
        )
    from .library_search import take

    for axis, (low, high) in enumerate(widths):
        if low == high == 0:
            continue
        size = x.type.dims[axis]
        total = low + size + high
        place = sub(iota(length=total, dtype=i64), broadcast_atom(scalar_dim(low, i64), (total,)))
        x = take(x, _folded(place, size, mode), axis, checked=True)
    return x


def _not_empty(x: Atom, widths: list) -> None:
    """Refuse to make elements of none."""
    for axis, (low, high) in enumerate(widths):
        size, more = x.type.dims[axis], low + high
        if more == 0 or known_facts().less(0, size):
            continue
        message = f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
        if size == 0 and known_facts().less(0, more):
            raise ShapeError(message, remedy="pad it with a constant", code="empty")
        ok = or_(gt(scalar_dim(size, i64), literal(0)), eq(scalar_dim(more, i64), literal(0)))
        check(ok, exception="ValueError", message=message)


def _pad_sides(x: Atom, widths: list, values: Any) -> Atom:
    """Another constant on each side: one axis and side after the other, as NumPy fills corners."""
    rows = list(values) if isinstance(values[0], (list, tuple, np.ndarray)) else [values]
    pairs = [(row[0], row[-1]) for row in (rows if len(rows) == x.type.ndim else rows * x.type.ndim)]
    for axis, ((low, high), sides) in enumerate(zip(widths, pairs)):
        shapes = [tuple(w if k == axis else d for k, d in enumerate(x.type.dims)) for w in (low, high)]
        first, last = (broadcast_atom(cast(v, x.type.dtype), s) for v, s in zip(sides, shapes))
        x = concatenate([first, x, last], axis)
    return x


def _pad_by_statistic(x: Atom, widths: list, mode: str) -> Atom:
    from .library import LIBRARY

    for axis, pair in enumerate(widths):
        function = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}[mode]
        value = LIBRARY[function](x, axis, keepdims=True)
        if x.type.dtype.kind in "iu":
            value = LIBRARY[np.rint](value)
        value = to_dtype(value, x.type.dtype)
        sides = [broadcast_atom(value, tuple(w if k == axis else d for k, d in enumerate(x.type.dims))) for w in pair]
        x = concatenate([sides[0], x, sides[1]], axis)
    return x


def _widths(pad_width: Any, rank: int) -> list[tuple[DimLike, DimLike]]:
    if not isinstance(pad_width, (list, tuple, np.ndarray)):
        return [(dim_of(pad_width), dim_of(pad_width))] * rank
    rows = list(pad_width)
    if not isinstance(rows[0], (list, tuple, np.ndarray)):
        rows = [rows if len(rows) == 2 else [rows[0], rows[0]]]
    pairs = [(dim_of(r[0]), dim_of(r[-1])) for r in rows]
    if len(pairs) not in (1, rank):
        raise ShapeError(f"{len(pairs)} pad widths do not fit {rank} dimensions", code="pad")
    return pairs if len(pairs) == rank else pairs * rank


def _folded(place: Atom, size: DimLike, mode: str) -> Atom:
    """Positions outside 0..size-1 brought inside as `mode` says."""
    dims = place.type.dims

    def number(d: DimLike) -> Atom:
        return broadcast_atom(scalar_dim(d, i64), dims)

    if mode == "wrap":
        return mod(place, number(size))
    if mode == "edge":
        return min_(max_(place, number(0)), number(size - 1))
    period = 2 * size - 2 if mode == "reflect" else 2 * size
    if size == 1 and mode == "reflect":
        return like(place, 0)
    inside = mod(place, number(period))
    mirror = sub(number(period if mode == "reflect" else period - 1), inside)
    return select(lt(inside, number(size)), inside, mirror)


__all__ = ["pad"]
