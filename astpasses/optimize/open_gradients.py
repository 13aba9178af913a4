"""After differentiation `stop_gradient` has done its work: it is its operand.

In: a Function that will not be differentiated again. Out: the same without `stop_gradient`.
"""

from __future__ import annotations

from metaphrase.core.ir import Atom, Function, Var

from .rebuild import map_regions, replaced

pre_ad_safe = False


def open_gradients(function: Function) -> Function:
    env: dict[Var, Atom] = {}
    lets, changed = [], False
    for let in function.lets:
        new = map_regions(replaced(let, env), lambda region, operands: open_gradients(region))
        changed |= new is not let
        if new.primitive.name == "stop_gradient":
            env[new.out] = new.args[0]
            changed = True
            continue
        lets.append(new)
    if not changed:
        return function
    results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
    return Function(function.name, function.params, tuple(lets), results)


__all__ = ["open_gradients", "pre_ad_safe"]
