"""A function that is called from several places: lowered once, and called with arrays and sizes.

In: a `call` in a Block. Out: the `CallFn` in its place, and the Fn among the program's, which makes its
results in storage that the caller has. Scalars that it gives are arrays of one element.

    h: f64[8, 16] = call(x, w, function=layer)      ->      call_layer(x, w, h)
"""

from __future__ import annotations

from metaphrase.core.calls import may_stay
from metaphrase.core.dims import Sym
from metaphrase.core.ir import Function, Let, Var, function_symbols
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import i64

from . import scalars
from .lower import Block, Lowering
from .nest import Buf, CallFn, Fn, Index, Load, Store, local
from .ownership import plan
from .values import Place, Value, scalar, stored


def stays(let: Let) -> bool:
    """Whether a `call` is one in the tree, too."""
    return may_stay(let.attributes["function"])


def call_function(block: Block, let: Let) -> None:
    """Write the call."""
    function: Function = let.attributes["function"]
    fn = _lowered(block.shared, function)
    bufs: list[Buf] = []
    sizes = [block.dims((Sym(name),))[0] for name in sorted(function_symbols(function))]
    for param, value in zip(function.params, block.args(let)):
        if param.type.dims:
            bufs.append(_whole(block, param, value))
        elif param.type.dtype == i64:
            dim = scalars.as_dim(value.scalar)
            sizes.append(scalars.as_dim(block.local(param.name, value.scalar)) if dim is None else dim)  # type: ignore
        else:
            bufs.append(local(block.shared.names.fresh(param.name), param.type.dtype))
            block.emit(Store(bufs[-1], (), value.scalar))
    places = [block.place_for(out) if out.type.dims else block.temp(out.name, out.type.dtype, (1,)) for out in let.outs]
    written = [p.buf if not p.prefix else block.temp("row", p.buf.dtype, p.dims).buf for p in places]
    block.emit(CallFn(fn.name, (*bufs, *written), tuple(sizes), True, frozenset(written)))
    for out, place, buf in zip(let.outs, places, written):
        if out.type.dims:
            block.copy(place, stored(Place(buf)))
            block.values[out] = stored(place)
        else:
            block.values[out] = scalar(block.local(out.name, Load(buf, (0,))))


def _whole(block: Block, param: Var, value: Value) -> Buf:
    """The array as a storage of its own."""
    if value.place is not None and not value.place.prefix:
        return value.place.buf
    place = block.temp(param.name, param.type.dtype, block.dims(param.type.dims))
    block.copy(place, value)
    return place.buf


def _lowered(shared: Lowering, function: Function) -> Fn:
    """The Fn of a function: arrays, other scalars and results are `bufs`, size symbols and integers
    `sizes`."""
    if function in shared.callees:
        return shared.callees[function]
    made = plan(function, shared.target)
    named = {name: shared.symbol(name.split("__")[0], 0, None) for name in sorted(function_symbols(function))}
    block = Block(shared, made, {name: Sym(symbol) for name, symbol in named.items()})
    sizes, bufs, results = list(named.values()), [], []
    for param in function.params:
        if not param.type.dims and param.type.dtype == i64:
            sizes.append(shared.symbol(param.name))
            block.values[param] = scalar(Index(Sym(sizes[-1])))
            continue
        name = shared.names.fresh(param.name)
        dims = block.dims(param.type.dims)
        bufs.append(Buf(name, param.type.dtype, dims, "arg") if dims else local(name, param.type.dtype))
        block.values[param] = stored(Place(bufs[-1])) if dims else scalar(Load(bufs[-1]))
    for result in function.results:
        chosen = isinstance(result, Var) and result not in function.params and result.name not in REGISTRY
        name = shared.names.fresh(result.name if chosen else "out")  # type: ignore[union-attr]
        results.append(Buf(name, result.type.dtype, block.dims(result.type.dims) or (1,), "arg"))
    block.want((root, Place(buf)) for root, buf, r in zip(made.roots, results, function.results) if r.type.dims)
    block.run(function)
    block.span = None
    for result, buf in zip(function.results, results):
        value = block.value(result)
        if result.type.dims:
            block.copy(Place(buf), value)
        else:
            block.emit(Store(buf, (0,), value.scalar))
    fn = Fn(
        shared.names.fresh(f"call_{function.name}"),
        (*bufs, *results),
        tuple(sizes),
        tuple(block.statements),
        fails=True,
        names=shared.names,
        facts=shared.facts,
    )
    shared.callees[function] = fn
    return fn


__all__ = ["call_function", "stays"]
