"""What the passes rebuild programs with: operands replaced, regions mapped; nothing is copied that does not
change.

In: a Let. Out: a Let, the same object when it stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop, Parts

Operand = tuple[str, Atom] | None


def replaced(let: Let, env: Mapping[Var, Atom]) -> Let:
    """The Let with its operands renamed."""
    if not env or not any(isinstance(a, Var) and a in env for a in let.args):
        return let
    args = tuple(env.get(a, a) if isinstance(a, Var) else a for a in let.args)
    return Let(let.outs, let.primitive, args, let.attributes, let.span)


def operands_of(let: Let, region: Function) -> tuple[Operand, ...]:
    """For each parameter of a region, how it is filled: ("const" | "row", atom), or None for the index and
    state."""
    if let.primitive.name == "cond":
        return tuple(("const", a) for a in let.args[1:])
    args = Loop.of(let).args
    nothing: Parts[Operand] = args.map(lambda _: None)
    operands = nothing.replace(consts=(("const", a) for a in args.consts), rows=(("row", a) for a in args.rows))
    return (None, *(operands.asked if region is let.attributes["cond"] else operands))


def map_regions(let: Let, change: Callable[[Function], Function]) -> Let:
    """The Let with `change` of each region. What a `call` calls is no part of the program around it: the pass
    `callees` has cleaned it. Nor are a function with rules of its own, and these: they are calls as soon as one of them
    is needed."""
    return let.with_regions(change) if let.primitive.name in ("loop", "cond") else let


def map_filled(let: Let, change: Callable[[Function, tuple[Operand, ...]], Function]) -> Let:
    """The same with `change(region, operands of its parameters)`."""
    return map_regions(let, lambda region: change(region, operands_of(let, region)))


__all__ = ["replaced", "map_regions", "map_filled", "operands_of", "Operand"]
