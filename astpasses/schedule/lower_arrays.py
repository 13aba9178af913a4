"""Lowering of the array primitives: Point, Move, Iota, Reduce, Scan, Gather, Put, EffectCall.

In: a Let in a Block. Out: its nests, or a Value that reads through its operands.

    y = slice_add(x, v, k, 0; step=(1, 1))    ->   Nest(i, j: x[k + i, j] += v[i, j])     where x may be
    overwritten
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.dims import DimLike, dim_min, floordiv, substitute
from metaphrase.core.ir import Let
from metaphrase.core.native import EffectCall, Gather, Iota, Move, Point, Put, Reduce, Scan
from metaphrase.core.scalars import MONOIDS
from metaphrase.core.types import i64, is_float

from . import scalars
from .lower import Block, rule
from .nest import Axis, Bind, Check, Const, E, Effect, If, Index, Load, Op, Stmt, Store, Sym, always, constant, local
from .ownership import is_lazy, order_of_reader
from .pieces import move_pieces, piece_at, restrict
from .values import Indices, Place, Value, scalar, stored
from .views import strided


def _integer_pow(block: Block, operands: list[E], attributes: dict, dtype: np.dtype) -> E:
    """x**exponent for a known exponent: few factors as products, as NumPy's meaning has it."""
    (x,), exponent = operands, attributes["exponent"]

    def times(a: E, b: E) -> E:
        return block.apply("mul", a, b, dtype=dtype)

    if exponent in (0, 1):
        return x if exponent else _number(1, dtype)
    if not 2 <= exponent <= 8:
        power = _number(exponent, dtype) if dtype.kind in "iu" else constant(exponent, dtype)
        return Op("pow", (x, power), dtype)
    square = times(x, x)
    if exponent < 4:
        return square if exponent == 2 else times(square, x)
    fourth = times(square, square)
    if exponent == 8:
        return times(fourth, fourth)
    rest = {4: None, 5: x, 6: square, 7: square}[exponent]
    made = fourth if rest is None else times(fourth, rest)
    return times(made, x) if exponent == 7 else made


WITH_ATTRIBUTES = {
    "integer_pow": _integer_pow,
    "polygamma": lambda block, operands, attributes, dtype: Op(
        "polygamma", (constant(attributes["order"], dtype), *operands), dtype
    ),
}


@rule(Point)
def point(block: Block, let: Let) -> None:
    native, args, dtype = let.primitive.native, block.args(let), let.out.type.dtype
    attributes = block.attributes(let)
    size = attributes.pop("size", None)
    attributes.pop("counted", None)

    def at(index: Indices) -> E:
        operands = [a.at(index) for a in args]
        if callable(native.expression):
            return native.expression(*operands, **attributes)
        if native.expression in WITH_ATTRIBUTES:
            return WITH_ATTRIBUTES[native.expression](block, operands, attributes, dtype)
        return block.apply(native.expression, *operands, dtype=dtype)

    block.define(let.out, at, lazy=let.out in block.plan.inlined)
    if isinstance(size, str):
        bind_size(block, let, size)


def bind_size(block: Block, let: Let, size: str) -> None:
    """A Let that names a size: from here on the symbol is the value just defined, and not negative. A number
    of unknown sign keeps its own symbol: a carry takes other values, and not all runs come into a branch."""
    facts, value = block.shared.facts, block.values[let.out].scalar
    dim = scalars.as_dim(value)
    known = isinstance(dim, int) or dim is not None and scalars.is_size(facts, dim)
    unknown = not known and dim is not None and not isinstance(dim, int) and dim.is_sym
    if unknown and block is block.shared.entry and dim.name in block.shared.arguments:  # type: ignore[union-attr]
        _check_size(block, let, value, dim)  # type: ignore[arg-type]
        facts.learn(dim.name, 0, None)  # type: ignore[union-attr]
    elif not known:
        name = block.shared.symbol(size.split("__")[0], 0, None)
        block.emit(Bind(name, value))
        dim = Sym(name)
        _check_size(block, let, value, dim)
    block.sizes[size] = dim  # type: ignore[assignment]
    block.values[let.out] = scalar(Index(dim))  # type: ignore[arg-type]


def _check_size(block: Block, let: Let, value: E, dim: DimLike) -> None:
    """A size that a program computed may be negative: NumPy's ValueError, unless it is seen to be a count."""
    if let.attributes.get("counted", False):
        return
    if isinstance(value, Op) and value.name == "max" and any(scalars.as_dim(a) == 0 for a in value.args):
        return
    site = block.shared.site("check", "ValueError", "negative dimensions are not allowed", let.span)
    block.emit(Check(Op("ge", (Index(dim), Index(0)), np.dtype(bool)), site, ()))


