"""After differentiation `stop_gradient`, `checkpoint_name`, `only_where` and `barrier` have done their work: they are
their (first) operands.

In: a Function that will not be differentiated again. Out: the same without them. `barrier` goes last, when nothing
looks for repetitions any more (`open_barriers`).
"""

from __future__ import annotations

from metaphrase.core.ir import Atom, Function, Var

from .rebuild import map_regions, replaced

pre_ad_safe = False


def open_gradients(function: Function) -> Function:
    """`function` without what only differentiation reads."""
    return _opened(function, ("stop_gradient", "checkpoint_name", "only_where"))


def open_barriers(function: Function) -> Function:
    """`function` without what keeps repetitions apart."""
    return _opened(function, ("barrier",))


def _opened(function: Function, marks: tuple[str, ...]) -> Function:
    env: dict[Var, Atom] = {}
    lets, changed = [], False
    for let in function.lets:
        new = map_regions(replaced(let, env), lambda region: _opened(region, marks))
        changed |= new is not let
        if new.primitive.name in marks:
            env[new.out] = new.args[0]
            changed = True
            continue
        lets.append(new)
    if not changed:
        return function
    results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
    return Function(function.name, function.params, tuple(lets), results)


__all__ = ["open_barriers", "open_gradients", "pre_ad_safe"]
