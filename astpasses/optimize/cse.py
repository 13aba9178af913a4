"""Common subexpressions: an operation that was done before on the same operands is not done again.

In: a Function. Out: the same with repeated pure operations replaced by the first. Inside a loop or branch
only what the region itself repeats is found; `hoist` moves the rest out of loops, and `handed` hands branches
what they repeat. Rows of a loop that are equal become one; so do checks of one condition, those in regions
behind one outside, too.

    a: f64 = sin(x)                         a: f64 = sin(x)
    b: f64 = sin(x)            ->           c: f64 = mul(a, a)
    c: f64 = mul(a, b)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.loops import Loop

from .rebuild import map_filled, replaced

pre_ad_safe = True


def cse(function: Function) -> Function:
    """`function` without repetitions; the same object when there are none."""
    return _cse(function, {}, ())


def _cse(function: Function, env: dict[Var, Atom], held: Iterable[Var]) -> Function:
    """`held`: parameters that are True, or a check before had failed."""
    seen: dict[tuple, tuple[Var, ...]] = {("check", param): () for param in held}
    fills: dict[Var, tuple] = {}  # arrays of one literal are equal by value, though each stays its own
    lets: list[Let] = []
    changed = bool(env)
    for old in function.lets:
        let = map_filled(
            replaced(old, env),
            lambda region, given: _cse(region, _equal_params(region, given), _held_params(region, given, seen)),
        )
        if let.primitive.name == "broadcast" and isinstance(let.args[0], Literal):
            fills[let.out] = (let.args[0], let.out.type.dims)
        key = key_of(let, fills)
        found = seen.get(key) if key is not None else None
        if found is not None and all(a.type == b.type for a, b in zip(found, let.outs)):
            env.update(zip(let.outs, found))
            changed = True
            continue
        if key is not None:
            seen.setdefault(key, let.outs)
        if let.primitive.name == "loop":
            changed |= _equal_rows(let, env)
        changed |= let is not old
        lets.append(let)
    results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
    if not changed and results == function.results:
        return function
    return Function(function.name, function.params, tuple(lets), results)


def key_of(let: Let, fills: dict[Var, tuple]) -> tuple | None:
    """What makes two operations the same; None for those that may not be shared."""
    if let.primitive.name == "check":
        return "check", let.args[0]  # what held once, holds
    if let.primitive.effect is not None or let.primitive.region or let.own_symbols():
        return None
    if let.primitive.name in ("broadcast", "undefined") and not any(isinstance(a, Var) for a in let.args):
        return None  # costs nothing, and each may be written into
    args: Any = tuple(fills.get(a, a) if isinstance(a, Var) else a for a in let.args)
    if let.primitive.scalar is not None and let.primitive.scalar.commutes:
        args = frozenset([(a, args.count(a)) for a in args])
    return let.primitive, args, tuple(sorted(let.attributes.items(), key=lambda item: item[0]))


def _equal_params(region: Function, operands: tuple) -> dict[Var, Atom]:
    """Parameters that are given the same operand: constants, and rows, of a loop; all of a branch."""
    first: dict[Any, Var] = {}
    env: dict[Var, Atom] = {}
    for param, operand in zip(region.params, operands):
        if operand is not None and isinstance(operand[1], Var) and first.setdefault(operand, param) is not param:
            env[param] = first[operand]
    return env


def _held_params(region: Function, operands: tuple, seen: Mapping[tuple, Any]) -> list[Var]:
    """Parameters that are given a condition that was checked."""
    return [p for p, operand in zip(region.params, operands) if operand and ("check", operand[1]) in seen]


def _equal_rows(let: Let, env: dict[Var, Atom]) -> bool:
    """Results of a loop that stack the same value are the same array."""
    loop = Loop.of(let)
    first: dict[Atom, Var] = {}
    found = False
    for out, result in zip(loop.outs.stacked, loop.results.stacked):
        if first.setdefault(result, out) is not out and first[result].type == out.type:
            env[out] = first[result]
            found = True
    return found


__all__ = ["cse", "key_of", "pre_ad_safe"]
