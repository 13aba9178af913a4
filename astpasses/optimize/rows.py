"""Rows that a loop hands to other loops are stored without dims of size 1.

In: a Function. Out: the same, where `part: f64[1]` stacked to `f64[T, 1]` is stacked as `f64[T]`, with a
reshape on either side; simplification joins these with the reshapes that are there.
"""

from __future__ import annotations

from metaphrase.core.build import Builder
from metaphrase.core.ir import Function, Let, Roles, Var
from metaphrase.core.types import Array
from metaphrase.ops.shape import reshape

from .rebuild import map_regions, replaced

pre_ad_safe = True


def rows(function: Function) -> Function:
    lets = [map_regions(let, lambda region, operands: rows(region)) for let in function.lets]
    changed = any(a is not b for a, b in zip(lets, function.lets))
    made: dict[Var, Let] = {}
    for position, let in enumerate(lets):
        if let.primitive.name == "reshape":
            made[let.out] = let
        if let.primitive.name != "loop":
            continue
        sources = _narrow_sources(let, made)
        if sources:
            changed = True
            lets[position] = let = _read(let, sources)
        narrow = _narrow_rows(function, lets, position)
        if narrow:
            changed = True
            lets[position], renamed = _stored(let, narrow)
            for later in range(position + 1, len(lets)):
                if any(a in renamed for a in lets[later].args):
                    loop = lets[later].primitive.name == "loop"
                    lets[later] = _read(lets[later], renamed) if loop else replaced(lets[later], renamed)
    return Function(function.name, function.params, tuple(lets), function.results) if changed else function


def _squeezed(type_: Array) -> tuple:
    """Dims of a stacked array less those of size 1 behind the first."""
    return (type_.dims[0], *(d for d in type_.dims[1:] if d != 1))


def _narrow_rows(function: Function, lets: list[Let], position: int) -> list[int]:
    """Which results of the loop are rows with dims of size 1 that only loops go through."""
    let = lets[position]
    roles: Roles = let.attributes["roles"]
    first = len(let.own_symbols()) + roles.carries + roles.accumulators
    found = []
    for k in range(first, len(let.outs) - roles.segments):
        out = let.outs[k]
        if len(_squeezed(out.type)) == out.type.ndim or out in function.results:
            continue
        users = [x for x in lets[position + 1 :] if out in x.args]
        if users and all(_takes_rows(x, out) or _squeezes(x, out) for x in users):
            found.append(k)
    return found


def _takes_rows(let: Let, var: Var) -> bool:
    """Whether the Let is a loop that only goes through `var`."""
    if let.primitive.name != "loop":
        return False
    roles: Roles = let.attributes["roles"]
    return var not in let.args[: len(let.args) - roles.rows]


def _squeezes(let: Let, var: Var) -> bool:
    """Whether the Let leaves out just the dims of size 1 behind the first."""
    return let.primitive.name == "reshape" and tuple(let.attributes["shape"]) == _squeezed(var.type)


def _narrow_sources(let: Let, made: dict[Var, Let]) -> dict[Var, Var]:
    """Rows of a loop that are reshaped from arrays with fewer dims of size 1."""
    roles: Roles = let.attributes["roles"]
    found: dict[Var, Var] = {}
    for atom in let.args[len(let.args) - roles.rows :]:
        maker = made.get(atom) if isinstance(atom, Var) else None
        if isinstance(atom, Var) and maker is not None and isinstance(maker.args[0], Var):
            inner = maker.args[0]
            if inner.type.dims == _squeezed(atom.type) and inner.type.ndim < atom.type.ndim:
                found[atom] = inner
    return found


def _stored(let: Let, narrow: list[int]) -> tuple[Let, dict[Var, Var]]:
    """The loop that stacks the squeezed rows, and which result replaces which."""
    body = let.attributes["body"]
    lead = len(let.own_symbols())
    outs, renamed = list(let.outs), {}
    with Builder(body.name) as builder:
        builder.params, builder.lets = list(body.params), list(body.lets)
        results = list(body.results)
        for k in narrow:
            dims = _squeezed(let.outs[k].type)
            results[k - lead] = reshape(results[k - lead], shape=dims[1:])
            outs[k] = Var(let.outs[k].name, Array(let.outs[k].type.dtype, dims))
            renamed[let.outs[k]] = outs[k]
        new = builder.function(results)
    return Let(tuple(outs), let.primitive, let.args, {**let.attributes, "body": new}, let.span), renamed


def _read(let: Let, renamed: dict[Var, Var]) -> Let:
    """The loop that goes through squeezed rows; its body gives them their dims back."""
    body = let.attributes["body"]
    roles: Roles = let.attributes["roles"]
    first = len(body.params) - roles.rows
    args, params = list(let.args), list(body.params)
    with Builder(body.name) as builder:
        back = {}
        for k in range(roles.rows):
            old = args[len(args) - roles.rows + k]
            if old in renamed:
                assert isinstance(old, Var)
                args[len(args) - roles.rows + k] = renamed[old]
                param = params[first + k]
                params[first + k] = Var(param.name, Array(param.type.dtype, renamed[old].type.dims[1:]))
                back[param] = reshape(params[first + k], shape=param.type.dims)
                back[param].name = param.name
        builder.params = params
        builder.lets += [replaced(x, back) for x in body.lets]
        new = builder.function([back.get(r, r) if isinstance(r, Var) else r for r in body.results])
    return Let(let.outs, let.primitive, tuple(args), {**let.attributes, "body": new}, let.span)


__all__ = ["rows", "pre_ad_safe"]
