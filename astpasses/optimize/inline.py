"""Calls replaced by the body of the function they call, at every depth.

In: a Function. Out: the same without `call`. Calls that carry a rule of their own (custom derivatives) are
other primitives and stay.
"""

from __future__ import annotations

from metaphrase.core.build import Builder
from metaphrase.core.ir import Atom, Function, Let, Var

from .rebuild import map_regions, replaced

pre_ad_safe = True


def inline(function: Function) -> Function:
    if not _has_call(function):
        return function
    builder = Builder(function.name)
    env: dict[Var, Atom] = {}
    for old in function.lets:
        let = map_regions(replaced(old, env), lambda region, operands: inline(region))
        if let.primitive.name == "call":
            results = builder.replay(let.attributes["function"], let.args)
            env.update(zip(let.outs, results))
        else:
            builder.lets.append(let)
    results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
    return Function(function.name, function.params, tuple(builder.lets), results)


def _has_call(function: Function) -> bool:
    return any(_calls(let) for let in function.lets)


def _calls(let: Let) -> bool:
    return let.primitive.name == "call" or let.primitive.region and any(map(_has_call, let.regions()))


__all__ = ["inline", "pre_ad_safe"]
