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
from dataclasses import dataclass

from metaphrase.core.build import Builder
from metaphrase.core.dims import product
from metaphrase.core.ir import Atom, Function, Let, Roles, Var
from metaphrase.core.types import Array, type_symbols
from metaphrase.ops.indexing import gather, scatter, slice_update
from metaphrase.ops.indexing import slice as slice_primitive

from .rebuild import map_regions, replaced

pre_ad_safe = False
WRITES = {"scatter": scatter, "slice_update": slice_update, "scatter_add": scatter, "slice_add": slice_update}


@dataclass(frozen=True)
class Plan:
    """The carry number `carry` of a loop goes through the `writes`, and the results `rows` (numbers of outs)
    stack one of its values: before any write (0), after the first (1), ..."""

    carry: int
    writes: tuple[Let, ...]
    rows: dict[int, int]


def undo(function: Function) -> Function:
    lets = [map_regions(let, lambda region, operands: undo(region)) for let in function.lets]
    changed = any(a is not b for a, b in zip(lets, function.lets))
    for position, let in enumerate(lets):
        if let.primitive.name != "loop" or let.attributes.get("reverse", False):
            continue
        for plan in reversed(_plans(function, lets, position)):
            changed = True
            kept, saved = _saving(lets[position], plan)
            stacks = {lets[position].outs[k]: stage for k, stage in plan.rows.items()}
            lets[position] = kept
            for later in range(position + 1, len(lets)):
                if any(a in stacks for a in lets[later].args):
                    lets[later] = _undoing(lets[later], stacks, kept, plan, saved)
    return Function(function.name, function.params, tuple(lets), function.results) if changed else function


# ---- what can be undone ------------------------------------------------------------------------------------


def _plans(function: Function, lets: list[Let], position: int) -> list[Plan]:
    let = lets[position]
    roles: Roles = let.attributes["roles"]
    body: Function = let.attributes["body"]
    lead = len(let.own_symbols())
    carries = roles.parts(body.params[1:])[1]
    found = []
    for carry, param in enumerate(carries):
        writes = _writes(body, param, body.results[carry])
        if not writes or not _few(body, writes, param.type):
            continue
        stages: dict[Atom, int] = {param: 0, **{w.out: k + 1 for k, w in enumerate(writes)}}
        first = lead + roles.carries + roles.accumulators
        rows = {
            k: stages[body.results[k - lead]]
            for k in range(first, len(let.outs) - roles.segments)
            if body.results[k - lead] in stages and _only_back(function, lets, position, let.outs[k])
        }
        if rows:
            found.append(Plan(carry, writes, rows))
    return found


def _writes(body: Function, param: Var, result: Atom) -> tuple[Let, ...]:
    """The stores that lead from the carry to its next value; none when it comes about otherwise."""
    made = {out: let for let in body.lets for out in let.outs}
    writes: list[Let] = []
    while result is not param:
        let = made.get(result) if isinstance(result, Var) else None
        if let is None or let.primitive.name not in WRITES:
            return ()
        writes.insert(0, let)
        result = let.args[0]
    return tuple(writes)


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


def _only_back(function: Function, lets: list[Let], position: int, stack: Var) -> bool:
    """Whether only loops that run back over the same iterations, one after the other, go through `stack`."""
    if stack in function.results:
        return False
    users = [let for let in lets[position + 1 :] if stack in let.args]
    return bool(users) and all(_runs_back(let, stack) for let in users)


def _runs_back(let: Let, stack: Var) -> bool:
    if let.primitive.name != "loop" or let.attributes["cond"] is not None:
        return False
    roles: Roles = let.attributes["roles"]
    *others, rows = roles.parts(let.args)
    return (
        let.attributes.get("reverse", False)
        and not let.attributes.get("parallel", False)
        and let.attributes["length"] == stack.type.dims[0]
        and rows.count(stack) == 1
        and not any(stack in group for group in others)
    )


# ---- the two loops -----------------------------------------------------------------------------------------


