"""Composite primitives written out in others, regions included, before anything is scheduled.

In: a Function, and what the target's libraries offer. Out: the same without Lets whose native field is a `Composite`
that no library has.
"""

from __future__ import annotations

from metaphrase.core.build import Builder
from metaphrase.core.calls import derived
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.native import Composite


def expand(function: Function, offered: frozenset[str] = frozenset()) -> Function:
    """Expand to the end: a rule may itself use composites."""

    def made() -> Function:
        return _expanded(function, offered) if _has_composite(function, offered) else function

    return derived(function, f"expanded {' '.join(sorted(offered))}", made)


def _is_written(let: Let, offered: frozenset[str]) -> bool:
    return isinstance(let.primitive.native, Composite) and let.primitive.native.library not in offered


def _expanded(function: Function, offered: frozenset[str]) -> Function:
    with Builder(function.name) as builder:
        env: dict[Var, Atom] = {p: p for p in function.params}
        builder.params = list(function.params)
        for let in function.lets:
            args = tuple(env.get(a, a) if isinstance(a, Var) else a for a in let.args)
            let = let.with_regions(lambda region: expand(region, offered))
            builder.span = let.span
            if _is_written(let, offered):
                outs = let.primitive.native.rule(*args, **let.attributes)
                outs = outs if isinstance(outs, (tuple, list)) else (outs,)
                env.update(zip(let.outs, outs, strict=True))
            else:
                builder.lets.append(Let(let.outs, let.primitive, args, let.attributes, let.span))
        results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
        made = Function(function.name, function.params, tuple(builder.lets), results)
    return expand(made, offered)


def _has_composite(function: Function, offered: frozenset[str]) -> bool:
    def look() -> bool:
        return any(
            _is_written(let, offered) or any(_has_composite(region, offered) for region in let.regions())
            for let in function.lets
        )

    return derived(function, f"composite {' '.join(sorted(offered))}", look)
