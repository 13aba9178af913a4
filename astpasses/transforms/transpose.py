"""Transposition: a linear program run backwards (backpropagation, without any derivative in it).

In: a Function and which of its parameters are linear. Out: a Function of the other parameters, the cotangents
of the results, and the accumulators so far; it returns the accumulators of the linear parameters.

Rules accumulate: a cotangent is added into what is there already, so `x[i]` costs one element, not a dense
array.

    def f(c, x_dot):                       def f_transposed(c, y_bar):
        y_dot = mul(c, x_dot)       ->         x_bar = mul(c, y_bar)
        return y_dot                           return x_bar
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metaphrase.core.build import Builder
from metaphrase.core.ir import Atom, Function, Let, Literal, Roles, Var
from metaphrase.core.primitive import REGISTRY, Accumulate, ByTransform, Linear, NotLinear, Unsupported
from metaphrase.ops.arithmetic import add
from metaphrase.ops.arrays import zeros
from metaphrase.ops.regions import cond as cond_primitive
from metaphrase.ops.regions import loop as loop_primitive
from metaphrase.source import UnsupportedError

from .common import influences, inline, reaches, select_marked, variables


def transpose(
    function: Function,
    linear: Sequence[bool],
    results: Sequence[bool] | None = None,
    accumulators: Sequence[bool] | None = None,
) -> tuple[Function, list[bool]]:
    """The transposed program and which linear parameters receive a cotangent.

    `results` marks the results that have a cotangent (default: all); `accumulators` marks the linear
    parameters (in their own order) for which a cotangent so far is passed in (default: none). Parameters of
    the transposed program: the non-linear ones, the cotangents of marked results, the accumulators. Results:
    a cotangent for each linear parameter that gets one.
    """
    function = inline(function)
    linear_params = select_marked(function.params, linear)
    results = [True] * len(function.results) if results is None else list(results)
    accumulators = [False] * len(linear_params) if accumulators is None else list(accumulators)
    with Builder(_name(function.name)) as builder:
        builder.params = [p for p, marked in zip(function.params, linear) if not marked]
        given: list[Atom | None] = [
            builder.parameter(f"{_base(r)}_bar", r.type.plain) if marked else None
            for r, marked in zip(function.results, results)
        ]
        accs = {
            p: builder.parameter(f"{_base(p)}_bar", p.type.plain)
            for p, marked in zip(linear_params, accumulators)
            if marked
        }
        bars = backward(builder, function, set(linear_params), given, accs)
        found = [bars.get(p) for p in linear_params]
        for param, bar in zip(linear_params, found):
            if isinstance(bar, Var) and bar not in builder.params:
                bar.name = f"{_base(param)}_bar"
        return builder.function([b for b in found if b is not None]), [b is not None for b in found]


def _name(name: str) -> str:
    base = name.removeprefix("linear_").removeprefix("jvp_")
    return f"{base}_transposed"


def _base(atom: Atom) -> str:
    return atom.name.removesuffix("_dot") if isinstance(atom, Var) else "result"


def backward(
    builder: Builder, function: Function, linear: set[Var], given: Sequence[Atom | None], accs: dict[Var, Any]
) -> dict[Var, Atom]:
    """Emit the backward pass into `builder`; returns the cotangents of linear variables."""
    linear = set(linear)
    backwards: list[Let] = []
    for let in function.lets:
        if any(a in linear for a in variables(let.args)):
            linear.update(let.outs)
            backwards.append(let)
        else:
            builder.lets.append(let)
    bars: dict[Var, Atom] = dict(accs)
    for result, bar in zip(function.results, given, strict=True):
        if bar is not None and isinstance(result, Var) and result in linear:
            accumulate(bars, result, bar)
    for let in reversed(backwards):
        out_bars = [bars.pop(v, None) for v in let.outs]
        if all(b is None for b in out_bars):
            continue
        builder.span = let.span.with_role("adjoint") if let.span else None
        before = len(builder.lets)
        _let(let, out_bars, linear, bars)
        made = {v for x in builder.lets[before:] for v in x.outs}
        for arg in variables(let.args):
            bar = bars.get(arg)
            if isinstance(bar, Var) and bar in made and bar.name in REGISTRY:  # of an operation, not a name
                bar.name = f"{_base(arg)}_bar"
        builder.span = None
    return bars


def accumulate(bars: dict[Var, Atom], var: Var, contribution: Any) -> None:
    """Add a contribution to the cotangent of `var`."""
    so_far = bars.get(var)
    bars[var] = contribution if so_far is None else add(so_far, contribution)


def _let(let: Let, out_bars: list, linear: set[Var], bars: dict[Var, Atom]) -> None:
    rule = let.primitive.transpose
    marks = [isinstance(a, Var) and a in linear for a in let.args]
    args = tuple(Linear(a.type) if m else a for a, m in zip(let.args, marks))
    if rule is ByTransform:
        _REGIONS[let.primitive.name](let, marks, out_bars, bars)
    elif rule is NotLinear or isinstance(rule, Unsupported):
        why = f": {rule.why}" if isinstance(rule, Unsupported) else ""
        raise UnsupportedError(f"{let.primitive.name} is not linear in its operands{why}", let.span)
    elif isinstance(rule, Accumulate):
        if sum(marks) != len({a for a, m in zip(let.args, marks) if m}):
            _repeated(let, rule, out_bars, args, marks, bars)
            return
        accs = {k: bars.get(let.args[k]) for k, m in enumerate(marks) if m}  # type: ignore[arg-type]
        for k, acc in rule.rule(out_bars, accs, args, **let.attributes).items():
            if acc is not None:
                bars[let.args[k]] = acc  # type: ignore[index]
    else:
        if len(rule) == 1 and len(args) > 1:
            rule = rule * len(args)
        for k, marked in enumerate(marks):
            if marked:
                if rule[k] is None:
                    raise UnsupportedError(f"{let.primitive.name} is not linear in operand {k}", let.span)
                contribution = rule[k](out_bars[0], *args, **let.attributes)
                if contribution is not None:
                    accumulate(bars, let.args[k], contribution)  # type: ignore[arg-type]


def _repeated(
    let: Let, rule: Accumulate, out_bars: list, args: tuple, marks: Sequence[bool], bars: dict[Var, Atom]
) -> None:
    """One variable in two linear places: collect each place apart, then add."""
    found = rule.rule(out_bars, {k: None for k, m in enumerate(marks) if m}, args, **let.attributes)
    for k, contribution in found.items():
        if contribution is not None:
            accumulate(bars, let.args[k], contribution)  # type: ignore[arg-type]


def _loop(let: Let, marks: Sequence[bool], out_bars: list, bars: dict[Var, Atom]) -> None:
    """const <-> accumulator, carry <-> carry reversed, row in <-> row out."""
    attributes = dict(let.attributes)
    body: Function = attributes["body"]
    roles: Roles = attributes["roles"]
    assert attributes["cond"] is None, "a loop with a condition is split into a loop of known length first"
    assert not roles.segments, "linear segments are split into accumulators first"
    operands = roles.parts(let.args)
    in_marks = [list(m) for m in roles.parts(marks)]
    in_marks[1] = [
        True
    ] * roles.carries  # a known first value is linear all the same: its cotangent is dropped
    in_marks[2] = [True] * roles.accumulators
    params = roles.parts(body.params[1:])
    cut = roles.carries, roles.carries + roles.accumulators
    carry_bars = [
        zeros(v.type.plain) if b is None else b for v, b in zip(let.outs[: cut[0]], out_bars[: cut[0]])
    ]
    accumulator_bars = out_bars[cut[0] : cut[1]]
    row_bars = out_bars[cut[1] :]
    body_marks = [False, *in_marks[0], *in_marks[1], *in_marks[2], *in_marks[3]]
    linear_params = select_marked(body.params, body_marks)
    n_consts, n_carries, n_accumulators = (sum(m) for m in in_marks[:3])
    with_result = [True] * roles.carries + [b is not None for b in (*accumulator_bars, *row_bars)]
    with_acc = [True] * n_consts + [False] * (len(linear_params) - n_consts)
    inner, found = transpose(body, body_marks, with_result, with_acc)

    # inner.params: i, known consts, known rows, bars of results, accumulators of consts
    known_consts = [p for p, m in zip(params[0], in_marks[0]) if not m]
    known_rows = [p for p, m in zip(params[3], in_marks[3]) if not m]
    start = 1 + len(known_consts) + len(known_rows)
    bar_params = inner.params[start : start + sum(with_result)]
    acc_params = inner.params[start + sum(with_result) :]
    inner_carry, rest = bar_params[: roles.carries], bar_params[roles.carries :]
    n_acc_bars = sum(b is not None for b in accumulator_bars)
    inner_acc, inner_rows = rest[:n_acc_bars], rest[n_acc_bars:]

    outs = iter(inner.results)
    result_of = {p: next(outs) if f else None for p, f in zip(linear_params, found)}
    linear_consts = linear_params[:n_consts]
    changed = [(p, a) for p, a in zip(linear_consts, acc_params) if result_of[p] is not a]
    with Builder(inner.name) as builder:
        builder.lets = list(inner.lets)
        carry_results = [result_of[p] if result_of[p] is not None else zeros(p.type.plain) for p in params[1]]
        linear_rows = [p for p, m in zip(params[3], in_marks[3]) if m]
        row_results = [result_of[p] if result_of[p] is not None else zeros(p.type.plain) for p in linear_rows]
        builder.params = [
            inner.params[0],
            *known_consts,
            *inner_acc,
            *inner_carry,
            *(a for _, a in changed),
            *known_rows,
            *inner_rows,
        ]
        new_body = builder.function([*carry_results, *(result_of[p] for p, _ in changed), *row_results])

    outer = dict(zip(body.params[1:], let.args))
    consts = [outer[p] for p in known_consts] + [b for b in accumulator_bars if b is not None]
    accs = [bars.pop(outer[p], None) for p, _ in changed]  # type: ignore[arg-type]
    seen: set[Var] = set()
    starts = []
    for (p, _), acc in zip(changed, accs):
        starts.append(zeros(p.type.plain) if acc is None else acc)
        seen.add(outer[p])  # type: ignore[arg-type]
    rows = [outer[p] for p in known_rows] + [b for b in row_bars if b is not None]
    new_attributes = {
        "body": new_body,
        "cond": None,
        "length": attributes["length"],
        "roles": Roles(len(consts), roles.carries, len(starts), len(rows)),
        "reverse": not attributes.get("reverse", False),
        "parallel": attributes.get("parallel", False),
    }
    results = list(loop_primitive(*consts, *carry_bars, *starts, *rows, **new_attributes))
    targets = [*params[1], *(p for p, _ in changed), *linear_rows]
    for p, result in zip(targets, results, strict=True):
        result.name = f"{_base(p)}_bar"
        arg = outer[p]
        if isinstance(arg, Var) and _is_linear(arg, let, marks):
            accumulate(bars, arg, result)
    for accumulator, bar, _ in zip(operands[2], accumulator_bars, in_marks[2]):
        if bar is not None and isinstance(accumulator, Var) and _is_linear(accumulator, let, marks):
            accumulate(bars, accumulator, bar)


def _is_linear(var: Var, let: Let, marks: Sequence[bool]) -> bool:
    return any(a is var and m for a, m in zip(let.args, marks))


def _cond(let: Let, marks: Sequence[bool], out_bars: list, bars: dict[Var, Atom]) -> None:
    """Accumulators go into the branches and come back, so that a branch that leaves one alone costs
    nothing."""
    branches: tuple[Function, ...] = let.attributes["branches"]
    if marks[0]:
        raise UnsupportedError("the index of a cond is not linear", let.span)
    operand_marks = list(marks[1:])
    with_result = [b is not None for b in out_bars]
    linear_args = select_marked(let.args[1:], operand_marks)
    touched = [False] * len(linear_args)
    for branch in branches:
        influence = select_marked(influences(branch, with_result), operand_marks)
        touched = [a or b for a, b in zip(touched, influence)]
    first = {}
    accs: list[Atom | None] = []
    for k, (arg, touch) in enumerate(zip(linear_args, touched)):
        if not touch:
            accs.append(None)
        elif arg in first:  # the same variable twice: its accumulator can only be in one place
            accs.append(zeros(arg.type.plain))
        else:
            first[arg] = k
            so_far = bars.pop(arg, None)  # type: ignore[call-overload]
            accs.append(zeros(arg.type.plain) if so_far is None else so_far)
    new_branches = []
    for branch in branches:
        new, found = transpose(branch, operand_marks, with_result, touched)
        values = iter(new.results)
        got = [next(values) if f else None for f in found]
        new_branches.append(
            Function(branch.name, new.params, new.lets, tuple(g for g, t in zip(got, touched) if t))
        )  # type: ignore[misc]
    known = [a for a, m in zip(let.args[1:], operand_marks) if not m]
    results = cond_primitive(
        let.args[0],
        *known,
        *(b for b in out_bars if b is not None),
        *(a for a in accs if a is not None),
        branches=tuple(new_branches),
    )
    for arg, result in zip(select_marked(linear_args, touched), results, strict=True):
        result.name = f"{_base(arg)}_bar"
        accumulate(bars, arg, result)  # type: ignore[arg-type]


_REGIONS = {"loop": _loop, "cond": _cond}

__all__ = ["transpose", "backward", "accumulate", "reaches", "Literal"]
