"""Which Lets a lane loop holds: the smallest dependency-convex group around one that parts the lanes.

In: the Let and those after it. Out: the group, what must come before it, and the rest.
"""
from __future__ import annotations

from collections.abc import Sequence

from metaphrase.core.ir import Let, Var
from metaphrase.core.types import type_symbols

from .common import variables


def depends(let: Let, outs: set[Var]) -> bool:
    """Whether `let` reads one of `outs`."""
    return any(a in outs for a in variables(let.args))


def names_size(let: Let, sizes: set[str]) -> bool:
    """Whether `let` mentions one of the size symbols, in attributes or in types of operands or results."""
    if not sizes:
        return False
    return bool(let.uses_symbols() & sizes) or any(type_symbols(a.type) & sizes for a in variables(let.args))


def convex_group(first: Let, after: Sequence[Let]) -> tuple[list[Let], list[Let], list[Let]]:
    """`first` and every later Let that names a size bound in the group, closed under "lies between".

    Returns (group, lets to run before the group, lets to run after it), each in program order.
    """
    member = [False] * len(after)
    sizes = set(first.own_symbols())
    for k, let in enumerate(after):
        if names_size(let, sizes):
            member[k] = True
            sizes |= let.own_symbols()
    last = max((k for k, m in enumerate(member) if m), default=-1)
    downstream: set[Var] = set(first.outs)
    below = [False] * len(after)
    for k in range(last + 1):
        if depends(after[k], downstream):
            below[k] = True
            downstream.update(after[k].outs)
    needed: set[Var] = set()
    for k in range(last, -1, -1):
        if member[k] or (below[k] and any(v in needed for v in after[k].outs)):
            member[k] = True
            needed.update(variables(after[k].args))
    group = [first, *(let for k, let in enumerate(after) if member[k])]
    between = [let for k, let in enumerate(after[:last + 1]) if not member[k] and not below[k]]
    rest = [let for k, let in enumerate(after) if not member[k] and (below[k] or k > last)]
    return group, between, rest
