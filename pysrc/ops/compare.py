"""Comparisons, logic, and choice, elementwise.

In: equal-typed arrays. Out: bool arrays; `select(c, a, b)` is a where c, else b.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..core.native import Point
from ..core.primitive import Joint, Primitive, Zero
from ..core.relation import POINTWISE
from ..core.scalars import CHEAP, FREE, Scalar, Text, declare, instruction
from ..core.types import Array
from .families import bits, elementwise, integral, like, ordered_bool, require, result_bool, same_type


def _compare(name: str, numpy: Any, spelled: Any, sign: str, *texts: Text, type: Any = ordered_bool) -> Primitive:
    scalar = instruction(CHEAP, *texts, predicate=True, commutes=sign in ("==", "!="), sign=sign)
    return elementwise(name, numpy, spellings=(spelled,), type=type, scalar=scalar, jvp=(Zero, Zero))


_EQUAL = Text("c", "(re(a) == re(b)) & (im(a) == im(b))", "a, b")
_UNEQUAL = Text("c", "(re(a) != re(b)) | (im(a) != im(b))", "a, b")
eq = _compare("eq", np.equal, operator.eq, "==", _EQUAL, type=result_bool)
ne = _compare("ne", np.not_equal, operator.ne, "!=", _UNEQUAL, type=result_bool)
lt = _compare("lt", np.less, operator.lt, "<")
le = _compare("le", np.less_equal, operator.le, "<=")
gt = _compare("gt", np.greater, operator.gt, ">")
ge = _compare("ge", np.greater_equal, operator.ge, ">=")


and_ = elementwise(
    "and_",
    np.bitwise_and,
    spellings=(operator.and_,),
    type=bits,
    jvp=(None, None),
    scalar=instruction(commutes=True, sign="&"),
    native="and",
)
or_ = elementwise(
    "or_",
    np.bitwise_or,
    spellings=(operator.or_,),
    type=bits,
    jvp=(None, None),
    scalar=instruction(commutes=True, sign="|"),
    native="or",
)
xor = elementwise(
    "xor",
    np.bitwise_xor,
    spellings=(operator.xor,),
    type=bits,
    jvp=(None, None),
    scalar=Scalar(CHEAP, commutes=True, safe=True, sign="^"),
)
not_ = elementwise(
    "not_",
    np.invert,
    spellings=(operator.invert,),
    type=bits,
    jvp=(None,),
    native="not",
    scalar=instruction(sign="~"),
    doc="Bitwise complement; on bools, logical not.",
)
shift_left = elementwise(
    "shift_left",
    np.left_shift,
    spellings=(operator.lshift,),
    type=integral,
    scalar=Scalar(CHEAP, safe=True, texts=(Text("iu", "(U)b < 8*sizeof(T) ? (T)((U)a << b) : 0", "a, b"),)),
    jvp=(None, None),
    doc="a * 2**b in the width of the dtype; 0 when b is not less than the width.",
)
shift_right = elementwise(
    "shift_right",
    np.right_shift,
    spellings=(operator.rshift,),
    type=integral,
    scalar=Scalar(
        CHEAP,
        safe=True,
        texts=(
            Text("i", "(U)b < 8*sizeof(T) ? a >> b : (T)(a < 0 ? -1 : 0)", "a, b"),
            Text("u", "b < 8*sizeof(T) ? a >> b : 0", "a, b"),
        ),
    ),
    jvp=(None, None),
    doc="Logical on unsigned integers, arithmetic on signed ones.",
)
popcount = elementwise(
    "popcount",
    np.bitwise_count,
    jvp=(None,),
    scalar=Scalar(texts=(Text("i", "popcountll$((u64)(U)(x < 0 ? -(U)x : (U)x))"), Text("u", "popcountll$((u64)x)"))),
    type=lambda x: integral(x).with_dtype(np.dtype("uint8")),
    doc="The number of one bits of |x|, as u8.",
)


def _select_type(c: Array, a: Array, b: Array) -> Array:
    require(c.dtype == bool and c.dims == a.dims, lambda: f"select: condition {c} does not fit {a}")
    return same_type(a, b)


def _select_jvp(args: tuple, dots: tuple) -> tuple:
    c, a, b = args
    _, a_dot, b_dot = dots
    out = select(c, a, b)
    a_dot, b_dot = (like(out, 0) if d is None else d for d in (a_dot, b_dot))
    return (out,), (select(c, a_dot, b_dot),)


declare("select", instruction(FREE, Text("fhiucb", "c ? a : b", "b1 c, a, b")))
# By masks, without a branch: for a condition that no processor guesses (schedule/choices.py).
_OF_FLOATS = "union { T x; U k; } p = {a}, q = {b}; p.k = q.k ^ ((p.k ^ q.k) & -(U)c); return p.x;"
_PICKED = Text("iu", "b ^ ((a ^ b) & -(T)c)", "b1 c, a, b"), Text("f", _OF_FLOATS, "b1 c, a, b")
declare("pick", instruction(CHEAP, *_PICKED))
select: Primitive = Primitive(
    "select",
    type=_select_type,
    numpy=lambda c, a, b: np.where(c, a, b) if np.ndim(c) else (a if c else b),
    jvp=Joint(_select_jvp),
    transpose=(
        None,
        lambda y_bar, c, a, b: select(c, y_bar, like(y_bar, 0)),
        lambda y_bar, c, a, b: select(c, like(y_bar, 0), y_bar),
    ),
    dims=POINTWISE,
    native=Point("select"),
    doc="a where c, else b; all three have one shape.",
)


def _only_where_type(x: Array, c: Array) -> Array:
    require(c.dtype == bool and c.dims == x.dims, lambda: f"only_where: condition {c} does not fit {x}")
    return x.plain


only_where: Primitive = Primitive(
    "only_where",
    type=_only_where_type,
    numpy=lambda x, c: x,
    jvp=(lambda x_dot, y, x, c: select(c, x_dot, like(x_dot, 0)), None),
    transpose=(lambda y_bar, x, c: select(c, y_bar, like(y_bar, 0)), None),
    dims=POINTWISE,
    native=Point(lambda x, c: x),
    doc="x, which is said to be constant where c does not hold.",
)


def flat(y: Any) -> Any:
    """y as a divisor of slopes that shall be 0 where y is 0, with all their derivatives."""
    return select(eq(y, like(y, 0)), like(y, np.inf), y)


__all__ = [
    "flat",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and_",
    "or_",
    "xor",
    "not_",
    "shift_left",
    "shift_right",
    "popcount",
    "select",
    "only_where",
]
