"""The transformations of the public API, each as one step from Function to Function.

In: a core Function and marks on its parameters. Out: a Function whose parameters and results are in a fixed
order that `api` fits pytrees to. Nothing here knows of users' functions.

    gradient(f, wrt=[True, False])      (*params) -> (*results, *gradients of the first result)
    forward(f, wrt)                     (*params, *tangents) -> (*results, *tangents of results)
    linear_parts(f, wrt)                known, pullback, pushforward over residuals
    batched(f, size, axes, out_axes)    (*params) -> (*results), each with its batch axis where asked
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..astpasses.transforms.batch import batch
from ..astpasses.transforms.jvp import jvp
from ..astpasses.transforms.reverse import linearize
from ..astpasses.transforms.stretches import over_limit
from ..astpasses.transforms.transpose import transpose
from ..config import config
from ..core.build import Builder, literal
from ..core.custom import through_rules
from ..core.dims import Dim, DimLike, Sym, product, symbols
from ..core.ir import Atom, Function, Var
from ..core.loops import with_attribute
from ..core.types import Array, Size, has_tangent, type_symbols
from ..late import dataclass, log
from ..ops.arrays import dim_value, zeros
from ..ops.elementary import stop_gradient
from ..ops.shape import broadcast, permute, reshape
from ..ops.unit_matrix import eye
from .orders import lanes_to_come

Clean = Callable[[Function], Function]
Marks = Sequence[bool]


def _unchanged(function: Function) -> Function:
    return function


def _pick(items: Sequence[Any], marks: Marks) -> list[Any]:
    return [item for item, mark in zip(items, marks, strict=True) if mark]


def continued(function: Function) -> Builder:
    """A builder that has done what `function` does, for more to be added."""
    builder = Builder(function.name)
    builder.params, builder.lets = list(function.params), list(function.lets)
    return builder


def first_result_only(function: Function) -> Function:
    """The same values; only the first result has a derivative."""
    with continued(function) as builder:
        rest = [stop_gradient(r) if isinstance(r, Var) and has_tangent(r.type) else r for r in function.results[1:]]
        return builder.function([function.results[0], *rest])


def forward(function: Function, wrt: Marks) -> Function:
    """jvp with a tangent for every result that has a tangent space."""
    return jvp(through_rules(function), wrt, [has_tangent(r.type) for r in function.results])[0]


def gradient(function: Function, wrt: Marks, clean: Clean = _unchanged) -> Function:
    """All results, then the gradient of the first (a scalar) for each marked parameter."""
    parts = linear_parts(first_result_only(function), wrt, clean)
    with Builder(f"grad_{function.name}") as builder:
        params = [builder.parameter(p.name, p.type) for p in function.params]
        outs = builder.replay(parts.known, params)
        results, residuals = outs[: len(function.results)], outs[len(function.results) :]
        seeds: list[Atom] = [
            literal(1, r.type.dtype) if k == 0 else zeros(r.type.plain)
            for k, r in enumerate(function.results)
            if has_tangent(r.type)
        ]
        return builder.function([*results, *builder.replay(parts.pullback, [*residuals, *seeds])])


@dataclass(frozen=True)
class LinearParts:
    """`known(*params) -> (*results, *residuals)`, `pullback(*residuals, *cotangents) -> cotangents of the
    marked parameters`, `pushforward(*residuals, *tangents) -> tangents`; one cotangent or tangent for every
    result that has a tangent space."""

    known: Function
    pullback: Function
    pushforward: Function


def linear_parts(function: Function, wrt: Marks, clean: Clean = _unchanged) -> LinearParts:
    """The function's value at a point, and its derivative there in both directions."""
    limited = with_attribute(function, "limit", config.residual_limit) if config.residual_limit else function
    part = linearize(limited, wrt, clean, segments=lanes_to_come() is None)
    for span, slots in over_limit(part.linear):
        log.info("%s: derivatives keep %s states of this loop and run steps again (residual_limit)", span, slots)
    linear = clean(part.linear)
    has = [has_tangent(r.type) for r in function.results]
    nonzero = _pick(part.out_nonzero, has)
    targets = _pick(function.params, wrt)
    residuals = part.known.results[len(function.results) :]
    marks = [False] * part.residuals + [True] * len(targets)
    back, found = transpose(linear, marks)
    with Builder(f"pullback_{function.name}") as builder:
        given = [builder.parameter(_name(r, "residual"), r.type) for r in residuals]
        bars = [builder.parameter(_name(r, "result") + "_bar", r.type.plain) for r in _pick(function.results, has)]
        got = iter(builder.replay(back, [*given, *_pick(bars, nonzero)]))
        pullback = builder.function([next(got) if f else zeros(p.type.plain) for p, f in zip(targets, found)])
    with Builder(f"pushforward_{function.name}") as builder:
        given = [builder.parameter(_name(r, "residual"), r.type) for r in residuals]
        dots = [builder.parameter(f"{p.name}_dot", p.type.plain) for p in targets]
        got = iter(builder.replay(linear, [*given, *dots]))
        pushforward = builder.function(
            [next(got) if m else zeros(r.type.plain) for r, m in zip(_pick(function.results, has), nonzero)]
        )
    return LinearParts(part.known, pullback, pushforward)


