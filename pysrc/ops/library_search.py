"""NumPy's functions that pick, order and search: take, nonzero, sort, unique, searchsorted, insert.

In: operands. Out: core atoms. What NumPy refuses at run time becomes a `check`: an index out of range raises.

    y = take(x, i, axis=1)
    k = searchsorted(edges, x, side="right")
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ..core.build import at_least, known_facts, literal
from ..core.dims import DimLike, fresh_symbol, product
from ..core.ir import Atom, Literal
from ..core.types import i64
from ..source import DTypeError, ShapeError, UnsupportedError
from . import complex_numbers, sorting
from .arithmetic import add, max_, min_, mod, sub
from .arrays import as_dim, iota
from .compare import and_, ge, gt, lt, ne, or_, select
from .effects import check
from .elementary import isnan
from .families import like
from .indexing import gather, scatter, scatter_add
from .library_moves import flip
from .library_reductions import any_, sum_, to_bool
from .library_shapes import concatenate, expand_dims, in_a_row, moveaxis, part, permuted, ravel, reshape, stack
from .promotion import (
    Operand,
    axis_of,
    broadcast_arrays,
    broadcast_to,
    lift,
    promote,
    scalar_dim,
    shape_of,
    to_dtype,
    ufunc,
)
from .scan import cumsum
from .shape import broadcast, convert
from .structure import pad

# --- indices -----------------------------------------------------------------------------------------------


def wrapped_index(index: Operand, size: DimLike, axis: int = 0, mode: str = "raise", checked: bool = False) -> Atom:
    """i64 positions in 0..size-1: negative ones count from the end; outside they raise, clip or wrap."""
    i = lift(index)
    if i.type.dtype.kind not in "iu":
        raise DTypeError(f"an index must be an integer, got {i.type}", code="index")
    if isinstance(index, np.ndarray) and mode == "raise" and isinstance(size, int):
        _check_known(index, size, axis)
        return lift(np.where(index < 0, index + size, index).astype(np.int64))
    if isinstance(i, Literal) and mode == "raise" and isinstance(size, int):
        _check_known(np.asarray(i.value), size, axis)
        return literal(int(i.value) % size, i64)
    i = to_dtype(i, i64)
    if checked:
        return i
    extent = broadcast_to(scalar_dim(size, i64), i.type.dims)
    if mode != "raise" and not known_facts().less(0, size):
        check(gt(extent, like(i, 0)), exception="IndexError", message="cannot do a non-empty take from an empty axes.")
    if mode == "wrap":
        return mod(i, extent)
    if mode == "clip":
        return max_(min_(i, sub(extent, like(i, 1))), like(i, 0))
    inside = and_(ge(i, ufunc(np.negative, extent)), lt(i, extent))
    check(
        inside, i, extent, exception="IndexError", message=f"index {{}} is out of bounds for axis {axis} with size {{}}"
    )
    return select(lt(i, like(i, 0)), add(i, extent), i)


def _check_known(index: np.ndarray, size: int, axis: int) -> None:
    bad = index[(index < -size) | (index >= size)]
    if bad.size:
        raise ShapeError(f"index {bad.ravel()[0]} is out of bounds for axis {axis} with size {size}", code="index")


def take(a: Operand, indices: Operand, axis: Any = None, mode: str = "raise", checked: bool = False) -> Atom:
    x = in_a_row(lift(a), axis)
    axis = axis_of(0 if axis is None else axis, x.type.ndim)
    i = wrapped_index(indices, x.type.dims[axis], axis, mode, checked)
    out = gather(x, i, axes=(axis,))
    rank = i.type.ndim
    order = (*range(rank, rank + axis), *range(rank), *range(rank + axis, out.type.ndim))
    return permuted(out, order)


def _all_indices(positions: Atom, axis: int) -> list[Atom]:
    dims = positions.type.dims
    return [
        positions if k == axis else broadcast(iota(length=d, dtype=i64), shape=dims, axes=(k,))
        for k, d in enumerate(dims)
    ]


def take_along_axis(a: Operand, indices: Operand, axis: Any = -1) -> Atom:
    x, i = lift(a), lift(indices)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.type.ndim)
    if i.type.ndim != x.type.ndim:
        raise ShapeError(f"take_along_axis needs indices of {x.type.ndim} dimensions, got {i.type.ndim}", code="index")
    positions = wrapped_index(indices if isinstance(indices, np.ndarray) else i, x.type.dims[axis], axis)
    lead = tuple(i.type.dims[k] if k == axis else d for k, d in enumerate(x.type.dims))
    x = broadcast_to(x, tuple(x.type.dims[k] if k == axis else d for k, d in enumerate(lead)))
    return gather(x, *_all_indices(broadcast_to(positions, lead), axis), axes=tuple(range(len(lead))))


def put_along_axis(a: Operand, indices: Operand, values: Operand, axis: Any) -> Atom:
    """The array with the values put in (NumPy's function works in place; the front end stores the result)."""
    x = lift(a)
    axis = axis_of(axis, x.type.ndim)
    positions = wrapped_index(indices, x.type.dims[axis], axis)
    new = broadcast_to(to_dtype(values, x.type.dtype), positions.type.dims)
    return scatter(x, new, *_all_indices(positions, axis), axes=tuple(range(x.type.ndim)))


def put(a: Operand, ind: Operand, v: Operand, mode: str = "raise") -> Atom:
    """The array with elements of its flat form replaced; values are repeated, or the last ones left. Without
    values nothing is: where only the run knows that, an element is stored where it stood."""
    x = lift(a)
    flat, values, where = ravel(x), ravel(to_dtype(v, x.type.dtype)), ravel(lift(ind))
    many = values.type.dims[0]
    if many == 0:
        return x
    some = None if known_facts().less(0, many) else gt(scalar_dim(many, i64), literal(0))
    if some is not None:
        where = select(broadcast_to(some, where.type.dims), where, like(where, 0))
    i = wrapped_index(where, product(x.type.dims), 0, mode)
    size = i.type.dims[0]
    if many not in (1, size) or some is not None:
        turn = iota(length=size, dtype=i64)
        count = scalar_dim(many, i64)
        if some is not None:
            values = pad(values, literal(0, values.type.dtype), low=(0,), high=(1,), interior=(0,))
            count = select(some, count, literal(1, i64))
        values = gather(values, mod(turn, broadcast_to(count, (size,))), axes=(0,))
    new = broadcast_to(values, i.type.dims)
    if some is not None:
        new = select(broadcast_to(some, i.type.dims), new, gather(flat, i, axes=(0,)))
    return reshape(scatter(flat, new, i, axes=(0,)), x.type.dims)


def combine_at(function: np.ufunc) -> Any:
    """`np.add.at` and `np.subtract.at`: every index counts, repeated ones too. Indices are integer arrays."""

    def call(a: Operand, indices: Any, b: Operand) -> Atom:
        x = lift(a)
        picked = list(indices) if isinstance(indices, tuple) else [indices]
        if any(isinstance(i, builtins.slice) or i is None or i is Ellipsis for i in picked):
            raise UnsupportedError(
                f"numpy.{function.__name__}.at takes integer arrays here",
                remedy="write the slices as index arrays",
                code="numpy-function",
            )
        axes = tuple(range(len(picked)))
        positions = broadcast_arrays(*(wrapped_index(i, x.type.dims[k], k) for k, i in zip(axes, picked)))
        rest = x.type.dims[len(axes) :]
        new = broadcast_to(to_dtype(b, x.type.dtype), (*positions[0].type.dims, *rest))
        return scatter_add(x, new if function is np.add else ufunc(np.negative, new), *positions, axes=axes)

    return call


# --- what is not zero: results of run-time size ------------------------------------------------------------


def _places(mask: Atom) -> Atom:
    """Positions of True in a flat mask; their number becomes a size."""
    count = as_dim(sum_(mask, dtype=i64), size=fresh_symbol("count")).type.value
    return sorting.nonzero(mask, axis=0, length=count)


def flatnonzero(a: Operand) -> Atom:
    return _places(to_bool(ravel(a)))


def nonzero(a: Operand) -> tuple[Atom, ...]:
    x = lift(a)
    if not x.type.dims:
        raise ShapeError("nonzero of a number", remedy="use numpy.atleast_1d", code="rank")
    flat, found = flatnonzero(x), []
    for k in range(x.type.ndim):
        below = product(x.type.dims[k + 1 :])
        place = ufunc(np.floor_divide, flat, scalar_dim(below, i64)) if below != 1 else flat
        found.append(ufunc(np.remainder, place, scalar_dim(x.type.dims[k], i64)) if k else place)
    return tuple(found)


def argwhere(a: Operand) -> Atom:
    return stack(list(nonzero(a)), axis=1)


def compress(condition: Operand, a: Operand, axis: Any = None) -> Atom:
    x = lift(a)
    if axis is None:
        x, axis = ravel(x), 0
    return _taken(x, condition, axis_of(axis, x.type.ndim))


def extract(condition: Operand, arr: Operand) -> Atom:
    return _taken(ravel(arr), condition, 0)


def _taken(x: Atom, condition: Operand, axis: int) -> Atom:
    """The rows of x where a condition holds; one longer than the axis may name rows that x has not."""
    fits = known_facts().less_equal(product(lift(condition).type.dims), x.type.dims[axis])
    return take(x, flatnonzero(condition), axis, checked=fits)


def unique(
    a: Operand,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Sorted, each value once; the number of values is a run-time size."""
    if axis is not None:
        raise UnsupportedError("unique along an axis is not supported", code="numpy-function")
    x = lift(a)
    flat = ravel(x)
    order = argsort(flat, 0)
    ordered = gather(flat, order, axes=(0,))
    size = flat.type.dims[0]
    if size == 0:
        places = iota(length=0, dtype=i64)
        inverse = reshape(places, x.type.dims) if return_inverse else None
        found = [flat, *[places] * return_index, *[inverse] * return_inverse, *[places] * return_counts]
        return found[0] if len(found) == 1 else tuple(found)
    # Each element against the one before it; the first is new. There may be none.
    place = iota(length=size, dtype=i64)
    before = gather(ordered, ufunc(np.maximum, sub(place, like(place, 1)), like(place, 0)), axes=(0,))
    new = ne(ordered, before)
    if equal_nan and flat.type.dtype.kind in "fc":
        new = and_(new, ufunc(np.invert, and_(isnan(ordered), isnan(before))))
    new = or_(new, ufunc(np.equal, place, like(place, 0)))
    first = _places(new)
    found = [gather(ordered, first, axes=(0,))]
    if return_index:
        found.append(gather(order, first, axes=(0,)))
    if return_inverse:
        group = sub(cumsum(convert(new, dtype=i64), axis=0, reverse=False), like(order, 1))
        found.append(reshape(scatter(like(order, 0), group, order, axes=(0,), unique=True), x.type.dims))
    if return_counts:
        count = first.type.dims[0]
        follows = ufunc(np.add, iota(length=count, dtype=i64), 1)
        last = broadcast_to(scalar_dim(count - 1, i64), (count,))
        whole = broadcast_to(scalar_dim(size, i64), (count,))
        after = gather(first, ufunc(np.minimum, follows, last), axes=(0,))
        after = select(ufunc(np.greater, follows, last), whole, after)
        found.append(sub(after, first))
    return found[0] if len(found) == 1 else tuple(found)


# --- order -------------------------------------------------------------------------------------------------


def sort(a: Operand, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Atom:
    x = ravel(a) if axis is None else lift(a)
    at = axis_of(-1 if axis is None else axis, x.type.ndim)
    if x.type.dtype.kind == "c":
        return take_along_axis(x, argsort(x, at), at)
    return sorting.sort(x, axis=at)


def argsort(a: Operand, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Atom:
    x = in_a_row(lift(a), axis)
    at = axis_of(-1 if axis is None else axis, x.type.ndim)
    if x.type.dtype.kind == "c":  # by the real part, then the imaginary one; imaginary NaNs, real ones, both
        re, im = complex_numbers.real(x), complex_numbers.imag(x)
        order = sorting.argsort(im, axis=at)
        strange = add(convert(isnan(im), dtype=i64), convert(isnan(re), dtype=i64))
        for key in (re, select(isnan(re), add(strange, like(strange, 1)), strange)):
            order = take_along_axis(order, sorting.argsort(take_along_axis(key, order, at), axis=at), at)
        return order
    return sorting.argsort(x, axis=at)


def partition(a: Operand, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Atom:
    """A full sort is a partition at every place."""
    _check_places(a, kth, axis)
    return sort(a, axis)


def _check_places(a: Operand, kth: Any, axis: Any) -> None:
    """Places behind the last element are refused, as in NumPy."""
    x = ravel(a) if axis is None else lift(a)
    size = x.type.dims[axis_of(-1 if axis is None else axis, x.type.ndim)]
    place = to_dtype(kth, i64)
    extent = broadcast_to(scalar_dim(size, i64), place.type.dims)
    inside = and_(ge(place, ufunc(np.negative, extent)), lt(place, extent))
    inside = or_(inside, ufunc(np.equal, extent, like(extent, 0)))
    check(inside, place, extent, exception="ValueError", message="kth(={}) out of bounds ({})")


def argpartition(a: Operand, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Atom:
    _check_places(a, kth, axis)
    return argsort(a, axis)


def lexsort(keys: Any, axis: Any = -1) -> Atom:
    from .library_shapes import unstack

    order: Any = None
    for key in keys if isinstance(keys, (list, tuple)) else unstack(keys):
        at = axis_of(axis, lift(key).type.ndim)
        step = argsort(key if order is None else take_along_axis(key, order, at), at)
        order = step if order is None else take_along_axis(order, step, at)
    return order


def searchsorted(a: Operand, v: Operand, side: str = "left", sorter: Any = None) -> Atom:
    if side not in ("left", "right"):
        raise DTypeError(f"side is left or right, got {side!r}", code="searchsorted")
    x, wanted = promote(lift(a) if sorter is None else take(a, sorter), lift(v))  # numbers as arrays
    if x.type.dtype.kind == "c":
        return _among_ordered(x, wanted, side == "right")
    return sorting.searchsorted(x, wanted, right=side == "right")


def _among_ordered(x: Atom, wanted: Atom, right: bool) -> Atom:
    """As many elements of x as stand before each of `wanted` when both are ordered together: equal ones of x, too, if
    `right`."""
    v = ravel(wanted)
    size, count = x.type.dims[0], v.type.dims[0]
    order = argsort(concatenate([x, v] if right else [v, x], 0), 0)
    of_x = lt(order, scalar_of(size, order)) if right else ge(order, scalar_of(count, order))
    before = cumsum(convert(of_x, dtype=i64), axis=0, reverse=False)
    places = scatter(like(before, 0), before, order, axes=(0,), unique=True)
    return reshape(part(places, 0, size if right else 0, count), wanted.type.dims)


def digitize(x: Operand, bins: Operand, right: bool = False) -> Atom:
    """Bins may rise or fall; which, and whether they do, is settled here if it is known."""
    edges, side = lift(bins), "left" if right else "right"
    size = edges.type.dims[0]
    gaps = at_least(size - 1, 0)
    one, next_one = part(edges, 0, 0, gaps), part(edges, 0, size - gaps, gaps)
    rises, falls = (any_(ufunc(f, one, next_one)) for f in (np.less, np.greater))
    check(
        ufunc(np.invert, and_(rises, falls)),
        exception="ValueError",
        message="bins must be monotonically increasing or decreasing",
    )
    if isinstance(bins, (list, tuple, np.ndarray)):
        bins = np.asarray(bins)
        if not (bins[1:] < bins[:-1]).any():
            return searchsorted(edges, x, side)
        return sub(scalar_of(size, x), searchsorted(flip(edges), x, side))
    found = searchsorted(select(broadcast_to(falls, edges.type.dims), flip(edges), edges), x, side)
    return select(broadcast_to(falls, found.type.dims), sub(scalar_of(size, x), found), found)


def scalar_of(dim: DimLike, x: Operand) -> Atom:
    return broadcast_to(scalar_dim(dim, i64), lift(x).type.dims)


def isin(element: Operand, test_elements: Operand, assume_unique: bool = False, invert: bool = False) -> Atom:
    """Each element against each of a few; more are sorted, and searched."""
    x, y = promote(lift(element), lift(test_elements))
    y = ravel(y)
    size = y.type.dims[0]
    if x.type.dtype.kind == "c" or not x.type.dims or (isinstance(size, int) and size <= 8):
        among = any_(ufunc(np.equal, expand_dims(x, x.type.ndim), y), -1)
    else:
        among = sorting.contains(sorting.sort(y, axis=0), x)
    return ufunc(np.invert, among) if invert else among


def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C") -> Atom:
    shape = shape_of(dims)
    modes = mode if isinstance(mode, tuple) else (mode,) * len(shape)
    places = [
        _coordinate(i, d) if m == "raise" else wrapped_index(i, d, k, m)
        for k, (i, d, m) in enumerate(zip(multi_index, shape, modes))
    ]
    if order == "F":
        shape, places = shape[::-1], places[::-1]
    flat = places[0]
    for place, d in zip(places[1:], shape[1:]):
        flat = ufunc(np.add, ufunc(np.multiply, flat, scalar_dim(d, i64)), place)
    return flat


def _coordinate(i: Operand, size: DimLike, message: str = "invalid entry in coordinates array") -> Atom:
    """A coordinate, which NumPy does not count from the end."""
    place = to_dtype(i, i64)
    extent = broadcast_to(scalar_dim(size, i64), place.type.dims)
    shown = (place, extent)[: message.count("{")]
    check(and_(ge(place, like(place, 0)), lt(place, extent)), *shown, exception="ValueError", message=message)
    return place


def unravel_index(indices: Operand, shape: Any, order: str = "C") -> tuple[Atom, ...]:
    if order == "F":
        return unravel_index(indices, shape_of(shape)[::-1])[::-1]
    dims = shape_of(shape)
    message = "index {} is out of bounds for array with size {}"
    flat, found = _coordinate(indices, product(dims), message), []
    for k, d in enumerate(dims):
        place = ufunc(np.floor_divide, flat, scalar_dim(product(dims[k + 1 :]), i64))
        found.append(ufunc(np.remainder, place, scalar_dim(d, i64)) if k else place)
    return tuple(found)


def delete(arr: Operand, obj: Any, axis: Any = None) -> Atom:
    x = lift(arr)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.type.ndim)
    size = x.type.dims[axis]
    if not isinstance(size, int):
        raise UnsupportedError("delete needs a known size", code="size")
    return take(x, np.delete(np.arange(size), obj), axis, checked=True)


def insert(arr: Operand, obj: Any, values: Operand, axis: Any = None) -> Atom:
    """At known places; where only the run knows them, the front end has a program."""
    x = lift(arr)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.type.ndim)
    size = x.type.dims[axis]
    new = to_dtype(values, x.type.dtype)
    if new.type.ndim > x.type.ndim:
        raise ShapeError("the values to insert have more dimensions than the array", code="broadcast")
    new = expand_dims(new, tuple(range(x.type.ndim - new.type.ndim)))
    several = list(obj) if isinstance(obj, (list, tuple)) else obj
    if isinstance(several, (int, np.integer)):
        new, several = moveaxis(new, 0, axis), [several]
    if isinstance(several, list) and len(several) == 1 and isinstance(several[0], (int, np.integer)):
        at, count = int(several[0]), new.type.dims[axis]
        extent = scalar_dim(size, i64)
        inside = and_(ge(literal(at), ufunc(np.negative, extent)), ge(extent, literal(at)))
        if not (isinstance(size, int) and -size <= at <= size):
            check(
                inside,
                literal(at),
                extent,
                exception="IndexError",
                message=f"index {{}} is out of bounds for axis {axis} with size {{}}",
            )
        if isinstance(size, int):  # what is out of bounds has raised
            at = builtins.max(-size, builtins.min(at, size))
        start = at + size if at < 0 else at
        new = broadcast_to(new, tuple(count if k == axis else d for k, d in enumerate(x.type.dims)))
        return concatenate([part(x, axis, 0, start), new, part(x, axis, start, size - start)], axis)
    if not isinstance(size, int):
        raise UnsupportedError("insert takes several places only in an array of a known size", code="numpy-function")
    count = len(np.arange(size)[several]) if isinstance(several, builtins.slice) else np.size(several)
    new = broadcast_to(new, tuple(count if k == axis else d for k, d in enumerate(x.type.dims)))
    places = np.insert(np.arange(size), several, size + np.arange(count))
    return take(concatenate([x, new], axis), places, axis, checked=True)
