"""The sum of a product over a dim of one factor is the product with the sum of that factor.

In: a differentiated Function. Out: the same with such sums of cotangents and tangents taken first. It adds in another
order, so that only what transformations named is touched (`x_bar`, `x_dot`), never the user's sums.

    y: f64[n, k] = dot_general(s, w)             r: f64[m] = reduce_sum(s, axes=(0,))
    c_bar: f64[k] = reduce_sum(y, axes=(0,))  ->  c_bar: f64[k] = dot_general(r, w)

So the gradient of a mean that is taken off before a matrix is applied needs one product of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence

from metaphrase.core.build import Builder
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.ops.dot import dot_general
from metaphrase.ops.reduce import reduce_sum
from metaphrase.ops.shape import permute

from .rebuild import map_regions
from .zero_sums import DERIVED

pre_ad_safe = False


def sums_of_products(function: Function) -> Function:
    lets: list[Let] = []
    makers: dict[Var, Let] = {}
    changed = False
    for old in function.lets:
        let = map_regions(old, sums_of_products)
        made = _summed_first(let, makers)
        changed |= let is not old or bool(made)
        for new in made or [let]:
            lets.append(new)
            makers.update((v, new) for v in new.outs)
    return Function(function.name, function.params, tuple(lets), function.results) if changed else function


def _maker(atom: Atom, makers: dict[Var, Let], name: str) -> Let | None:
    let = makers.get(atom) if isinstance(atom, Var) else None
    return let if let is not None and let.primitive.name == name else None


def _summed_first(let: Let, makers: dict[Var, Let]) -> list[Let]:
    """What gives the sum of a product, if it is summed over dims of its factors alone."""
    if let.primitive.name != "reduce_sum" or not DERIVED.search(let.out.name):
        return []
    turned = _maker(let.args[0], makers, "permute")
    product = _maker(turned.args[0] if turned else let.args[0], makers, "dot_general")
    if product is None:
        return []
    order = turned.attributes["axes"] if turned else tuple(range(product.out.type.ndim))
    summed = {order[axis] for axis in let.attributes["axes"]}
    contract, batch = product.attributes["contract"], product.attributes["batch"]
    if any(d < len(batch[0]) for d in summed):
        return []
    factors, contracts, batches, first = [], [], [], len(batch[0])
    with Builder() as builder:
        builder.span = let.span
        for factor, contracted, common in zip(product.args, contract, batch):
            free = [d for d in range(factor.type.ndim) if d not in contracted and d not in common]
            gone = [d for k, d in enumerate(free, first) if k in summed]
            first += len(free)
            factors.append(reduce_sum(factor, axes=tuple(gone)) if gone else factor)
            contracts.append(_less(contracted, gone))
            batches.append(_less(common, gone))
        value = dot_general(*factors, contract=tuple(contracts), batch=tuple(batches))
        rest = [d for d in order if d not in summed]
        if rest != sorted(rest):
            value = permute(value, axes=tuple(sorted(rest).index(d) for d in rest))
    *before, last = builder.lets
    return [*before, Let(let.outs, last.primitive, last.args, last.attributes, let.span)]


def _less(dims: Sequence[int], gone: Sequence[int]) -> tuple[int, ...]:
    """The same dims of an array that has lost some."""
    return tuple(d - sum(g < d for g in gone) for d in dims)


__all__ = ["sums_of_products", "pre_ad_safe"]
