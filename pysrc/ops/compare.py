"""Comparisons, logic, and choice, elementwise.

In: equal-typed arrays. Out: bool arrays; `select(c, a, b)` is a where c, else b.
"""
from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..core.ir import Var
from ..core.native import Point
from ..core.primitive import Joint, Linear, Primitive, Zero
from ..core.types import Array, is_integer
from .families import like, pointwise_batch, elementwise, require, result_bool, same_type


def _compare(name: str, numpy: Any, spelled: Any) -> Primitive:
    return elementwise(name, numpy, spellings=(spelled,), type=result_bool, jvp=(Zero, Zero))


eq = _compare("eq", np.equal, operator.eq)
ne = _compare("ne", np.not_equal, operator.ne)
lt = _compare("lt", np.less, operator.lt)
le = _compare("le", np.less_equal, operator.le)
gt = _compare("gt", np.greater, operator.gt)
ge = _compare("ge", np.greater_equal, operator.ge)


def _bits(*types: Array) -> Array:
    type_ = same_type(*types)
    require(is_integer(type_.dtype) or type_.dtype == bool, f"needs integers or bools, got {type_}")
    return type_


and_ = elementwise("and_", np.bitwise_and, spellings=(operator.and_,), type=_bits, jvp=(None, None), native="and")
or_ = elementwise("or_", np.bitwise_or, spellings=(operator.or_,), type=_bits, jvp=(None, None), native="or")
xor = elementwise("xor", np.bitwise_xor, spellings=(operator.xor,), type=_bits, jvp=(None, None))
not_ = elementwise("not_", np.invert, spellings=(operator.invert,), type=_bits, jvp=(None,), native="not",
                   doc="Bitwise complement; on bools, logical not.")


def _select_type(c: Array, a: Array, b: Array) -> Array:
    require(c.dtype == bool and c.dims == a.dims, f"select: condition {c} does not fit {a}")
    return same_type(a, b)


def _select_jvp(args: tuple, dots: tuple) -> tuple:
    c, a, b = args
    _, a_dot, b_dot = dots
    out = select(c, a, b)
    a_dot, b_dot = (like(out, 0) if d is None else d for d in (a_dot, b_dot))
    return (out,), (select(c, a_dot, b_dot),)


select = Primitive(
    "select", type=_select_type, numpy=lambda c, a, b: np.where(c, a, b)[()] if np.ndim(c) == 0 else np.where(c, a, b),
    jvp=Joint(_select_jvp),
    transpose=(None, lambda y_bar, c, a, b: select(c, y_bar, like(y_bar, 0)),
               lambda y_bar, c, a, b: select(c, like(y_bar, 0), y_bar)),
    batch=pointwise_batch(lambda: select), native=Point("select"),
    doc="a where c, else b; all three have one shape.")

__all__ = ["eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "xor", "not_", "select", "Linear", "Var"]
