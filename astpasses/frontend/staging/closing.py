"""From a filled region to a closed Function: what it takes from outside becomes parameters.

In: a region, its own parameters, its results. Out: the free variables in order of use, then the Function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from metaphrase.core.ir import Atom, Function, Let, Var

from .session import Region


def all_lets(lets: Iterable[Let]) -> Iterator[Let]:
    """Lets in their order, each followed by those in its regions."""
    for let in lets:
        yield let
        for function in let.regions():
            yield from all_lets(function.lets)


def free_variables(region: Region, params: Sequence[Var], results: Sequence[Atom]) -> list[Var]:
    """Variables used in the region and not made in it, in order of first use."""
    defined = set(params)
    found: dict[Var, None] = {}
    for let in region.builder.lets:
        for arg in let.args:
            if isinstance(arg, Var) and arg not in defined:
                found[arg] = None
        defined.update(let.outs)
    for result in results:
        if isinstance(result, Var) and result not in defined:
            found[result] = None
    return list(found)


def close(
    region: Region, name: str, params: Sequence[Var], results: Sequence[Atom], renamed: Mapping[Var, Atom] | None = None
) -> Function:
    """The region as a Function of copies of `params`; `renamed` replaces variables first."""
    fresh: dict[Var, Var] = {p: Var(p.name, p.type.plain) for p in params}
    env: dict[Any, Atom] = dict(fresh)
    for old, new in (renamed or {}).items():
        env[old] = fresh.get(new, new) if isinstance(new, Var) else new
    lets = tidy_names([_renamed(let, env) for let in region.builder.lets])
    return Function(name, tuple(fresh[p] for p in params), tuple(lets), tuple(env.get(r, r) for r in results))


def _renamed(let: Let, env: Mapping[Any, Atom]) -> Let:
    args = tuple([env.get(a, a) for a in let.args])
    return let if args == let.args else Let(let.outs, let.primitive, args, let.attributes, let.span)


def tidy_names(lets: list[Let]) -> list[Let]:
    """Of several values made at one place under one name, only the last keeps it."""
    last: dict[tuple, Let] = {}
    for let in lets:
        for out in let.outs:
            last[(out.name, let.span)] = let
    for let in lets:
        for out in let.outs:
            if let.span is not None and last[(out.name, let.span)] is not let:
                out.name = let.primitive.name
    return lets