@rule(Iota)
def counting(block: Block, let: Let) -> None:
    native, out, attributes = let.primitive.native, let.out, block.attributes(let)
    dims, dtype = block.dims(out.type.dims), out.type.dtype
    if native.expression == "undefined":
        zero = constant(0, dtype)
        block.values[out] = Value(dtype, dims, lambda index: Index(0) if dtype == i64 else zero, undefined=True)
        return
    if native.expression == "constant":
        block.values[out] = _constant(block, attributes["value"], out.name)
        return

    def at(index: Indices) -> E:
        made = native.expression(index, **attributes)
        return made if isinstance(made, E) else block.apply("convert", Index(made), dtype=dtype)

    block.define(out, at, lazy=True)


def _constant(block: Block, value: Any, name: str) -> Value:
    """`name`: the user's, or the primitive's with a number, of which no reader learns anything."""
    data = value.value
    flat = np.ascontiguousarray(data).reshape(-1)
    if not data.ndim or flat.size and all(flat[k].tobytes() == flat[0].tobytes() for k in range(flat.size)):
        only = flat[0]
        e: E = Index(int(only)) if data.dtype == i64 else Const(only)
        return Value(data.dtype, data.shape, lambda index: e)
    return stored(Place(block.shared.constant(value, "table" if name.startswith("constant") else name)))


@rule(Move)
def move(block: Block, let: Let) -> None:
    args, attributes, types = block.args(let), block.attributes(let), block.types(let)
    facts = block.shared.facts

    def whole(index: Indices) -> E:
        (piece,) = move_pieces(let, index, attributes, types)
        return args[piece.operand].at(tuple(facts.simplify(i) for i in piece.index))

    pieces = move_pieces(let, None, attributes, types)
    if len(pieces) == 1 and not pieces[0].guard:
        block.define(let.out, whole, lazy=True)
        return
    place = block.place_for(let.out)
    for number in reversed(range(len(pieces))):  # the first piece whose guard holds wins: it is written last
        axes, index = block.axes(place.dims)
        piece = piece_at(pieces[number], index)
        values, conditions, axes = restrict(block, piece.guard, axes)
        read = tuple(facts.simplify(substitute(i, values)) for i in piece.index)
        index = tuple(substitute(i, values) for i in index)
        stmt: Stmt = Store(place.buf, (*place.prefix, *index), args[piece.operand].at(read))
        for condition in conditions:
            stmt = If(condition(values), (stmt,))
        block.nest(axes, [stmt])
    block.values[let.out] = stored(place)


# --- reductions and scans -------------------------------------------------------------------------


def identity(monoid: str, dtype: np.dtype) -> E:
    """The value that changes nothing when it is combined."""
    return _value(MONOIDS[monoid].identity(dtype))


def _value(number: Any) -> E:
    return Index(int(number)) if number.dtype == i64 else constant(number, number.dtype)


def _number(value: int, dtype: np.dtype) -> E:
    return Index(value) if dtype == i64 else constant(value, dtype)


@rule(Reduce)
def reduce(block: Block, let: Let) -> None:
    (x,), monoid = block.args(let), let.primitive.native.monoid
    attributes = block.attributes(let)
    axes = attributes["axes"] if "axes" in attributes else (attributes["axis"],)
    if monoid in ("argmax", "argmin"):
        _extreme_position(block, let, x, axes[0], monoid)
        return
    out = let.out
    kept = [k for k in range(len(x.dims)) if k not in axes]
    if not axes or all(x.dims[k] == 1 for k in axes):

        def same(index: Indices) -> E:
            full: list[DimLike] = [0] * len(x.dims)
            for k, i in zip(kept, index):
                full[k] = i
            return block.apply("convert", x.at(tuple(full)), dtype=out.type.dtype)

        block.define(out, same)
        return
    place = _accumulator(block, out)
    loops, index = _reduction_axes(block, x.dims, axes)
    spot = (*place.prefix, *(index[k] for k in kept))
    value = block.apply("convert", x.at(index), dtype=out.type.dtype)
    block.nest(
        loops, [Store(place.buf, spot, value, monoid)], [Store(place.buf, spot, identity(monoid, out.type.dtype))]
    )
    _finish(block, out, place)


def _accumulator(block: Block, out: Any) -> Place:
    if out.type.dims:
        return block.place_for(out)
    return Place(local(block.shared.names.fresh(out.name), out.type.dtype))


