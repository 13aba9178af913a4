"""Whether a program is linear in some of its parameters, told from the derivatives of its operations.

In: a Function and marks on its parameters. Out: nothing, or an error that names the operation that is not linear, at
the user's line. Of every value it is known whether it is zero when those parameters are, linear in them, or independent
of them. An operation is linear in operands if its tangent does not depend on where it is taken, and if an operand that
does not depend on the parameters takes part in the tangent: what does not is added.

    y = mul(c, x)      # y_dot = mul(c, x_dot): linear in x
    y = mul(x, x)      # y_dot = add(mul(x_dot, x), mul(x, x_dot)): depends on x
    y = add(x, c)      # y_dot = x_dot: c is added
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from metaphrase.core.build import Builder
from metaphrase.core.calls import written_out
from metaphrase.core.custom import without_rules
from metaphrase.core.ir import Atom, ConstantArray, Function, Let, Literal, Var
from metaphrase.core.loops import Loop
from metaphrase.core.types import has_tangent
from metaphrase.source import UnsupportedError

from .jvp import tangents_of


class Kind(enum.IntEnum):
    """What is known of a value, as a function of the parameters; of values that are joined the greatest."""

    ZERO = 0  # nothing but zeros, or not there
    LINEAR = 1
    FREE = 2  # does not depend on them
    DECIDED = 3  # an index or a bool that depends on them


def check_linear(function: Function, linear: Sequence[bool], what: str) -> None:
    """Refuse a program that is not linear in the marked parameters."""
    function = written_out(without_rules(function))
    kinds = _results(function, [Kind.LINEAR if mark else Kind.FREE for mark in linear], what)
    for kind, result in zip(kinds, function.results):
        if kind is Kind.FREE:
            span = next((let.span for let in function.lets if result in let.outs), None)
            _refuse(what, "a result does not depend on the arguments", span)


def _refuse(what: str, why: str, span: Any) -> NoReturn:
    raise UnsupportedError(
        f"{what}, which is not linear: {why}",
        span,
        code="not-linear",
        remedy="leave out what is not linear; vjp gives the pullback of any function, at a point",
    )


def _results(function: Function, kinds: Sequence[Kind], what: str) -> list[Kind]:
    """The kinds of the results, from those of the parameters."""
    known: dict[Var, Kind] = dict(zip(function.params, kinds, strict=True))

    def of(atom: Atom) -> Kind:
        if isinstance(atom, Literal):
            return Kind.FREE if atom.value else Kind.ZERO
        return known[atom]

    for let in function.lets:
        known.update(zip(let.outs, _let(let, [of(a) for a in let.args], what)))
    return [of(r) for r in function.results]


def _let(let: Let, kinds: list[Kind], what: str) -> Sequence[Kind]:
    region = _REGIONS.get(let.primitive.name)
    if region is not None:
        return region(let, kinds, what)
    if not let.args:
        value = let.attributes.get("value")
        filled = isinstance(value, ConstantArray) and bool(np.any(value.value))
        made = let.primitive.name == "undefined" or isinstance(value, ConstantArray) and not filled
        return [Kind.ZERO if made else Kind.FREE] * len(let.outs)
    smooth = [has_tangent(out.type) for out in let.outs]
    depends = Kind.LINEAR in kinds or Kind.DECIDED in kinds
    if Kind.DECIDED in kinds and any(smooth):
        _refuse_decision(let, what)
    found = Kind.FREE
    if not depends:
        if any(smooth) and Kind.ZERO in kinds and not _fault(let, [kind is Kind.ZERO for kind in kinds]):
            found = Kind.ZERO
    elif any(smooth):
        found = Kind.LINEAR
        fault = _fault(let, [kind is not Kind.FREE for kind in kinds])
        if fault and Kind.ZERO in kinds:  # a product with zeros
            fault = _fault(let, [kind is Kind.LINEAR for kind in kinds])
        if fault:
            _refuse(what, f"{let.primitive.name} {fault}", let.span)
    return [found if m else Kind.DECIDED if depends else Kind.FREE for m in smooth]


def _refuse_decision(let: Let, what: str) -> NoReturn:
    _refuse(what, f"{let.primitive.name} chooses by a value that depends on the arguments", let.span)


def _fault(let: Let, marks: Sequence[bool]) -> str:
    """What keeps an operation from being linear in the marked operands together; empty if nothing does."""
    marks = [m and has_tangent(a.type) for a, m in zip(let.args, marks)]
    with Builder(let.primitive.name) as builder:
        dots: list[Atom | None] = [Var("x_dot", a.type.plain) if m else None for a, m in zip(let.args, marks)]
        out_dots = tangents_of(builder, let, dots)
    if any(d is None for d, out in zip(out_dots, let.outs) if has_tangent(out.type)):
        return "is not linear"
    needed = {dot for dot in out_dots if dot is not None}
    for made in reversed(builder.lets):
        if not needed.isdisjoint(made.outs):
            needed.update(made.args)
    if not needed.isdisjoint(let.outs) or any(m and arg in needed for arg, m in zip(let.args, marks)):
        return "is not linear"
    if any(not m and has_tangent(arg.type) and arg not in needed for arg, m in zip(let.args, marks)):
        return "has an operand that does not depend on the arguments"
    return ""


def _call(let: Let, kinds: list[Kind], what: str) -> Sequence[Kind]:
    return _results(let.attributes["function"], kinds, what)


def _cond(let: Let, kinds: list[Kind], what: str) -> Sequence[Kind]:
    if kinds[0] is Kind.DECIDED and let.outs:
        _refuse_decision(let, what)
    branches = [_results(branch, kinds[1:], what) for branch in let.attributes["branches"]]
    return [_joined(found, what, let) for found in zip(*branches)]


def _loop(let: Let, kinds: list[Kind], what: str) -> Sequence[Kind]:
    """The state is taken to a fixpoint."""
    loop = Loop.of(let)
    now = loop.args.like(kinds)
    while True:
        if loop.condition is not None:
            (asked,) = _results(loop.condition.function, [Kind.FREE, *now.asked], what)
            if asked is Kind.DECIDED:
                _refuse_decision(let, what)
        found = loop.results.like(_results(loop.body.function, [Kind.FREE, *now], what))
        state = [_joined(pair, what, let) for pair in zip(now.state, found.state)]
        if state == [*now.state]:
            return [*(Kind.FREE for _ in loop.sizes), *state, *found.stacked]
        now = now.replace(carries=state[: len(now.carries)], accumulators=state[len(now.carries) :])


def _joined(kinds: Sequence[Kind], what: str, let: Let) -> Kind:
    if Kind.LINEAR in kinds and Kind.FREE in kinds:
        _refuse(what, "a variable depends on the arguments on some of its paths", let.span)
    return max(kinds)


_REGIONS = {"call": _call, "cond": _cond, "loop": _loop}

__all__ = ["check_linear"]
