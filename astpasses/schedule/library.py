"""Lowering of library primitives: products through BLAS or as nests, sorting.

In: a Let whose native field is `Lib`. Out: Calls, with the loops around them, or the nest of the same
meaning.

    c = dot_general(a, b, contract=((1,), (0,)))   ->   gemm(a, b, c)                   for matrices
                                                  ->   Nest(i, k, j: c[i, j] += a[i, k]*b[k, j])   for small
                                                  ones
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metaphrase.core.dims import Dim, DimLike, product, substitute, symbols
from metaphrase.core.ir import Let
from metaphrase.core.native import Lib

from .lower import Block, rule
from .lower_arrays import _accumulator, _finish, identity
from .nest import Axis, Call, For, Load, Stmt, Store, Sym, View
from .values import Indices, Place, Value, stored

SMALL_PRODUCT = 24**3  # multiplications up to which a nest beats the call of gemm
BLAS_DTYPES = ("f4", "f8", "c8", "c16")


@rule(Lib)
def library(block: Block, let: Let) -> None:
    name = let.primitive.native.name
    if name not in LIBRARY:
        raise AssertionError(f"{let.primitive.name}: no library routine called {name!r}")
    LIBRARY[name](block, let)


# --- views of stored arrays -----------------------------------------------------------------------


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
    for entry, extent in zip(e.index, e.buf.dims):
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


def materialized(block: Block, value: Value, name: str = "packed") -> Value:
    """A copy of its own."""
    place = block.temp(name, value.dtype, value.dims)
    block.fill(place, value.at)
    return stored(place)


def collapse(extents: Sequence[DimLike], strides: Sequence[DimLike]) -> tuple[DimLike, DimLike] | None:
    """One extent and stride for several dims that lie in memory as one."""
    pairs = [(e, s) for e, s in zip(extents, strides) if e != 1]
    if not pairs:
        return 1, 0
    for (_, outer), (extent, inner) in zip(pairs, pairs[1:]):
        if outer != inner * extent:
            return None
    return product(e for e, _ in pairs), pairs[-1][1]


# --- products -------------------------------------------------------------------------------------


def _dot_general(block: Block, let: Let) -> None:
    a, b = block.args(let)
    attributes = block.attributes(let)
    (a_sum, b_sum), (a_common, b_common) = attributes["contract"], attributes["batch"]
    a_free = [k for k in range(len(a.dims)) if k not in a_sum and k not in a_common]
    b_free = [k for k in range(len(b.dims)) if k not in b_sum and k not in b_common]
    m, n, k = (product(x.dims[d] for d in axes) for x, axes in ((a, a_free), (b, b_free), (a, a_sum)))
    total = m * n * k
    small = isinstance(total, int) and total <= SMALL_PRODUCT
    if small or 1 in (m, n, k) or a.dtype.str[1:] not in BLAS_DTYPES:
        _product_nest(block, let, a, b, (a_sum, a_common, a_free), (b_sum, b_common, b_free))
    else:
        _product_call(block, let, a, b, (a_sum, a_common, a_free), (b_sum, b_common, b_free))


def _product_nest(block: Block, let: Let, a: Value, b: Value, a_axes: tuple, b_axes: tuple) -> None:
    out = let.out
    (a_sum, a_common, a_free), (b_sum, b_common, b_free) = a_axes, b_axes
    common, common_index = block.axes([a.dims[d] for d in a_common])
    rows, row_index = block.axes([a.dims[d] for d in a_free])
    columns, column_index = block.axes([b.dims[d] for d in b_free])
    summed, sum_index = block.axes([a.dims[d] for d in a_sum], "red")
    a_index: list[DimLike] = [0] * len(a.dims)
    b_index: list[DimLike] = [0] * len(b.dims)
    for index, places, targets in (
        (a_index, (a_sum, a_common, a_free), (sum_index, common_index, row_index)),
        (b_index, (b_sum, b_common, b_free), (sum_index, common_index, column_index)),
    ):
        for axes, at in zip(places, targets):
            for d, i in zip(axes, at):
                index[d] = i
    dtype = out.type.dtype
    factors = (a.at(tuple(a_index)), b.at(tuple(b_index)))
    value = block.apply("and" if dtype.kind == "b" else "mul", *factors, dtype=dtype)
    place = _accumulator(block, out)
    spot = (*place.prefix, *common_index, *row_index, *column_index)
    order = (
        [*common, *rows, *summed, *columns]
        if _runs_along(factors[1], columns)
        else [*common, *rows, *columns, *summed]
    )
    if not summed:
        block.nest(order, [Store(place.buf, spot, value)])
    else:
        monoid = "any" if dtype.kind == "b" else "sum"
        block.nest(
            order, [Store(place.buf, spot, value, monoid)], [Store(place.buf, spot, identity(monoid, dtype))]
        )
    _finish(block, out, place)


def _runs_along(factor: object, columns: list[Axis]) -> bool:
    """Whether the last column axis is the one along which the right factor lies in memory."""
    if not columns or not isinstance(factor, Load) or not factor.index:
        return False
    last = factor.index[-1]
    return isinstance(last, Dim) and columns[-1].name in symbols(last)


def _product_call(block: Block, let: Let, a: Value, b: Value, a_axes: tuple, b_axes: tuple) -> None:
    (a_sum, a_common, a_free), (b_sum, b_common, b_free) = a_axes, b_axes
    left = _matrix(block, a, a_common, a_free, a_sum)
    right = _matrix(block, b, b_common, b_sum, b_free)
    place = block.place_for(let.out)
    loops, index = block.axes([a.dims[d] for d in a_common])
    m, n = left.extents[-2], right.extents[-1]
    reads = tuple(
        View(v.buf, _shifted(v, index, block), v.extents[-2:], v.strides[-2:]) for v in (left, right)
    )
    start: Indices = (*place.prefix, *index, *(0 for _ in range(len(place.dims) - len(index))))
    write = View(place.buf, start, (m, n), (n, 1))
    site = library_sites(block, let, "the product of matrices of {0} x {1} and {1} x {2}")
    stmt: Stmt = Call("gemm", reads, (write,), (), (("dtype", a.dtype),), let.span, site)
    for axis in reversed(loops):
        stmt = For(axis.name, axis.extent, (stmt,), "par", let.span)
    block.emit(stmt)
    block.values[let.out] = stored(place)


def library_sites(block: Block, let: Let, subject: str) -> int:
    """The first of the two sites at which a call of BLAS or LAPACK fails; `subject`: what it computes."""
    too_large = (
        f"{subject}: the BLAS and LAPACK libraries count in 32 bits, and this size or the work space that it "
        "takes is above 2147483647; compute it in smaller pieces"
    )
    site = block.shared.site("check", "OverflowError", too_large, let.span)
    refused = f"LAPACK refused argument {{0}} of {let.primitive.name}: a fault of metaphrase; report it"
    block.shared.site("check", "RuntimeError", refused, let.span)
    return site


def _shifted(view: View, index: Indices, block: Block) -> tuple:
    """The start of matrix `index` of a stack: an offset in the first dim would not do, so the last entry
    takes it."""
    offset: DimLike = 0
    for i, stride in zip(index, view.strides):
        offset = offset + i * stride
    return (*view.index[:-1], view.index[-1] + offset)  # type: ignore[operator]


def _matrix(
    block: Block, x: Value, common: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> View:
    """x as a stack of matrices (common..., rows, columns) that BLAS can read: as it lies, or copied."""
    view = strided(block, x)
    if view is not None:
        made = _as_matrix(block, view, common, rows, columns)
        if made is not None:
            return made
    order = (*common, *rows, *columns)
    inverse = {d: k for k, d in enumerate(order)}
    packed = materialized(
        block,
        Value(
            x.dtype,
            tuple(x.dims[d] for d in order),
            lambda index: x.at(tuple(index[inverse[d]] for d in range(len(order)))),
        ),
    )
    view = strided(block, packed)
    assert view is not None
    c, r = len(common), len(rows)
    made = _as_matrix(block, view, range(c), range(c, c + r), range(c + r, len(order)))
    assert made is not None
    return made


def _as_matrix(
    block: Block, view: View, common: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> View | None:
    facts = block.shared.facts
    parts = [
        collapse([view.extents[d] for d in axes], [view.strides[d] for d in axes]) for axes in (rows, columns)
    ]
    if parts[0] is None or parts[1] is None:
        return None
    (m, row_stride), (n, column_stride) = parts  # type: ignore[misc]
    if m == 1:
        row_stride = n if column_stride in (0, 1) else 1
    if n == 1:
        column_stride = 1 if row_stride != 1 else m
    if column_stride == 1:
        fits = facts.less_equal(n, row_stride)
    elif row_stride == 1:
        fits = facts.less_equal(m, column_stride)
    else:
        return None
    if not fits:
        return None
    lead = [d for d in common]
    return View(
        view.buf,
        view.index,
        (*(view.extents[d] for d in lead), m, n),
        (*(view.strides[d] for d in lead), row_stride, column_stride),
    )


# --- order ----------------------------------------------------------------------------------------


def _sort(block: Block, let: Let) -> None:
    (x,), axis = block.args(let), block.attributes(let)["axis"]
    place = block.place_for(let.out)
    block.copy(place, x)
    _along(block, let, axis, place, "sort", lambda index: ())
    block.values[let.out] = stored(place)


def _argsort(block: Block, let: Let) -> None:
    (x,), axis = block.args(let), block.attributes(let)["axis"]
    place = block.place_for(let.out)
    _along(block, let, axis, place, "argsort", _lines(block, x, axis))
    block.values[let.out] = stored(place)


def _fft(block: Block, let: Let) -> None:
    (x,), attributes = block.args(let), block.attributes(let)
    place = block.place_for(let.out)
    routine = "fft__inverse" if attributes["inverse"] else "fft"
    _along(block, let, attributes["axis"], place, routine, _lines(block, x, attributes["axis"]))
    block.values[let.out] = stored(place)


def _lines(block: Block, x: Value, axis: int) -> Callable[[Indices], tuple[View, ...]]:
    """The line of x along `axis` at each index of the others."""
    view = strided(block, x)
    if view is None:
        view = strided(block, materialized(block, x))
    assert view is not None
    found = view

    def at(index: Indices) -> tuple[View, ...]:
        offset: DimLike = 0
        for d, i in enumerate(index):
            offset = offset + i * found.strides[d]
        start = (*found.index[:-1], found.index[-1] + offset)  # type: ignore[operator]
        return (View(found.buf, start, (x.dims[axis],), (found.strides[axis],)),)

    return at


def _along(
    block: Block,
    let: Let,
    axis: int,
    place: Place,
    routine: str,
    reads: Callable[[Indices], tuple[View, ...]],
) -> None:
    """Loops over the other dims around a call on each line along `axis`."""
    dims = place.dims
    loops, rest = block.axes([d for k, d in enumerate(dims) if k != axis])
    index = (*rest[:axis], 0, *rest[axis:])
    stride = product(dims[axis + 1 :])
    space = block.temp("space", place.buf.dtype, (dims[axis],))
    line = View(place.buf, (*place.prefix, *index), (dims[axis],), (stride,))
    work = View(space.buf, (0,), (dims[axis],), (1,))
    stmt: Stmt = Call(routine, reads(index), (line, work))
    stmt.span = let.span
    for loop in reversed(loops):
        stmt = For(loop.name, loop.extent, (stmt,), "seq", let.span)
    block.emit(stmt)


LIBRARY: dict[str, Callable[[Block, Let], None]] = {
    "dot_general": _dot_general,
    "sort": _sort,
    "argsort": _argsort,
    "fft": _fft,
}

__all__ = ["LIBRARY", "strided", "materialized"]