def transposed_linear(function: Function, linear: Marks, outputs: Sequence[int], clean: Clean = _unchanged) -> Function:
    """Of a function that is linear in the marked parameters: from the others, and a cotangent for each of the results
    `outputs`, the cotangents of the marked ones. Its derivative is the same everywhere: it is taken at zero."""
    parts = linear_parts(function, linear, clean)
    with Builder(f"transposed_{function.name}") as builder:
        given = [
            zeros(p.type.plain) if m else builder.parameter(p.name, p.type) for p, m in zip(function.params, linear)
        ]
        results = [function.results[k] for k in outputs]
        bars = [builder.parameter(f"{_name(r, 'result')}_bar", r.type.plain) for r in results]
        residuals = builder.replay(parts.known, given)[len(function.results) :]
        return builder.function(list(builder.replay(parts.pullback, [*residuals, *bars])))


def with_sizes(known: Function, results: int, linear: Function, made: Sequence[Array]) -> tuple[Function, Function]:
    """Both, with the sizes that the linear part or an array of the types `made` needs, and that no parameter
    tells, among the residuals: the gradient of `x[:2]` is as long as x was."""
    told = {d.name for p in linear.params for d in (*p.type.dims, p.type.value) if isinstance(d, Dim) and d.is_sym}
    own = {s for let in linear.lets for s in let.own_symbols()}
    needed = {s for let in linear.lets for s in let.uses_symbols()}
    needed |= {s for t in (*made, *linear.param_types, *linear.result_types) for s in type_symbols(t.plain)}
    given = {s for p in known.params for d in p.type.dims for s in symbols(d)}
    given |= {s for let in known.lets for s in let.own_symbols()}
    missing = sorted((needed & given) - told - own)
    if not missing:
        return known, linear
    residuals = len(known.results) - results
    with continued(known) as builder:
        sizes = [dim_value(dim=Sym(s)) for s in missing]
        known = builder.function([*known.results, *sizes])
    with Builder(linear.name) as builder:
        first = [builder.parameter(p.name, p.type) for p in linear.params[:residuals]]
        for s in missing:
            builder.parameter(s.split("__")[0], Size(Sym(s)))
        rest = [builder.parameter(p.name, p.type) for p in linear.params[residuals:]]
        linear = builder.function(list(builder.replay(linear, [*first, *rest])))
    return known, linear


def _name(atom: Atom, otherwise: str) -> str:
    return atom.name if isinstance(atom, Var) else otherwise


# ---- batching --------------------------------------------------------------------------------------------


def _moved(x: Any, source: int, target: int) -> Any:
    """x with the axis `source` at `target`."""
    if source == target:
        return x
    order = [k for k in range(x.type.ndim) if k != source]
    order.insert(target, source)
    return permute(x, axes=tuple(order))


