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
from metaphrase.core.primitive import Primitive
from metaphrase.core.scalars import Scalar
from metaphrase.ops.compare import ne
from metaphrase.ops.elementary import isinf, isnan

from ..operators.arithmetic import SPELLED, elementwise
from ..operators.kinds import WEAK
from ..staging.session import session
from .builtin_calls import python_scalar
from .call import answers, call_value
from .math_calls import domain_check, range_check, unless

_COMPLEX = WEAK[complex]


def _as_complex(x: Any) -> Any:
    here = session()
    return here.wrap(here.atom(python_scalar(x), _COMPLEX), complex)


def _function(original: Callable, primitive: Primitive) -> Callable:
    def handler(x: Any, *base: Any) -> Any:
        here, value = session(), _as_complex(x)
        atom = here.atom(value)
        if original in (cmath.log, cmath.log10):
            domain_check(here, here.emit(ne, atom, literal(0, _COMPLEX)))
        out = elementwise(primitive, [value], [_COMPLEX], python=complex)
        result = here.atom(out)
        domain_check(here, unless(here, here.emit(isnan, result), here.emit(isnan, atom)))
        fits = unless(here, here.emit(isinf, result), here.emit(isinf, atom))
        (domain_check if original in (cmath.atan, cmath.atanh) else range_check)(here, fits)
        return out / call_value(cmath.log, base, {}) if base else out

    return handler


def _test(original: Callable, primitive: Primitive) -> Callable:
    def handler(x: Any) -> Any:
        return elementwise(primitive, [_as_complex(x)], [_COMPLEX], python=bool)

    return handler


for _name, _original in vars(cmath).items():  # what a primitive answers to in `math`, it answers to of complex numbers
    _real = np.log if _name == "log" else getattr(math, _name, None)
    if callable(_original) and callable(_real) and (_primitive := SPELLED.get(_real)) is not None:
        _made = _test if (_primitive.scalar or Scalar()).predicate else _function
        answers(_original)(_made(_original, _primitive))


@answers(cmath.phase)
def phase(x: Any) -> Any:
    value = _as_complex(x)
    return call_value(math.atan2, (value.imag, value.real), {})


@answers(cmath.polar)
def polar(x: Any) -> tuple:
    return (abs(_as_complex(x)), phase(x))


@answers(cmath.rect)
def rect(r: Any, phi: Any) -> Any:
    x, y = (call_value(function, (phi,), {}) for function in (math.cos, math.sin))
    return call_value(complex, (r * x, r * y), {})
