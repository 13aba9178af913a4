"""What the transformations share: dependence, renaming, stripping effects, inlining.

In: Functions. Out: Functions, or facts about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from metaphrase.core.build import Builder, copy_let
from metaphrase.core.ir import Atom, Function, Let, Literal, Var


def variables(atoms: Iterable[Any]) -> list[Var]:
    """The Vars among atoms."""
    return [a for a in atoms if isinstance(a, Var)]


def has_effect(let: Let) -> bool:
    """Whether a Let, or a body of it, has an effect."""
    return let.primitive.effect is not None or any(
        has_effect(inner) for r in let.regions() for inner in r.lets
    )


def reaches(function: Function, params: Sequence[bool]) -> list[bool]:
    """Which results depend on the marked parameters, through regions as a whole."""
    touched = {p for p, marked in zip(function.params, params) if marked}
    for let in function.lets:
        if any(a in touched for a in variables(let.args)):
            touched.update(let.outs)
    return [isinstance(r, Var) and r in touched for r in function.results]


def influences(function: Function, results: Sequence[bool]) -> list[bool]:
    """Which parameters the marked results depend on."""
    needed = {r for r, marked in zip(function.results, results) if marked and isinstance(r, Var)}
    for let in reversed(function.lets):
        if any(v in needed for v in let.outs):
            needed.update(variables(let.args))
    return [p in needed for p in function.params]


def contains_call(function: Function) -> bool:
    return any(
        let.primitive.name == "call" or any(map(contains_call, let.regions())) for let in function.lets
    )


def inline(function: Function) -> Function:
    """Every `call` replaced by the body it calls, at every depth."""
    if not contains_call(function):
        return function
    builder = Builder(function.name)
    env: dict[Var, Atom] = {}
    for let in function.lets:
        args = tuple(env.get(a, a) if isinstance(a, Var) else a for a in let.args)
        if let.primitive.name == "call":
            results = builder.replay(inline(let.attributes["function"]), args)
            env.update(zip(let.outs, results))
            continue
        attributes = {k: _inline_attribute(v) for k, v in let.attributes.items()}
        builder.lets.append(Let(let.outs, let.primitive, args, attributes, let.span))
    results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
    return Function(function.name, function.params, tuple(builder.lets), results)


def _inline_attribute(value: Any) -> Any:
    if isinstance(value, Function):
        return inline(value)
    if isinstance(value, tuple):
        return tuple(map(_inline_attribute, value))
    return value


def without_effects(let: Let) -> Let | None:
    """The Let for recomputation: its checks have passed already and its prints have been printed."""
    if let.primitive.effect is not None:
        return None
    if not has_effect(let):
        return let
    attributes = {}
    for key, value in let.attributes.items():
        if isinstance(value, Function):
            value = _pure(value)
        elif isinstance(value, tuple):
            value = tuple(_pure(v) if isinstance(v, Function) else v for v in value)
        attributes[key] = value
    return Let(let.outs, let.primitive, let.args, attributes, let.span)


def _pure(function: Function) -> Function:
    lets = tuple(new for let in function.lets if (new := without_effects(let)) is not None)
    return Function(function.name, function.params, lets, function.results)


def substitute_args(let: Let, env: dict[Var, Atom]) -> Let:
    """The Let with its operands renamed; the same object when nothing changes."""
    if not any(isinstance(a, Var) and a in env for a in let.args):
        return let
    args = tuple(env.get(a, a) if isinstance(a, Var) else a for a in let.args)
    return Let(let.outs, let.primitive, args, let.attributes, let.span)


def renamed(var: Any, name: str, builder: Builder) -> Any:
    """Give a Var made last in `builder` a better name."""
    if isinstance(var, Var) and builder.lets and var in builder.lets[-1].outs:
        var.name = name
    return var


def select_marked(items: Sequence[Any], marks: Sequence[bool]) -> list[Any]:
    return [x for x, m in zip(items, marks, strict=True) if m]


__all__ = [
    "variables",
    "has_effect",
    "reaches",
    "influences",
    "inline",
    "without_effects",
    "substitute_args",
    "renamed",
    "select_marked",
    "copy_let",
    "Literal",
]
