"""Dead code: operations, carries, rows, constants, branch results and operands that nothing depends on.

In: a Function. Out: the same results from less; effects stay. A carry that never changes becomes a constant
of the loop.

    T, E, n = loop(e, M, M, 0, body=..., ...)     ->     T, E = loop(e, M, M, body=..., ...)       # n is not
    read
"""

from __future__ import annotations

from collections.abc import Sequence

from metaphrase.core.ir import Atom, Function, Let, Roles, Var
from metaphrase.core.types import type_symbols

from .rebuild import has_effect, replaced

pre_ad_safe = True


def dead(function: Function) -> Function:
    """`function` without dead code; the same object when there is none."""
    return _pruned(function, [True] * len(function.results))


def _pruned(function: Function, wanted: Sequence[bool]) -> Function:
    """The Function with only the wanted results, and the Lets they need. Parameters stay."""
    results = tuple(r for r, w in zip(function.results, wanted) if w)
    needed = {r for r in results if isinstance(r, Var)}
    sizes: set[str] = set()
    for r in results:
        sizes |= type_symbols(r.type)
    lets: list[Let] = []
    env: dict[Var, Atom] = {}
    for let in reversed(function.lets):
        live = has_effect(let) or any(v in needed for v in let.outs) or bool(let.own_symbols() & sizes)
        if not live:
            continue
        known = len(env)
        new = _narrowed(let, needed, env, sizes)
        lets.append(new)
        needed.update(a for a in new.args if isinstance(a, Var))
        if len(env) > known:
            needed.update(a for a in env.values() if isinstance(a, Var))
        sizes |= new.uses_symbols()
    lets.reverse()
    if env:
        env = {v: _final(a, env) for v, a in env.items()}
        lets = [replaced(let, env) for let in lets]
        results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in results)
    same = len(lets) == len(function.lets) and all(a is b for a, b in zip(lets, function.lets))
    if (
        same
        and len(results) == len(function.results)
        and all(a is b for a, b in zip(results, function.results))
    ):
        return function
    return Function(function.name, function.params, tuple(lets), results)


def _final(atom: Atom, env: dict[Var, Atom]) -> Atom:
    while isinstance(atom, Var) and atom in env:
        atom = env[atom]
    return atom


def _narrowed(let: Let, needed: set[Var], env: dict[Var, Atom], sizes: set[str]) -> Let:
    """A region Let with only what is needed of it; `env` gets results that turn out to be operands."""
    name = let.primitive.name
    if name == "loop":
        return _loop(let, needed, env, sizes)
    if name == "cond":
        return _cond(let, needed, env)
    if name == "call":
        body = _pruned(let.attributes["function"], [True] * len(let.outs))
        changed = body is not let.attributes["function"]
        return (
            Let(let.outs, let.primitive, let.args, {**let.attributes, "function": body}, let.span)
            if changed
            else let
        )
    return let


# --- loops -----------------------------------------------------------------------------------------------


def _loop(let: Let, needed: set[Var], env: dict[Var, Atom], sizes: set[str]) -> Let:
    roles: Roles = let.attributes["roles"]
    body, condition = let.attributes["body"], let.attributes["cond"]
    consts, carries, accumulators, rows = roles.parts(let.args)
    lead, state = len(let.own_symbols()), roles.carries + roles.accumulators
    kept_outs, row_outs = let.outs[lead : lead + state], let.outs[lead + state :]
    params = body.params[1 + roles.consts :]
    state_params, row_params = params[:state], params[state:]
    fixed = [k < roles.carries and body.results[k] is state_params[k] for k in range(state)]
    live_rows = [v in needed for v in row_outs]
    names = let.attributes.get("segment_sizes", ())
    live_segments = _live_segments(let, live_rows[len(live_rows) - len(names) :], needed, sizes)
    live_rows[len(live_rows) - len(names) :] = live_segments
    live = _live_state(let, [v in needed for v in kept_outs], live_rows)
    keep = [a and not f for a, f in zip(live, fixed)]
    wanted = [*keep, *live_rows]
    inner = body if all(wanted) else _pruned(body, wanted)
    inner = _pruned(inner, [True] * len(inner.results))
    used = _used(inner)
    if condition is not None:
        condition = _pruned(condition, [True])
        used_by_condition = _used(condition)
    for k, (f, out) in enumerate(zip(fixed, kept_outs)):
        if f and out in needed:
            env[out] = (*carries, *accumulators)[k]
    # Constants: the old ones and the carries that never change, if a region reads them.
    const_params = [*body.params[1 : 1 + roles.consts], *(p for p, f in zip(state_params, fixed) if f)]
    const_args = [*consts, *(a for a, f in zip((*carries, *accumulators), fixed) if f)]
    if condition is not None:
        cond_state = condition.params[1 + roles.consts :]
        cond_consts = [*condition.params[1 : 1 + roles.consts], *(p for p, f in zip(cond_state, fixed) if f)]
    keep_const = [
        p in used or condition is not None and cond_consts[k] in used_by_condition
        for k, p in enumerate(const_params)
    ]
    keep_row = [p in used for p in row_params]
    if (
        all(keep)
        and all(live_rows)
        and all(keep_const)
        and all(keep_row)
        and not any(fixed)
        and inner is body
        and condition is let.attributes["cond"]
    ):
        return let
    new_params = (
        body.params[0],
        *_kept(const_params, keep_const),
        *_kept(state_params, keep),
        *_kept(row_params, keep_row),
    )
    inner = Function(inner.name, new_params, inner.lets, inner.results)
    if condition is not None:
        new_cond = (
            condition.params[0],
            *_kept(cond_consts, keep_const),
            *_kept(cond_state, keep[: roles.carries]),
        )
        condition = Function(condition.name, new_cond, condition.lets, condition.results)
    counts = (keep_const, keep[: roles.carries], keep[roles.carries :], keep_row, live_segments)
    new_roles = Roles(*map(sum, counts))
    args = (*_kept(const_args, keep_const), *_kept((*carries, *accumulators), keep), *_kept(rows, keep_row))
    attributes = {**let.attributes, "body": inner, "cond": condition, "roles": new_roles}
    left = tuple(_kept(names, live_segments))
    if names:
        attributes["segment_sizes"] = left
        if not left:
            del attributes["segment_sizes"]
    gone = {let.binder(name) for name in set(names) - set(left)}
    leading = [v for v in let.outs[:lead] if v not in gone]
    outs = (*leading, *_kept(kept_outs, keep), *_kept(row_outs, live_rows))
    return Let(outs, let.primitive, args, attributes, let.span)


