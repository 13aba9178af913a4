"""Functions of sums: roots of sums of squares, logarithms of sums of exponentials, and the share of one of two.

In: floating arrays. Out: arrays of that type.

    y: f64[n] = hypot(a, b)
    y: f64[n] = logaddexp(a, b)

Where all squares or exponentials are 0, their sum is at its least; there these functions' derivative is said to be 0,
the subgradient of least length, where calculus has 0 times infinity.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.primitive import Primitive
from ..core.scalars import Scalar, Text, ours
from .arithmetic import div, mul, sub
from .compare import and_, eq, flat, ne, select
from .families import elementwise, floating, like


def _of_sum(name: str, numpy: np.ufunc, slope: Any, doc: str) -> Primitive:
    return elementwise(
        name, numpy, spellings=None, type=floating, native=numpy.__name__, domain=((0.2, 5),), jvp=(slope,), doc=doc
    )


root_of_sum = _of_sum(
    "root_of_sum", np.sqrt, lambda x_dot, y, x: div(mul(x_dot, like(y, 0.5)), flat(y)), "The root of a sum of squares."
)
log_of_sum = _of_sum(
    "log_of_sum", np.log, lambda x_dot, y, x: div(x_dot, flat(x)), "The logarithm of a sum of exponentials."
)
hypot = elementwise(
    "hypot",
    np.hypot,
    type=floating,
    scalar=ours("hypot", operands=2),
    domain=((-3, 3), (1, 3)),
    jvp=(lambda a_dot, y, a, b: mul(a_dot, div(a, flat(y))), lambda b_dot, y, a, b: mul(b_dot, div(b, flat(y)))),
    doc="sqrt(a*a + b*b) without overflow on the way.",
)


def _logistic_numpy(x: Any) -> Any:
    return np.exp(-np.logaddexp(np.zeros_like(x), -x))


logistic: Primitive = elementwise(
    "logistic",
    _logistic_numpy,
    type=floating,
    scalar=Scalar(side_by_side=True, texts=(Text("f", "T e = T_exp(-fabs$(x));\nreturn (x < 0 ? e : 1)/(1 + e);"),)),
    jvp=(lambda x_dot, y, x: mul(x_dot, mul(y, sub(like(y, 1), y))),),
    doc="1 / (1 + exp(-x)): the share of the first term in exp(x) + exp(0).",
)


def _distance(a: Any, b: Any) -> Any:
    """a - b; 0 of equal infinities, which have equal shares in a sum."""
    apart = sub(a, b)
    return select(and_(eq(a, b), ne(apart, apart)), like(apart, 0), apart)


def _log_of_two(of_equal: str, more: str) -> Scalar:
    """The larger, and `more`: what the smaller adds to it, by their distance d."""
    body = f"""\
if (a == b) return a + {of_equal};
T d = a - b;
if (d > 0) return a + {more.replace("d", "-d")};
if (d <= 0) return b + {more};
return d;
"""
    return Scalar(texts=(Text("f", body, "a, b"),))


logaddexp = elementwise(
    "logaddexp",
    np.logaddexp,
    type=floating,
    jvp=(
        lambda a_dot, y, a, b: mul(a_dot, logistic(_distance(a, b))),
        lambda b_dot, y, a, b: mul(b_dot, logistic(_distance(b, a))),
    ),
    scalar=_log_of_two("(T)0.693147180559945309417232121458176568", "T_log1p(T_exp(d))"),
    doc="log(exp(a) + exp(b)).",
)


def _half_lives(d: Any) -> Any:
    return mul(d, like(d, math.log(2)))


logaddexp2 = elementwise(
    "logaddexp2",
    np.logaddexp2,
    type=floating,
    jvp=(
        lambda a_dot, y, a, b: mul(a_dot, logistic(_half_lives(_distance(a, b)))),
        lambda b_dot, y, a, b: mul(b_dot, logistic(_half_lives(_distance(b, a)))),
    ),
    scalar=_log_of_two("1", "(T)1.442695040888963407359924681001892137*T_log1p(T_exp2(d))"),
    doc="log2(2**a + 2**b).",
)

__all__ = ["root_of_sum", "log_of_sum", "hypot", "logistic", "logaddexp", "logaddexp2"]
