"""Checks that say in which lane they failed.

In: a check that is batched, or the operations of a lane loop and its counter. Out: the same checks, whose messages end
with the lane's number, one more value:

    check(ok, k, message="index {} is out of bounds")
    check(ok, k, lane, message="index {} is out of bounds, in lane {} of vmap")

An exception that holds something else than a message (a KeyError holds a key), and one that a library raises itself, is
left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from metaphrase.core.build import Builder
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop, Step
from metaphrase.exceptions import MOST, ListFull, exception_name, fields
from metaphrase.ops.families import broadcast_to

_NOT_OURS = ("KeyError", "LinAlgError", "MemoryError", exception_name(ListFull))


def takes_lane(let: Let) -> bool:
    """Whether a Let is a check whose message can say the lane."""
    attributes = let.attributes
    if let.primitive.name != "check" or attributes.get("holds") or attributes["exception"] in _NOT_OURS:
        return False
    return len(let.args) + sum(a.type.dtype.kind == "c" for a in let.args) <= MOST


def with_lane(let: Let, lane: Atom, axis: str | None) -> Let:
    """The check that says the number of the lane, given for each element; `axis`: the name of its axis."""
    where = "vmap" if axis is None else f"axis {axis!r}"
    message = let.attributes["message"]
    told = f"{message}, in lane {{}} of " if message else "in lane {} of "
    attributes = {**let.attributes, "message": told + where.replace("{", "{{").replace("}", "}}")}
    shown = 1 + fields(message)  # a check may take values that its message does not show
    return Let(let.outs, let.primitive, (*let.args[:shown], lane, *let.args[shown:]), attributes, let.span)


def in_lane(lets: Iterable[Let], lane: Var, axis: str | None) -> list[Let]:
    """The operations of one lane, all checks in them, in branches, loops and calls, too, with its number."""
    with Builder() as builder:
        for let in lets:
            builder.span = let.span
            if takes_lane(let):
                let = with_lane(let, broadcast_to(lane, let.args[0].type.dims), axis)
            elif "failing" in let.effects:
                let = _region(let, lane, axis)
            builder.lets.append(let)
    return builder.lets


def _region(let: Let, lane: Var, axis: str | None) -> Let:
    """The Let with the lane as one more operand."""
    if let.primitive.name == "loop":
        loop = Loop.of(let)
        args = loop.args.replace(consts=(*loop.args.consts, lane))
        body, condition = (step and _step(step, lane, axis) for step in (loop.body, loop.condition))
        assert body is not None
        return replace(loop, args=args, body=body, condition=condition).let()
    if let.primitive.name not in ("cond", "call"):
        return let
    ((key, value),) = let.attributes.items()
    several = isinstance(value, tuple)
    made = tuple(_function(function, lane, axis) for function in (value if several else (value,)))
    return Let(let.outs, let.primitive, (*let.args, lane), {key: made if several else made[0]}, let.span)


def _step(step: Step, lane: Var, axis: str | None) -> Step:
    own = Var(lane.name, lane.type)
    params = step.params.replace(consts=(*step.params.consts, own))
    return step.changed(in_lane(step.lets, own, axis), params)  # type: ignore[arg-type]


def _function(function: Function, lane: Var, axis: str | None) -> Function:
    own = Var(lane.name, lane.type)
    lets = tuple(in_lane(function.lets, own, axis))
    return Function(function.name, (*function.params, own), lets, function.results)


__all__ = ["in_lane", "takes_lane", "with_lane"]
