"""Stores of derivatives into places that nobody reads any more: they are left out.

In: a differentiated Function. Out: the same without such stores. The adjoint of `y[i] = v` takes the cotangent
out of its place; where no later iteration and nothing behind the loop reads that place, it may as well stay.

    v_bar: f64 = gather(y_bar, i)             v_bar: f64 = gather(y_bar, i)
    a: f64[n] = scatter(y_bar, 0.0, i)   ->
    b: f64[n] = scatter_add(a, w, j)          b: f64[n] = scatter_add(y_bar, w, j)     # and only j is read later
"""

from __future__ import annotations

from collections.abc import Sequence

from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.iterations import Iteration, Region
from metaphrase.core.loops import Loop
from metaphrase.core.places import Places
from metaphrase.late import dataclass

from .rebuild import map_regions, replaced

pre_ad_safe = False


def dead_stores(function: Function) -> Function:
    if not any(map(_may_be_dead, function.lets)):
        return function
    places = Places()
    dead: dict[Var, Atom] = {}
    _search(_Scope(function, Iteration(places)), dead)
    return _without(function, dead) if dead else function


def _may_be_dead(let: Let) -> bool:
    own = let.primitive.stores and let.span is not None and let.span.role == "adjoint"
    inside = let.regions() if let.primitive.name in ("loop", "cond") else ()
    return own or any(_may_be_dead(x) for region in inside for x in region.lets)


def _without(function: Function, dead: dict[Var, Atom]) -> Function:
    lets: list[Let] = []
    env: dict[Var, Atom] = {}
    for old in function.lets:
        let = map_regions(replaced(old, env), lambda region: _without(region, dead))
        if old.outs[:1] and old.outs[0] in dead:
            env[old.outs[0]] = let.args[0]
        else:
            lets.append(let)
    if len(lets) == len(function.lets) and all(a is b for a, b in zip(lets, function.lets)):
        return function
    results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
    return Function(function.name, function.params, tuple(lets), results)


@dataclass(frozen=True)
class _Scope:
    """A region, and where it stands: in which Let, at which position of which region."""

    function: Function
    now: Iteration
    let: Let | None = None
    position: int = 0
    outer: _Scope | None = None


def _search(scope: _Scope, dead: dict[Var, Atom]) -> None:
    scope.now.scalars(scope.function.lets)
    for position, let in enumerate(scope.function.lets):
        if not _may_be_dead(let):
            continue
        if let.primitive.stores:
            region = scope.now.written(let)
            if region is not None and not _read_behind(scope, position, {let.out}, region):
                dead[let.out] = let.args[0]
        elif let.primitive.name == "loop":
            loop, inner = scope.now.inside(let)
            _search(_Scope(loop.body.function, inner, let, position, scope), dead)
        else:
            for branch, operands in _branches(let):
                scope.now.bind(branch.params, operands)
                _search(_Scope(branch, scope.now, let, position, scope), dead)


def _branches(let: Let) -> list[tuple[Function, tuple[Atom, ...]]]:
    """The regions of a `cond` or `call`, with the operands that their parameters stand for."""
    if let.primitive.name == "cond":
        return [(branch, let.args[1:]) for branch in let.attributes["branches"]]
    return [(region, let.args) for region in let.regions()]


def _read_behind(scope: _Scope, position: int, states: set[Var], region: Region) -> bool:
    """Whether anything behind a Let of `scope` may read this region of the arrays `states`."""
    function, let = scope.function, scope.let
    states = set(states)
    if _reads(scope.now, function.lets[position + 1 :], states, region):
        return True
    if not any(r in states for r in function.results):
        return False
    if let is None or scope.outer is None:
        return True
    if let.primitive.name != "loop":
        left = {out for out, r in zip(let.outs, function.results) if r in states}
        return _read_behind(scope.outer, scope.position, left, region)
    loop = Loop.of(let)
    if any(r in states for r in loop.results.stacked):
        return True
    later = scope.outer.now.later(loop, scope.now, function.lets)
    carried = _carried(later, loop, {p for p, r in zip(loop.params.state, loop.results.state) if r in states}, region)
    return carried is None or _read_behind(scope.outer, scope.position, carried, region)


def _carried(iteration: Iteration, loop: Loop, params: set[Var], region: Region) -> set[Var] | None:
    """The results of the loop that the arrays in these parameters of its body get to; None if the region may be
    read."""
    while True:
        states = set(params)
        if _reads(iteration, loop.body.lets, states, region) or any(r in states for r in loop.results.stacked):
            return None
        found = params | {p for p, r in zip(loop.params.state, loop.results.state) if r in states}
        if found == params:
            break
        params = found
    if _condition_reads(loop, params):
        return None
    return {out for p, out in zip(loop.params.state, loop.outs.state) if p in params}


def _reads(iteration: Iteration, lets: Sequence[Let], states: set[Var], region: Region) -> bool:
    """Whether a Let may read this region of `states`, to which is added what becomes of them."""
    return any(_let_reads(iteration, let, states, region) for let in lets if not states.isdisjoint(let.args))


def _let_reads(iteration: Iteration, let: Let, states: set[Var], region: Region) -> bool:
    name, only_the_first = let.primitive.name, states.isdisjoint(let.args[1:])
    if let.primitive.stores and only_the_first:
        states.add(let.out)
        return False
    if let.primitive.takes and only_the_first:
        place = iteration.read(let)
        return place is None or not iteration.places.apart(region, place)
    if name == "loop":
        return _loop_reads(iteration, let, states, region)
    if name == "call" or name == "cond" and let.args[0] not in states:
        return any(_branch_reads(iteration, let, *branch, states, region) for branch in _branches(let))
    return True


def _loop_reads(iteration: Iteration, let: Let, states: set[Var], region: Region) -> bool:
    loop, inner = iteration.inside(let)
    params = {p for p, a in zip(loop.params, loop.args) if a in states}
    consts = params.intersection(loop.params.consts)
    if _condition_reads(loop, consts) or params.intersection(loop.params.rows):
        return True
    if _reads(inner, loop.body.lets, consts, region) or consts.intersection(loop.results):
        return True
    carried = _carried(inner, loop, params.intersection(loop.params.state), region)
    states.update(carried or ())
    return carried is None


def _branch_reads(
    iteration: Iteration, let: Let, branch: Function, operands: Sequence[Atom], states: set[Var], region: Region
) -> bool:
    iteration.bind(branch.params, operands)
    iteration.scalars(branch.lets)
    inside = {p for p, a in zip(branch.params, operands) if a in states}
    if _reads(iteration, branch.lets, inside, region):
        return True
    states.update(v for v, r in zip(let.outs, branch.results) if r in inside)
    return False


def _condition_reads(loop: Loop, params: set[Var]) -> bool:
    """Whether the condition of a loop reads what the body has in these parameters."""
    if loop.condition is None:
        return False
    asked = {q for p, q in zip(loop.params.asked, loop.condition.params) if p in params}
    return any(a in asked for let in loop.condition.lets for a in let.args)


__all__ = ["dead_stores", "pre_ad_safe"]
