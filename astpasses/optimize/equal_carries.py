"""Carries that begin equal and are made equal by every iteration are one.

In: a Function. Out: the same with one carry for all that are equal, as the lengths of arrays are that shrink together.
What asks whether they are equal is answered then. Example:

    for ...:                                              for ...:
        z, c = z[keep], c[keep]      # two lengths   ->       z, c = z[keep], c[keep]      # of one length
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop, Parts, Step

from .rebuild import map_regions, replaced

pre_ad_safe = True


def equal_carries(function: Function) -> Function:
    lets: list[Let] = []
    env: dict[Var, Atom] = {}
    for old in function.lets:
        let = map_regions(replaced(old, env), equal_carries)
        firsts = _firsts(Loop.of(let)) if let.primitive.name == "loop" else {}
        if firsts:
            loop = Loop.of(let)
            let = _without(loop, firsts)
            env.update((loop.outs.carries[k], loop.outs.carries[first]) for k, first in firsts.items())
        lets.append(let)
    if all(new is old for new, old in zip(lets, function.lets)):
        return function
    results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
    return Function(function.name, function.params, tuple(lets), results)


def _firsts(loop: Loop) -> dict[int, int]:
    """For the carries that equal one before them, by number, the first of these: those are told apart, again and again,
    that began apart or are made of what is apart."""
    params: dict[Any, int] = {param: k for k, param in enumerate(loop.params.carries)}
    firsts = _first_of_each([(start, param.type) for start, param in zip(loop.args.carries, params)])
    while True:
        made = [firsts[params[r]] if r in params else r for r in loop.results.carries]
        apart = _first_of_each(list(zip(firsts, made)))
        if apart == firsts:
            return {k: first for k, first in enumerate(firsts) if first != k}
        firsts = apart


def _first_of_each(kinds: Sequence[Hashable]) -> list[int]:
    """For each of them the number of the first one that equals it."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(kind, k) for k, kind in enumerate(kinds)]


def _without(loop: Loop, firsts: dict[int, int]) -> Let:
    """The loop without these carries."""

    def stay(parts: Parts) -> Parts:
        carries = tuple(c for k, c in enumerate(parts.carries) if k not in firsts)
        return replace(parts, carries=carries)

    def step(old: Step) -> Step:
        carries = old.params.carries
        env: dict[Any, Atom] = {carries[k]: carries[first] for k, first in firsts.items()}
        lets = tuple(replaced(let, env) for let in old.lets)
        params, results = stay(old.params), stay(old.results).renamed(env)
        given = tuple(results) or tuple(env.get(r, r) for r in old.function.results)  # of a condition they have no role
        return Step(Function(old.function.name, (old.index, *params), lets, given), params, results)

    condition = loop.condition and step(loop.condition)
    return replace(loop, args=stay(loop.args), body=step(loop.body), condition=condition, outs=stay(loop.outs)).let()


__all__ = ["equal_carries", "pre_ad_safe"]
