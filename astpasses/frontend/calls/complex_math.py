"""`cmath` on staged numbers: Python numbers in and out, and Python's errors.

In: a Python number, staged or not. Out: what Python would give.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.ops.compare import ne
from metaphrase.ops.elementary import isinf, isnan

from ..operators.arithmetic import SPELLED, WEAK, elementwise
from ..staging.session import session
from .builtin_calls import python_scalar
from .call import call_value, handles, has_staged
from .math_calls import domain_check, range_check, unless

_COMPLEX = WEAK[complex]
_NAMES = {
    "sqrt": "sqrt",
    "exp": "exp",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "log": "log",
    "log10": "log10",
}


def _as_complex(x: Any) -> Any:
    here = session()
    return here.wrap(here.atom(python_scalar(x), _COMPLEX), complex)


def _function(original: Callable, ufunc: np.ufunc) -> Callable:
    def handler(x: Any, *base: Any) -> Any:
        if not has_staged((x, base)):
            return original(x, *base)
        here, value = session(), _as_complex(x)
        atom = here.atom(value)
        if original in (cmath.log, cmath.log10):
            domain_check(here, here.emit(ne, atom, literal(0, _COMPLEX)))
        out = elementwise(SPELLED[ufunc], [value], [_COMPLEX], python=complex)
        result = here.atom(out)
        domain_check(here, unless(here, here.emit(isnan, result), here.emit(isnan, atom)))
        fits = unless(here, here.emit(isinf, result), here.emit(isinf, atom))
        (domain_check if original in (cmath.atan, cmath.atanh) else range_check)(here, fits)
        return out / call_value(cmath.log, base, {}) if base else out

    return handler


for _name, _numpy in _NAMES.items():
    handles(getattr(cmath, _name))(_function(getattr(cmath, _name), getattr(np, _numpy)))


def _test(original: Callable, ufunc: np.ufunc) -> Callable:
    def handler(x: Any) -> Any:
        if not has_staged(x):
            return original(x)
        return elementwise(SPELLED[ufunc], [_as_complex(x)], [_COMPLEX], python=bool)

    return handler


for _name in ("isnan", "isinf", "isfinite"):
    handles(getattr(cmath, _name))(_test(getattr(cmath, _name), getattr(np, _name)))


@handles(cmath.phase)
def phase(x: Any) -> Any:
    if not has_staged(x):
        return cmath.phase(x)
    value = _as_complex(x)
    return call_value(math.atan2, (value.imag, value.real), {})


@handles(cmath.polar)
def polar(x: Any) -> tuple:
    return cmath.polar(x) if not has_staged(x) else (abs(_as_complex(x)), phase(x))


@handles(cmath.rect)
def rect(r: Any, phi: Any) -> Any:
    if not has_staged((r, phi)):
        return cmath.rect(r, phi)
    x, y = (call_value(function, (phi,), {}) for function in (math.cos, math.sin))
    return call_value(complex, (r * x, r * y), {})


__all__ = ["phase", "polar", "rect"]
