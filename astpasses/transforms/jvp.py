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

from collections.abc import Sequence
from typing import Any

from metaphrase.core.build import Builder
from metaphrase.core.ir import Atom, Function, Let, Roles, Var
from metaphrase.core.primitive import ByTransform, Joint, Unsupported, Zero
from metaphrase.core.types import has_tangent
from metaphrase.ops.arithmetic import add
from metaphrase.ops.arrays import zeros
from metaphrase.ops.regions import cond, loop
from metaphrase.source import UnsupportedError

from .common import inline, select_marked, substitute_args


def jvp(
    function: Function, nonzero: Sequence[bool], instantiate: Sequence[bool] | None = None
) -> tuple[Function, list[bool]]:
    """The jvp program and which results carry a tangent. `instantiate` forces a (zero) tangent for some
    results.

    Parameters without a tangent space (integers, bools) must not be marked.
    """
    function = inline(function)
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
    rule = let.primitive.jvp
    if rule is ByTransform:
        outs, out_dots = _REGIONS[let.primitive.name](let, arg_dots)
    elif isinstance(rule, Joint):
        outs, out_dots = rule.rule(let.args, arg_dots, **let.attributes)
    elif isinstance(rule, Unsupported):
        raise UnsupportedError(f"{let.primitive.name} has no derivative: {rule.why}", let.span)
    else:
        builder.lets.append(let)
        outs, out_dots = let.outs, (_sum_of_rules(let, rule, arg_dots),)
    builder.span = None
    for old, new, dot in zip(let.outs, outs, out_dots, strict=True):
        if new is not old:
            env[old] = new
            if isinstance(new, Var) and any(new in x.outs for x in builder.lets[-4:]):
                new.name = old.name
        if dot is not None and has_tangent(old.type):
            if (
                isinstance(dot, Var)
                and dot not in dots.values()
                and builder.lets
                and dot in builder.lets[-1].outs
            ):
                dot.name = f"{old.name}_dot"
            dots[old] = dot
            if isinstance(new, Var):
                dots[new] = dot


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


def _mixed(items: Sequence[Any], dots: Sequence[Any]) -> tuple:
    """Operands followed by those of their tangents that are nonzero."""
    return (*items, *(d for d in dots if d is not None))


def _loop(let: Let, arg_dots: list) -> tuple:
    attributes = dict(let.attributes)
    body, condition, roles = attributes["body"], attributes["cond"], attributes["roles"]
    parts = roles.parts(let.args)
    consts_dot, carries_dot, accumulators_dot, rows_dot = (list(d) for d in roles.parts(arg_dots))
    fixed = [d is not None for d in consts_dot], [d is not None for d in rows_dot]
    kept = roles.carries + roles.accumulators
    state = [d is not None for d in (*carries_dot, *accumulators_dot)]
    while True:
        marks = [False, *fixed[0], *state, *fixed[1]]
        force = [*state, *([False] * (len(body.results) - kept))]
        inner, out = jvp(body, marks, force)
        if out[:kept] == state:
            break
        state = [a or b for a, b in zip(state, out)]
    initial = [
        zeros(a.type.plain) if marked and d is None else d
        for a, d, marked in zip((*parts[1], *parts[2]), (*carries_dot, *accumulators_dot), state)
    ]
    carries_dot, accumulators_dot = initial[: roles.carries], initial[roles.carries :]
    groups = [_mixed(p, d) for p, d in zip(parts, (consts_dot, carries_dot, accumulators_dot, rows_dot))]
    marked = [fixed[0], state[: roles.carries], state[roles.carries :], fixed[1]]

    # jvp gave (params..., dots...) and (results..., dots...); the loop wants each role together
    primal = roles.parts(inner.params[1 : len(body.params)])
    dot_params = iter(inner.params[len(body.params) :])
    params = [inner.params[0]]
    for part, marks_ in zip(primal, marked):
        params += [*part, *(next(dot_params) for m in marks_ if m)]
    cut = len(body.results) - roles.segments
    cuts = (roles.carries, roles.accumulators, cut - kept, roles.segments)
    out_marks = [state[: roles.carries], state[roles.carries :], out[kept:cut], out[cut:]]
    plain, dotted = list(inner.results[: len(body.results)]), iter(inner.results[len(body.results) :])
    results: list[Atom] = []
    for count, marks_ in zip(cuts, out_marks):
        results += [*plain[:count], *(next(dotted) for m in marks_ if m)]
        plain = plain[count:]
    attributes["body"] = Function(body.name, tuple(params), inner.lets, tuple(results))
    if condition is not None:
        attributes["cond"] = _widen_condition(condition, roles, marked)
    extra = roles.segments + sum(out[cut:])
    attributes["roles"] = Roles(*(len(g) for g in (*groups, range(extra))))
    if roles.segments:
        names_ = attributes["segment_sizes"]
        attributes["segment_sizes"] = (*names_, *select_marked(names_, out[cut:]))
    outs = list(loop(*(a for g in groups for a in g), **attributes))
    from metaphrase.core.build import current

    sizes = len(let.own_symbols())
    names = iter(_role_names(let, sizes, cuts, out_marks))
    for var in current().lets[-1].outs:  # type: ignore[union-attr]
        var.name = next(names)
    primal_outs, dot_outs = outs[:sizes], [None] * sizes
    outs = outs[sizes:]
    for count, marks_ in zip(cuts, out_marks):
        primal_outs += outs[:count]
        outs = outs[count:]
        for m in marks_:
            dot_outs.append(outs.pop(0) if m else None)
    return primal_outs, dot_outs


