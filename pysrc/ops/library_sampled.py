"""NumPy's functions on sampled data: differences, integrals, interpolation, convolution, histograms.

In: operands. Out: core atoms.

    y = interp(x, knots, heights)
    counts, edges = histogram(x, bins=20)
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..core.build import at_least, known_facts, literal, trace
from ..core.dims import DimLike, dim_max, dim_min, floordiv, fresh_symbol
from ..core.ir import Atom, Literal, Roles, Var
from ..core.types import Array, i64
from ..source import DTypeError, ShapeError, UnsupportedError
from . import sorting
from .arithmetic import add, div, max_, min_, mul, sub
from .arrays import as_dim
from .compare import and_, eq, ge, gt, le, lt, ne, not_, or_, select
from .effects import check
from .elementary import isnan
from .families import like
from .indexing import gather, scatter_add, slice_add
from .indexing import slice as slice_
from .library_creation import linspace
from .library_elementwise import as_inexact, conjugate, where
from .library_moves import flip
from .library_reductions import all_, amax, amin, cumsum, not_empty, sum_
from .library_shapes import concatenate, part, ravel, reshape
from .promotion import (
    Operand,
    axis_of,
    broadcast_to,
    dim_of,
    inexact_dtype,
    is_weak,
    lift,
    promote,
    result_type,
    scalar_dim,
    sized,
    surely_differ,
    to_dtype,
    ufunc,
    weak_type,
)
from .regions import loop
from .shape import broadcast


def diff(a: Operand, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Atom:
    x = lift(a)
    if n < 0:
        raise ShapeError(f"order must be non-negative but got {n}", code="shape")
    axis = axis_of(axis, x.type.ndim)
    edges = [None if v is None or v is np._NoValue else v for v in (prepend, append)]
    pieces = [edge if edge is None else _edge(edge, x, axis) for edge in edges]
    if any(p is not None for p in pieces):
        x = concatenate([p for p in (pieces[0], x, pieces[1]) if p is not None], axis)
    for _ in range(n):
        size = at_least(x.type.dims[axis] - 1, 0)
        later, earlier = part(x, axis, x.type.dims[axis] - size, size), part(x, axis, 0, size)
        x = ne(later, earlier) if x.type.dtype == bool else sub(later, earlier)
    return x


def _edge(value: Operand, x: Atom, axis: int) -> Atom:
    edge = lift(value)
    if edge.type.dims:
        return edge
    return broadcast_to(edge, tuple(1 if k == axis else d for k, d in enumerate(x.type.dims)))


def ediff1d(a: Operand, to_end: Any = None, to_begin: Any = None) -> Atom:
    if lift(a).type.dtype == bool:
        raise DTypeError("ediff1d would subtract bools", code="dtype", remedy="convert them with .astype first")
    between = diff(ravel(a))
    ends = [ravel(to_dtype(v, between.type.dtype)) if v is not None else None for v in (to_begin, to_end)]
    return concatenate([p for p in (ends[0], between, ends[1]) if p is not None])


def gradient(f: Operand, *spacing: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Differences of second order inside, of first or second order at the ends; any spacing."""
    if lift(f).type.dtype == bool:
        raise DTypeError("gradient would subtract bools", code="dtype", remedy="convert them with .astype first")
    x = as_inexact(f)
    axes = (
        list(range(x.type.ndim))
        if axis is None
        else [axis_of(k, x.type.ndim) for k in (axis if isinstance(axis, (list, tuple)) else [axis])]
    )
    if len(spacing) not in (0, 1, len(axes)):
        raise TypeError("gradient() takes one spacing, or one for each axis")
    if len(spacing) == 1 < len(axes) and lift(spacing[0]).type.ndim:
        raise TypeError("gradient() takes one number as spacing, or coordinates for each axis")
    steps = list(spacing) * (len(axes) if len(spacing) == 1 else 1) if spacing else [1.0] * len(axes)
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    for k in axes:
        size, few = (
            x.type.dims[k],
            (
                "Shape of array too small to calculate a numerical gradient, "
                "at least (edge_order + 1) elements are required."
            ),
        )
        if isinstance(size, int) and size <= edge_order:
            raise ShapeError(few, code="shape")
        check(gt(scalar_dim(size, i64), literal(edge_order)), exception="ValueError", message=few)
    found = [to_dtype(_slope(x, k, h, edge_order), x.type.dtype) for k, h in zip(axes, steps)]
    return found[0] if len(found) == 1 else tuple(found)


def _times(*factors: Operand) -> Atom:
    return functools.reduce(lambda a, b: ufunc(np.multiply, a, b), factors)


