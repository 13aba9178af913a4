"""Derivative rules of one's own, in the place that JAX gives their names.

In: functions and rules. Out: functions with rules. All of it is in `metaphrase` itself, but for what rules are given
with `symbolic_zeros=True`: `SymbolicZero` for tangents and cotangents that are zero, `CustomVJPPrimal` for arguments.

>>> import numpy as np
>>> SymbolicZero(np.zeros(3)).shape
(3,)
"""

from __future__ import annotations

from .api.calculus import closure_convert
from .api.custom import CustomJvp, CustomVjp, custom_gradient, custom_jvp, custom_vjp
from .api.symbolic import CustomVJPPrimal, SymbolicZero

__all__ = [
    "CustomJvp",
    "CustomVJPPrimal",
    "CustomVjp",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
]