def _finish(block: Block, out: Any, place: Place) -> None:
    value = stored(place)
    if not place.dims and out.type.dtype == i64:  # integers are symbols, so that sizes and indices may name them
        name = block.shared.symbol(out.name)
        block.emit(Bind(name, value.scalar))
        value = Value(i64, (), lambda index: Index(Sym(name)))
    block.values[out] = value


def _reduction_axes(block: Block, dims: Indices, reduced: tuple, kind: str = "red") -> tuple[list[Axis], Indices]:
    loops, index = block.axes(dims)
    chosen = {index[k].name for k in reduced if not isinstance(index[k], int)}  # type: ignore[union-attr]
    return [Axis(a.name, a.extent, kind if a.name in chosen else "par") for a in loops], index


def _extreme_position(block: Block, let: Let, x: Value, axis: int, monoid: str) -> None:
    """argmax, argmin: the first extreme, or the first NaN."""
    if lines := _in_long_lines(block, x, axis):
        _position_of_extreme(block, let, lines, axis, monoid.removeprefix("arg"))
        return
    out, dims = let.out, tuple(d for k, d in enumerate(x.dims) if k != axis)
    place = _accumulator(block, out)
    best = block.temp("best", x.dtype, dims)
    loops, index = _reduction_axes(block, x.dims, (axis,), "seq")
    spot = tuple(i for k, i in enumerate(index) if k != axis)
    found, so_far, bool_ = x.at(index), best.load(spot), np.dtype(bool)
    candidate = local(block.shared.names.fresh("x"), x.dtype)
    better = Op("gt" if monoid == "argmax" else "lt", (Load(candidate), so_far), bool_)
    if is_float(x.dtype) or x.dtype.kind == "c":
        nan = Op(
            "and", (Op("isnan", (Load(candidate),), bool_), Op("not", (Op("isnan", (so_far,), bool_),), bool_)), bool_
        )
        better = Op("or", (better, nan), bool_)
    change = (
        Store(best.buf, (*best.prefix, *spot), Load(candidate)),
        Store(place.buf, (*place.prefix, *spot), block.apply("convert", Index(index[axis]), dtype=out.type.dtype)),
    )
    block.nest(
        loops,
        [Store(candidate, (), found), If(better, change)],
        [
            Store(change[0].buf, change[0].index, identity(monoid.removeprefix("arg"), x.dtype)),
            Store(change[1].buf, change[1].index, _number(0, out.type.dtype)),
        ],
    )
    _finish(block, out, place)


def _in_long_lines(block: Block, x: Value, axis: int) -> Value | None:
    """x, if the numbers along an axis may be many and stand one behind the other; what is not in memory is put there,
    since a number that is computed twice may have another last bit."""
    view = strided(block, x)
    if x.dtype.kind not in "iuf" or block.shared.facts.less(x.dims[axis], block.shared.target.lines_from):
        return None
    if view is not None:
        return x if view.strides[axis] == 1 else None
    if axis != len(x.dims) - 1:
        return None
    values = block.temp("values", x.dtype, x.dims)
    block.fill(values, x.at)
    return stored(values)


