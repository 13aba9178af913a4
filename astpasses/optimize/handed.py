"""Numbers that a branch computes once more are handed to it.

In: a Function. Out: the same, whose branches take as operands what was computed before them. Example:

    p: i64 = gather(places, i)                         p: i64 = gather(places, i)
    y = cond(c, places, i, x, branches=(..., then))    y = cond(c, places, i, x, p, branches=(..., then))
    def then(places, i, x):                     ->     def then(places, i, x, p):
        p_1: i64 = gather(places, i)                       ... p ...
        ... p_1 ...

Not before differentiation: what a branch has for itself has its derivative there, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from metaphrase.core.ir import Atom, Function, Let, Var

from .cse import key_of
from .rebuild import map_regions, replaced

pre_ad_safe = False


def handed(function: Function) -> Function:
    """`function` without what branches repeat; the same object where they repeat nothing."""
    asked = any(let.primitive.name == "cond" for let in function.lets)
    seen: dict[tuple, tuple[Var, ...]] = {}
    lets = []
    for old in function.lets:
        let = _with_numbers(old, seen) if old.primitive.name == "cond" else old
        lets.append(map_regions(let, handed))
        if asked and (key := key_of(old, {})) is not None:
            seen.setdefault(key, old.outs)
    if all(new is old for new, old in zip(lets, function.lets)):
        return function
    return Function(function.name, function.params, tuple(lets), function.results)


def _with_numbers(let: Let, seen: Mapping[tuple, tuple[Var, ...]]) -> Let:
    """A cond whose branches are handed the numbers in `seen`, what was computed before it."""
    branches = let.attributes["branches"]
    repeated = [_repeated(branch, dict(zip(branch.params, let.args[1:])), seen) for branch in branches]
    if not any(repeated):
        return let
    more = [a for a in dict.fromkeys(a for found in repeated for a in found.values()) if a not in let.args[1:]]
    made = []
    for branch, found in zip(branches, repeated):
        own = {a: Var(a.name, a.type) for a in more}
        params = {a: p for p, a in zip(branch.params, let.args[1:])} | own
        env: dict[Var, Atom] = {inner: params[a] for inner, a in found.items()}
        lets = tuple(replaced(x, env) for x in branch.lets if not x.outs or x.outs[0] not in found)
        results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in branch.results)
        made.append(Function(branch.name, (*branch.params, *own.values()), lets, results))
    return Let(let.outs, let.primitive, (*let.args, *more), {**let.attributes, "branches": tuple(made)}, let.span)


def _repeated(branch: Function, outer: dict[Var, Atom], seen: Mapping[tuple, tuple[Var, ...]]) -> dict[Var, Var]:
    """Numbers of a branch, by those before it that they equal. `outer`: what the branch's parameters are there."""
    found: dict[Var, Var] = {}
    for let in branch.lets:
        if let.primitive.region or len(let.outs) != 1 or let.out.type.dims:
            continue
        if all(a in outer for a in let.args if isinstance(a, Var)):
            key = key_of(replaced(let, outer), {})
            before = seen.get(key, ()) if key is not None else ()
            if before and before[0].type == let.out.type:
                outer[let.out] = before[0]
                if let.out.type.value is None:  # a size is known anyway
                    found[let.out] = before[0]
    return found


__all__ = ["handed", "pre_ad_safe"]
