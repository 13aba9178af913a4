"""Rows that a loop hands to other loops are stored without dims of size 1.

In: a Function. Out: the same, where `part: f64[1]` stacked to `f64[T, 1]` is stacked as `f64[T]`, with a
reshape on either side; simplification joins these with the reshapes that are there.
"""

from __future__ import annotations

from dataclasses import replace

from metaphrase.core.build import Builder
from metaphrase.core.ir import Function, Let, Var
from metaphrase.core.loops import Loop
from metaphrase.core.types import Array
from metaphrase.ops.shape import reshape

from .rebuild import map_regions, replaced

pre_ad_safe = True


def rows(function: Function) -> Function:
    lets = [map_regions(let, rows) for let in function.lets]
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
        narrow = _narrow_rows(function, lets[position + 1 :], Loop.of(let))
        if narrow:
            changed = True
            lets[position] = _stored(let, narrow)
            for later in range(position + 1, len(lets)):
                if any(a in narrow for a in lets[later].args):
                    loop = lets[later].primitive.name == "loop"
                    lets[later] = _read(lets[later], narrow) if loop else replaced(lets[later], narrow)
    return Function(function.name, function.params, tuple(lets), function.results) if changed else function


def _squeezed(type_: Array) -> tuple:
    """Dims of a stacked array less those of size 1 behind the first."""
    return (type_.dims[0], *(d for d in type_.dims[1:] if d != 1))


def _narrow_rows(function: Function, later: list[Let], loop: Loop) -> dict[Var, Var]:
    """Results of the loop that are rows with dims of size 1 that only loops go through, and what replaces them."""
    found = {}
    for out in loop.outs.rows:
        dims = _squeezed(out.type)
        if len(dims) == out.type.ndim or out in function.results:
            continue
        users = [x for x in later if out in x.args]
        if users and all(_takes_rows(x, out) or _squeezes(x, out) for x in users):
            found[out] = Var(out.name, Array(out.type.dtype, dims))
    return found


def _takes_rows(let: Let, var: Var) -> bool:
    """Whether the Let is a loop that only goes through `var`."""
    return let.primitive.name == "loop" and var not in [*Loop.of(let).args.replace(rows=())]


def _squeezes(let: Let, var: Var) -> bool:
    """Whether the Let leaves out just the dims of size 1 behind the first."""
    return let.primitive.name == "reshape" and tuple(let.attributes["shape"]) == _squeezed(var.type)


def _narrow_sources(let: Let, made: dict[Var, Let]) -> dict[Var, Var]:
    """Rows of a loop that are reshaped from arrays with fewer dims of size 1."""
    found: dict[Var, Var] = {}
    for atom in Loop.of(let).args.rows:
        maker = made.get(atom) if isinstance(atom, Var) else None
        if isinstance(atom, Var) and maker is not None and isinstance(maker.args[0], Var):
            inner = maker.args[0]
            if inner.type.dims == _squeezed(atom.type) and inner.type.ndim < atom.type.ndim:
                found[atom] = inner
    return found


def _stored(let: Let, narrow: dict[Var, Var]) -> Let:
    """The loop that stacks the squeezed rows."""
    loop = Loop.of(let)
    with Builder() as builder:
        builder.lets = list(loop.body.lets)
        rows = [
            reshape(row, shape=narrow[out].type.dims[1:]) if out in narrow else row
            for row, out in zip(loop.results.rows, loop.outs.rows)
        ]
    body = loop.body.changed(builder.lets, results=loop.results.replace(rows=rows))
    return replace(loop, body=body, outs=loop.outs.renamed(narrow)).let()


def _read(let: Let, renamed: dict[Var, Var]) -> Let:
    """The loop that goes through squeezed rows; its body gives them their dims back."""
    loop = Loop.of(let)
    args = [renamed.get(a, a) if isinstance(a, Var) else a for a in loop.args.rows]
    back, params = {}, []
    with Builder() as builder:
        for param, old, new in zip(loop.params.rows, loop.args.rows, args):
            if new is old:
                params.append(param)
                continue
            params.append(Var(param.name, Array(param.type.dtype, new.type.dims[1:])))
            back[param] = reshape(params[-1], shape=param.type.dims)
            back[param].name = param.name
        lets = [*builder.lets, *(replaced(x, back) for x in loop.body.lets)]
    results = loop.results.renamed(back)
    body = loop.body.changed(lets, loop.params.replace(rows=params), results)
    return replace(loop, args=loop.args.replace(rows=args), body=body).let()


__all__ = ["rows", "pre_ad_safe"]
