"""Forward mode: the one place where derivatives are taken (Griewank & Walther, Evaluating Derivatives, ch.
3).

In: a Function and, for each parameter, whether it has a tangent. Out: a Function of the parameters and their
tangents that returns the results and the tangents of those that have one.

    def f(x: f64):                    def jvp_f(x: f64, x_dot: f64):
        y = sin(x)                        y = sin(x)
        return y                          y_dot = mul(x_dot, cos(x))
                                          return y, y_dot
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from metaphrase.core.build import Builder
from metaphrase.core.calls import derived, written_out
from metaphrase.core.custom import CALLS, as_call
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop, Parts
from metaphrase.core.primitive import ByTransform, Joint, Together, Unsupported, Zero
from metaphrase.core.types import has_tangent
from metaphrase.ops.arithmetic import add
from metaphrase.ops.arrays import zeros
from metaphrase.ops.custom_rules import custom_vmap
from metaphrase.ops.regions import cond
from metaphrase.source import UnsupportedError

from . import custom, implicit
from .common import reaches, select_marked, spread, substitute_args
from .marks import with_settled_state


def jvp(
    function: Function, nonzero: Sequence[bool], instantiate: Sequence[bool] | None = None
) -> tuple[Function, list[bool]]:
    """The jvp program and which results carry a tangent. `instantiate` forces a (zero) tangent for some
    results.

    Parameters without a tangent space (integers, bools) must not be marked.
    """
    function = written_out(function)
    assert len(nonzero) == len(function.params)
    with Builder(f"jvp_{function.name}") as builder:
        dots: dict[Var, Atom] = {}
        builder.params = list(function.params)
        for param, marked in zip(function.params, nonzero):
            if marked:
                assert has_tangent(param.type), f"{param} has no tangent"
                dots[param] = builder.parameter(f"{param.name}_dot", param.type.plain)
        env: dict[Var, Atom] = {}
        for let in function.lets:
            _let(builder, substitute_args(let, env), env, dots)
        results: list[Atom] = []
        out_dots: list[Atom] = []
        out_nonzero = []
        for k, result in enumerate(function.results):
            results.append(env.get(result, result) if isinstance(result, Var) else result)
            dot = dots.get(result) if isinstance(result, Var) else None
            if dot is None and instantiate is not None and instantiate[k]:
                dot = zeros(result.type.plain)
            out_nonzero.append(dot is not None)
            if dot is not None:
                out_dots.append(dot)
        return builder.function([*results, *out_dots]), out_nonzero


def _let(builder: Builder, let: Let, env: dict[Var, Atom], dots: dict[Var, Atom]) -> None:
    """Append `let` and the computation of its results' tangents."""
    arg_dots = [dots.get(a) if isinstance(a, Var) else None for a in let.args]
    if all(d is None for d in arg_dots) or not let.outs:
        builder.lets.append(let)
        return
    builder.span = let.span.with_role("tangent") if let.span else None
    outs, out_dots = _applied(builder, let, arg_dots)
    builder.span = None
    for old, new, dot in zip(let.outs, outs, out_dots, strict=True):
        if new is not old:
            env[old] = new
            _name(new, old.name, builder.lets[-4:])
        if dot is not None and has_tangent(old.type):
            if dot not in dots.values():
                _name(dot, f"{old.name}_dot", builder.lets[-1:])
            dots.update((v, dot) for v in (old, new) if isinstance(v, Var))


def _of_region(
    function: Function, nonzero: Sequence[bool], instantiate: Sequence[bool] | None = None
) -> tuple[Function, list[bool]]:
    """The jvp program of a region: made once, although each trial of a loop around asks for it."""
    key = ("jvp of a region", tuple(nonzero), None if instantiate is None else tuple(instantiate))
    return derived(function, key, lambda: jvp(function, nonzero, instantiate))


def tangents_of(builder: Builder, let: Let, arg_dots: list[Atom | None]) -> Sequence[Atom | None]:
    """The tangents of the results of an operation that stands in the program already, computed in `builder`."""
    if all(d is None for d in arg_dots):
        return [None] * len(let.outs)
    before = len(builder.lets)
    _, out_dots = _applied(builder, let, arg_dots)
    builder.lets[before:] = [made for made in builder.lets[before:] if made is not let]
    return out_dots


def _name(value: Any, name: str, made: Sequence[Let]) -> None:
    """Give a value that was just made a name."""
    if any(value in let.outs for let in made):
        value.name = name


def _applied(builder: Builder, let: Let, arg_dots: list[Atom | None]) -> tuple:
    """What the rule of an operation with tangents gives: its results, and their tangents."""
    rule = let.primitive.jvp
    if rule is ByTransform:
        if let.primitive.name in _RULED:
            return _RULED[let.primitive.name](let, arg_dots)
        outs, (out_dots,) = region_series(let, [arg_dots], _of_region)
        return outs, out_dots
    if isinstance(rule, Joint):
        return rule.rule(let.args, arg_dots, **let.attributes)
    if isinstance(rule, Unsupported):
        raise UnsupportedError(f"{let.primitive.name} has no derivative: {rule.why}", let.span)
    if isinstance(rule, Together):
        filled = [zeros(a.type.plain) if d is None else d for a, d in zip(let.args[: rule.count], arg_dots)]
        builder.lets.append(let)
        return let.outs, (let.primitive(*filled, *let.args[len(filled) :], **let.attributes),)
    builder.lets.append(let)
    return let.outs, (_sum_of_rules(let, rule, arg_dots),)


