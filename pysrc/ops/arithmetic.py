"""Arithmetic and the elementary functions, elementwise.

In: equal-typed arrays. Out: one array of that type. Derivatives are those of calculus; at ties `max` and `min` share.
"""
from __future__ import annotations

import math
import operator

import numpy as np

from ..core.primitive import Joint, Zero
from .compare import eq, lt, select
from .families import elementwise, inexact, like

neg = elementwise("neg", np.negative, spellings=(operator.neg,),
                  jvp=(lambda x_dot, y, x: neg(x_dot),), transpose=(lambda y_bar, x: neg(y_bar),))

add = elementwise("add", np.add, spellings=(operator.add,),
                  jvp=(lambda a_dot, y, a, b: a_dot, lambda b_dot, y, a, b: b_dot),
                  transpose=(lambda y_bar, a, b: y_bar, lambda y_bar, a, b: y_bar))

sub = elementwise("sub", np.subtract, spellings=(operator.sub,),
                  jvp=(lambda a_dot, y, a, b: a_dot, lambda b_dot, y, a, b: neg(b_dot)),
                  transpose=(lambda y_bar, a, b: y_bar, lambda y_bar, a, b: neg(y_bar)))

mul = elementwise("mul", np.multiply, spellings=(operator.mul,),
                  jvp=(lambda a_dot, y, a, b: mul(a_dot, b), lambda b_dot, y, a, b: mul(a, b_dot)),
                  transpose=(lambda y_bar, a, b: mul(y_bar, b), lambda y_bar, a, b: mul(a, y_bar)))

div = elementwise("div", np.true_divide, spellings=(operator.truediv,), type=inexact,
                  jvp=(lambda a_dot, y, a, b: div(a_dot, b),
                       lambda b_dot, y, a, b: neg(mul(b_dot, div(y, b)))),
                  transpose=(lambda y_bar, a, b: div(y_bar, b), None),
                  doc="Quotient of floating operands; integers are converted first.")

sin = elementwise("sin", np.sin, spellings=(math.sin,), type=inexact,
                  jvp=(lambda x_dot, y, x: mul(x_dot, cos(x)),))
cos = elementwise("cos", np.cos, spellings=(math.cos,), type=inexact,
                  jvp=(lambda x_dot, y, x: neg(mul(x_dot, sin(x))),))
tanh = elementwise("tanh", np.tanh, spellings=(math.tanh,), type=inexact,
                   jvp=(lambda x_dot, y, x: mul(x_dot, sub(like(y, 1), mul(y, y))),))
exp = elementwise("exp", np.exp, spellings=(math.exp,), type=inexact,
                  jvp=(lambda x_dot, y, x: mul(x_dot, y),))
log = elementwise("log", np.log, type=inexact, jvp=(lambda x_dot, y, x: div(x_dot, x),))
sqrt = elementwise("sqrt", np.sqrt, type=inexact,
                   jvp=(lambda x_dot, y, x: div(mul(x_dot, like(y, 0.5)), y),))
sign = elementwise("sign", np.sign, jvp=(Zero,))
abs_ = elementwise("abs", lambda x: np.abs(x), spellings=(np.abs, np.fabs, abs, operator.abs), native="abs",
                   jvp=(lambda x_dot, y, x: mul(x_dot, sign(x)),),
                   doc="Absolute value of a real operand.")


def _share(x_dot, y, x, other):
    """Half of the tangent each where both operands are the extreme, as JAX does."""
    both = eq(x, other)
    weight = select(both, like(x, 0.5), like(x, 1.0))
    return select(eq(x, y), mul(x_dot, weight), like(x, 0))


max_ = elementwise("max", np.maximum, native="max",
                   jvp=(lambda a_dot, y, a, b: _share(a_dot, y, a, b), lambda b_dot, y, a, b: _share(b_dot, y, b, a)),
                   doc="The larger; NaN if either is NaN.")
min_ = elementwise("min", np.minimum, native="min",
                   jvp=(lambda a_dot, y, a, b: _share(a_dot, y, a, b), lambda b_dot, y, a, b: _share(b_dot, y, b, a)),
                   doc="The smaller; NaN if either is NaN.")

__all__ = ["neg", "add", "sub", "mul", "div", "sin", "cos", "tanh", "exp", "log", "sqrt", "sign", "abs_", "max_",
           "min_", "lt", "Joint"]
