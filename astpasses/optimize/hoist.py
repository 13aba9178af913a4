"""Loop invariants: what an iteration computes from constants alone is computed once, before the loop.

In: a Function. Out: the same with such operations moved out of loop bodies and conditions. Only pure
operations that can't fail move (a loop may run no iteration at all), and only when they compute: what merely
moves elements goes along with what needs it. Sizes bound inside the body keep their operations inside.

    loop(e, ..., body: c = cos(e); mul(c, E))     ->     c = cos(e); loop(c, ..., body: mul(c, E))
"""

from __future__ import annotations

from metaphrase.core.ir import Atom, Function, Let, Literal, Roles, Var
from metaphrase.core.native import Gather, Move
from metaphrase.core.scalars import FREE

from .rebuild import has_effect, map_regions

pre_ad_safe = True


def hoist(function: Function) -> Function:
    lets: list[Let] = []
    changed = False
    for old in function.lets:
        let = map_regions(old, lambda region, operands: hoist(region))
        if let.primitive.name == "loop":
            moved, let = _loop(let)
            lets += moved
        changed |= let is not old
        lets.append(let)
    return Function(function.name, function.params, tuple(lets), function.results) if changed else function


def _loop(let: Let) -> tuple[list[Let], Let]:
    """The Lets that leave the loop, and the loop without them."""
    roles: Roles = let.attributes["roles"]
    body, condition = let.attributes["body"], let.attributes["cond"]
    consts = let.args[: roles.consts]
    moved: list[Let] = []
    body, new_body = _split(body, consts, roles, moved)
    new_cond: dict[Var, Var] = {}
    if condition is not None:
        condition, new_cond = _split(condition, consts, roles, moved)
    if not new_body and not new_cond:
        return [], let
    extra = (*new_body, *new_cond)
    body = _with_consts(body, roles, extra, used=new_body)
    if condition is not None:
        condition = _with_consts(condition, roles, extra, used=new_cond)
    outer = [{**new_body, **new_cond}[v] for v in extra]
    roles = Roles(roles.consts + len(extra), roles.carries, roles.accumulators, roles.rows, roles.segments)
    args = (*consts, *outer, *let.args[len(consts) :])
    return moved, Let(
        let.outs,
        let.primitive,
        args,
        {**let.attributes, "body": body, "cond": condition, "roles": roles},
        let.span,
    )


def _split(
    function: Function, consts: tuple[Atom, ...], roles: Roles, moved: list[Let]
) -> tuple[Function, dict[Var, Var]]:
    """The region without its invariants that are worth it; those of them that the rest still reads, with
    their copies outside."""
    env: dict[Var, Atom] = dict(zip(function.params[1 : 1 + roles.consts], consts))
    bound = {s for x in function.lets for s in x.own_symbols()}
    invariant: dict[Var, Let] = {}
    for x in function.lets:
        if x.primitive.region or has_effect(x) or x.own_symbols() or x.uses_symbols() & bound:
            continue
        if all(isinstance(a, Literal) or a in env or a in invariant for a in x.args):
            invariant.update((v, x) for v in x.outs)
    worth = {id(x) for x in invariant.values() if _computes(x)}
    if not worth:
        return function, {}
    for x in reversed(function.lets):  # what they are made from goes along
        if id(x) in worth:
            worth.update(id(invariant[a]) for a in x.args if isinstance(a, Var) and a in invariant)
    rest = []
    copies: dict[Var, Var] = {}
    for x in function.lets:
        if id(x) not in worth:
            rest.append(x)
            continue
        outs = tuple(Var(v.name, v.type) for v in x.outs)
        copies.update(zip(x.outs, outs))
        args = tuple(copies.get(a, env.get(a, a)) if isinstance(a, Var) else a for a in x.args)
        moved.append(Let(outs, x.primitive, args, x.attributes, x.span))
    read = {a for x in rest for a in x.args if isinstance(a, Var)} | {
        r for r in function.results if isinstance(r, Var)
    }
    needed = {v: outside for v, outside in copies.items() if v in read}
    return Function(function.name, function.params, tuple(rest), function.results), needed


def _computes(let: Let) -> bool:
    """Whether moving the operation saves more than it costs to hand its result in."""
    return (
        bool(let.args) and not isinstance(let.primitive.native, (Move, Gather)) and let.primitive.cost > FREE
    )


def _with_consts(function: Function, roles: Roles, extra: tuple[Var, ...], used: dict[Var, Var]) -> Function:
    """The region with further constant parameters; those it does not read are fresh."""
    params = tuple(v if v in used else Var(v.name, v.type) for v in extra)
    at = 1 + roles.consts
    return Function(
        function.name,
        (*function.params[:at], *params, *function.params[at:]),
        function.lets,
        function.results,
    )


__all__ = ["hoist", "pre_ad_safe"]