def _sum_of_rules(let: Let, rules: Any, arg_dots: Sequence[Atom | None]) -> Atom | None:
    """The out tangent: one rule an operand, summed."""
    total: Atom | None = None
    if len(rules) == 1 and len(let.args) > 1:
        rules = rules * len(let.args)
    for rule, dot in zip(rules, arg_dots, strict=True):
        if dot is None or rule is None or rule is Zero:
            continue
        if isinstance(rule, Unsupported):
            raise UnsupportedError(f"{let.primitive.name} has no derivative: {rule.why}", let.span)
        part = rule(dot, let.out, *let.args, **let.attributes)
        if part is not None:
            total = part if total is None else add(total, part)
    return total


Orders = Sequence[Sequence[Atom | None]]
Derive = Callable[[Function, Sequence[bool], Sequence[bool] | None], tuple[Function, list[bool]]]


def region_series(let: Let, orders: Orders, derive: Derive) -> tuple[Sequence[Atom], list[list[Atom | None]]]:
    """The results of a region and their derivatives along a curve, one order after the other, from those of its
    operands. `derive` gives the Function of a body and of all these orders: for one order it is `jvp`."""
    return _REGIONS[let.primitive.name](let, orders, derive)


def _loop(let: Let, orders: Orders, derive: Derive) -> tuple:
    """Each tangent stands behind what it is the tangent of, in its role."""
    loop = Loop.of(let)
    given = [loop.args.like(dots) for dots in orders]
    inner, marks, smooth = with_settled_state(loop, loop.args.like(_marked(orders)), derive)
    args: Parts[Any] = loop.args
    params, results = loop.params, loop.results.like(inner.results[: len(loop.results)])
    more_params, more_results = iter(inner.params[1 + len(loop.params) :]), iter(inner.results[len(loop.results) :])
    sizes = list(loop.segment_sizes)
    condition = loop.condition
    for dots in given:
        dots = loop.args.map(lambda x, d, m: zeros(x.type.plain) if m and d is None else d, dots, marks)
        args = args + dots.where(marks)
        params = params + loop.params.where(marks).like(more_params)
        results = results + loop.results.where(smooth).like(more_results)
        sizes += select_marked(loop.segment_sizes, smooth.segments)
        if condition is not None:  # it ignores tangents, but takes every const and carry
            own = loop.condition.params.where(marks.asked)  # type: ignore[union-attr]
            extra = own.map(lambda p: Var(f"{p.name}_dot", p.type.plain))
            condition = condition.changed(params=condition.params + extra)
    body = loop.body.changed(inner.lets, params, results)
    new = replace(loop, args=args, body=body, condition=condition, segment_sizes=tuple(sizes)).bind()
    outs, rest = new.outs.apart(loop.outs)
    for var, old in zip((*new.sizes, *outs), let.outs):
        var.name = old.name
    found = []
    for _ in orders:
        out_dots, rest = rest.apart(loop.outs.where(smooth))
        for var, old in zip(out_dots, loop.outs.where(smooth)):
            var.name = f"{old.name}_dot"
        found.append([*(None for _ in new.sizes), *spread(out_dots, smooth)])
    return [*new.sizes, *outs], found


def _marked(orders: Orders) -> list[bool]:
    return [any(d is not None for d in dots) for dots in zip(*orders)]


def _cond(let: Let, orders: Orders, derive: Derive) -> tuple:
    branches = let.attributes["branches"]
    marks = _marked(orders)[1:]
    out = [False] * len(let.outs)
    for branch in branches:
        out = [a or b for a, b in zip(out, jvp_marks(branch, marks))]
    inner = tuple(_named(derive(branch, marks, out)[0], branch.name) for branch in branches)
    dots = [d for row in orders for d in _filled(let.args[1:], row[1:], marks)]
    results = iter(cond(*let.args, *dots, branches=inner))
    outs = [next(results) for _ in let.outs]
    found = [spread(results, out) for _ in orders]
    for var, old in zip(outs, let.outs):
        var.name = old.name
    for dot, old in ((dot, old) for row in found for dot, old in zip(row, let.outs) if dot is not None):
        dot.name = f"{old.name}_dot"
    return outs, found


def _filled(args: Sequence[Atom], dots: Sequence[Atom | None], marks: Sequence[bool]) -> list[Atom]:
    """The tangents of the marked operands."""
    return [zeros(a.type.plain) if d is None else d for a, d, m in zip(args, dots, marks) if m]


def _call(let: Let, orders: Orders, derive: Derive) -> tuple:
    function: Function = let.attributes["function"]
    marks = tuple(_marked(orders))
    inner, out = derived(function, ("jvp", len(orders), marks), lambda: derive(function, marks, None))
    dots = [d for row in orders for d in _filled(let.args, row, marks)]
    results = iter(let.primitive(*let.args, *dots, **{**let.attributes, "function": inner}))
    return [next(results) for _ in let.outs], [spread(results, out) for _ in orders]


def jvp_marks(function: Function, nonzero: Sequence[bool]) -> list[bool]:
    """Which results may carry a tangent: a cheap upper bound, by dependence."""
    return [m and has_tangent(r.type) for m, r in zip(reaches(function, nonzero), function.results)]


def _named(function: Function, name: str) -> Function:
    return Function(name, function.params, function.lets, function.results)


def _custom_vmap(let: Let, orders: Orders, derive: Derive) -> tuple:
    """The value by the rule for lanes, when it comes to lanes; the tangents are those of the function."""
    return custom_vmap(*let.args, **let.attributes), _call(as_call(let), orders, derive)[1]


_REGIONS = {"custom_vmap": _custom_vmap, "loop": _loop, "cond": _cond, **dict.fromkeys(CALLS, _call)}
# Those with rules of their own, which a region has none of.
_RULED: dict[str, Callable[..., tuple]] = {
    **custom.JVP,
    **{name: functools.partial(rule, jvp) for name, rule in implicit.JVP.items()},
}
