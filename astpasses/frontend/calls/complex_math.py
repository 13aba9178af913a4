"""`cmath` on staged numbers, and what of `math` is more than one primitive: Python numbers in and out.

In: a Python number, staged or not. Out: what Python would give.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.ops.compare import eq, gt, ne, not_, or_
from metaphrase.ops.effects import check
from metaphrase.ops.elementary import floor, isfinite
from metaphrase.ops.special import tgamma
from metaphrase.source import UnsupportedError

from ..operators.arithmetic import SPELLED, WEAK, elementwise
from ..staging.session import session
from .builtin_calls import float_, python_scalar
from .call import call_value, handles, has_staged

_COMPLEX = WEAK[complex]
_NAMES = {"sqrt": "sqrt", "exp": "exp", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh",
          "cosh": "cosh", "tanh": "tanh", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
          "asinh": "arcsinh",
          "acosh": "arccosh", "atanh": "arctanh", "log": "log", "log10": "log10"}


def _as_complex(x: Any) -> Any:
    here = session()
    return here.wrap(here.atom(python_scalar(x), _COMPLEX), complex)


def _function(original: Callable, ufunc: np.ufunc) -> Callable:
    def handler(x: Any, *base: Any) -> Any:
        if not has_staged((x, base)):
            return original(x, *base)
        here, value = session(), _as_complex(x)
        if original in (cmath.log, cmath.log10):
            ok = here.emit(ne, here.atom(value), literal(0, _COMPLEX))
            here.emit(check, ok, exception="ValueError", message="math domain error")
        out = elementwise(SPELLED[ufunc], [value], [_COMPLEX], python=complex)
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


@handles(math.hypot)
def hypot(*coordinates: Any) -> Any:
    if not has_staged(coordinates):
        return math.hypot(*coordinates)
    total: Any = abs(float_(coordinates[0]))
    for value in coordinates[1:]:
        total = elementwise(SPELLED[np.hypot], [total, python_scalar(value)], [WEAK[float]] * 2, python=float)
    return total


@handles(math.gamma)
def gamma(x: Any) -> Any:
    """A pole is a domain error; where the result is too large for a float, it is a range error."""
    if not has_staged(x):
        return math.gamma(x)
    here = session()
    value = float_(x)
    atom = here.atom(value)
    whole = here.emit(eq, here.emit(floor, atom), atom)
    ok = here.emit(or_, here.emit(gt, atom, literal(0.0)), here.emit(not_, whole))
    here.emit(check, ok, exception="ValueError", message="math domain error")
    out = here.emit(tgamma, atom)
    kept = here.emit(or_, here.emit(isfinite, out), here.emit(not_, here.emit(isfinite, atom)))
    here.emit(check, kept, exception="OverflowError", message="math range error")
    return here.wrap(out, float)


@handles(math.fsum)
def fsum(values: Any) -> Any:
    if not has_staged(values):
        return math.fsum(values)
    raise UnsupportedError("math.fsum rounds once, which a translated sum can't", session().span(),
                           code="no-translation", remedy="use sum(...) or numpy.sum(...)")


__all__ = ["phase", "polar", "rect", "hypot"]