def _role_names(let: Let, sizes: int, cuts: Sequence[int], out_marks: Sequence[list[bool]]) -> list[str]:
    names = [v.name for v in let.outs]
    found = names[:sizes]
    names = names[sizes:]
    for count, marks in zip(cuts, out_marks):
        found += names[:count] + [f"{n}_dot" for n, m in zip(names, marks) if m]
        names = names[count:]
    return found


def _widen_condition(condition: Function, roles: Roles, marked: list[list[bool]]) -> Function:
    """The condition ignores tangents, but takes every const and carry."""
    consts = condition.params[1 : 1 + roles.consts]
    carries = condition.params[1 + roles.consts :]
    extra = [
        [Var(f"{p.name}_dot", p.type.plain) for p in select_marked(part, marks)]
        for part, marks in zip((consts, carries), marked)
    ]
    params = (condition.params[0], *consts, *extra[0], *carries, *extra[1])
    return Function(condition.name, params, condition.lets, condition.results)


def _cond(let: Let, arg_dots: list) -> tuple:
    branches = let.attributes["branches"]
    marks = [d is not None for d in arg_dots[1:]]
    out = [False] * len(let.outs)
    for branch in branches:
        out = [a or b for a, b in zip(out, jvp_marks(branch, marks))]
    inner = tuple(_named(jvp(branch, marks, out)[0], branch.name) for branch in branches)
    results = cond(let.args[0], *_mixed(let.args[1:], arg_dots[1:]), branches=inner)
    count = len(let.outs)
    for var, old in zip(results[:count], let.outs):
        var.name = old.name
    dots = iter(results[count:])
    out_dots = [next(dots) if m else None for m in out]
    for dot, old in zip(out_dots, let.outs):
        if dot is not None:
            dot.name = f"{old.name}_dot"
    return results[:count], out_dots


def jvp_marks(function: Function, nonzero: Sequence[bool]) -> list[bool]:
    """Which results may carry a tangent: a cheap upper bound, by dependence."""
    from .common import reaches

    return [m and has_tangent(r.type) for m, r in zip(reaches(function, nonzero), function.results)]


def _named(function: Function, name: str) -> Function:
    return Function(name, function.params, function.lets, function.results)


_REGIONS = {"loop": _loop, "cond": _cond}