def batched(
    function: Function,
    size: DimLike,
    axes: Sequence[int | None],
    out_axes: Sequence[int | None],
    types: Sequence[Array],
    axis_name: str | None = None,
) -> Function:
    """`types`: of the parameters with their batch axes at `axes` (None: not batched, as in `function`).
    `axis_name`: the label of the batch axis.

    A result whose out axis is None must not depend on the batch: ValueError(its index) otherwise.
    """
    inner, marks = batch(function, size, [axis is not None for axis in axes], axis=axis_name)
    with Builder(f"batched_{function.name}") as builder:
        params = [builder.parameter(p.name, t) for p, t in zip(function.params, types, strict=True)]
        outs = builder.replay(inner, [x if axis is None else _moved(x, axis, 0) for x, axis in zip(params, axes)])
        results: list[Any] = []
        for k, (out, has_batch, axis) in enumerate(zip(outs, marks, out_axes, strict=True)):
            if axis is None:
                if has_batch:
                    raise ValueError(k)
                results.append(out)
                continue
            if not has_batch:
                rank = out.type.ndim
                out = broadcast(out, shape=(size, *out.type.dims), axes=tuple(range(1, rank + 1)))
            results.append(_moved(out, 0, axis))
        return builder.function(results)


# ---- Jacobians -------------------------------------------------------------------------------------------


def _basis(type_: Array) -> Any:
    """The unit vectors of a type, stacked: dims (size, *dims)."""
    size = product(type_.dims)
    unit = eye(rows=size, columns=size, diagonal=0, dtype=type_.dtype)
    return reshape(unit, shape=(size, *type_.dims))


def jacobian_forward(function: Function, wrt: Marks, clean: Clean = _unchanged) -> Function:
    """All results, then for each result with a tangent space and each marked parameter the derivative,
    dims of the result first; one column of a parameter at a time, as one batch."""
    has = [has_tangent(r.type) for r in function.results]
    columns: list[list[Any]] = [[] for _ in range(sum(has))]
    positions = [k for k, mark in enumerate(wrt) if mark]
    with Builder(f"jacfwd_{function.name}") as builder:
        params = [builder.parameter(p.name, p.type) for p in function.params]
        outs: Sequence[Any] = ()
        for position in positions:
            type_ = function.params[position].type.plain
            program = clean(forward(function, [k == position for k in range(len(function.params))]))
            inner, marks = batch(program, product(type_.dims), [False] * len(params) + [True])
            values = builder.replay(inner, [*params, _basis(type_)])
            outs = outs or values[: len(has)]
            for k, (dot, mark) in enumerate(zip(values[len(has) :], marks[len(has) :])):
                if not mark:
                    dot = zeros(dot.type.plain.with_dims((product(type_.dims), *dot.type.dims)))
                last = _moved(dot, 0, dot.type.ndim - 1)
                columns[k].append(reshape(last, shape=(*last.type.dims[:-1], *type_.dims)))
        outs = outs or builder.replay(function, params)
        return builder.function([*outs, *(c for row in columns for c in row)])


def jacobian_reverse(function: Function, wrt: Marks, clean: Clean = _unchanged) -> Function:
    """All results, then for each result with a tangent space and each marked parameter the derivative,
    dims of the result first; one row of a result at a time, as one batch."""
    parts = linear_parts(function, wrt, clean)
    residual_count = len(parts.known.results) - len(function.results)
    inside = [p.type.plain for p in parts.pullback.params[residual_count:]]
    with Builder(f"jacrev_{function.name}") as builder:
        params = [builder.parameter(p.name, p.type) for p in function.params]
        outs = builder.replay(parts.known, params)
        results, residuals = outs[: len(function.results)], outs[len(function.results) :]
        out_types = [r.type.plain for r in results if has_tangent(r.type)]
        derivatives: list[Any] = []
        for position, out in enumerate(out_types):
            marks = [False] * residual_count + [k == position for k in range(len(out_types))]
            if out.dims:
                inner, found = batch(clean(parts.pullback), product(inside[position].dims), marks)
            else:  # one row is no batch
                inner, found = parts.pullback, [True] * sum(wrt)
            seeds = [
                zeros(t) if k != position else _basis(t) if t.dims else literal(1, t.dtype)
                for k, t in enumerate(out_types)
            ]
            rows = builder.replay(inner, [*residuals, *seeds])
            for row, mark, target in zip(rows, found, _pick(function.params, wrt)):
                type_ = target.type.plain
                if not mark:
                    row = zeros(type_.with_dims((product(out.dims), *type_.dims)))
                derivatives.append(reshape(row, shape=(*out.dims, *type_.dims)))
        return builder.function([*results, *derivatives])