def _live_segments(let: Let, live: list[bool], needed: set[Var], sizes: set[str]) -> list[bool]:
    """The segments that are needed; one of each size that is needed for itself."""
    names = let.attributes.get("segment_sizes", ())
    have = {name for name, alive in zip(names, live) if alive}
    for k, name in enumerate(names):
        if name not in have and (name in sizes or let.binder(name) in needed):
            live[k] = True
            have.add(name)
    return live


def _kept(items: Sequence, marks: Sequence[bool]) -> list:
    return [x for x, m in zip(items, marks) if m]


def _used(function: Function) -> set[Var]:
    found = {a for let in function.lets for a in let.args if isinstance(a, Var)}
    return found | {r for r in function.results if isinstance(r, Var)}


def _live_state(let: Let, wanted: list[bool], live_rows: list[bool]) -> list[bool]:
    """Carries and accumulators that something needed depends on, to a fixpoint over the iterations."""
    roles: Roles = let.attributes["roles"]
    body, condition = let.attributes["body"], let.attributes["cond"]
    state = roles.carries + roles.accumulators
    params = body.params[1 + roles.consts : 1 + roles.consts + state]
    live = list(wanted)
    if condition is not None:
        asked = _needed_params(condition, [True])
        for k, param in enumerate(condition.params[1 + roles.consts :]):
            live[k] = live[k] or param in asked
    while True:
        asked = _needed_params(body, [*live, *live_rows])
        new = [a or p in asked for a, p in zip(live, params)]
        if new == live:
            return live
        live = new


def _needed_params(function: Function, wanted: Sequence[bool]) -> set[Var]:
    """Values of a region that its wanted results and its effects depend on; inner regions count as wholes."""
    needed = {r for r, w in zip(function.results, wanted) if w and isinstance(r, Var)}
    sizes = {symbol for r in needed for symbol in type_symbols(r.type)}
    for let in reversed(function.lets):
        if has_effect(let) or any(v in needed for v in let.outs) or let.own_symbols() & sizes:
            needed.update(a for a in let.args if isinstance(a, Var))
            sizes |= let.uses_symbols()
    return needed


# --- branches --------------------------------------------------------------------------------------------


def _cond(let: Let, needed: set[Var], env: dict[Var, Atom]) -> Let:
    """Results nobody reads, results that are one operand in every branch, and operands nobody reads go."""
    branches: tuple[Function, ...] = let.attributes["branches"]
    operands = let.args[1:]
    wanted = []
    for k, out in enumerate(let.outs):
        through = {
            b.params.index(r) if isinstance(r, Var) and r in b.params else None
            for b in branches
            for r in [b.results[k]]
        }
        position = through.pop() if len(through) == 1 else None
        if out in needed and position is not None:
            env[out] = operands[position]
        wanted.append(out in needed and position is None)
    new = [_pruned(b, wanted) for b in branches]
    used = [_used(b) for b in new]
    keep = [any(b.params[k] in u for b, u in zip(new, used)) for k in range(len(operands))]
    if all(keep) and all(wanted) and all(a is b for a, b in zip(new, branches)):
        return let
    new = [Function(b.name, tuple(_kept(b.params, keep)), b.lets, b.results) for b in new]
    return Let(
        tuple(_kept(let.outs, wanted)),
        let.primitive,
        (let.args[0], *_kept(operands, keep)),
        {**let.attributes, "branches": tuple(new)},
        let.span,
    )


__all__ = ["dead", "pre_ad_safe"]
