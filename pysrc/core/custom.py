"""Functions with rules of the user's own, and checkpointed ones, where no derivative is taken any more: calls.

In: a Function. Out: the same with a `call` in the place of each `custom_jvp`, `custom_vjp`, `custom_vmap`,
`custom_root`, `linear_solve` and `checkpoint`, at every depth, so that nothing is in the way of fusion. What a
`checkpoint` computes again is kept apart from what was computed before by barriers. Raises where the tangents of a
function are left that has a backward rule alone, or a collective over an axis that nobody has mapped over.

    y = custom_jvp(x, function=f, rule=f_jvp, consts=0)      ->      y = call(x, function=f)
"""

from __future__ import annotations

from typing import NoReturn

from ..source import Span, UnsupportedError
from .calls import derived
from .ir import Function, Let, Literal, Var
from .primitive import REGISTRY

RULED = ("custom_jvp", "custom_vjp", "custom_vmap", "custom_root")  # of a tangent they are no more than their function
CALLS = ("call", "checkpoint")  # what runs a function, and is transformed by transforming that


def has_rules(function: Function) -> bool:
    """Whether a function with a rule of its own is called anywhere in `function`."""
    return derived(function, "has rules", lambda: any(map(_has_rule, function.lets)))


def _has_rule(let: Let) -> bool:
    return let.primitive.transient or any(map(has_rules, let.regions()))


def as_call(let: Let) -> Let:
    """The call of the function alone, without its rules."""
    return Let(let.outs, REGISTRY["call"], let.args, {"function": let.attributes["function"]}, let.span)


def without_rules(function: Function) -> Function:
    """See the head of this file."""
    return derived(function, "without rules", lambda: _without_rules(function)) if has_rules(function) else function


def _without_rules(function: Function) -> Function:
    lets = []
    for let in function.lets:
        if let.primitive.name == "custom_transpose":
            refuse_forward(let.attributes["of"], let.span)
        if "axis_name" in let.attributes:
            refuse_unmapped(let)
        if let.primitive.name == "checkpoint" and let.attributes["again"] and let.attributes["prevent_cse"]:
            lets += (barriers := _barriers(let))
            let = Let(let.outs, let.primitive, _behind(let, barriers), let.attributes, let.span)
        if let.primitive.transient:
            let = as_call(let)
        lets.append(let.with_regions(without_rules))
    return Function(function.name, function.params, tuple(lets), function.results)


def through_rules(function: Function) -> Function:
    """The function as forward mode takes it: where a rule for reverse mode says so (`through`), its function's own
    derivative is taken."""
    return derived(function, "through rules", lambda: _through_rules(function)) if has_rules(function) else function


def _through_rules(function: Function) -> Function:
    lets = []
    for let in function.lets:
        let = as_call(let) if let.attributes.get("through") else let
        lets.append(let.with_regions(through_rules))
    return Function(function.name, function.params, tuple(lets), function.results)


def _barriers(let: Let) -> list[Let]:
    """A barrier for each operand of a Let that is no number and no size."""
    values = dict.fromkeys(a for a in let.args if isinstance(a, Var) and a.type.value is None)
    return [Let((Var(v.name, v.type.plain),), REGISTRY["barrier"], (v,), {}, let.span) for v in values]


def _behind(let: Let, barriers: list[Let]) -> tuple[Var | Literal, ...]:
    copies = {barrier.args[0]: barrier.out for barrier in barriers}
    return tuple(copies.get(a, a) for a in let.args)


def refuse_forward(name: str, span: Span | None) -> NoReturn:
    """The derivative of `name`, which has a backward rule alone, is wanted in forward mode."""
    raise UnsupportedError(
        f"can't apply forward-mode differentiation (jvp, jacfwd, linearize) to {name}, which is a custom_vjp function: "
        "it has a backward rule alone",
        span,
        code="custom-forward",
        remedy="use grad, vjp or jacrev, or give the function a custom_jvp rule, which serves both modes",
    )


def refuse_unmapped(let: Let) -> NoReturn:
    """A collective is left: a linear function that has it was taken out of the mapped function, and is called there."""
    name = let.attributes["axis_name"]
    raise UnsupportedError(
        f"{let.primitive.name} over the axis {name!r} outside of the function that is mapped over it",
        let.span,
        code="collective",
        remedy="call what vjp or linearize gave in the mapped function",
    )


__all__ = ["CALLS", "RULED", "as_call", "has_rules", "refuse_forward", "through_rules", "without_rules"]