def _position_of_extreme(block: Block, let: Let, x: Value, axis: int, monoid: str) -> None:
    """The extremes of stretches, and of all; the first stretch that has it, and where in there: one sweep in vectors.
    What is left behind the last whole stretch is looked through as the stretch that ends there. Where threads share the
    sweeps anyway, all is one stretch."""
    out, lead, n = let.out, tuple(d for k, d in enumerate(x.dims) if k != axis), x.dims[axis]
    width = n if block.shared.target.threads else 2 * block.shared.target.lanes
    whole, near, bool_ = floordiv(n, width), dim_min(n, width), np.dtype(bool)
    best, place = block.temp("best", x.dtype, lead), _accumulator(block, out)

    def element(line: Indices, k: DimLike) -> E:
        return x.at((*line[:axis], k, *line[axis:]))

    def first(value: E, line: Indices, k: DimLike, size: DimLike) -> E:
        """The number k of a value that is the extreme or, before all, no number."""
        wanted: E = Op("eq", (value, best.load(line)), bool_)
        if is_float(x.dtype):
            wanted = Op("or", (wanted, Op("isnan", (value,), bool_)), bool_)
        return Op("select", (wanted, Index(k), Index(size)), i64)

    def combine(to: Place, dims: Indices, value: Callable[[Indices], E], how: str, start: E | None) -> None:
        """The values along the last of `dims`."""
        loops, index = _reduction_axes(block, dims, (len(dims) - 1,))
        spot = index[:-1]
        begin = [] if start is None else [Store(to.buf, spot, start)]
        block.nest(loops, [Store(to.buf, spot, value(index), how)], begin)

    nothing, start = identity(monoid, x.dtype), block.shared.symbol("start")
    if width == n:
        combine(best, (*lead, n), lambda i: element(i[:-1], i[-1]), monoid, nothing)
    else:
        stretch = block.temp("stretch", i64, lead)
        bests = block.temp("bests", x.dtype, (*lead, whole))
        combine(bests, (*lead, whole, width), lambda i: element(i[:-2], i[-2] * width + i[-1]), monoid, nothing)
        combine(best, (*lead, whole), bests.load, monoid, nothing)
        if n != whole * width:
            rest = (*lead, n - whole * width)
            combine(best, rest, lambda i: element(i[:-1], whole * width + i[-1]), monoid, None)
        combine(stretch, (*lead, whole), lambda i: first(bests.load(i), i[:-1], i[-1], whole), "min", Index(whole))
    loops, index = _reduction_axes(block, (*lead, near), (len(lead),))
    line, k, binds = index[:-1], index[-1], list[Stmt]()
    if width != n:
        begin = Op("mul", (stretch.load(line), Index(width)), i64)
        binds, k = [Bind(start, Op("min", (begin, Index(n - near)), i64))], Sym(start) + k
    here, dtype = (*place.prefix, *line), out.type.dtype
    position = block.apply("convert", first(element(line, k), line, k, n), dtype=dtype)
    last = block.apply("convert", Index(n), dtype=dtype)
    block.nest(loops, [*binds, Store(place.buf, here, position, "min")], [Store(place.buf, here, last)])
    _finish(block, out, place)


@rule(Scan)
def scan(block: Block, let: Let) -> None:
    (x,), monoid, out = block.args(let), let.primitive.native.monoid, let.out
    attributes = block.attributes(let)
    axis, reverse = attributes["axis"], attributes.get("reverse", False)
    place = block.place_for(out)
    total = block.temp(out.name, out.type.dtype, tuple(d for k, d in enumerate(x.dims) if k != axis))
    loops, index = _reduction_axes(block, x.dims, (axis,), "seq")
    rest = tuple(i for k, i in enumerate(index) if k != axis)
    here = index[:axis] + ((x.dims[axis] - 1 - index[axis]) if reverse else index[axis],) + index[axis + 1 :]
    value = block.apply("convert", x.at(here), dtype=out.type.dtype)
    block.nest(
        loops,
        [Store(total.buf, rest, value, monoid), Store(place.buf, (*place.prefix, *here), total.load(rest))],
        [Store(total.buf, rest, _value(MONOIDS[monoid].before_first(out.type.dtype)))],
    )
    block.values[out] = stored(place)


# --- parts of arrays ------------------------------------------------------------------------------


def start_dims(block: Block, starts: list[Value]) -> list[DimLike]:
    """Scalar i64 operands as dims: every integer in a block is a symbol or known."""
    found = []
    for value in starts:
        dim = scalars.as_dim(value.scalar)
        if dim is None:
            dim = scalars.as_dim(block.local("k", value.scalar))
        found.append(dim)
    return found  # type: ignore[return-value]


@rule(Gather)
def gather(block: Block, let: Let) -> None:
    x, *rest = block.args(let)
    attributes = block.attributes(let)
    if let.primitive.native.kind == "slice":
        first, step = start_dims(block, rest), attributes["step"]
        block.define(let.out, lambda index: x.at(tuple(s + k * i for s, k, i in zip(first, step, index))), lazy=True)
        return
    axes = attributes["axes"]
    if not rest[0].dims:
        picked = start_dims(block, rest)
        block.define(let.out, lambda index: x.at(_scatter_index(len(x.dims), axes, picked, index)), lazy=is_lazy(let))
        return
    order = order_of_reader(block.plan, let.out)  # that of the places comes first here: NumPy's is another one
    plain = let.out in block.wanted or order == tuple(range(len(order)))
    dims = block.dims(let.out.type.dims)
    place = block.place_for(let.out) if plain else block.temp(let.out.name, x.dtype, [dims[d] for d in order])
    loops, spot = block.axes(place.dims)
    index = spot if plain else tuple(spot[order.index(d)] for d in range(len(order)))
    binds, picked = _bound_indices(block, rest, index[: len(rest[0].dims)])
    source = x.at(_scatter_index(len(x.dims), axes, picked, index[len(rest[0].dims) :]))
    block.nest(loops, [*binds, Store(place.buf, (*place.prefix, *spot), source)])
    turned = Value(x.dtype, dims, lambda index: place.load(tuple(index[d] for d in order)))
    block.values[let.out] = stored(place) if plain else turned


