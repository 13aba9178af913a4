"""Lowering of what a library of the target computes: products of matrices, linear algebra, order, Fourier transforms.

In: a Let whose native field is `Lib`, or a `Composite` that a library of the target has. Out: a LibraryCall for each
matrix or line, or for as many as the library takes together, with the loops around it, whose views lie as the target's
offer says (target.py); operands that lie otherwise are copied first. Small products, and those that no library offers,
are a nest of the same meaning.

    c = dot_general(a, b, ...)    ->   LibraryCall("dot_general", (a, b), (c,))              for matrices
                                  ->   Nest(i, k, j: c[i, j] += a[i, k]*b[k, j])            for small ones
    x, singular = solve(a, b)     ->   LibraryCall("solve", (a, b), (x, singular))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metaphrase.core.dims import Dim, DimLike, product, symbols
from metaphrase.core.ir import Let, Var
from metaphrase.core.native import Composite, Lib

from .lower import Block, rule
from .lower_arrays import _accumulator, _finish, identity
from .nest import Axis, For, LibraryCall, Load, Stmt, Store, View
from .ownership import order_of_reader
from .target import EACH, LINES, ROWS, Offer
from .values import Indices, Place, Value, stored
from .views import collapse, in_rows, operand, part_of, row_strides, strided, view_part


@rule(Lib)
def library(block: Block, let: Let) -> None:
    _by_name(block, let, let.primitive.native.name)


@rule(Composite)
def offered(block: Block, let: Let) -> None:
    """What was not written out, for the target has a library with it."""
    _by_name(block, let, let.primitive.native.library)


def _by_name(block: Block, let: Let, name: str) -> None:
    target = block.shared.target
    offer = target.offer(name)
    if name == "dot_general":
        _dot_general(block, let, offer)
    elif offer is None:
        raise AssertionError(f"{let.primitive.name}: no library of the target {target.name} has {name!r}")
    else:
        {LINES: _on_lines, EACH: _on_each}.get(offer.layout, _on_matrices)(block, let, offer)


def _calls(
    block: Block,
    let: Let,
    offer: Offer,
    dims: Sequence[DimLike],
    views: Callable[[Indices], tuple[tuple[View, ...], tuple[View, ...]]],
    attributes: dict[str, Any],
) -> None:
    """Loops over `dims` around a call on the views (operands, results) at each index."""
    loops, index = block.axes(dims)
    sites = [block.shared.site("check", exception, message, let.span) for exception, message in offer.failures]
    reads, writes = views(index)
    stmt: Stmt = LibraryCall(
        offer.operation, reads, writes, tuple(sorted(attributes.items())), let.span, sites[0] if sites else -1
    )
    for loop in reversed(loops):
        stmt = For(loop.name, loop.extent, (stmt,), loop.kind, let.span)
    block.emit(stmt)


# --- products -------------------------------------------------------------------------------------


def _dot_general(block: Block, let: Let, offer: Offer | None) -> None:
    a, b = block.args(let)
    attributes = block.attributes(let)
    (a_sum, b_sum), (a_common, b_common) = attributes["contract"], attributes["batch"]
    a_free = [k for k in range(len(a.dims)) if k not in a_sum and k not in a_common]
    b_free = [k for k in range(len(b.dims)) if k not in b_sum and k not in b_common]
    m, n, k = (product(x.dims[d] for d in axes) for x, axes in ((a, a_free), (b, b_free), (a, a_sum)))
    total = m * n * k
    if (
        offer is None
        or isinstance(total, int)
        and total <= offer.pays_from
        or 1 in (m, n, k)
        or any(isinstance(size, int) and size <= offer.small for size in (m * n, m * k, n * k))
        and (_lie_between(block, a, a_common) or _lie_between(block, b, b_common))
        or offer.dtypes is not None
        and a.dtype.str[1:] not in offer.dtypes
    ):
        _product_nest(block, let, a, b, (a_sum, a_common, a_free), (b_sum, b_common, b_free))
    else:
        left, right = _matrix(block, a, a_common, a_free, a_sum), _matrix(block, b, b_common, b_sum, b_free)
        _product_call(block, let, offer, left, right, len(a_free))


def _lie_between(block: Block, x: Value, common: Sequence[int]) -> bool:
    """Whether the matrices of a stack lie between one another, so that a library takes each of them in pieces."""
    view = strided(block, x) if common else None
    if view is None or not all(isinstance(stride, int) for stride in view.strides):
        return False
    inside = max((s for d, s in enumerate(view.strides) if d not in common), default=0)  # type: ignore[type-var]
    return any(0 < view.strides[d] < inside for d in common)  # type: ignore[operator]


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
    place, order = _in_order_of_reader(block, out)
    spots = (*common_index, *row_index, *column_index)
    spot = (*place.prefix, *(spots[d] for d in order))
    outer, along = [*common, *rows, *columns], list[Axis]()
    if order != tuple(range(len(order))):
        outer = [axis for d in order for axis in outer if axis.name in symbols(spots[d])]
    elif _runs_along(factors[1], columns):
        outer, along = [*common, *rows], columns
    loops = [*outer, *summed, *along]
    value = block.apply("and" if dtype.kind == "b" else "mul", *factors, dtype=dtype)
    if not summed:
        block.nest(loops, [Store(place.buf, spot, value)])
    else:
        monoid = "any" if dtype.kind == "b" else "sum"
        block.nest(loops, [Store(place.buf, spot, value, monoid)], [Store(place.buf, spot, identity(monoid, dtype))])
    if place.dims and order != tuple(range(len(order))):
        dims = block.dims(out.type.dims)
        block.values[out] = Value(dtype, dims, lambda index: place.load(tuple(index[d] for d in order)))
    else:
        _finish(block, out, place)


def _in_order_of_reader(block: Block, out: Var) -> tuple[Place, tuple[int, ...]]:
    """Storage for a product that a nest makes, and the dims of it in the order in which they lie there."""
    order = order_of_reader(block.plan, out)
    if out in block.wanted or order == tuple(range(len(order))):
        return _accumulator(block, out), tuple(range(len(order)))
    dims = block.dims(out.type.dims)
    return block.temp(out.name, out.type.dtype, [dims[d] for d in order]), order


def _runs_along(factor: object, columns: list[Axis]) -> bool:
    """Whether the last column axis is the one along which the right factor lies in memory."""
    if not columns or not isinstance(factor, Load) or not factor.index:
        return False
    last = factor.index[-1]
    return isinstance(last, Dim) and columns[-1].name in symbols(last)


def _product_call(block: Block, let: Let, offer: Offer, left: View, right: View, rows: int) -> None:
    """Products of the matrices of two stacks; where the columns of the result are close, of their transposes."""
    common = range(len(left.extents) - 2)
    value, matrix = _room(block, let.out, offer, len(common), rows, left.extents[-2], right.extents[-1])
    turned = matrix.strides[-1] != 1

    def views(index: Indices) -> tuple[tuple[View, ...], tuple[View, ...]]:
        a, b, out = (view_part(view, common, index) for view in (left, right, matrix))
        return ((_turned(b), _turned(a)), (_turned(out),)) if turned else ((a, b), (out,))

    matrices = {"contract": ((1,), (0,)), "batch": ((), ())}
    _calls(block, let, offer, left.extents[:-2], views, matrices)
    block.values[let.out] = value


def _room(block: Block, out: Var, offer: Offer, common: int, rows: int, m: DimLike, n: DimLike) -> tuple[Value, View]:
    """Storage for a product, and that as a stack of matrices. If all that reads it is a transposition, its dims lie in
    the order of that, where the library can write there: loops go over what they read as it lies."""
    dims, order = block.dims(out.type.dims), order_of_reader(block.plan, out)
    if offer.spaced_results and order != tuple(range(len(dims))) and out not in block.wanted:
        place = block.temp(out.name, out.type.dtype, [dims[d] for d in order])
        value = Value(place.buf.dtype, dims, lambda index: place.load(tuple(index[d] for d in order)))
        view, at = strided(block, value), range(len(dims))
        matrix = view and _as_matrix(block, view, at[:common], at[common : common + rows], at[common + rows :])
        if matrix is not None:
            return value, matrix
    place = block.place_for(out)
    strides = row_strides(place.dims)[:common]
    start = (*place.prefix, *(0 for _ in place.dims))
    return stored(place), View(place.buf, start, (*place.dims[:common], m, n), (*strides, n, 1))


def _turned(matrix: View) -> View:
    return View(matrix.buf, matrix.index, matrix.extents[::-1], matrix.strides[::-1])


def _matrix(block: Block, x: Value, common: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> View:
    """x as a stack of matrices (common..., rows, columns) whose rows or columns are close: as it lies, or copied."""
    view = strided(block, x)
    if view is not None and (matrix := _as_matrix(block, view, common, rows, columns)) is not None:
        return matrix
    order = (*common, *rows, *columns)
    inverse = {d: k for k, d in enumerate(order)}
    turned = Value(
        x.dtype,
        tuple(x.dims[d] for d in order),
        lambda index: x.at(tuple(index[inverse[d]] for d in range(len(order)))),
    )
    view = operand(block, turned, lambda view: False)
    c, r = len(common), len(rows)
    matrix = _as_matrix(block, view, range(c), range(c, c + r), range(c + r, len(order)))
    assert matrix is not None
    return matrix


def _as_matrix(
    block: Block, view: View, common: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> View | None:
    facts = block.shared.facts
    parts = [collapse([view.extents[d] for d in axes], [view.strides[d] for d in axes]) for axes in (rows, columns)]
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


# --- lines and whole matrices ---------------------------------------------------------------------


def _on_lines(block: Block, let: Let, offer: Offer) -> None:
    """A call on each line along `axis`, or on as many as the library takes together."""
    (x, *more), attributes = block.args(let), block.attributes(let)
    axis = attributes["axis"]
    others = [d for d in range(len(x.dims)) if d != axis]
    others = others[: max(len(others) - offer.together, 0)]
    place = block.place_for(let.out)
    if offer.in_place:
        block.copy(place, x)
    source = None if offer.in_place else operand(block, x)
    whole = [operand(block, value) for value in more]

    def views(index: Indices) -> tuple[tuple[View, ...], tuple[View, ...]]:
        line = part_of(place, others, index)
        return (line if source is None else view_part(source, others, index), *whole), (line,)

    known = {name: value for name, value in attributes.items() if name != "length"}  # a line has its own
    _calls(
        block, let, offer, [x.dims[d] for d in others], views, {**known, "axis": axis - sum(d < axis for d in others)}
    )
    block.values[let.out] = stored(place)


def _on_each(block: Block, let: Let, offer: Offer) -> None:
    """A call on the first operand and each line of the second. A number, and its result, are a line of one."""
    line, each = block.args(let)
    known = operand(block, line)
    if not each.dims:
        e = each.scalar
        each = Value(each.dtype, (1,), lambda index: e)
    asked, lead = operand(block, each), range(len(each.dims) - 1)
    place = block.place_for(let.out) if let.out.type.dims else block.temp(let.out.name, let.out.type.dtype, (1,))

    def views(index: Indices) -> tuple[tuple[View, ...], tuple[View, ...]]:
        return (known, view_part(asked, lead, index)), (part_of(place, lead, index),)

    _calls(block, let, offer, each.dims[:-1], views, block.attributes(let))
    if let.out.type.dims:
        block.values[let.out] = stored(place)
    else:
        block.define(let.out, lambda index: Load(place.buf, (0,)))


def _on_matrices(block: Block, let: Let, offer: Offer) -> None:
    """A call on each matrix of a stack, or on as many as the library takes together. A result without dims goes into an
    array of one element."""
    assert offer.layout == ROWS
    values = block.args(let)
    lead = range(max(len(values[0].dims) - 2 - offer.together, 0))
    operands = [operand(block, value, in_rows) for value in values]

    def place_of(out: Var) -> Place:
        return block.place_for(out) if out.type.dims else block.temp(out.name, out.type.dtype, (1,))

    places = [place_of(out) for out in let.outs]

    def views(index: Indices) -> tuple[tuple[View, ...], tuple[View, ...]]:
        results = (
            part_of(place, lead if out.type.dims else (0,), index or (0,)) for out, place in zip(let.outs, places)
        )
        return tuple(view_part(view, lead, index) for view in operands), tuple(results)

    _calls(block, let, offer, values[0].dims[: len(lead)], views, block.attributes(let))
    for out, place in zip(let.outs, places):
        if out.type.dims:
            block.values[out] = stored(place)
        else:
            block.define(out, lambda index, place=place: Load(place.buf, (0,)))  # type: ignore[misc]
