"""Which Lets a lane loop holds: the smallest dependency-convex group around one that parts the lanes.

In: the Let and what comes after it: Lets, and groups made before, which count as one. Out: the group, what
must come before it, and the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metaphrase.core.ir import Let, Var
from metaphrase.core.types import type_symbols

from .common import select_marked, variables

Item = Let | list[Let]


def lets_of(item: Item) -> list[Let]:
    return item if isinstance(item, list) else [item]


def results_of(item: Item) -> list[Var | str]:
    """What it makes: values, and size symbols."""
    return [x for let in lets_of(item) for x in (*let.outs, *let.own_symbols())]  # type: ignore[misc]


def operands_of(item: Item) -> list[Var | str]:
    """What it needs: values, and size symbols."""
    return [
        x  # type: ignore[misc]
        for let in lets_of(item)
        for x in (*variables(let.args), *let.uses_symbols())
    ]


def names_size(item: Item, sizes: set[str]) -> bool:
    """Whether one of the size symbols is mentioned, in attributes or in types of operands or results."""
    return bool(sizes) and any(
        let.uses_symbols() & sizes or any(type_symbols(a.type) & sizes for a in variables(let.args))
        for let in lets_of(item)
    )


def convex_group(
    first: Let, after: Sequence[Item], also: Callable[[Item], bool] = lambda item: False
) -> tuple[list[Let], list[Item], list[Item]]:
    """`first`, every later item that names a size bound in the group, and those that are `also` in it; closed
    under "lies between".

    Returns (group, items to run before the group, items to run after it), each in program order.
    """
    member = [also(item) for item in after]
    while True:  # what lies between may bind sizes of its own, whose users belong to the group as well
        before = list(member)
        _add_users_of_sizes(first, after, member)
        last = max((k for k, m in enumerate(member) if m), default=-1)
        below = _below(first, after[: last + 1], member)
        for k, item in enumerate(after[: last + 1]):  # what may fail keeps its place among what else may in the group
            member[k] |= below[k] and any(x.effects for x in lets_of(item))
        _add_what_lies_between(after[: last + 1], member, below)
        if member == before:
            break
    group = [first, *(let for item in select_marked(after, member) for let in lets_of(item))]
    between = [item for item, m, b in zip(after, member, below) if not m and not b]
    rest = [item for item, m, b in zip(after, member, below) if not m and b]
    return group, between, [*rest, *after[last + 1 :]]


def _add_users_of_sizes(first: Let, after: Sequence[Item], member: list[bool]) -> None:
    sizes = set(first.own_symbols())
    for k, item in enumerate(after):
        if member[k] or names_size(item, sizes):
            member[k] = True
            sizes |= {s for let in lets_of(item) for s in let.own_symbols()}


def _below(first: Let, after: Sequence[Item], member: Sequence[bool]) -> list[bool]:
    """What depends on the group; a member needs no operand to: it names a size."""
    downstream: set[Var | str] = {*first.outs, *first.own_symbols()}
    below = []
    for item, in_group in zip(after, member):
        below.append(in_group or any(a in downstream for a in operands_of(item)))
        if below[-1]:
            downstream.update(results_of(item))
    return below


def _add_what_lies_between(after: Sequence[Item], member: list[bool], below: Sequence[bool]) -> None:
    needed: set[Var | str] = set()
    for k, item in reversed(list(enumerate(after))):
        if member[k] or below[k] and any(v in needed for v in results_of(item)):
            member[k] = True
            needed.update(operands_of(item))
