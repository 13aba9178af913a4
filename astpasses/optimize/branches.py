"""Two branches on the same predicate become one, when the first only serves the second.

In: a Function. Out: the same with `cond(p, ...)` of the known part and `cond(p, ...)` of the derivative
joined, so that what the first saved for the second needs no place of its own.

    c, s = cond(p, x, branches=(save_no, save_yes))        y = cond(p, x, y_bar, branches=(both_no, both_yes))
    y = cond(p, c, s, y_bar, branches=(use_no, use_yes))  ->
"""

from __future__ import annotations

from collections.abc import Sequence

from metaphrase.core.build import Builder
from metaphrase.core.ir import Atom, Function, Let, Var

from .rebuild import map_regions

pre_ad_safe = True


def join_branches(function: Function) -> Function:
    lets = [map_regions(let, join_branches) for let in function.lets]
    changed = any(a is not b for a, b in zip(lets, function.lets))
    first: dict[Atom, int] = {}
    for position in range(len(lets)):
        let = lets[position]
        if let.primitive.name != "cond":
            continue
        before = first.get(let.args[0])
        if before is not None and lets[before].args and _only_serves(function, lets, before, position):
            lets[position] = _joined(lets[before], let)
            lets[before] = Let((), let.primitive, (), {})  # taken out below
            changed = True
        first[let.args[0]] = position
    if not changed:
        return function
    return Function(
        function.name, function.params, tuple(x for x in lets if x.primitive.name != "cond" or x.args), function.results
    )


def _only_serves(function: Function, lets: Sequence[Let], before: int, position: int) -> bool:
    """Whether nothing between the two reads the first, and joining moves no effect and no size over
    another."""
    one, two = lets[before], lets[position]
    if len(one.attributes["branches"]) != len(two.attributes["branches"]) or not set(one.outs) & set(two.args):
        return False
    if one.effects and any(x.effects for x in lets[before + 1 : position]):
        return False
    outs = set(one.outs)
    return not any(a in outs for x in lets[before + 1 : position] for a in x.args)


def _joined(one: Let, two: Let) -> Let:
    """One cond that does both; it gives the results of both."""
    extra = [a for a in two.args[1:] if a not in one.outs]
    operands = list(dict.fromkeys([*one.args[1:], *extra]))
    branches = []
    for a, b in zip(one.attributes["branches"], two.attributes["branches"]):
        with Builder(b.name) as builder:
            params: dict[Atom, Atom] = {x: builder.parameter(_name(x), x.type) for x in operands}
            inner = builder.replay(a, [params[x] for x in one.args[1:]])
            known: dict[Atom, Atom] = {**params, **dict(zip(one.outs, inner))}
            results = builder.replay(b, [known[x] for x in two.args[1:]])
            branches.append(builder.function([*inner, *results]))
    return Let(
        (*one.outs, *two.outs),
        two.primitive,
        (two.args[0], *operands),
        {"branches": tuple(branches)},
        two.span or one.span,
    )


def _name(atom: Atom) -> str:
    return atom.name if isinstance(atom, Var) else "constant"


__all__ = ["join_branches", "pre_ad_safe"]
