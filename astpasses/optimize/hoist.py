"""Loop invariants: what an iteration computes from constants alone is computed once, before the loop.

In: a Function. Out: the same with such operations moved out of loop bodies and conditions. Only pure
operations that can't fail move (a loop may run no iteration at all), and only when they compute: what merely
moves elements goes along with what needs it. Sizes bound inside the body keep their operations inside, unless they are
counts of what does not change.

    loop(e, ..., body: c = cos(e); mul(c, E))     ->     c = cos(e); loop(c, ..., body: mul(c, E))
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from metaphrase.core.dims import DimLike, product
from metaphrase.core.facts import Facts
from metaphrase.core.guarded import is_count, needs_a_check
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.loops import Loop, Parts, Step
from metaphrase.core.native import Gather, Lib, Move, Put, Reduce
from metaphrase.core.scalars import FREE, MONOIDS

from .rebuild import map_regions, replaced

pre_ad_safe = True
NO_FACTS = Facts()


def hoist(function: Function) -> Function:
    lets: list[Let] = []
    changed = False
    for old in function.lets:
        let = map_regions(old, hoist)
        if let.primitive.name == "loop":
            moved, let = _loop(let)
            lets += moved
        changed |= let is not old
        lets.append(let)
    return Function(function.name, function.params, tuple(lets), function.results) if changed else function


def _loop(let: Let) -> tuple[list[Let], Let]:
    """The Lets that leave the loop, and the loop without them."""
    loop = Loop.of(let)
    moved: list[Let] = []
    runs = loop.condition is None and loop.length is not None and NO_FACTS.less(0, loop.length)
    body, from_body = _without_invariants(loop.body, loop.args.consts, moved, runs)
    condition, from_condition = loop.condition, dict[Var, Var]()
    if condition is not None:
        condition, from_condition = _without_invariants(condition, loop.args.consts, moved, True)
    copies = {**from_body, **from_condition}
    if not copies:
        return [], let
    new = replace(
        loop,
        args=loop.args + Parts(consts=tuple(copies.values())),
        body=_with_consts(body, [*copies], used=from_body),
        condition=condition and _with_consts(condition, [*copies], used=from_condition),
    )
    return moved, new.let()


def _without_invariants(
    step: Step, consts: tuple[Atom, ...], moved: list[Let], runs: bool
) -> tuple[Step, dict[Var, Var]]:
    """The region without its invariants that are worth it; those of them that the rest still reads, with
    their copies outside."""
    env: dict[Var, Atom] = dict(zip(step.params.consts, consts))
    leaving = _worth_moving(step, _invariant(step, runs))
    if not leaving:
        return step, {}
    rest = []
    copies: dict[Var, Var] = {}
    for let in step.lets:
        if id(let) not in leaving:
            rest.append(let)
            continue
        outs = tuple(Var(v.name, v.type) for v in let.outs)
        args = replaced(let, {**env, **copies}).args
        copies.update(zip(let.outs, outs))
        moved.append(Let(outs, let.primitive, args, let.attributes, let.span))
    read = {a for let in rest for a in let.args} | set(step.function.results)
    return step.changed(rest), {v: outside for v, outside in copies.items() if v in read}


def _invariant(step: Step, runs: bool) -> dict[Var, Let]:
    """What may be computed outside of the loop: of constants alone, by operations that can't fail, or not unless a
    check before them fails: that may never be asked. `runs`: the loop has an iteration, for sure."""
    guarded = False
    bound = {symbol for let in step.lets for symbol in let.own_symbols()}
    outside: set[Atom] = set(step.params.consts)
    found: dict[Var, Let] = {}
    asked = _asked(step)
    for let in step.lets:
        guarded |= "failing" in let.effects
        if let.primitive.region or let.effects or let.uses_symbols() & bound:
            continue
        if let.own_symbols() and not (let.primitive.name == "as_dim" and is_count(let.args[0], found)):
            continue
        if guarded and (needs_a_check(let) or let.primitive.stores) or _may_have_no_size(let):
            continue
        if not runs and (_may_be_outside(let, found) or _is_refused(let, asked)):
            continue
        if all(isinstance(a, Literal) or a in outside for a in let.args):
            found.update((v, let) for v in let.outs)
            outside.update(let.outs)
            bound -= let.own_symbols()
    return found


def _may_be_outside(let: Let, found: Mapping[Var, Let]) -> bool:
    """Whether an operation takes elements, or stores some, that are not seen to be there. In a derivative the check of
    them may be the value's, in a loop that has no iteration if this one has none."""
    native, out = let.primitive.native, let.outs[0].type
    if let.primitive.name == "reshape":
        return product(let.args[0].type.dims) != product(out.dims)
    if not isinstance(native, (Gather, Put)):
        return False
    dims, places = let.args[0].type.dims, let.args[1 if isinstance(native, Gather) else 2 :]
    if native.kind.endswith("slice"):
        shape = out.dims if isinstance(native, Gather) else let.args[1].type.dims
        regions = zip(places, shape, let.attributes["step"], dims)
        return not all(_is_inside(*region) for region in regions)
    return not all(_names_one(place, dims[axis], found) for place, axis in zip(places, let.attributes["axes"]))