def _bound_indices(block: Block, indices: list[Value], at: Indices) -> tuple[list[Stmt], list[DimLike]]:
    """Integers read from index arrays, as symbols bound inside a nest."""
    binds: list[Stmt] = []
    picked: list[DimLike] = []
    for value in indices:
        e = value.at(at)
        dim = scalars.as_dim(e)
        if dim is None:
            name = block.shared.symbol("p")
            binds.append(Bind(name, e))
            dim = Sym(name)
        picked.append(dim)
    return binds, picked


def _scatter_index(rank: int, axes: tuple, picked: list[DimLike], rest: Indices) -> Indices:
    """The full index: `picked` along `axes`, `rest` along the others."""
    others = iter(rest)
    chosen = dict(zip(axes, picked))
    return tuple(chosen[k] if k in chosen else next(others) for k in range(rank))


@rule(Put)
def put(block: Block, let: Let) -> None:
    native, attributes = let.primitive.native, block.attributes(let)
    x, v, *rest = block.args(let)
    if let.out in block.plan.shares[let]:
        assert x.place is not None
        place = x.place
    else:
        place = block.place_for(let.out)
        place.buf.unbound = x.undefined
        if not x.undefined:
            block.copy(place, x)
    if native.kind == "slice":
        first, step = start_dims(block, rest), attributes["step"]
        loops, index = block.axes(v.dims)
        target = tuple(s + k * i for s, k, i in zip(first, step, index))
        block.nest(loops, [Store(place.buf, (*place.prefix, *target), v.at(index), native.monoid)])
    else:
        _scatter(block, place, v, rest, attributes, native)
    block.values[let.out] = stored(place)


def _scatter(block: Block, place: Place, v: Value, indices: list[Value], attributes: dict, native: Put) -> None:
    rank = len(indices[0].dims)
    unique = attributes.get("unique", native.unique) or not rank
    loops, index = block.axes(v.dims)
    ordered = {i.name for i in index[:rank] if not isinstance(i, int)} if not unique else set()
    loops = [Axis(a.name, a.extent, "seq" if a.name in ordered else "par") for a in loops]
    binds: list[Stmt] = []
    if rank:
        binds, picked = _bound_indices(block, indices, index[:rank])
    else:
        picked = start_dims(block, indices)
    target = _scatter_index(len(place.dims), attributes["axes"], picked, index[rank:])
    block.nest(loops, [*binds, Store(place.buf, (*place.prefix, *target), v.at(index), native.monoid)])


# --- effects --------------------------------------------------------------------------------------


@rule(EffectCall)
def effect(block: Block, let: Let) -> None:
    kind, attributes, args = let.primitive.native.kind, block.attributes(let), block.args(let)
    if kind == "check":
        _check(block, let, args, attributes)
        return
    bufs = []
    for arg in args:
        place = block.temp("shown", arg.dtype, arg.dims)
        block.fill(place, arg.at)
        bufs.append(place.buf)
    if kind == "warn":
        holds = (attributes.get("above", 0),)
        site = block.shared.site(kind, attributes["category"], attributes["template"], let.span, args, holds)
        block.emit(Effect(site, tuple(bufs)))
        return
    if kind == "callback":
        places = [block.temp(out.name, out.type.dtype, block.dims(out.type.dims)) for out in let.outs]
        given = tuple((out.type.dtype, len(out.type.dims)) for out in let.outs)
        site = block.shared.site(kind, attributes["name"], "", let.span, args, given)
        block.emit(Effect(site, tuple(bufs), tuple(place.buf for place in places), let.span))
        block.values.update((out, stored(place)) for out, place in zip(let.outs, places))
        return
    end = attributes.get("end", "\n").replace("{", "{{").replace("}", "}}")
    how = attributes.get("stream", "stdout") + (" flush" if attributes.get("flush") else "")
    site = block.shared.site(kind, how, attributes.get("template", "") + end, let.span, args)
    block.emit(Effect(site, tuple(bufs)))


def _check(block: Block, let: Let, args: list[Value], attributes: dict) -> None:
    ok, *shown = args
    loops, index = block.axes(ok.dims, "seq")
    condition = ok.at(index)
    if always(condition):
        return
    if attributes["exception"] == "IndexError" and not block.shared.bounds:
        return
    site = block.shared.site(
        "check", attributes["exception"], attributes["message"], let.span, shown, attributes.get("holds", ())
    )
    block.nest(loops, [Check(condition, site, tuple(a.at(index) for a in shown))])
