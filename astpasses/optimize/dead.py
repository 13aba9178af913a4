"""Dead code: operations, carries, rows, constants, branch results and operands that nothing depends on.

In: a Function. Out: the same results from less; effects stay. A carry that never changes becomes a constant
of the loop.

    T, E, n = loop(e, M, M, 0, body=..., ...)     ->     T, E = loop(e, M, M, body=..., ...)       # n is not
    read
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from metaphrase.core.calls import derived
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop, Parts
from metaphrase.core.types import type_symbols

from .rebuild import replaced

pre_ad_safe = True


def dead(function: Function) -> Function:
    """`function` without dead code; the same object when there is none."""
    return _pruned(function, [True] * len(function.results))


def _pruned(function: Function, wanted: Sequence[bool]) -> Function:
    """The Function with only the wanted results, and the Lets they need. Parameters stay."""
    results = tuple(_kept(function.results, wanted))
    need = _Need(results)
    lets: list[Let] = []
    env: dict[Var, Atom] = {}
    for let in reversed(function.lets):
        if not need.of(let):
            continue
        known = len(env)
        lets.append(_narrowed(let, need.values, env, need.sizes))
        need.add(lets[-1])
        if len(env) > known:
            need.values.update(a for a in env.values() if isinstance(a, Var))
    lets.reverse()
    if env:
        env = {v: _final(a, env) for v, a in env.items()}
        lets = [replaced(let, env) for let in lets]
        results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in results)
    if _same(lets, function.lets) and _same(results, function.results):
        return function
    return Function(function.name, function.params, tuple(lets), results)


class _Need:
    """What results depend on: values, and sizes by their symbols."""

    def __init__(self, results: Sequence[Atom]):
        self.values = {r for r in results if isinstance(r, Var)}
        self.sizes = {symbol for r in results for symbol in type_symbols(r.type)}

    def of(self, let: Let) -> bool:
        """Whether an operation gives any of it; effects are always needed."""
        return bool(let.effects or self.values.intersection(let.outs) or let.own_symbols() & self.sizes)

    def add(self, let: Let) -> None:
        self.values.update(a for a in let.args if isinstance(a, Var))
        self.sizes |= let.uses_symbols()


def _same(new: Sequence, old: Sequence) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old))


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
        return _call(let, needed)
    return let


# --- loops -----------------------------------------------------------------------------------------------


def _loop(let: Let, needed: set[Var], env: dict[Var, Atom], sizes: set[str]) -> Let:
    was = Loop.of(let)
    loop = _with_constants(was, needed, env)
    live = _live(loop, needed, sizes)
    body, condition = loop.body.function, loop.condition
    inner = body if all(live) else _pruned(body, [*live])
    inner = _pruned(inner, [True] * len(inner.results))
    used = _used(inner)
    if condition is not None:
        condition = replace(condition, function=_pruned(condition.function, [True]))
        asked = _used(condition.function)
        used |= {p for p, q in zip(loop.params.asked, condition.params) if q in asked}
    keep = loop.params.map(lambda p: p in used).replace(carries=live.carries, accumulators=live.accumulators)
    if loop is was and inner is body and condition == loop.condition and all(live) and all(keep):
        return let
    names = tuple(_kept(loop.segment_sizes, live.segments))
    gone = {loop.binder(name) for name in loop.segment_sizes if name not in names}
    results = loop.results.where(live).like(inner.results)
    return replace(
        loop,
        args=loop.args.where(keep),
        body=replace(loop.body, function=inner).changed(params=loop.params.where(keep), results=results),
        condition=condition and condition.changed(params=condition.params.where(keep.asked)),
        segment_sizes=names,
        sizes=tuple(v for v in loop.sizes if v not in gone),
        outs=loop.outs.where(live),
    ).let()


def _with_constants(loop: Loop, needed: set[Var], env: dict[Var, Atom]) -> Loop:
    """The loop whose carries that never change are constants; `env` gets what they are behind it."""
    fixed = [r is p for r, p in zip(loop.results.carries, loop.params.carries)]
    if not any(fixed):
        return loop
    changing = [not f for f in fixed]

    def moved(parts: Parts) -> Parts:
        consts = (*parts.consts, *_kept(parts.carries, fixed))
        return parts.replace(consts=consts, carries=_kept(parts.carries, changing))

    def left(parts: Parts) -> Parts:
        return parts.replace(carries=_kept(parts.carries, changing))

    env.update((v, a) for v, a, f in zip(loop.outs.carries, loop.args.carries, fixed) if f and v in needed)
    return replace(
        loop,
        args=moved(loop.args),
        body=loop.body.changed(params=moved(loop.params), results=left(loop.results)),
        condition=loop.condition and loop.condition.changed(params=moved(loop.condition.params)),
        outs=left(loop.outs),
    )


def _live(loop: Loop, needed: set[Var], sizes: set[str]) -> Parts[bool]:
    """The results that are needed, and the state that they depend on, to a fixpoint over the iterations."""
    live = loop.outs.map(lambda out: out in needed)
    live = live.replace(segments=_live_segments(loop, [*live.segments], needed, sizes))
    if loop.condition is not None:
        asked = _needed_params(loop.condition.function, [True])
        live = live.replace(carries=(a or p in asked for a, p in zip(live.carries, loop.condition.params.carries)))
    while True:
        asked = _needed_params(loop.body.function, [*live])
        before, live = (
            live,
            live.replace(
                carries=(a or p in asked for a, p in zip(live.carries, loop.params.carries)),
                accumulators=(a or p in asked for a, p in zip(live.accumulators, loop.params.accumulators)),
            ),
        )
        if live == before:
            return live


def _live_segments(loop: Loop, live: list[bool], needed: set[Var], sizes: set[str]) -> list[bool]:
    """The segments that are needed; one of each size that is needed for itself."""
    have = {name for name, alive in zip(loop.segment_sizes, live) if alive}
    for k, name in enumerate(loop.segment_sizes):
        if name not in have and (name in sizes or loop.binder(name) in needed):
            live[k] = True
            have.add(name)
    return live


def _kept(items: Sequence, marks: Sequence[bool]) -> list:
    return [x for x, m in zip(items, marks) if m]


def _used(function: Function) -> set[Var]:
    found = {a for let in function.lets for a in let.args if isinstance(a, Var)}
    return found | {r for r in function.results if isinstance(r, Var)}


def _needed_params(function: Function, wanted: Sequence[bool]) -> set[Var]:
    """Values of a region that its wanted results and its effects depend on; inner regions count as wholes."""
    need = _Need(_kept(function.results, wanted))
    for let in reversed(function.lets):
        if need.of(let):
            need.add(let)
    return need.values


# --- calls ---------------------------------------------------------------------------------------------------------


def _call(let: Let, needed: set[Var]) -> Let:
    """Results that nobody reads and operands that the rest does not read go; calls of which the same is read
    stay calls of one function."""
    function: Function = let.attributes["function"]
    wanted = tuple(v in needed for v in let.outs)
    new, keep = derived(function, ("narrowed", wanted), lambda: _narrowed_callee(function, wanted))
    if new is function:
        return let
    args = tuple(_kept(let.args, keep))
    return Let(tuple(_kept(let.outs, wanted)), let.primitive, args, {"function": new}, let.span)


def _narrowed_callee(function: Function, wanted: Sequence[bool]) -> tuple[Function, list[bool]]:
    new = _pruned(function, wanted)
    used = _used(new)
    keep = [p in used for p in function.params]
    if all(keep):
        return new, keep
    return Function(new.name, tuple(_kept(new.params, keep)), new.lets, new.results), keep


# --- branches --------------------------------------------------------------------------------------------


def _cond(let: Let, needed: set[Var], env: dict[Var, Atom]) -> Let:
    """Results nobody reads, results that are one operand in every branch, and operands nobody reads go."""
    branches: tuple[Function, ...] = let.attributes["branches"]
    operands = let.args[1:]
    passed_on = _passed_on(branches, operands)
    env.update((out, a) for out, a in zip(let.outs, passed_on) if out in needed and a is not None)
    wanted = [out in needed and a is None for out, a in zip(let.outs, passed_on)]
    new = [_pruned(b, wanted) for b in branches]
    used = [_used(b) for b in new]
    keep = [any(p in u for p, u in zip(params, used)) for params in zip(*(b.params for b in new))]
    if all(keep) and all(wanted) and _same(new, branches):
        return let
    new = [Function(b.name, tuple(_kept(b.params, keep)), b.lets, b.results) for b in new]
    return Let(
        tuple(_kept(let.outs, wanted)),
        let.primitive,
        (let.args[0], *_kept(operands, keep)),
        {**let.attributes, "branches": tuple(new)},
        let.span,
    )


def _passed_on(branches: Sequence[Function], operands: Sequence[Atom]) -> list[Atom | None]:
    """For each result the operand that it is in every branch, or None."""
    number = [{p: k for k, p in enumerate(b.params)} for b in branches]
    found: list[Atom | None] = []
    for results in zip(*(b.results for b in branches)):
        numbers = {of.get(r) for of, r in zip(number, results)}  # type: ignore[arg-type]
        k = numbers.pop() if len(numbers) == 1 else None
        found.append(None if k is None else operands[k])
    return found


__all__ = ["dead", "pre_ad_safe"]
