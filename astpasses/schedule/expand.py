"""Composite primitives written out in others, regions included, before anything is scheduled.

In: a Function. Out: the same without Lets whose native field is `Composite`.
"""

from __future__ import annotations

from metaphrase.core.build import Builder
from metaphrase.core.calls import derived
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.native import Composite


def expand(function: Function) -> Function:
    """Expand to the end: a rule may itself use composites."""
    return derived(function, "expanded", lambda: _expanded(function) if _has_composite(function) else function)


def _expanded(function: Function) -> Function:
    with Builder(function.name) as builder:
        env: dict[Var, Atom] = {p: p for p in function.params}
        builder.params = list(function.params)
        for let in function.lets:
            args = tuple(env.get(a, a) if isinstance(a, Var) else a for a in let.args)
            let = let.with_regions(expand)
            native = let.primitive.native
            builder.span = let.span
            if isinstance(native, Composite):
                outs = native.rule(*args, **let.attributes)
                outs = outs if isinstance(outs, (tuple, list)) else (outs,)
                env.update(zip(let.outs, outs, strict=True))
            else:
                builder.lets.append(Let(let.outs, let.primitive, args, let.attributes, let.span))
        results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
        made = Function(function.name, function.params, tuple(builder.lets), results)
    return expand(made)


def _has_composite(function: Function) -> bool:
    def look() -> bool:
        return any(
            isinstance(let.primitive.native, Composite) or any(map(_has_composite, let.regions()))
            for let in function.lets
        )

    return derived(function, "composite", look)
