"""What the passes rebuild programs with: operands replaced, regions mapped; nothing is copied that does not
change.

In: a Let. Out: a Let, the same object when it stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop, Parts

Operand = tuple[str, Atom] | None


def replaced(let: Let, env: Mapping[Var, Atom]) -> Let:
    """The Let with its operands renamed."""
    if not env or not any(isinstance(a, Var) and a in env for a in let.args):
        return let
    args = tuple(env.get(a, a) if isinstance(a, Var) else a for a in let.args)
    return Let(let.outs, let.primitive, args, let.attributes, let.span)


def operands_of(let: Let, key: str, region: Function) -> tuple[Operand, ...]:
    """For each parameter of a region, how it is filled: ("const" | "row", atom), or None for the index and
    state."""
    name = let.primitive.name
    if name == "cond":
        return tuple(("const", a) for a in let.args[1:])
    args = Loop.of(let).args
    nothing: Parts[Operand] = args.map(lambda _: None)
    operands = nothing.replace(consts=(("const", a) for a in args.consts), rows=(("row", a) for a in args.rows))
    return (None, *(operands.asked if key == "cond" else operands))


def map_regions(let: Let, change: Callable[[Function, tuple[Operand, ...]], Function]) -> Let:
    """The Let with `change(region, operands of its parameters)` for each region. What a `call` calls is no
    part of the program around it: the pass `callees` has cleaned it. Nor are a function with rules of its own, and
    these: they are calls as soon as one of them is needed."""
    if let.primitive.name not in ("loop", "cond"):
        return let
    new: dict[str, Any] = {}
    for key, value in let.attributes.items():
        if isinstance(value, Function):
            new[key] = change(value, operands_of(let, key, value))
        elif isinstance(value, tuple) and value and isinstance(value[0], Function):
            functions = tuple(change(f, operands_of(let, key, f)) for f in value)
            new[key] = value if all(a is b for a, b in zip(functions, value)) else functions
        else:
            new[key] = value
    if all(new[k] is v for k, v in let.attributes.items()):
        return let
    return Let(let.outs, let.primitive, let.args, new, let.span)


__all__ = ["replaced", "map_regions", "operands_of", "Operand"]
