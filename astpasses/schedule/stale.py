"""Arrays that a loop carries in storage for more rows than they have: what lies behind their rows is not kept.

In: a Function. Out: the same with rows stored into an undefined array, where all that reads the carried one, in the
loop and behind it, reads as many of its first rows as a carried number says. So an iteration leaves them in a second
storage, and the two change places (lower_regions.py), where it would have copied them into the first. Example:

    def body(z: f64[n], z_size):                                     def body(z: f64[n], z_size):
        z_1: f64[z_size] = slice(z, 0, shape=(z_size,))                  ...
        z_2: f64[count] = gather(z_1, places)                            ...
        z_3: f64[n] = slice_update(z, z_2, 0)              ->            z_3: f64[n] = slice_update(undefined, z_2, 0)
        return z_3, count                                                return z_3, count
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from metaphrase.core.build import Builder
from metaphrase.core.calls import derived
from metaphrase.core.dims import DimLike, Sym
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.loops import Loop
from metaphrase.ops.arrays import undefined
from metaphrase.ops.indexing import slice as slice_
from metaphrase.ops.indexing import slice_update


def without_stale_rows(function: Function) -> Function:
    return derived(function, "without stale rows", lambda: _rewritten(function))


def _rewritten(function: Function) -> Function:
    lets = []
    for let in function.lets:
        let = let.with_regions(without_stale_rows)
        if let.primitive.name == "loop":
            let = _loop(Loop.of(let), let, function)
        lets.append(let)
    if all(new is old for new, old in zip(lets, function.lets)):
        return function
    return Function(function.name, function.params, tuple(lets), function.results)


def _loop(loop: Loop, let: Let, around: Function) -> Let:
    stores = [store for k in range(len(loop.params.carries)) if (store := _store(loop, k, around)) is not None]
    if not stores:
        return let
    with Builder(loop.body.function.name) as builder:
        for inner in loop.body.lets:
            if inner in stores:
                builder.span = inner.span
                nothing = undefined(dtype=inner.out.type.dtype, shape=inner.out.type.dims)
                inner = Let(inner.outs, inner.primitive, (nothing, *inner.args[1:]), inner.attributes, inner.span)
            builder.lets.append(inner)
    return replace(loop, body=loop.body.changed(builder.lets)).let()


def _store(loop: Loop, k: int, around: Function) -> Let | None:
    """What makes the k-th carry of its first rows, if nothing reads the others."""
    param, out, result = loop.params.carries[k], loop.outs.carries[k], loop.results.carries[k]
    store = next((let for let in loop.body.lets if let.outs == (result,)), None)
    if store is None or store.primitive is not slice_update or store.args[0] is not param or not _is_first(store):
        return None
    new: DimLike = store.args[1].type.dims[0]
    asked = loop.condition.lets if loop.condition is not None else ()
    inside = [let for let in loop.body.lets if let is not store]
    if list(loop.results).count(result) > 1 or any(result in let.args for let in inside) or param in loop.results:
        return None
    if loop.condition is not None and any(a is q for q in _asked(loop, param) for let in asked for a in let.args):
        return None
    for number, left, length in zip(loop.params.carries, loop.outs.carries, loop.results.carries):
        if number.type.dims or _worth(length, loop.body.lets) != new:
            continue
        if _reads_first(param, number, inside) and _reads_first(out, left, around.lets) and out not in around.results:
            return store
    return None


def _asked(loop: Loop, param: Var) -> Iterator[Var]:
    assert loop.condition is not None
    yield from (q for p, q in zip(loop.params.asked, loop.condition.params) if p is param)


def _worth(number: Atom, lets: Sequence[Let]) -> DimLike | None:
    """The size that a number of the body is."""
    let = next((let for let in lets if number in let.outs), None)
    if let is not None and let.primitive.name == "dim_value":
        return let.attributes["dim"]
    return _bound_to(number, lets)


def _bound_to(number: Atom, lets: Iterable[Let]) -> DimLike | None:
    """The size symbol that is bound to a number."""
    for let in lets:
        if let.primitive.name == "as_dim" and let.args[0] is number:
            (symbol,) = let.own_symbols()
            return Sym(symbol)
    return None


def _is_first(let: Let) -> bool:
    """Whether a Let reads or writes the first rows, whole."""
    part = let.out if let.primitive is slice_ else let.args[1]
    starts = let.args[1:] if let.primitive is slice_ else let.args[2:]
    return (
        part.type.dims[1:] == let.args[0].type.dims[1:]
        and all(isinstance(start, Literal) and start.value == 0 for start in starts)
        and all(step == 1 for step in let.attributes["step"])
    )


def _reads_first(array: Var, number: Var, lets: Sequence[Let]) -> bool:
    """Whether all that reads an array reads its first rows, as many as the number says."""
    length = _bound_to(number, lets)
    readers = [let for let in lets if array in let.args]
    return (
        not readers
        or length is not None
        and all(let.primitive is slice_ and _is_first(let) and let.out.type.dims[0] == length for let in readers)
    )


__all__ = ["without_stale_rows"]
