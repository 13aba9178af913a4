"""Rules of arithmetic, logic and choice that hold bit for bit.

In: operands of an operation. Out: something simpler that is equal, or None.

    mul(neg(x), y) -> neg(mul(x, y))      add(a, neg(b)) -> sub(a, b)      select(c, a, a) -> a
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase.core.ir import Atom, Literal, Var
from metaphrase.core.types import Array, is_float, is_inexact
from metaphrase.ops.arithmetic import abs_, add, div, mul, neg, sub
from metaphrase.ops.arrays import dim_value
from metaphrase.ops.compare import not_, select
from metaphrase.ops.shape import convert

from .simplify import Rewriter, rule


def is_number(value: Any, number: float) -> bool:
    """Whether a scalar is exactly this number; -0.0 is not 0.0."""
    if value is None or not np.all(value == number):
        return False
    return (
        number != 0
        or not is_inexact(value.dtype)
        or (value.dtype.kind != "c" and bool(np.signbit(value)) == bool(np.signbit(number)))
    )


def exact(type_: Array) -> bool:
    """Integers: arithmetic without rounding, NaN or signed zero."""
    return type_.dtype.kind in "iu"


def real(type_: Array) -> bool:
    return is_float(type_.dtype) or type_.dtype.kind == "i"


def negated(rewriter: Rewriter, atom: Atom) -> Atom | None:
    """x where `atom` is -x."""
    let = rewriter.maker(atom, "neg")
    return let.args[0] if let is not None else None


@rule("neg")
def neg_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    return negated(rewriter, args[0])


def dims_of(args: tuple) -> list | None:
    """The dims that i64 operands are known to be."""
    if any(a.type.dims or a.type.dtype != np.int64 for a in args):
        return None
    found = [a.type.value if isinstance(a, Var) else int(a.value) for a in args]
    return None if None in found or all(isinstance(d, int) for d in found) else found


def size_arithmetic(rewriter: Rewriter, args: tuple, operation: Any) -> Any:
    dims = dims_of(args)
    if dims is None:
        return None
    value = operation(*dims)
    return Literal(np.int64(value)) if isinstance(value, int) else rewriter.make(dim_value, dim=value)


@rule("add")
def add_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    a, b = args
    for x, other in ((a, b), (b, a)):
        value = rewriter.uniform(x)
        if value is not None and (is_number(value, -0.0) and is_float(value.dtype) or exact(types[0]) and value == 0):
            return other
    if real(types[0]) and a not in rewriter.sums and b not in rewriter.sums:
        if (y := negated(rewriter, b)) is not None:
            return rewriter.make(sub, a, y)
        if (x := negated(rewriter, a)) is not None:
            return rewriter.make(sub, b, x)
    return size_arithmetic(rewriter, args, lambda x, y: x + y) or constants_joined(rewriter, a, b, 1)


def constants_joined(rewriter: Rewriter, a: Atom, b: Atom, sign: int) -> Any:
    """(x + 1) - 1 is x, (x + 1) + 2 is x + 3: integers wrap around, so this is exact."""
    if isinstance(a, Literal) and not isinstance(b, Literal) and sign == 1:
        a, b = b, a
    if not isinstance(b, Literal) or b.type.dtype != np.int64:
        return None
    for name, inner_sign in (("add", 1), ("sub", -1)):
        let = rewriter.maker(a, name)
        if let is not None and isinstance(let.args[1], Literal):
            total = inner_sign * int(let.args[1].value) + sign * int(b.value)
            if total == 0:
                return let.args[0]
            if abs(total) < 2**62:
                return rewriter.make(add if total > 0 else sub, let.args[0], Literal(np.int64(abs(total))))
    return None


@rule("sub")
def sub_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    a, b = args
    value = rewriter.uniform(b)
    if value is not None and (is_number(value, 0.0) and is_float(value.dtype) or exact(types[0]) and value == 0):
        return a
    if real(types[0]) and (y := negated(rewriter, b)) is not None:
        return rewriter.make(add, a, y)
    if exact(types[0]) and a is b and not types[0].dims:
        return Literal(np.zeros((), types[0].dtype)[()])
    first = rewriter.uniform(a)
    if first is not None and (
        is_number(first, -0.0) and is_float(first.dtype) or types[0].dtype.kind == "i" and first == 0
    ):
        return rewriter.make(neg, b)
    return size_arithmetic(rewriter, args, lambda x, y: x - y) or constants_joined(rewriter, a, b, -1)


@rule("mul")
def mul_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    a, b = args
    type_ = types[0]
    if type_.dtype.kind == "c" or type_.dtype == bool:
        return None  # (inf + 0j) * 1 is not inf + 0j
    for x, other in ((a, b), (b, a)):
        value = rewriter.uniform(x)
        if is_number(value, 1):
            return other
        if real(type_) and is_number(value, -1):
            return rewriter.make(neg, other)
        if value is not None and exact(type_) and value == 0:
            return x
    if real(type_):
        x, y = negated(rewriter, a), negated(rewriter, b)
        if x is not None and y is not None:
            return rewriter.make(mul, x, y)
        if x is not None:
            return rewriter.make(neg, rewriter.make(mul, x, b))
        if y is not None:
            return rewriter.make(neg, rewriter.make(mul, a, y))
    return size_arithmetic(rewriter, args, lambda x, y: x * y)


@rule("div")
def div_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    a, b = args
    if not is_float(types[0].dtype):
        return None
    value = rewriter.uniform(b)
    if is_number(value, 1):
        return a
    if is_number(value, -1):
        return rewriter.make(neg, a)
    x, y = negated(rewriter, a), negated(rewriter, b)
    if x is not None and y is not None:
        return rewriter.make(div, x, y)
    if x is not None:
        return rewriter.make(neg, rewriter.make(div, x, b))
    if y is not None:
        return rewriter.make(neg, rewriter.make(div, a, y))
    return None


@rule("integer_pow")
def integer_pow_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    return args[0] if attributes["exponent"] == 1 else None


@rule("abs")
def abs_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    if rewriter.maker(args[0], "abs") is not None:
        return args[0]
    x = negated(rewriter, args[0]) if is_float(types[0].dtype) else None
    return rewriter.make(abs_, x) if x is not None else None


@rule("max", "min")
def extreme_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    return args[0] if args[0] is args[1] and exact(types[0]) else None


# --- logic and choice ------------------------------------------------------------------------------------


@rule("not_")
def not_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    let = rewriter.maker(args[0], "not_")
    return let.args[0] if let is not None else None


@rule("and_", "or_")
def both_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    return args[0] if args[0] == args[1] else None


@rule("and_")
def and_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    return _with_bool(rewriter, args, types, neutral=True)


@rule("or_")
def or_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    return _with_bool(rewriter, args, types, neutral=False)


def _with_bool(rewriter: Rewriter, args: tuple, types: tuple, neutral: bool) -> Any:
    if types[0].dtype != bool:
        return None
    for x, other in (args, args[::-1]):
        value = rewriter.uniform(x)
        if value is not None:
            return other if bool(value) == neutral else x
    return None


COMPARISONS = {
    "eq": lambda difference: difference == 0,
    "ne": lambda difference: difference != 0,
    "lt": lambda difference: difference < 0,
    "le": lambda difference: difference <= 0,
    "gt": lambda difference: difference > 0,
    "ge": lambda difference: difference >= 0,
}


def _comparison(holds: Any) -> Any:
    """Sizes whose difference is a number, an integer beside itself, or beside the size that it has become."""

    def compare(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
        a, b = args
        if types[0].dims or a.type.dtype.kind not in "iub":
            return None
        difference: Any = 0 if a is b else None
        if difference is None and (dims := dims_of(args)) is not None:
            difference = dims[0] - dims[1]
        elif difference is None and rewriter.places.same(a, b):
            difference = 0
        return Literal(np.bool_(holds(difference))) if isinstance(difference, int) else None

    return compare


for _name, _holds in COMPARISONS.items():
    rule(_name)(_comparison(_holds))


@rule("select")
def select_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    c, a, b = args
    if a == b:
        return a
    value = rewriter.uniform(c)
    if value is not None:
        return a if bool(value) else b
    turned = rewriter.maker(c, "not_")
    if turned is not None:
        return rewriter.make(select, turned.args[0], b, a)
    if types[0].dtype == bool:
        x, y = rewriter.uniform(a), rewriter.uniform(b)
        if x is not None and y is not None:
            return c if x else rewriter.make(not_, c)
    first, second = rewriter.maker(a, "neg"), rewriter.maker(b, "neg")
    if first is not None and second is not None and types[0].dtype.kind != "c":
        return rewriter.make(neg, rewriter.make(select, c, first.args[0], second.args[0]))
    return None


@rule("convert")
def convert_rule(rewriter: Rewriter, args: tuple, attributes: Any, types: tuple) -> Any:
    x, dtype = args[0], np.dtype(attributes["dtype"])
    if x.type.dtype == dtype:
        return x
    inner = rewriter.maker(x, "convert")
    if inner is not None:  # a first step that loses nothing can be left out
        source, middle = inner.args[0].type.dtype, x.type.dtype
        if np.can_cast(source, middle, "safe") and source.kind in "biuf" and middle.kind in "iuf":
            if not (source.kind in "iu" and source.itemsize == 8 and middle.kind == "f"):
                return rewriter.make(convert, inner.args[0], dtype=dtype)
    return None


__all__ = ["is_number", "exact", "real"]
