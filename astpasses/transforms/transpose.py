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
from dataclasses import replace
from typing import Any

from metaphrase.core.build import Builder
from metaphrase.core.calls import derived, written_out
from metaphrase.core.custom import CALLS, RULED, as_call
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.loops import Loop, Parts
from metaphrase.core.primitive import REGISTRY, Accumulate, ByTransform, Linear, NotLinear, Unsupported
from metaphrase.ops.arithmetic import add
from metaphrase.ops.arrays import zeros
from metaphrase.ops.regions import cond as cond_primitive
from metaphrase.source import UnsupportedError

from . import custom, implicit, replay
from .common import influences, known_branches, reaches, select_marked, spread, variables
from .marks import loop_marks


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
    function = written_out(function)
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
            known = known_branches(let, linear)
            builder.lets += [known] if known else []
            linear.update(v for v in let.outs if not known or v not in known.outs)
            backwards.append(let)
        else:
            builder.lets.append(let)
    bars: dict[Var, Atom] = dict(accs)
    for result, bar in zip(function.results, given, strict=True):
        if bar is not None and result in linear:
            accumulate(bars, result, bar)  # type: ignore[arg-type]
    for let in reversed(backwards):
        out_bars = [bars.pop(v, None) for v in let.outs]
        if any(b is not None for b in out_bars):
            before = len(builder.lets)
            builder.span = let.span.with_role("adjoint") if let.span else None
            _let(let, out_bars, linear, bars)
            builder.span = None
            _name_bars(let, bars, builder.lets[before:])
    return bars


def _name_bars(let: Let, bars: dict[Var, Atom], made: Sequence[Let]) -> None:
    """Cotangents of operands that are called after an operation get names."""
    outs = {v for x in made for v in x.outs}
    for arg in variables(let.args):
        bar = bars.get(arg)
        if bar in outs and bar.name in REGISTRY:  # type: ignore[union-attr]
            bar.name = f"{_base(arg)}_bar"  # type: ignore[union-attr]


def accumulate(bars: dict[Var, Atom], var: Var, contribution: Any) -> None:
    """Add a contribution to the cotangent of `var`."""
    so_far = bars.get(var)
    bars[var] = contribution if so_far is None else add(so_far, contribution)


def _let(let: Let, out_bars: list, linear: set[Var], bars: dict[Var, Atom]) -> None:
    rule = let.primitive.transpose
    marks = [a in linear for a in let.args]
    args = tuple(Linear(a.type) if m else a for a, m in zip(let.args, marks))
    if rule is ByTransform:
        _REGIONS[let.primitive.name](let, marks, out_bars, bars)
    elif rule is NotLinear or isinstance(rule, Unsupported):
        why = f": {rule.why}" if isinstance(rule, Unsupported) else ""
        raise UnsupportedError(f"{let.primitive.name} is not linear in its operands{why}", let.span)
    elif not isinstance(rule, Accumulate):
        _operand_by_operand(let, rule, out_bars[0], args, marks, bars)
    elif sum(marks) != len(set(select_marked(let.args, marks))):
        _repeated(let, rule, out_bars, args, marks, bars)
    else:
        accs = {k: bars.get(let.args[k]) for k, m in enumerate(marks) if m}  # type: ignore[arg-type]
        found = rule.rule(out_bars, accs, args, **let.attributes)
        bars.update((let.args[k], acc) for k, acc in found.items() if acc is not None)


def _operand_by_operand(
    let: Let, rules: tuple, out_bar: Atom, args: tuple, marks: Sequence[bool], bars: dict[Var, Atom]
) -> None:
    if len(rules) == 1:
        rules = rules * len(args)
    for k, (arg, rule) in enumerate(zip(let.args, rules)):
        if not marks[k]:
            continue
        if rule is None:
            raise UnsupportedError(f"{let.primitive.name} is not linear in operand {k}", let.span)
        contribution = rule(out_bar, *args, **let.attributes)
        if contribution is not None:
            accumulate(bars, arg, contribution)  # type: ignore[arg-type]


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
    loop = Loop.of(let)
    assert loop.condition is None, "a loop with a condition is split into a loop of known length first"
    assert not loop.segment_sizes, "linear segments are split into accumulators first"
    state = _known_state(loop, marks)
    is_linear = loop.args.like(marks)  # a known first value of the state counts as linear: its cotangent is dropped
    is_linear = is_linear.replace(carries=(not k for k in state))
    is_linear = is_linear.replace(accumulators=(True for _ in is_linear.accumulators))
    given = loop.outs.like(out_bars)
    bars_of_state = zip(given.carries, loop.outs.carries, state)
    given = given.replace(carries=(None if known else _dense(bar, out) for bar, out, known in bars_of_state))
    with_bar = given.map(lambda bar: bar is not None)
    given = given.where(with_bar)
    linear, known = loop.params.parted(is_linear)
    linear_args, known_args = loop.args.parted(is_linear)
    with_sum = [p in linear.consts for p in linear]
    inner, found = transpose(loop.body.function, [False, *is_linear], [*with_bar], with_sum)

    params = iter(inner.params[1 + len(known) :])
    bar_params, sums = given.like(params), tuple(params)
    back = linear.like(spread(inner.results, found))
    changed = [bar is not so_far for bar, so_far in zip(back.consts, sums)]

    def leaving(parts: Parts) -> Parts:
        """What is there for linear operands, as results of the loop that runs back."""
        return Parts((), parts.carries, tuple(select_marked(parts.consts, changed)), parts.rows)

    with Builder(inner.name) as builder:
        builder.lets = list(inner.lets)
        results = leaving(back).map(_dense, leaving(linear))
    consts, rows = (*known.consts, *bar_params.accumulators), (*known.rows, *bar_params.rows, *known.carries)
    new_params = Parts(consts, bar_params.carries, tuple(select_marked(sums, changed)), rows)
    body = replace(loop.body, function=inner).changed(builder.lets, new_params, results)
    targets = leaving(linear_args)
    starts = tuple(_dense(bars.pop(a, None), a) for a in targets.accumulators)
    const_args, row_args = (*known_args.consts, *given.accumulators), (*known_args.rows, *given.rows)
    args = Parts(const_args, given.carries, starts, row_args)
    more = {**loop.more, "reverse": not loop.reverse, "parallel": loop.parallel}
    run = Loop(loop.primitive, args, body, None, loop.length, more)
    outs = replay.backward(run, loop.body, is_linear, known_args) if any(state) else run.bind().outs
    for param, result in zip(leaving(linear), outs):
        result.name = f"{_base(param)}_bar"
    owing = set(select_marked(let.args, marks))
    added_to = select_marked(loop.args.accumulators, with_bar.accumulators)
    for arg, bar in zip((*targets, *added_to), (*outs, *given.accumulators)):
        if arg in owing:
            accumulate(bars, arg, bar)


