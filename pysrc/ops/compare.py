"""Comparisons, logic, and choice, elementwise.

In: equal-typed arrays. Out: bool arrays; `select(c, a, b)` is a where c, else b.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..core.native import Point
from ..core.primitive import Joint, Primitive, Zero
from ..core.scalars import CHEAP, FREE, Scalar, declare, instruction
from ..core.types import Array
from .families import (
    bits,
    elementwise,
    integral,
    like,
    ordered_bool,
    pointwise_batch,
    require,
    result_bool,
    same_type,
)


def _compare(name: str, numpy: Any, spelled: Any, type: Any = ordered_bool) -> Primitive:
    scalar = instruction(predicate=True, commutes=name in ("eq", "ne"))
    return elementwise(name, numpy, spellings=(spelled,), type=type, scalar=scalar, jvp=(Zero, Zero))


eq = _compare("eq", np.equal, operator.eq, result_bool)
ne = _compare("ne", np.not_equal, operator.ne, result_bool)
lt = _compare("lt", np.less, operator.lt)
le = _compare("le", np.less_equal, operator.le)
gt = _compare("gt", np.greater, operator.gt)
ge = _compare("ge", np.greater_equal, operator.ge)


and_ = elementwise(
    "and_",
    np.bitwise_and,
    spellings=(operator.and_,),
    type=bits,
    jvp=(None, None),
    scalar=instruction(commutes=True),
    native="and",
)
or_ = elementwise(
    "or_",
    np.bitwise_or,
    spellings=(operator.or_,),
    type=bits,
    jvp=(None, None),
    scalar=instruction(commutes=True),
    native="or",
)
xor = elementwise(
    "xor",
    np.bitwise_xor,
    spellings=(operator.xor,),
    type=bits,
    jvp=(None, None),
    scalar=Scalar(CHEAP, commutes=True, safe=True),
)
not_ = elementwise(
    "not_",
    np.invert,
    spellings=(operator.invert,),
    type=bits,
    jvp=(None,),
    native="not",
    scalar=instruction(),
    doc="Bitwise complement; on bools, logical not.",
)
shift_left = elementwise(
    "shift_left",
    np.left_shift,
    spellings=(operator.lshift,),
    type=integral,
    scalar=Scalar(CHEAP, safe=True),
    jvp=(None, None),
    doc="a * 2**b in the width of the dtype; 0 when b is not less than the width.",
)
shift_right = elementwise(
    "shift_right",
    np.right_shift,
    spellings=(operator.rshift,),
    type=integral,
    scalar=Scalar(CHEAP, safe=True),
    jvp=(None, None),
    doc="Logical on unsigned integers, arithmetic on signed ones.",
)
popcount = elementwise(
    "popcount",
    np.bitwise_count,
    jvp=(None,),
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


declare("select", instruction(FREE))
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
    batch=pointwise_batch(lambda: select),
    native=Point("select"),
    doc="a where c, else b; all three have one shape.",
)

__all__ = [
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
]