def _asked(step: Step) -> set[Atom]:
    """What the results and the checks of the region are made of."""
    asked = set(step.function.results)
    for let in reversed(step.lets):
        if let.effects or not asked.isdisjoint(let.outs):
            asked.update(let.args)
    return asked


def _is_refused(let: Let, asked: Collection[Atom]) -> bool:
    """Whether NumPy may refuse what it is given, an empty array or a singular matrix, and no check of it is here: in a
    derivative that is the value's."""
    native = let.primitive.native
    if isinstance(native, Reduce) and not (native.monoid in MONOIDS and MONOIDS[native.monoid].of_nothing):
        dims = let.args[0].type.dims
        return not all(NO_FACTS.less(0, dims[axis]) for axis in let.attributes["axes"])
    flag = let.outs[-1]
    return isinstance(native, Lib) and len(let.outs) > 1 and flag.type.dtype == bool and flag not in asked


def _is_inside(start: Atom, length: DimLike, step: int, extent: DimLike) -> bool:
    """Whether each element of a region of a dim is one of the dim."""
    first = _number(start)
    if length == 0 or first is None:
        return length == 0
    last = first + (length - 1) * step
    low, high = (first, last) if step > 0 else (last, first)
    return NO_FACTS.nonnegative(low) and NO_FACTS.less(high, extent)


def _names_one(place: Atom, extent: DimLike, found: Mapping[Var, Let]) -> bool:
    """Whether each index is of an element of a dim."""
    number = _number(place)
    if number is not None:
        return NO_FACTS.nonnegative(number) and NO_FACTS.less(number, extent)
    let = found.get(place) if isinstance(place, Var) else None
    if let is None or not let.primitive.places:
        return False
    of = (let.args or let.outs)[0].type.dims[let.attributes.get("axis", 0)]
    return NO_FACTS.less_equal(of, extent)


def _number(atom: Atom) -> DimLike | None:
    """An integer that is known, or is a size."""
    return atom.type.value if isinstance(atom, Var) else int(atom.value)


def _may_have_no_size(let: Let) -> bool:
    """Whether an array is made of numbers, of a size that may be negative where the loop has no iterations."""
    made = not any(a.type.dims for a in let.args)
    return made and not all(NO_FACTS.nonnegative(d) for v in let.outs for d in v.type.dims)


def _worth_moving(step: Step, invariant: dict[Var, Let]) -> set[int]:
    """The operations whose move saves more than it costs, and what they are made from."""
    worth = {id(let) for let in invariant.values() if _computes(let)}
    sizes = {symbol: let for let in invariant.values() for symbol in let.own_symbols()}
    for let in reversed(step.lets):
        if id(let) in worth:
            worth.update(id(invariant[a]) for a in let.args if isinstance(a, Var) and a in invariant)
            worth.update(id(sizes[symbol]) for symbol in let.uses_symbols() & sizes.keys())
    return worth


def _computes(let: Let) -> bool:
    """Whether moving the operation saves more than it costs to hand its result in."""
    return bool(let.args) and not isinstance(let.primitive.native, (Move, Gather)) and let.primitive.cost > FREE


def _with_consts(step: Step, extra: Sequence[Var], used: Collection[Var]) -> Step:
    """The region with further constant parameters; those it does not read are fresh."""
    params = tuple(v if v in used else Var(v.name, v.type) for v in extra)
    return step.changed(params=step.params + Parts(consts=params))


__all__ = ["hoist", "pre_ad_safe"]
