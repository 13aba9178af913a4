"""An array that a loop changes in few places is not stored at every step for the loop that runs back: what
was overwritten is, and the way back undoes the steps.

In: a Function. Out: the same, without such rows. The gradient of `x[i] = x[i] * x[k]` reads `x` backwards:

    def body(i, x):                          def body(i, x):
        ...                                      old = gather(x, i)
        y = scatter(x, v, i)                     y = scatter(x, v, i)
        return y, x                   ->         return y, old
    y, xs = loop(x, ...)                     y, olds = loop(x, ...)
    def back(i, bar, x):                     def back(i, bar, y, old):
        ...                                      x = scatter(y, old, i)
        return bar                               return bar, x
    bar = loop(bar, xs, reverse=True)        bar, _ = loop(bar, y, olds, reverse=True)

A loop of n stores into n elements so keeps n numbers, not n arrays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from metaphrase.core.build import Builder
from metaphrase.core.dims import product
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.iterations import stores_between
from metaphrase.core.loops import Loop, Parts
from metaphrase.core.types import Array, type_symbols
from metaphrase.late import dataclass
from metaphrase.ops.indexing import gather, scatter, slice_update
from metaphrase.ops.indexing import slice as slice_primitive

from .rebuild import map_regions, replaced

pre_ad_safe = False


@dataclass(frozen=True)
class Plan:
    """The carry number `carry` of a loop goes through the `writes`, and the results `stacks` stack one of its
    values: before any write (0), after the first (1), ..."""

    carry: int
    writes: tuple[Let, ...]
    stacks: dict[Atom, int]


def undo(function: Function) -> Function:
    lets = [map_regions(let, undo) for let in function.lets]
    changed = any(a is not b for a, b in zip(lets, function.lets))
    for position, let in enumerate(lets):
        if let.primitive.name != "loop" or let.attributes.get("reverse", False):
            continue
        loop = Loop.of(let)
        for plan in reversed(_plans(function, lets[position + 1 :], loop)):
            changed = True
            loop, saved = _saving(loop, plan)
            lets[position] = loop.let()
            for later in range(position + 1, len(lets)):
                if any(a in plan.stacks for a in lets[later].args):
                    lets[later] = _undoing(Loop.of(lets[later]), loop, plan, saved).let()
    return Function(function.name, function.params, tuple(lets), function.results) if changed else function


# ---- what can be undone ------------------------------------------------------------------------------------


def _plans(function: Function, later: list[Let], loop: Loop) -> list[Plan]:
    found = []
    for carry, (param, result) in enumerate(zip(loop.params.carries, loop.results.carries)):
        writes = _writes(loop.body.function, param, result)
        if not writes or not _few(loop.body.function, writes, param.type):
            continue
        stages: dict[Atom, int] = {param: 0, **{w.out: k + 1 for k, w in enumerate(writes)}}
        rows = zip(loop.outs.rows, loop.results.rows)
        stacks: dict[Atom, int] = {
            out: stages[r] for out, r in rows if r in stages and _only_back(function, later, out)
        }
        if stacks:
            found.append(Plan(carry, writes, stacks))
    return found


def _writes(body: Function, param: Var, result: Atom) -> tuple[Let, ...]:
    """The stores that lead from the carry to its next value; none when it comes about otherwise."""
    writes = tuple(store.let for store in stores_between(body.lets, param, result) or ())
    return writes if all(let.primitive.stores for let in writes) else ()


def _few(body: Function, writes: tuple[Let, ...], whole: Array) -> bool:
    """Whether the stores write much less than the array, in sizes that are known outside of the loop."""
    local = {s for let in body.lets for s in let.own_symbols()}
    parts = [a.type for let in writes for a in let.args[1:] if isinstance(a, Var)]
    if any(type_symbols(t.plain) & local for t in parts):
        return False
    counts = [product(t.dims) for t in parts]
    size = product(whole.dims)
    if isinstance(size, int):
        return (
            all(isinstance(c, int) for c in counts) and 2 * sum(counts) <= size  # type: ignore[arg-type, operator]
        )
    return all(t.ndim < whole.ndim and not Counter(t.dims) - Counter(whole.dims) for t in parts)


def _only_back(function: Function, later: list[Let], stack: Var) -> bool:
    """Whether only loops that run back over the same iterations, one after the other, go through `stack`."""
    if stack in function.results:
        return False
    users = [let for let in later if stack in let.args]
    return bool(users) and all(let.primitive.name == "loop" and _runs_back(Loop.of(let), stack) for let in users)


def _runs_back(loop: Loop, stack: Var) -> bool:
    over_the_same = loop.condition is None and loop.length == stack.type.dims[0]
    once = loop.args.rows.count(stack) == 1 == [*loop.args].count(stack)
    return loop.reverse and not loop.parallel and over_the_same and once


# ---- the two loops -----------------------------------------------------------------------------------------


def _saving(loop: Loop, plan: Plan) -> tuple[Loop, list[Var]]:
    """The first loop, which stacks what its stores overwrite and where, not the array; and those stacks."""
    new: list[Atom] = []
    with Builder() as builder:
        for inner in loop.body.lets:
            if inner in plan.writes:
                array, value, *places = inner.args
                if "axes" in inner.attributes:
                    old = gather(array, *places, axes=inner.attributes["axes"])
                else:
                    step = inner.attributes["step"]
                    old = slice_primitive(array, *places, shape=value.type.dims, step=step)
                old.name = f"old_{loop.params.carries[plan.carry].name}"
                new += [old, *(p for p in places if _to_stack(loop, p))]
            builder.lets.append(inner)
    length = next(iter(plan.stacks)).type.dims[0]
    stacks = [Var(getattr(a, "name", "old"), Array(a.type.dtype, (length, *a.type.dims))) for a in new]
    keep = loop.outs.map(lambda out: out not in plan.stacks)
    results = loop.results.where(keep) + Parts(rows=tuple(new))
    body = loop.body.changed(builder.lets, results=results)
    return replace(loop, body=body, outs=loop.outs.where(keep) + Parts(rows=tuple(stacks))), stacks


def _to_stack(loop: Loop, place: Atom) -> bool:
    """A place that differs from step to step and is not the counter."""
    return isinstance(place, Var) and place is not loop.index and place not in loop.params.consts


def _undoing(loop: Loop, first: Loop, plan: Plan, saved: list[Var]) -> Loop:
    """The loop that runs back, with the array as a carry."""
    outer: dict[Atom, Atom] = dict(zip(first.params.consts, first.args.consts))
    last = first.outs.carries[plan.carry]
    array = Var(last.name, last.type)
    read = [Var(s.name, Array(s.type.dtype, s.type.dims[1:])) for s in saved]
    given: dict[Atom, Var] = {}  # consts of the first loop that say where
    parts = iter(read)

    def here(place: Atom) -> Atom:
        """A place of the first loop, in this one."""
        if _to_stack(first, place):
            return next(parts)
        if place in outer:
            return given.setdefault(place, Var(place.name, place.type))  # type: ignore[union-attr]
        return loop.index if isinstance(place, Var) else place

    with Builder() as builder:
        undone = [[next(parts), *map(here, write.args[2:])] for write in plan.writes]
        values: list[Atom] = [array]  # after all writes, before the last, ...
        for write, operands in zip(reversed(plan.writes), reversed(undone)):
            values.append(
                (slice_update if "step" in write.attributes else scatter)(values[-1], *operands, **write.attributes)
            )
        values.reverse()
    env = {p: values[plan.stacks[a]] for p, a in zip(loop.params.rows, loop.args.rows) if a in plan.stacks}
    left = loop.args.map(lambda a: a not in plan.stacks)
    params = loop.params.where(left) + Parts(tuple(given.values()), (array,), rows=tuple(read))
    results = loop.results.renamed(env) + Parts(carries=(values[0],))
    return replace(
        loop,
        args=loop.args.where(left) + Parts(tuple(outer[c] for c in given), (last,), rows=tuple(saved)),
        body=loop.body.changed([*builder.lets, *(replaced(x, env) for x in loop.body.lets)], params, results),
        outs=loop.outs + Parts(carries=(Var(last.name, last.type),)),
    )


__all__ = ["undo", "pre_ad_safe"]