def _known_state(loop: Loop, marks: Sequence[bool]) -> tuple[bool, ...]:
    """The carries that do not depend on what is linear: those that a loop runs again for its linear part."""
    if "slots" not in loop.more:
        return (False,) * len(loop.args.carries)
    return loop_marks(loop, loop.args.like(not mark for mark in marks))[0].carries


def _dense(bar: Atom | None, value: Atom) -> Atom:
    return zeros(value.type.plain) if bar is None else bar


def _cond(let: Let, marks: Sequence[bool], out_bars: list, bars: dict[Var, Atom]) -> None:
    """Accumulators go into the branches and come back, so that a branch that leaves one alone costs
    nothing."""
    branches: tuple[Function, ...] = let.attributes["branches"]
    if marks[0]:
        raise UnsupportedError("the index of a cond is not linear", let.span)
    operand_marks = list(marks[1:])
    with_result = [b is not None for b in out_bars]
    linear_args = select_marked(let.args[1:], operand_marks)
    touched_by = [select_marked(influences(branch, with_result), operand_marks) for branch in branches]
    touched = list(map(any, zip(*touched_by)))
    targets = select_marked(linear_args, touched)
    accs = [_dense(bars.pop(arg, None), arg) for arg in targets]  # of a variable that occurs twice once
    new_branches = []
    for branch in branches:
        new, found = transpose(branch, operand_marks, with_result, touched)
        got = select_marked(spread(new.results, found), touched)
        new_branches.append(Function(branch.name, new.params, new.lets, tuple(got)))
    known = [a for a, m in zip(let.args[1:], operand_marks) if not m]
    results = cond_primitive(
        let.args[0], *known, *(b for b in out_bars if b is not None), *accs, branches=tuple(new_branches)
    )
    for arg, result in zip(targets, results, strict=True):
        result.name = f"{_base(arg)}_bar"
        accumulate(bars, arg, result)  # type: ignore[arg-type]


def _call(let: Let, marks: Sequence[bool], out_bars: list, bars: dict[Var, Atom]) -> None:
    """What there is of a cotangent goes into the function, which adds to it."""
    function: Function = let.attributes["function"]
    linear_args: list = select_marked(let.args, marks)
    with_result = [b is not None for b in out_bars]
    accs = [bars.pop(a, None) for a in linear_args]  # of a variable that occurs twice once
    key = ("transpose", *marks, *with_result, *(a is not None for a in accs))
    new, found = derived(function, key, lambda: transpose(function, marks, with_result, [a is not None for a in accs]))
    known = [a for a, m in zip(let.args, marks) if not m]
    given = [b for b in (*out_bars, *accs) if b is not None]
    results = iter(let.primitive(*known, *given, **{**let.attributes, "function": new}))
    for arg in (a for a, f in zip(linear_args, found) if f):
        result = next(results)
        result.name = f"{_base(arg)}_bar"
        accumulate(bars, arg, result)


def _custom_transpose(let: Let, marks: Sequence[bool], out_bars: list, bars: dict[Var, Atom]) -> None:
    """The tangents of a function with a backward rule: that rule."""
    taken = marks[len(marks) - sum(let.attributes["wanted"]) :]
    for arg, mark, bar in zip(let.args[len(marks) - len(taken) :], taken, custom.transposed(let, out_bars)):
        if mark:
            accumulate(bars, arg, bar)  # type: ignore[arg-type]


def _linear_solve(let: Let, marks: Sequence[bool], out_bars: list, bars: dict[Var, Atom]) -> None:
    """The solution of the transposed equation."""
    first = len(marks) - len(let.attributes["matvec"].results)
    if any(marks[:first]):
        raise UnsupportedError("linear_solve is not linear in what its equation reads", let.span)
    for arg, mark, bar in zip(let.args[first:], marks[first:], implicit.transposed(let, out_bars)):
        if mark:
            accumulate(bars, arg, bar)  # type: ignore[arg-type]


def _custom(let: Let, marks: Sequence[bool], out_bars: list, bars: dict[Var, Atom]) -> None:
    """A function with rules of its own, of a tangent: it must be linear."""
    _call(as_call(let), marks, out_bars, bars)


_REGIONS = {
    "loop": _loop,
    "cond": _cond,
    **dict.fromkeys(CALLS, _call),
    "custom_transpose": _custom_transpose,
    "linear_solve": _linear_solve,
    **dict.fromkeys(RULED, _custom),
}

__all__ = ["transpose", "backward", "accumulate", "reaches", "Literal"]