def _over(a: Operand, b: Operand) -> Atom:
    return ufunc(np.true_divide, a, b)


def _slope(x: Atom, k: int, h: Any, edge_order: int) -> Atom:
    """The derivative of x along axis k; `h` is one distance, or the places of the samples."""
    size = x.type.dims[k]
    if is_weak(h) and (weak_type(h) is not complex or x.type.dtype.kind == "c"):
        h = to_dtype(h, x.type.dtype)

    def row(first: Any, length: Any = 1) -> Atom:
        return part(x, k, first, length)

    if not lift(h).type.dims:
        middle = _over(sub(row(2, size - 2), row(0, size - 2)), _times(h, 2.0))
        ends = [_over(sub(row(1), row(0)), h), _over(sub(row(size - 1), row(size - 2)), h)]
        gaps: list[Any] = [h, h, h, h]
    else:
        places = diff(as_inexact(h))

        def gap(first: Any, length: Any = 1) -> Atom:
            wide = part(places, 0, first, length)
            return reshape(wide, tuple(length if a == k else 1 for a in range(x.type.ndim)))

        left, right = gap(0, size - 2), gap(1, size - 2)
        total = ufunc(np.add, left, right)
        a = ufunc(np.negative, _over(right, _times(left, total)))
        b = _over(ufunc(np.subtract, right, left), _times(left, right))
        c = _over(left, _times(right, total))
        middle = ufunc(
            np.add, ufunc(np.add, _times(a, row(0, size - 2)), _times(b, row(1, size - 2))), _times(c, row(2, size - 2))
        )
        ends = [_over(sub(row(1), row(0)), gap(0)), _over(sub(row(size - 1), row(size - 2)), gap(size - 2))]
        gaps = [gap(0), gap(1), gap(size - 2), gap(size - 3)]
    if edge_order == 2:
        ends = [
            _end_slope(gaps[0], gaps[1], row(0), row(1), row(2)),
            ufunc(np.negative, _end_slope(gaps[2], gaps[3], row(size - 1), row(size - 2), row(size - 3))),
        ]
    return concatenate([ends[0], middle, ends[1]], k)


def _end_slope(near: Any, far: Any, first: Atom, second: Atom, third: Atom) -> Atom:
    """The one-sided derivative of second order, from the end inwards."""
    total = ufunc(np.add, near, far)
    a = ufunc(np.negative, _over(ufunc(np.add, _times(2.0, near), far), _times(near, total)))
    b, c = _over(total, _times(near, far)), ufunc(np.negative, _over(near, _times(far, total)))
    return ufunc(np.add, ufunc(np.add, _times(a, first), _times(b, second)), _times(c, third))


