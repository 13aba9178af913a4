"""Cotangents that start from zero: `add(0.0, x_bar)` is `x_bar`; and products of an array and a scalar.

In: a differentiated Function. Out: the same without such sums. Not exact in one respect: a cotangent of -0.0
stays -0.0, where the sum gives 0.0. So only what transformations named (`x_bar`, `x_dot`) is touched, never
the user's sums.
"""

from __future__ import annotations

import re

from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.ops.arithmetic import mul
from metaphrase.ops.shape import broadcast

from .rebuild import map_regions, replaced

pre_ad_safe = False
DERIVED = re.compile(r"_(bar|dot)(_\d+)?$")


def zero_sums(function: Function) -> Function:
    env: dict[Var, Atom] = {}
    zeros: set[Var] = set()
    lets, changed = [], False
    for old in function.lets:
        let = map_regions(replaced(old, env), zero_sums)
        changed |= let is not old
        if let.primitive.name == "broadcast" and _is_zero(let.args[0], zeros):
            zeros.add(let.out)
        if let.primitive.name == "dot_general" and DERIVED.search(let.out.name):
            scaled = _scaled(let)
            changed |= bool(scaled)
            lets += scaled
            if scaled:
                continue
        value = _sum_with_zero(let, zeros)
        if value is not None:
            env[let.out] = value
            changed = True
            continue
        lets.append(let)
    if not changed:
        return function
    results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
    return Function(function.name, function.params, tuple(lets), results)


def _scaled(let: Let) -> list[Let]:
    """A dot_general with a scalar is a product of elements; it adds to zero once, so -0.0 becomes 0.0
    there."""
    a, b = let.args
    if a.type.dims and b.type.dims:
        return []
    scalar, array = (a, b) if b.type.dims else (b, a)
    if not array.type.dims:
        return [Let(let.outs, mul, (a, b), {}, let.span)]
    axes: tuple = ()
    spread = Var("broadcast", array.type.plain)
    attributes = {"shape": array.type.dims, "axes": axes}
    return [
        Let((spread,), broadcast, (scalar,), attributes, let.span),
        Let(let.outs, mul, (spread, array) if array is b else (array, spread), {}, let.span),
    ]


def _is_zero(atom: Atom, zeros: set[Var]) -> bool:
    return atom in zeros if isinstance(atom, Var) else isinstance(atom, Literal) and bool(atom.value == 0)


def _sum_with_zero(let: Let, zeros: set[Var]) -> Atom | None:
    if let.primitive.name != "add" or not DERIVED.search(let.out.name):
        return None
    a, b = let.args
    return b if _is_zero(a, zeros) else a if _is_zero(b, zeros) else None


__all__ = ["zero_sums", "pre_ad_safe"]
