"""An array that a loop or a branch has in another form than it is given goes through it in that form.

In: a Function. Out: the same with a reshape before the region and one behind it, where there was one on either side of
each store: an element is then stored in the array, and not in a copy of it. Example:

    g = np.ones(n * m).reshape(n, m)            x: f64[n*m]                            y = reshape(x)
    for ...:                             in     for ...:                         ->    for ...:
        g[i, j] = v                                 x = reshape(store(reshape(x)))         y = store(y)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

from metaphrase.core.build import Builder
from metaphrase.core.dims import DimLike, symbols_of
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop, Parts
from metaphrase.core.types import Array
from metaphrase.late import dataclass
from metaphrase.ops.shape import reshape

from .rebuild import map_regions, replaced

pre_ad_safe = True
Dims = tuple[DimLike, ...]


def forms(function: Function) -> Function:
    lets: list[Let] = []
    env: dict[Var, Atom] = {}
    for old in function.lets:
        let = map_regions(replaced(old, env), forms)
        behind: list[Let] = []
        while (passage := next(_passages(let), None)) is not None:
            before, let, after = _reformed(let, passage)
            lets += before
            env[passage.out] = after[0].out
            behind = [*after, *(replaced(x, env) for x in behind)]  # an array may come to its form in two steps
        lets += [let, *behind]
    if all(new is old for new, old in zip(lets, function.lets)) and len(lets) == len(function.lets):
        return function
    results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
    return Function(function.name, function.params, tuple(lets), results)


@dataclass(frozen=True)
class _Passage:
    """An array that goes through a region: which operand it is, which result, and in what form the region has it."""

    operand: int
    result: int
    out: Var
    form: Dims


def _passages(let: Let) -> Iterator[_Passage]:
    """Those of a branch or a loop that are in another form inside."""
    if let.primitive.name == "cond":
        regions = let.attributes["branches"]
        reshaped = {x.out for region in regions for x in region.lets if x.primitive.name == "reshape"}
        ends = [m for m in range(len(let.outs)) if any(region.results[m] in reshaped for region in regions)]
        for k, m in itertools.product(range(len(let.args) - 1), ends):
            form = _form((region, region.params[k], region.results[m]) for region in regions)
            if form is not None:
                yield _Passage(k, m, let.outs[m], form)
    elif let.primitive.name == "loop":
        loop = Loop.of(let)
        for k, (param, result) in enumerate(zip(loop.params.carries, loop.results.carries)):
            used = [(loop.body.function, param, result)]
            if loop.condition is not None:
                asked = loop.condition.params.carries[k]
                used.append((loop.condition.function, asked, asked))
            form = _form(used)
            if form is not None:
                yield _Passage(k, k, loop.outs.carries[k], form)


def _form(regions: Iterable[tuple[Function, Var, Atom]]) -> Dims | None:
    """The one form in which regions have a parameter and what they make of it; None where they have it as it is."""
    found: set[Dims] = set()
    for region, param, result in regions:
        if not param.type.dims or result.type != param.type:
            return None
        if sum(r is param for r in region.results) > (result is param):
            return None
        for let in region.lets:
            if param in let.args:
                if let.primitive.name != "reshape":
                    return None
                found.add(let.out.type.dims)
        if result is not param:
            maker = next((x for x in region.lets if x.outs == (result,)), None)
            if maker is None or maker.primitive.name != "reshape" or not isinstance(maker.args[0], Var):
                return None
            found.add(maker.args[0].type.dims)
        known = param.type.dims
    if len(found) != 1:
        return None
    (form,) = found
    return form if form != known and symbols_of(form) <= symbols_of(known) else None


def _reformed(let: Let, passage: _Passage) -> tuple[list[Let], Let, list[Let]]:
    """What stands before a region, the region, and what stands behind it."""
    out = Var(passage.out.name, Array(passage.out.type.dtype, passage.form))
    outs = tuple(out if o is passage.out else o for o in let.outs)
    with Builder() as builder:
        if let.primitive.name == "cond":
            args = list(let.args)
            args[1 + passage.operand] = reshape(args[1 + passage.operand], shape=passage.form)
            branches = tuple(
                _in_form(region, region.params[passage.operand], region.results[passage.result], passage)
                for region in let.attributes["branches"]
            )
            made = Let(outs, let.primitive, tuple(args), {"branches": branches}, let.span)
        else:
            loop = Loop.of(let)
            carries = list(loop.args.carries)
            carries[passage.operand] = reshape(carries[passage.operand], shape=passage.form)
            made = _loop_in_form(replace(loop, args=loop.args.replace(carries=carries)), passage, out)
    with Builder() as after:
        reshape(out, shape=passage.out.type.dims)
    return builder.lets, made, after.lets


def _loop_in_form(loop: Loop, passage: _Passage, out: Var) -> Let:
    k = passage.operand
    body = loop.body.like(_in_form(loop.body.function, loop.params.carries[k], loop.results.carries[k], passage))
    condition = loop.condition
    if condition is not None:
        asked = condition.params.carries[k]
        condition = condition.like(_in_form(condition.function, asked, asked, passage))
    outs: Parts[Var] = loop.outs.renamed({passage.out: out})
    return replace(loop, body=body, condition=condition, outs=outs).let()


def _in_form(region: Function, param: Var, result: Atom, passage: _Passage) -> Function:
    """A region with a parameter in its form; so is what it makes of that."""
    new = Var(param.name, Array(param.type.dtype, passage.form))
    env: dict[Var, Atom] = {x.out: new for x in region.lets if x.primitive.name == "reshape" and x.args[0] is param}
    lets = tuple(replaced(x, env) for x in region.lets if not (len(x.outs) == 1 and x.outs[0] in env))
    results = [env.get(r, r) if isinstance(r, Var) else r for r in region.results]
    if result is not param:
        results[passage.result] = next(x.args[0] for x in lets if x.outs == (result,))
    elif param in region.results:
        results[passage.result] = new
    return Function(region.name, tuple(new if p is param else p for p in region.params), lets, tuple(results))


__all__ = ["forms", "pre_ad_safe"]
