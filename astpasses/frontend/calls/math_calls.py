"""`math` on staged numbers: Python floats in and out, and Python's errors.

In: Python numbers, staged or not. Out: what Python would give. A function fails as CPython's does (Modules/
mathmodule.c): where its argument is outside of its domain (`math domain error`), and where a finite argument
has a result that no float can hold (`math range error`); NaN goes through.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.core.ir import Atom
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.scalars import Scalar
from metaphrase.ops.arithmetic import abs_
from metaphrase.ops.compare import and_, eq, gt, le, not_, or_, select
from metaphrase.ops.effects import check
from metaphrase.ops.elementary import floor as floor_
from metaphrase.ops.elementary import isfinite, isinf, isnan
from metaphrase.ops.special import tgamma

from ..operators.arithmetic import SPELLED, elementwise
from ..operators.kinds import WEAK
from ..operators.python_numbers import to_integer
from ..staging.session import Session, session
from .builtin_calls import float_, int_, real_scalar
from .call import answers, call_value, has_staged

_f64 = WEAK[float]
_TESTS = {math.isnan: bool, math.isinf: bool, math.isfinite: bool}


def domain_check(here: Session, ok: Atom) -> None:
    here.emit(check, ok, exception="ValueError", message="math domain error")


def range_check(here: Session, ok: Atom) -> None:
    here.emit(check, ok, exception="OverflowError", message="math range error")


def unless(here: Session, found: Atom, *before: Atom) -> Atom:
    """That `found` is not so, or was so before."""
    return functools.reduce(functools.partial(here.emit, or_), before, here.emit(not_, found))


def math_handler(function: Callable) -> Callable:
    """A function of `math` that a primitive answers to."""
    primitive = SPELLED[function]
    facts = primitive.scalar or Scalar()

    def handler(*args: Any) -> Any:
        if not has_staged(args):
            return function(*args)
        here = session()
        values = [real_scalar(a) for a in args]
        if facts.outside is not None:
            *size, comparison, bound = facts.outside
            x = here.atom(values[0], _f64)
            compared = here.emit(abs_, x) if size else x
            domain_check(here, here.emit(not_, here.emit(REGISTRY[comparison], compared, literal(bound))))
        out = elementwise(primitive, values, [_f64] * len(values), python=_TESTS.get(function, float))
        if facts.overflows:
            before = here.emit(isinf, here.atom(values[0], _f64))
            range_check(here, unless(here, here.emit(isinf, here.atom(out)), before))
        return out

    return handler


@answers(math.log)
def log(x: Any, base: Any = None) -> Any:
    here = session()
    value = real_scalar(x)
    domain_check(here, here.emit(not_, here.emit(le, here.atom(value, _f64), literal(0.0))))
    out = elementwise(SPELLED[np.log], [value], [_f64], python=float)
    return out if base is None else out / call_value(math.log, (base,), {})


@answers(math.pow)
def math_pow(x: Any, y: Any) -> Any:
    here = session()
    a, b = (here.atom(float_(v), _f64) for v in (x, y))
    out = here.emit(SPELLED[np.power], a, b)
    domain_check(here, unless(here, here.emit(isnan, out), here.emit(isnan, a), here.emit(isnan, b)))
    zero = here.emit(and_, here.emit(eq, a, literal(0.0)), here.emit(isinf, out))
    domain_check(here, unless(here, zero, here.emit(isinf, b)))
    range_check(here, unless(here, here.emit(isinf, out), here.emit(isinf, a), here.emit(isinf, b)))
    return here.wrap(out, float)


@answers(math.fmod)
def fmod(x: Any, y: Any) -> Any:
    here = session()
    a, b = (here.atom(float_(v), _f64) for v in (x, y))
    out = here.emit(SPELLED[np.fmod], a, b)
    domain_check(here, unless(here, here.emit(isnan, out), here.emit(isnan, a), here.emit(isnan, b)))
    return here.wrap(out, float)


@answers(math.lgamma)
def lgamma(x: Any) -> Any:
    here = session()
    value = float_(x)
    atom = here.atom(value)
    size = here.emit(abs_, atom)
    infinite = here.emit(eq, size, literal(math.inf))
    domain_check(here, here.emit(or_, _no_pole(here, atom), infinite))
    out = here.emit(SPELLED[math.lgamma], here.emit(select, infinite, size, atom))
    range_check(here, unless(here, here.emit(isinf, out), infinite))
    return here.wrap(out, float)


def _no_pole(here: Session, x: Atom) -> Atom:
    """`gamma` and `lgamma` have poles at 0 and the negative whole numbers, -inf too."""
    whole = here.emit(eq, here.emit(floor_, x), x)
    return here.emit(or_, here.emit(gt, x, literal(0.0)), here.emit(not_, whole))


@answers(math.hypot)
def hypot(*coordinates: Any) -> Any:
    total: Any = abs(float_(coordinates[0]))
    for value in coordinates[1:]:
        total = elementwise(SPELLED[np.hypot], [total, real_scalar(value)], [WEAK[float]] * 2, python=float)
    return total


@answers(math.gamma)
def gamma(x: Any) -> Any:
    """A pole is a domain error; where the result is too large for a float, it is a range error."""
    here = session()
    value = float_(x)
    atom = here.atom(value)
    domain_check(here, _no_pole(here, atom))
    out = here.emit(tgamma, atom)
    kept = here.emit(or_, here.emit(isfinite, out), here.emit(not_, here.emit(isfinite, atom)))
    range_check(here, kept)
    return here.wrap(out, float)


@answers(math.fsum)
def fsum(values: Any) -> Any:
    raise session().unsupported("math.fsum rounds once, which a translated sum can't", "use sum(...) or numpy.sum(...)")


@answers(math.fabs)
def fabs(x: Any) -> Any:
    return abs(float_(x))


@answers(math.floor)
def floor(x: Any) -> Any:
    return _to_int(np.floor, x)


@answers(math.ceil)
def ceil(x: Any) -> Any:
    return _to_int(np.ceil, x)


@answers(math.trunc)
def trunc(x: Any) -> Any:
    return int_(x)


def _to_int(function: Any, x: Any) -> Any:
    here, x = session(), real_scalar(x)
    if x.dtype.kind in "iub":
        return here.wrap(to_integer(here, here.atom(x)), int, x.dim)
    rounded = elementwise(SPELLED[function], [x], [_f64])
    return here.wrap(to_integer(here, here.atom(rounded)), int)


@answers(math.degrees)
def degrees(x: Any) -> Any:
    return float_(x) * (180.0 / math.pi)


@answers(math.radians)
def radians(x: Any) -> Any:
    return float_(x) * (math.pi / 180.0)
