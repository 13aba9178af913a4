"""NumPy's functions that make arrays: zeros, ranges, triangles, diagonals, grids.

In: sizes (ints, dims, staged integers), operands, dtypes. Out: core atoms.

    t = linspace(0.0, x, 50)
    identity = eye(n)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.build import at_least, literal
from ..core.dims import Dim, DimLike, dim_max, dim_min, floordiv, fresh_symbol
from ..core.ir import Atom, Literal, Var
from ..core.types import dtype_name, i64, is_integer
from ..source import DTypeError, ShapeError, UnsupportedError
from .arithmetic import add, div, max_, mul, sign, sub
from .arrays import as_dim, iota
from .compare import and_, eq, le, lt, ne, select
from .effects import check
from .elementary import ceil
from .families import like
from .indexing import gather, scatter
from .library_reductions import all_
from .library_shapes import concatenate, expand_dims, moveaxis, part, ravel, stack
from .limits import INDICES_OF_THE_RUN, UnknownSize
from .promotion import (
    NeedsValue,
    Operand,
    Weak,
    axis_of,
    broadcast_arrays,
    broadcast_to,
    count_of,
    dim_of,
    inexact_dtype,
    is_weak,
    known_size,
    lift,
    mask_of,
    promote,
    result_type,
    scalar_dim,
    shape_of,
    to_dtype,
    ufunc,
    weak_type,
)
from .shape import broadcast, convert
from .spaced import spaced


def array(
    value: Operand, dtype: Any = None, *, copy: Any = True, order: Any = "K", subok: bool = False, ndmin: int = 0
) -> Atom:
    x = lift(value)
    if dtype is not None:
        x = to_dtype(value if is_weak(value) else x, dtype)
    return x if x.type.ndim >= ndmin else expand_dims(x, tuple(range(ndmin - x.type.ndim)))


def asarray(value: Operand, dtype: Any = None, order: Any = None, **kwargs: Any) -> Atom:
    return array(value, dtype)


def copy(value: Operand, order: Any = "K", subok: bool = False) -> Atom:
    return lift(value)


def astype(
    x: Operand, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Atom:
    return to_dtype(lift(x), dtype)


def full(shape: Any, value: Operand, dtype: Any = None, order: str = "C") -> Atom:
    scalar = lift(value) if dtype is None else to_dtype(value, dtype)
    return broadcast_to(scalar, shape_of(shape))


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> Atom:
    return full(shape, 0, dtype or float)


def ndarray(
    shape: Any, dtype: Any = float, buffer: Any = None, offset: int = 0, strides: Any = None, order: Any = None
) -> Atom:
    """What is in it nobody knows, as of `np.empty`."""
    if buffer is not None or strides is not None:
        message = "np.ndarray over a buffer, or with strides, has no translation"
        raise UnsupportedError(message, remedy="make a view of an array by indexing", code="numpy-function")
    return zeros(shape, dtype, order)


def ones(shape: Any, dtype: Any = float, order: str = "C") -> Atom:
    return full(shape, 1, dtype or float)


def full_like(
    x: Operand, value: Operand, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Atom:
    type_ = lift(x).type
    return full(type_.dims if shape is None else shape, value, dtype or type_.dtype)


def zeros_like(x: Operand, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Atom:
    return full_like(x, 0, dtype, shape=shape)


def ones_like(x: Operand, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Atom:
    return full_like(x, 1, dtype, shape=shape)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Atom:
    """The length is a size: known, symbolic, or bound at run time when a bound is staged."""
    if stop is None:
        start, stop = 0, start
    start, stop, step = (v.value if isinstance(v, Literal) else v for v in (start, stop, step))
    given = (start, stop) if type(step) is int and step == 1 else (start, stop, step)
    strong = (0 if isinstance(v, Dim) else lift(v) for v in given)
    dtype = np.dtype(dtype) if dtype is not None else result_type(np.int64(0), *strong)  # of no narrower numbers
    length = _range_length(start, stop, step)
    count = iota(length=length, dtype=dtype if dtype.kind in "iu" else i64)
    count = to_dtype(count, dtype)
    first = None if _is_number(start) and start == 0 else to_dtype(start, dtype)
    if _is_number(step) and step == 1:
        return count if first is None else add(broadcast_to(first, (length,)), count)
    step = to_dtype(step, dtype)
    if first is None:
        return mul(count, broadcast_to(step, (length,)))
    if dtype.kind == "f":
        step = sub(add(first, step), first)  # NumPy steps by how far the second number is from the first
    return _on_line(count, broadcast_to(step, (length,)), broadcast_to(first, (length,)))


def _on_line(place: Atom, step: Atom, start: Atom) -> Atom:
    """place*step + start; of floats with two roundings."""
    if place.type.dtype in (np.float32, np.float64):
        return spaced(place, step, start)
    return add(mul(place, step), start)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


def _range_length(start: Any, stop: Any, step: Any) -> DimLike:
    """ceil((stop - start) / step), at least 0."""
    if all(map(_is_number, (start, stop, step))):
        if step == 0:
            raise ShapeError("arange needs a step that is not 0", code="arange")
        return max(0, math.ceil((stop - start) / step))
    if isinstance(step, (int, np.integer)) and step != 0 and is_integer(result_type(start, stop)):
        first, last, stride = known_size(start), known_size(stop), abs(int(step))
        if first is not None and last is not None:
            way: Any = last - first if step > 0 else first - last
            length = floordiv(way + (stride - 1), stride)
            # a size is never negative, so 0..n needs no max
            return length if first == 0 and step > 0 and _plain_size(last) else dim_max(length, 0)
        start, stop = (to_dtype(v, i64) for v in (start, stop))
        way = sub(stop, start) if step > 0 else sub(start, stop)
        if stride != 1:
            way = ufunc(np.floor_divide, add(way, literal(stride - 1, i64)), literal(stride, i64))
        return as_dim(max_(way, literal(0, i64)), size=fresh_symbol("count")).type.value
    dtype = result_type(start, stop, step)
    start, stop, step = (to_dtype(v, dtype) for v in (start, stop, step))
    check(
        ne(step, like(step, 0)),
        exception="ZeroDivisionError",
        message="float division by zero" if dtype.kind == "f" else "division by zero",
    )
    length = ceil(to_dtype(ufunc(np.true_divide, sub(stop, start), step), np.float64))
    check(lt(length, like(length, 2.0**60)), exception="ValueError", message="Maximum allowed size exceeded")
    length = convert(ufunc(np.maximum, length, 0), dtype=i64)
    size = as_dim(length, size=fresh_symbol("count"))
    return size.type.value


def _plain_size(dim: DimLike) -> bool:
    return isinstance(dim, Dim) and dim.is_sym


def linspace(
    start: Operand,
    stop: Operand,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    count = dim_of(num)
    working = inexact_dtype(result_type(start, stop, 0.0))
    low, high = broadcast_arrays(to_dtype(start, working), to_dtype(stop, working))
    dims = low.type.dims
    parts = count - 1 if endpoint else count
    gap = sub(high, low)
    # one element has no step: the line's is divided by 1, so that it begins at the start
    some = at_least(parts, 1) if parts != 0 else 1
    step = div(gap, broadcast_to(scalar_dim(some, working), dims))
    place = broadcast(to_dtype(iota(length=count, dtype=i64), working), shape=(count, *dims), axes=(0,))
    first = broadcast_to(low, (count, *dims))
    line = _on_line(place, broadcast_to(step, (count, *dims)), first) if parts != 0 else first
    if endpoint and isinstance(count, int) and count > 1:  # NumPy sets the last element, free of rounding
        line = concatenate([part(line, 0, 0, count - 1), expand_dims(high, 0)])
    elif endpoint and not isinstance(count, int):
        last = eq(place, broadcast_to(scalar_dim(some, working), place.type.dims))
        line = select(last, broadcast_to(high, place.type.dims), line)
    if dtype is not None and np.dtype(dtype).kind in "iu":
        line = ufunc(np.floor, line)
    line = line if dtype is None else to_dtype(line, dtype)
    line = moveaxis(line, 0, axis) if dims else line
    if retstep and some != parts:
        step = select(broadcast_to(eq(scalar_dim(parts, i64), literal(0)), dims), like(step, np.nan), step)
    return (line, step) if retstep else line


def logspace(
    start: Operand,
    stop: Operand,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Atom:
    powers = ufunc(np.power, base, linspace(start, stop, num, endpoint, axis=axis))
    return powers if dtype is None else to_dtype(powers, dtype)


def geomspace(
    start: Operand, stop: Operand, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Atom:
    """As NumPy has it: the powers of a quotient of positive numbers, times the sign; the ends are exact."""
    count = dim_of(num)
    working = result_type(lift(start), lift(stop), 0.0, np.zeros((), dtype))
    first, last = broadcast_arrays(to_dtype(start, working), to_dtype(stop, working))
    check(
        all_(and_(ne(first, like(first, 0)), ne(last, like(last, 0)))),
        exception="ValueError",
        message="Geometric sequence cannot include zero",
    )
    turn = sign(first)
    low, high = div(first, turn), div(last, turn)
    line = ufunc(np.power, 10.0, linspace(ufunc(np.log10, low), ufunc(np.log10, high), count, endpoint))
    if count != 0:
        place = broadcast(iota(length=count, dtype=i64), shape=line.type.dims, axes=(0,))
        line = select(eq(place, like(place, 0)), broadcast_to(low, line.type.dims), line)
        if endpoint and count != 1:
            end = broadcast_to(scalar_dim(count - 1, i64), place.type.dims)
            at_end = and_(eq(place, end), ne(place, like(place, 0)))
            line = select(at_end, broadcast_to(high, line.type.dims), line)
    line = mul(line, broadcast_to(turn, line.type.dims))
    line = moveaxis(line, 0, axis) if turn.type.dims else line
    return line if dtype is None else to_dtype(line, dtype)


# --- triangles and diagonals -------------------------------------------------------------------------------


def _offsets(rows: DimLike, columns: DimLike) -> tuple[Atom, Atom]:
    """Row and column number at each element of a matrix."""
    shape = (rows, columns)
    return (
        broadcast(iota(length=rows, dtype=i64), shape=shape, axes=(0,)),
        broadcast(iota(length=columns, dtype=i64), shape=shape, axes=(1,)),
    )


def _whole(k: Any) -> Any:
    """The number of a diagonal: an integer, or a float that is one."""
    if isinstance(k, float) and k.is_integer():
        return int(k)
    if not is_integer(result_type(k)):
        what = f"the number of a diagonal, k, must be an integer, not {_shown(k)}"
        raise DTypeError(what, code="dtype", remedy="write int(...) around it")
    return k


def _shown(k: Any) -> str:
    return f"a staged {dtype_name(result_type(k))}" if isinstance(k, (Weak, Var)) else repr(k)


def _below(rows: DimLike, columns: DimLike, k: Any) -> Atom:
    row, column = _offsets(rows, columns)
    return le(column, add(row, broadcast_to(to_dtype(_whole(k), i64), row.type.dims)))


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: str = "C") -> Atom:
    rows = dim_of(N)
    row, column = _offsets(rows, rows if M is None else dim_of(M))
    return to_dtype(eq(column, add(row, broadcast_to(to_dtype(_whole(k), i64), row.type.dims))), dtype)


def identity(n: Any, dtype: Any = None) -> Atom:
    return eye(n, dtype=dtype or float)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Atom:
    rows = count_of(N)
    return to_dtype(_below(rows, rows if M is None else count_of(M), k), dtype)


def _triangle(x: Operand, k: Any, lower: bool) -> Atom:
    x = lift(x)
    x = broadcast_to(x, x.type.dims * 2) if x.type.ndim == 1 else x
    if x.type.ndim < 2:
        raise ShapeError("a triangle needs a vector or a matrix, got a number", code="rank")
    rows, columns = x.type.dims[-2:]
    k = _whole(k)
    keep = broadcast_to(_below(rows, columns, k if lower else ufunc(np.subtract, k, 1)), x.type.dims)
    nothing = like(x, 0)
    return select(keep, x, nothing) if lower else select(keep, nothing, x)


def tril(x: Operand, k: Any = 0) -> Atom:
    return _triangle(x, k, True)


def triu(x: Operand, k: Any = 0) -> Atom:
    return _triangle(x, k, False)


def diagonal(x: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Atom:
    x = lift(x)
    a, b = axis_of(axis1, x.type.ndim), axis_of(axis2, x.type.ndim)
    rows, columns = x.type.dims[a], x.type.dims[b]
    above, below = max(offset, 0), max(-offset, 0)
    length = dim_min(rows - below, columns - above)
    length = length if offset == 0 else dim_max(length, 0)
    place = iota(length=length, dtype=i64)
    index = [add(place, like(place, below)) if below else place, add(place, like(place, above)) if above else place]
    out = gather(x, *index, axes=(a, b))
    return moveaxis(out, 0, -1)


def diag(v: Operand, k: int = 0) -> Atom:
    v = lift(v)
    if v.type.ndim == 2:
        return diagonal(v, k)
    if v.type.ndim != 1:
        raise ShapeError("diag needs one or two dimensions", code="rank")
    size = v.type.dims[0]
    place = iota(length=size, dtype=i64)
    row = add(place, like(place, -k)) if k < 0 else place
    column = add(place, like(place, k)) if k > 0 else place
    whole = size + abs(k)
    empty = broadcast_to(literal(0, v.type.dtype), (whole, whole))
    return scatter(empty, v, row, column, axes=(0, 1), unique=True)


def diagflat(v: Operand, k: int = 0) -> Atom:
    return diag(ravel(v), k)


def fill_diagonal(x: Operand, value: Operand) -> Atom:
    """x with its diagonal replaced (NumPy's function works in place; the front end stores the result)."""
    x = lift(x)
    place = iota(length=dim_min(*x.type.dims[:2]), dtype=i64)
    new = broadcast_to(to_dtype(value, x.type.dtype), place.type.dims)
    return scatter(x, new, *(place,) * x.type.ndim, axes=tuple(range(x.type.ndim)), unique=True)


def copyto(dst: Operand, src: Operand, casting: str = "same_kind", where: Any = True) -> Atom:
    """What `dst` holds afterwards."""
    x = lift(dst)
    have = np.dtype(weak_type(src)) if is_weak(src) else lift(src).type.dtype
    whole = is_weak(src) and have.kind == "i" and x.type.dtype.kind in "iu"
    if not whole and not np.can_cast(have, x.type.dtype, casting):  # type: ignore[arg-type]
        words = f"Cannot cast array data from {have!r} to {x.type.dtype!r} according to the rule {casting!r}"
        raise DTypeError(words, code="dtype", remedy="convert it with .astype first")
    new = broadcast_to(to_dtype(src, x.type.dtype), x.type.dims)
    return new if where is True else select(mask_of(where, x.type.dims), new, x)


# --- grids -------------------------------------------------------------------------------------------------


def meshgrid(*xs: Operand, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> tuple[Atom, ...]:
    atoms = [ravel(x) for x in xs]
    rank = len(atoms)
    order = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    shape: list[DimLike] = [1] * rank
    for a, axis in zip(atoms, order):
        shape[axis] = a.type.dims[0]
    spread = [
        broadcast(
            a,
            shape=tuple(a.type.dims[0] if k == axis else (1 if sparse else d) for k, d in enumerate(shape)),
            axes=(axis,),
        )
        for a, axis in zip(atoms, order)
    ]
    return tuple(spread)


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    sizes = map(dim_of, dimensions)
    grids = meshgrid(*(arange(size, dtype=dtype) for size in sizes), indexing="ij", sparse=sparse)
    return tuple(grids) if sparse else stack(list(grids))


def vander(x: Operand, N: Any = None, increasing: bool = False) -> Atom:
    x = lift(x)
    if x.type.ndim != 1:
        raise ShapeError("x must be a one-dimensional array or sequence.", code="rank")
    columns = dim_of(N) if N is not None else x.type.dims[0]
    powers = iota(length=columns, dtype=i64)
    if not increasing:
        powers = sub(broadcast_to(scalar_dim(columns - 1, i64), (columns,)), powers)
    base, powers = promote(x, powers)
    return ufunc(np.power, expand_dims(base, 1), expand_dims(powers, 0))


def _side(value: Any, name: str) -> int:
    """The side of a matrix of which the triangle's indices are wanted."""
    number = value.atom if isinstance(value, Weak) else value
    size = known_size(value)
    if isinstance(size, int):
        return size
    if size is None and isinstance(number, Var) and is_integer(number.type.dtype):
        raise NeedsValue(number, "the side of a triangle", INDICES_OF_THE_RUN)
    raise UnknownSize(name, dim_of(value) if size is None else size)


def tri_indices(n: Any, lower: bool, k: int = 0, m: Any = None) -> tuple:
    function = np.tril_indices if lower else np.triu_indices
    rows, columns = (_side(value, function.__name__) for value in (n, n if m is None else m))
    found = function(rows, k, columns)
    return tuple(lift(i) for i in found)


def tril_indices(n: Any, k: int = 0, m: Any = None) -> tuple:
    return tri_indices(n, True, k, m)


def triu_indices(n: Any, k: int = 0, m: Any = None) -> tuple:
    return tri_indices(n, False, k, m)


def hann_like(name: str, weights: tuple) -> Any:
    """Windows that are sums of cosines."""

    def call(M: Any) -> Atom:
        size = count_of(M)
        if size == 1:
            return ones(1)
        place = to_dtype(iota(length=size, dtype=i64), np.float64)
        parts = scalar_dim(at_least(size - 1, 1), np.float64)
        angle = div(mul(place, like(place, 2 * math.pi)), broadcast_to(parts, (size,)))
        total = like(place, weights[0])
        for k, weight in enumerate(weights[1:], 1):
            total = add(total, mul(like(place, weight), ufunc(np.cos, mul(angle, like(angle, k)))))
        if isinstance(size, int):
            return total
        lone = eq(scalar_dim(size, i64), literal(1))
        return select(broadcast_to(lone, (size,)), like(total, 1.0), total)

    call.__name__ = name
    return call


hanning, hamming = hann_like("hanning", (0.5, -0.5)), hann_like("hamming", (0.54, -0.46))
blackman = hann_like("blackman", (0.42, -0.5, 0.08))