def trapezoid(y: Operand, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Atom:
    values = lift(y)
    axis = axis_of(axis, values.type.ndim)
    size = at_least(values.type.dims[axis] - 1, 0)
    width: Any = dx
    if x is not None:
        width = diff(x) if lift(x).type.ndim == 1 else diff(x, axis=axis)
        if lift(x).type.ndim == 1:
            width = reshape(width, tuple(size if k == axis else 1 for k in range(values.type.ndim)))
    pair = ufunc(np.add, part(values, axis, values.type.dims[axis] - size, size), part(values, axis, 0, size))
    return sum_(ufunc(np.true_divide, ufunc(np.multiply, width, pair), 2.0), axis)


def interp(x: Operand, xp: Operand, fp: Operand, left: Any = None, right: Any = None, period: Any = None) -> Atom:
    """In double precision, whatever the operands."""
    at, knots, heights = (lift(v) for v in (x, xp, fp))
    at, knots, heights = (to_dtype(v, np.result_type(v.type.dtype, np.float64)) for v in (at, knots, heights))
    not_empty(knots, (0,), "array of sample points is empty")
    if surely_differ(heights.type.dims[0], knots.type.dims[0]):
        raise ShapeError("fp and xp are not of the same length.", code="shape")
    heights = sized(heights, 0, knots.type.dims[0], "fp and xp are not of the same length.")
    if period is not None:  # one knot before and one behind a sorted period; NumPy ignores left and right
        left = right = None
        cycle = abs(period)
        at, knots = (ufunc(np.remainder, v, cycle) for v in (at, knots))
        order = sorting.argsort(knots, axis=0)
        knots, heights = (gather(v, order, axes=(0,)) for v in (knots, heights))
        last = knots.type.dims[0] - 1
        knots = concatenate(
            [ufunc(np.subtract, part(knots, 0, last, 1), cycle), knots, ufunc(np.add, part(knots, 0, 0, 1), cycle)]
        )
        heights = concatenate([part(heights, 0, last, 1), heights, part(heights, 0, 0, 1)])
    knots, at = promote(knots, at)
    size = knots.type.dims[0]
    place = sorting.searchsorted(knots, at, right=True)
    place = min_(max_(place, like(place, 1)), broadcast_to(scalar_dim(size - 1, i64), place.type.dims))
    before = max_(sub(place, like(place, 1)), like(place, 0))
    x0, x1, y0, y1 = (gather(v, k, axes=(0,)) for v in (knots, heights) for k in (before, place))
    same = eq(x1, x0)  # one knot, or the last ones in one place
    slope = ufunc(np.true_divide, sub(y1, y0), select(same, like(x1, 1), sub(x1, x0)))
    y = where(same, y1, ufunc(np.add, ufunc(np.multiply, slope, sub(at, x0)), y0))
    low, high = part(knots, 0, 0, 1, squeezed=True), part(knots, 0, size - 1, 1, squeezed=True)
    y = where(ufunc(np.less, at, low), part(heights, 0, 0, 1, squeezed=True) if left is None else left, y)
    y = where(ufunc(np.greater, at, high), part(heights, 0, size - 1, 1, squeezed=True) if right is None else right, y)
    return where(isnan(at), at, y)


def unwrap(p: Operand, discont: Any = None, axis: int = -1, *, period: float = 2 * np.pi) -> Atom:
    """Steps that are folded into half a period on either side; in integers where all is made of integers."""
    x = lift(p)
    axis = axis_of(axis, x.type.ndim)
    step = diff(x, axis=axis)
    dtype = result_type(step, period)
    whole = dtype.kind in "iu"
    half = ufunc(np.floor_divide, period, 2) if whole else ufunc(np.true_divide, period, 2)
    folded = ufunc(np.subtract, ufunc(np.remainder, ufunc(np.add, step, half), period), half)
    at_limit = ufunc(np.equal, folded, ufunc(np.negative, half))
    if whole:  # of an odd period no step is half of it
        at_limit = ufunc(np.bitwise_and, at_limit, ufunc(np.equal, ufunc(np.remainder, period, 2), 0))
    folded = where(ufunc(np.bitwise_and, at_limit, ufunc(np.greater, step, 0)), ufunc(np.add, folded, period), folded)
    limit = ufunc(np.true_divide, period, 2) if discont is None else discont
    jump = ufunc(np.subtract, folded, step)
    jump = where(ufunc(np.less, ufunc(np.absolute, step), limit), like(jump, 0), jump)
    size = x.type.dims[axis]
    first = to_dtype(part(x, axis, 0, dim_min(size, 1)), dtype)
    rest = jump.type.dims[axis]
    moved = ufunc(np.add, part(x, axis, size - rest, rest), cumsum(jump, axis))
    return concatenate([first, to_dtype(moved, dtype)], axis)


def convolve(a: Operand, v: Operand, mode: str = "full") -> Atom:
    """Sliding products: O(n m), as windows of the longer one times the shorter one reversed."""
    x, y = promote(lift(a), lift(v))  # numbers as arrays
    x, y = (broadcast(z, shape=(1,), axes=()) if not z.type.dims else z for z in (x, y))
    if len(x.type.dims) > 1 or len(y.type.dims) > 1:
        raise ShapeError("object too deep for desired array", code="shape")
    n, m = x.type.dims[0], y.type.dims[0]
    if isinstance(n, int) and isinstance(m, int) and m > n:
        x, y = y, x
    return _slid(x, flip(y), mode)


def correlate(a: Operand, v: Operand, mode: str = "valid") -> Atom:
    """NumPy slides the shorter one along the longer one; where they changed places, it turns the result."""
    x, y = lift(a), lift(v)
    if not x.type.dims or not y.type.dims:
        raise ShapeError("object of too small depth for desired array", code="shape")
    x, y = promote(x, conjugate(y) if y.type.dtype.kind == "c" else y)
    n, m = x.type.dims[0], y.type.dims[0]
    if isinstance(n, int) and isinstance(m, int) and m > n:
        return flip(_slid(y, x, mode))
    return _slid(x, y, mode, dim_min(dim_max(m - n, 0), 1))


def _slid(x: Atom, y: Atom, mode: str, turned: DimLike = 0) -> Atom:
    """Products of y with what it lies on of x, place after place. `turned`: 1 where the middle is counted
    from the other end. No zeros stand at the ends of x: 0 * inf is NaN."""
    n, m = x.type.dims[0], y.type.dims[0]
    for atom in (x, y):
        not_empty(atom, (0,), "an array to slide along another cannot be empty")
    shorter, longer = dim_min(n, m), dim_max(n, m)
    first: DimLike = 0
    count: DimLike = n + m - 1
    if mode == "same":
        first, count = floordiv(shorter - 1, 2) + (shorter - 1) % 2 * turned, longer
    elif mode == "valid":
        first, count = shorter - 1, longer - shorter + 1
    elif mode != "full":
        raise DTypeError(f"mode is full, same or valid, got {mode!r}", code="numpy-function")
    if not (isinstance(n, int) and isinstance(m, int) and n >= 4 * m):
        return part(_shifted_sum(x, y, True), 0, first, count)
    inside = _shifted_sum(x, y, False)
    if count == n - m + 1:
        return inside
    starts, ends = (_shifted_sum(part(x, 0, k, m - 1), y, True) for k in (0, n - m + 1))
    return concatenate([part(starts, 0, first, m - 1 - first), inside, part(ends, 0, m - 1, first + count - n)])


def _shifted_sum(x: Atom, y: Atom, overlaps: bool) -> Atom:
    """The sum of x times each number of y, moved by its place; where they overlap at all, or where all do."""
    n, m = x.type.dims[0], y.type.dims[0]
    total = x.type.with_dims((n + m - 1 if overlaps else n - m + 1,)).plain

    def add_shifted(i: Atom, x: Atom, out: Atom, factor: Atom) -> Atom:
        if overlaps:
            last = scalar_dim(m - 1, i64)
            return slice_add(out, mul(x, broadcast_to(factor, (n,))), sub(last, i), step=(1,))
        here = slice_(x, i, shape=total.dims, step=(1,))
        return add(out, mul(here, broadcast_to(factor, total.dims)))

    if isinstance(m, int) and m <= 8 and not overlaps:
        out = like(total, 0)
        for k in range(m):
            out = add_shifted(literal(k), x, out, part(y, 0, k, 1, squeezed=True))
        return out
    params = [("i", Array(i64)), ("x", x.type.plain), ("out", total), ("factor", Array(x.type.dtype))]
    body = trace("slid", add_shifted, params)
    (out,) = loop(x, like(total, 0), y, body=body, cond=None, length=m, roles=Roles(1, 0, 1, 1), parallel=True)
    return out


def bincount(x: Operand, weights: Any = None, minlength: Any = 0) -> Atom:
    """The length is max(x) + 1 and so a run-time size."""
    if isinstance(x, (Var, Literal)) and x.type.dtype.kind not in "iub":
        words = f"Cannot cast array data from {x.type.dtype!r} to dtype('int64') according to the rule 'safe'"
        raise DTypeError(words, code="dtype", remedy="convert it with .astype(int) first")
    i = to_dtype(x, i64)
    if i.type.dims == (0,):
        weights = None  # then NumPy counts in integers all the same
    check(all_(ge(i, like(i, 0))), exception="ValueError", message="'list' argument must have no negative elements")
    least = scalar_dim(dim_of(minlength), i64)
    check(ge(least, literal(0)), exception="ValueError", message="'minlength' must not be negative")
    size = i.type.dims[0]
    longest = least
    if size != 0:
        top = amax(i, initial=None if known_facts().less(0, size) else -1)
        check(lt(top, literal(2**63 - 1)), exception="ValueError", message="Maximum allowed size exceeded")
        longest = max_(add(top, literal(1, i64)), least)
    length = as_dim(longest, size=fresh_symbol("count")).type.value
    if weights is None:
        amount = broadcast_to(literal(1, i64), i.type.dims)
    else:
        if lift(weights).type.dtype.kind == "c":
            raise DTypeError("bincount takes no complex weights", code="dtype", remedy="take real parts")
        amount, message = to_dtype(weights, np.float64), "The weights and list don't have the same length."
        if amount.type.ndim != 1 or surely_differ(amount.type.dims[0], size):
            raise ShapeError(message, code="shape")
        amount = sized(amount, 0, size, message)
    return scatter_add(broadcast_to(literal(0, amount.type.dtype), (length,)), amount, i, axes=(0,))


def histogram(a: Operand, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None) -> tuple:
    x = ravel(a)
    if "c" in (x.type.dtype.kind, lift(bins).type.dtype.kind):
        message, remedy = "np.histogram of complex numbers has no translation", "count their real parts"
        raise UnsupportedError(message, remedy=remedy, code="dtype")
    equal = not lift(bins).type.dims
    if equal:
        count = dim_of(bins)
        if isinstance(count, int) and count <= 0:
            raise ShapeError("`bins` must be positive, when an integer", code="shape")
        check(
            gt(scalar_dim(count, i64), literal(0)),
            exception="ValueError",
            message="`bins` must be positive, when an integer",
        )
        low, high = range if range is not None else _span(x)
        kind = inexact_dtype(result_type(x, *(() if range is None else range)))
        ends, word = [as_inexact(v) for v in (low, high)], "autodetected" if range is None else "supplied"
        check(
            and_(*(ufunc(np.isfinite, v) for v in ends)),
            *ends,
            exception="ValueError",
            message=f"{word} range of [{{}}, {{}}] is not finite",
        )
        flat = ufunc(np.equal, low, high)
        low, high = where(flat, ufunc(np.subtract, low, 0.5), low), where(flat, ufunc(np.add, high, 0.5), high)
        edges = to_dtype(linspace(low, high, count + 1), kind)
        wide = ufunc(np.less, part(edges, 0, 0, count), part(edges, 0, 1, count))
        message = "Too many bins for data range. Cannot create {} finite-sized bins."
        check(all_(wide), scalar_dim(count, i64), exception="ValueError", message=message)
    else:
        edges = lift(bins)
        if known_facts().less(0, edges.type.dims[0]):
            ordered = ufunc(
                np.less_equal, part(edges, 0, 0, edges.type.dims[0] - 1), part(edges, 0, 1, edges.type.dims[0] - 1)
            )
            check(all_(ordered), exception="ValueError", message="`bins` must increase monotonically, when an array")
    count = edges.type.dims[0] - 1
    values, marks = promote(as_inexact(x), edges)
    place, outside = (_of_equal_bins if equal else _of_bins)(values, marks)
    amount = literal_like(values, 1)
    if weights is not None:
        given, shape = lift(weights), lift(a).type.dims
        if given.type.ndim != len(shape) or any(map(surely_differ, given.type.dims, shape)):
            raise ShapeError("weights should have the same shape as a.", code="shape")
        amount = ravel(broadcast_to(given, shape))
    amount = select(outside, like(amount, 0), amount)
    place = select(outside, like(place, 0), place)
    found = scatter_add(broadcast_to(literal(0, amount.type.dtype), (count,)), amount, place, axes=(0,))
    if density:
        share = ufunc(np.true_divide, found, sum_(found))
        return div(share, to_dtype(diff(edges), share.type.dtype)), edges
    return found, edges


def _of_bins(x: Atom, edges: Atom) -> tuple[Atom, Atom]:
    """The bin of each number, and whether it lies in none."""
    count = edges.type.dims[0] - 1
    place = sub(sorting.searchsorted(edges, x, right=True), literal_like(x, 1))
    top = part(edges, 0, count, 1, squeezed=True)
    last = broadcast_to(scalar_dim(count - 1, i64), place.type.dims)
    place = select(eq(x, broadcast_to(top, x.type.dims)), last, place)
    return place, or_(lt(place, like(place, 0)), gt(place, last))


def _of_equal_bins(x: Atom, edges: Atom) -> tuple[Atom, Atom]:
    """The same by arithmetic, which is off by one at most; the edges tell."""
    dims, count = x.type.dims, edges.type.dims[0] - 1
    low, top = (broadcast_to(part(edges, 0, k, 1, squeezed=True), dims) for k in (0, count))
    outside = not_(and_(ge(x, low), le(x, top)))
    last = broadcast_to(scalar_dim(count - 1, i64), dims)
    own, first, end = (to_dtype(v, np.float64) for v in (x, low, top))
    share = div(sub(own, first), sub(end, first))
    bins = broadcast_to(to_dtype(scalar_dim(count, i64), np.float64), dims)
    share = mul(select(outside, like(share, 0), share), bins)
    place = min_(to_dtype(share, i64), last)
    place = sub(place, to_dtype(lt(x, gather(edges, place, axes=(0,))), i64))
    above = ge(x, gather(edges, add(place, literal_like(x, 1)), axes=(0,)))
    return add(place, to_dtype(and_(above, ne(place, last)), i64)), outside


def _span(x: Atom) -> tuple[Atom, Atom]:
    """The least and the largest element; 0 and 1 where there is none."""
    size = x.type.dims[0]
    if size == 0:
        return literal(0.0), literal(1.0)
    if isinstance(size, int) or known_facts().less(0, size):
        return amin(x), amax(x)
    x, none = as_inexact(x), eq(scalar_dim(size, i64), literal(0))
    low, high = amin(x, initial=np.inf), amax(x, initial=-np.inf)
    return select(none, like(low, 0), low), select(none, like(high, 1), high)


def literal_like(x: Atom, value: int) -> Atom:
    return broadcast_to(literal(value, i64), x.type.dims)