def _saving(let: Let, plan: Plan) -> tuple[Let, list[Var]]:
    """The first loop, which stacks what its stores overwrite and where, not the array; and those stacks."""
    body: Function = let.attributes["body"]
    roles: Roles = let.attributes["roles"]
    with Builder(body.name) as builder:
        builder.params = list(body.params)
        new: list[Atom] = []
        for inner in body.lets:
            if inner in plan.writes:
                array, value, *places = inner.args
                if "axes" in inner.attributes:
                    old = gather(array, *places, axes=inner.attributes["axes"])
                else:
                    step = inner.attributes["step"]
                    old = slice_primitive(array, *places, shape=value.type.dims, step=step)
                old.name = f"old_{body.params[1 + roles.consts + plan.carry].name}"
                new += [old, *(p for p in places if _to_stack(body, let, p))]
            builder.lets.append(inner)
        lead = len(let.own_symbols())
        kept = [r for k, r in enumerate(body.results) if k + lead not in plan.rows]
        cut = len(kept) - roles.segments
        made = builder.function([*kept[:cut], *new, *kept[cut:]])
    length = let.outs[min(plan.rows)].type.dims[0]
    stacks = [Var(getattr(a, "name", "old"), Array(a.type.dtype, (length, *a.type.dims))) for a in new]
    outs = [o for k, o in enumerate(let.outs) if k not in plan.rows]
    outs[len(outs) - roles.segments : len(outs) - roles.segments] = stacks
    return Let(tuple(outs), let.primitive, let.args, {**let.attributes, "body": made}, let.span), stacks


def _to_stack(body: Function, let: Let, place: Atom) -> bool:
    """A place that differs from step to step and is not the counter."""
    consts = let.attributes["roles"].parts(body.params[1:])[0]
    return isinstance(place, Var) and place is not body.params[0] and place not in consts


def _undoing(let: Let, stacks: dict[Var, int], first: Let, plan: Plan, saved: list[Var]) -> Let:
    """The loop that runs back, with the array as a carry."""
    body: Function = let.attributes["body"]
    roles: Roles = let.attributes["roles"]
    forward: Function = first.attributes["body"]
    first_roles: Roles = first.attributes["roles"]
    consts, carries, accumulators, rows = roles.parts(let.args)
    params = roles.parts(body.params[1:])
    outer: dict[Atom, Atom] = dict(zip(forward.params[1 : 1 + first_roles.consts], first.args))
    last = first.outs[len(first.own_symbols()) + plan.carry]
    array = Var(last.name, last.type)
    read = [Var(s.name, Array(s.type.dtype, s.type.dims[1:])) for s in saved]
    given: dict[Atom, Var] = {}  # consts of the first loop that say where

    with Builder(body.name) as builder:
        parts = iter(read)
        undone: list[list[Atom]] = []
        for write in plan.writes:
            old: Atom = next(parts)
            where: list[Atom] = []
            for place in write.args[2:]:
                if _to_stack(forward, first, place):
                    where.append(next(parts))
                elif place in outer:
                    where.append(given.setdefault(place, Var(place.name, place.type)))  # type: ignore[union-attr]
                else:
                    where.append(body.params[0] if isinstance(place, Var) else place)
            undone.append([old, *where])
        values: list[Atom] = [array]  # after all writes, before the last, ...
        for write, operands in zip(reversed(plan.writes), reversed(undone)):
            values.append(WRITES[write.primitive.name](values[-1], *operands, **write.attributes))
        values.reverse()
        env = {p: values[stacks[a]] for p, a in zip(params[3], rows) if a in stacks}
        left = [(p, a) for p, a in zip(params[3], rows) if a not in stacks]
        builder.params = [
            body.params[0],
            *params[0],
            *given.values(),
            *params[1],
            array,
            *params[2],
            *(p for p, _ in left),
            *read,
        ]
        builder.lets += [replaced(inner, env) for inner in body.lets]
        results = [env.get(r, r) if isinstance(r, Var) else r for r in body.results]
        made = builder.function([*results[: roles.carries], values[0], *results[roles.carries :]])
    args = (*consts, *(outer[c] for c in given), *carries, last, *accumulators, *(a for _, a in left), *saved)
    new_roles = Roles(len(consts) + len(given), len(carries) + 1, len(accumulators), len(left) + len(read))
    outs = (*let.outs[: roles.carries], Var(last.name, last.type), *let.outs[roles.carries :])
    return Let(outs, let.primitive, args, {**let.attributes, "body": made, "roles": new_roles}, let.span)


__all__ = ["undo", "pre_ad_safe"]
