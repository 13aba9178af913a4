"""What the transformations share: dependence, renaming, stripping effects.

In: Functions. Out: Functions, or facts about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from metaphrase.core.build import Builder, copy_let
from metaphrase.core.calls import derived
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.source import UnsupportedError


def variables(atoms: Iterable[Any]) -> list[Var]:
    """The Vars among atoms."""
    return [a for a in atoms if isinstance(a, Var)]


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


def without_effects(let: Let) -> Let | None:
    """The Let for recomputation: its checks have passed already and its prints have been printed."""
    if let.primitive.effect is not None:
        if let.outs:
            raise UnsupportedError(
                f"the derivative would have to call {let.primitive.name}, which may have effects, a second time",
                let.span,
                code="callback",
                remedy="use pure_callback, or call it outside of what is differentiated",
            )
        return None
    if not let.effects:
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
    def make() -> Function:
        lets = tuple(new for let in function.lets if (new := without_effects(let)) is not None)
        return Function(function.name, function.params, lets, function.results)

    return derived(function, "pure", make)


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


def known_lets(lets: Sequence[Let], unknown: set[Any]) -> list[Let]:
    """What can be told without the unknown, to which is added what can't. Of branches that were joined, and give both
    (`optimize/branches.py`), it is the part that can."""
    found = []
    for let in lets:
        if not any(a in unknown for a in let.args):
            found.append(let)
            continue
        part = known_branches(let, unknown)
        found += [part] if part else []
        unknown.update(v for v in let.outs if not part or v not in part.outs)
    return found


def known_branches(let: Let, unknown: set[Any]) -> Let | None:
    """Of branches the results that can be told without the unknown, if there are any."""
    if let.primitive.name != "cond" or let.args[0] in unknown:
        return None
    marks = [a not in unknown for a in let.args[1:]]
    parts, known = [], [True] * len(let.outs)
    for branch in let.attributes["branches"]:
        hidden: set[Any] = {p for p, m in zip(branch.params, marks) if not m}
        parts.append(known_lets(branch.lets, hidden))
        known = [k and r not in hidden for k, r in zip(known, branch.results)]
    if not any(known):
        return None
    branches = tuple(
        Function(b.name, (*select_marked(b.params, marks),), tuple(lets), (*select_marked(b.results, known),))
        for b, lets in zip(let.attributes["branches"], parts)
    )
    args = (let.args[0], *select_marked(let.args[1:], marks))
    return Let(
        (*select_marked(let.outs, known),), let.primitive, args, {**let.attributes, "branches": branches}, let.span
    )


def spread(items: Iterable[Any], marks: Iterable[bool]) -> list[Any]:
    """The items one after the other where there is a mark, None elsewhere."""
    source = iter(items)
    return [next(source) if mark else None for mark in marks]


__all__ = [
    "variables",
    "reaches",
    "influences",
    "without_effects",
    "substitute_args",
    "renamed",
    "select_marked",
    "spread",
    "copy_let",
    "Literal",
]
