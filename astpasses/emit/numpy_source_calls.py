"""Calls by name, of functions that the module defines once; what is not worth that is written out in place.

In: the emitter and a `call` Let. Out: statements that bind the results, or an expression that waits.

    h = call(x, w1, function=layer)              h = layer(x, w1)
    y = call(h, w2, function=layer)       ->     y = layer(h, w2)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from metaphrase.core.calls import may_stay
from metaphrase.core.ir import Function, Let, Var, function_symbols
from metaphrase.core.types import Array

from .numpy_source_blocks import Emitter
from .numpy_source_branches import bind_operands
from .numpy_source_expressions import Expr, Storage, call, name, strong
from .numpy_source_spellings import STATEMENTS

Held = tuple[frozenset[int], bool]  # the parameters of which a result may be a view, and whether it is of its own


def held_by(results: Sequence[tuple[Storage, ...]], given: Mapping[Storage, int]) -> list[Held]:
    """What each result of a function holds, by its storages and those of the parameters."""
    count = Counter(s for storages in results for s in dict.fromkeys(storages))
    return [
        (frozenset(given[s] for s in storages if s in given), all(s.owned and count[s] == 1 for s in storages))
        for storages in results
    ]


def called(function: Function) -> list[Function]:
    """The functions that a program calls by name, each behind those that it calls itself."""
    found: dict[Function, None] = {}

    def look(function: Function) -> None:
        for let in function.lets:
            for region in let.regions():
                look(region)
                if let.primitive.name == "call" and _has_a_name(region):
                    found.setdefault(region)

    look(function)
    return list(found)


def _has_a_name(function: Function) -> bool:
    """Whether a function of the module can be written for one that is called: its sizes are read off its
    parameters."""
    return may_stay(function) and function_symbols(function) <= {str(d) for p in function.params for d in p.type.dims}


def emit_call(emitter: Emitter, let: Let) -> None:
    """A call by name, or the body of the function called, in place."""
    function: Function = let.attributes["function"]
    if function in emitter.functions:
        if let.effects or any(v in emitter.block.uses for v in let.outs):
            _call_by_name(emitter, let, *emitter.functions[function])
        return
    outer = emitter.block
    operands = [emitter.named(a) for a in let.args]
    with emitter.inside(function) as inner:
        bind_operands(emitter, inner, operands, [False] * len(operands))
        emitter.run(inner)
        values = [emitter.named(r) if isinstance(r, Var) else emitter.expr(r) for r in function.results]
        outer.names |= inner.names
        inner.names = set()
    for var, value in zip(let.outs, values):
        if var in outer.uses:
            known = tuple(s for e in operands for s in e.storages)
            storages = (*dict.fromkeys(known), Storage(False)) if var.type.dims else ()
            outer.env[var] = outer.pending[var] = replace(value, storages=storages)


def _call_by_name(emitter: Emitter, let: Let, function: str, held: list[Held]) -> None:
    operands: list[Expr] = []

    def text() -> Expr:
        operands[:] = [strong(emitter.expr(a)) for a in let.args]
        return call(function, operands, let.outs[0].type if let.outs else Array(np.dtype(bool)))

    def storages(k: int) -> tuple[Storage, ...]:
        params, own = held[k]
        return (*dict.fromkeys(s for p in params for s in operands[p].storages), Storage(own))

    expr = emitter.fitting(let, text)
    if len(let.outs) == 1 and let.out in emitter.block.uses:
        expr = replace(expr, storages=storages(0) if let.out.type.dims else ())
        (emitter.assign if let.effects else emitter.bind)(let.out, expr, *(() if let.effects else (let,)))
        return
    targets = [emitter.define(v, let) if v in emitter.block.uses else "_" for v in let.outs]
    emitter.line(f"{', '.join(targets)} = {expr.text}" if targets else expr.text, let)
    for k, (var, target) in enumerate(zip(let.outs, targets)):
        if target != "_":
            emitter.hold(var, name(target, var.type, storages=storages(k) if var.type.dims else ()), target)


STATEMENTS["call"] = emit_call

__all__ = ["called", "emit_call"]
