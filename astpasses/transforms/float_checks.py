"""Checks of floats: a program that fails where an operation makes a NaN, or divides by 0.

In: a Function. Out: the same with a check behind each operation on floats, or before each division, in branches, loops
and calls, too:

    y = sqrt(x)         ->      y = sqrt(x)
                                check(y == y, x, exception="FloatingPointError", message="sqrt({}) is nan")

What moves elements or chooses among them makes none, and has no check.
"""

from __future__ import annotations

from metaphrase.core.build import Builder
from metaphrase.core.calls import derived
from metaphrase.core.ir import Function, Let
from metaphrase.core.native import Lib, Point, Reduce, Scan
from metaphrase.core.scalars import FREE
from metaphrase.core.types import is_inexact
from metaphrase.ops.arithmetic import div, floor_div, mod
from metaphrase.ops.compare import eq, ne
from metaphrase.ops.effects import check
from metaphrase.ops.families import like


def with_float_checks(function: Function, nan: bool, zero: bool) -> Function:
    """See the head of this file. `nan`: of NaNs; `zero`: of divisors."""

    def make() -> Function:
        with Builder(function.name) as builder:
            builder.params = list(function.params)
            for let in function.lets:
                builder.span = let.span
                if zero and let.primitive in (div, floor_div, mod):
                    message = f"{_name(let)}({{}}, {{}}): division by zero"
                    divisor = let.args[1]
                    check(ne(divisor, like(divisor, 0)), *let.args, exception="ZeroDivisionError", message=message)
                builder.lets.append(_inside(let, nan, zero))
                if nan and _may_make_nan(let):
                    _check_results(let)
            return builder.function(function.results)

    return derived(function, ("float checks", nan, zero), make)


def _inside(let: Let, nan: bool, zero: bool) -> Let:
    """The Let with checks in what it runs."""
    if not let.primitive.region or let.primitive.transient and set(let.attributes) & {"rule", "backward", "tangent"}:
        return let
    attributes = dict(let.attributes)
    for key, value in attributes.items():
        if isinstance(value, Function):
            attributes[key] = with_float_checks(value, nan, zero)
        elif isinstance(value, tuple) and any(isinstance(v, Function) for v in value):
            attributes[key] = tuple(with_float_checks(v, nan, zero) for v in value)
    return Let(let.outs, let.primitive, let.args, attributes, let.span)


def _may_make_nan(let: Let) -> bool:
    native = let.primitive.native
    computes = isinstance(native, (Lib, Reduce, Scan)) or isinstance(native, Point) and let.primitive.cost > FREE
    return computes and bool(let.args) and any(is_inexact(v.type.dtype) for v in let.outs)


def _check_results(let: Let) -> None:
    """A check that no result of an operation has a NaN; of an elementwise one it shows the operands."""
    for out in let.outs:
        if not is_inexact(out.type.dtype):
            continue
        if isinstance(let.primitive.native, Point) and all(a.type.dims == out.type.dims for a in let.args):
            values, shown = let.args, ", ".join(["{}"] * len(let.args))
        else:
            values, shown = (), ", ".join(f"{a.type.plain.dtype}" + "[]" * bool(a.type.dims) for a in let.args)
        check(eq(out, out), *values, exception="FloatingPointError", message=f"{_name(let)}({shown}) is nan")


def _name(let: Let) -> str:
    return let.primitive.name.rstrip("_")


__all__ = ["with_float_checks"]
