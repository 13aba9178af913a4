"""Special functions, elementwise: the error function and its inverse, log-gamma and its derivatives.

In: f32 or f64 arrays. Out: arrays of that type. Their meaning is SciPy's.

    y: f64[n] = erf(x)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.foreign import Foreign
from ..core.primitive import Primitive
from ..core.scalars import library
from ..core.types import Array
from .arithmetic import mul, neg
from .elementary import exp
from .families import elementwise, library_float, like, require

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _gauss(x: Any) -> Any:
    """The derivative of erf: 2/sqrt(pi) exp(-x*x)."""
    return mul(like(x, TWO_OVER_ROOT_PI), exp(neg(mul(x, x))))


erf = elementwise(
    "erf",
    Foreign("scipy.special", "erf"),
    spellings=(math.erf,),
    type=library_float,
    scalar=library("erf"),
    jvp=(lambda x_dot, y, x: mul(x_dot, _gauss(x)),),
)
erfc = elementwise(
    "erfc",
    Foreign("scipy.special", "erfc"),
    spellings=(math.erfc,),
    type=library_float,
    scalar=library("erfc"),
    jvp=(lambda x_dot, y, x: neg(mul(x_dot, _gauss(x))),),
)
erfinv = elementwise(
    "erfinv",
    Foreign("scipy.special", "erfinv"),
    type=library_float,
    domain=((-0.95, 0.95),),
    jvp=(lambda x_dot, y, x: mul(x_dot, mul(like(y, 1 / TWO_OVER_ROOT_PI), exp(mul(y, y)))),),
)
lgamma = elementwise(
    "lgamma",
    Foreign("scipy.special", "gammaln"),
    spellings=(math.lgamma,),
    domain=((0.2, 9),),
    type=library_float,
    jvp=(lambda x_dot, y, x: mul(x_dot, digamma(x)),),
    doc="log(|gamma(x)|).",
)
digamma: Primitive = elementwise(
    "digamma",
    Foreign("scipy.special", "digamma"),
    type=library_float,
    domain=((0.2, 9),),
    jvp=(lambda x_dot, y, x: mul(x_dot, polygamma(x, order=1)),),
    doc="Derivative of lgamma.",
)

tgamma = elementwise(
    "tgamma",
    Foreign("scipy.special", "gamma"),
    type=library_float,
    scalar=library("tgamma", side_by_side=False),
    domain=((0.2, 5),),
    jvp=(lambda x_dot, y, x: mul(x_dot, mul(y, digamma(x))),),
    doc="The gamma function.",
)


_polygamma_of_scipy = Foreign("scipy.special", "polygamma")


def _polygamma_type(x: Array, *, order: int) -> Array:
    require(
        isinstance(order, int) and order >= 1, lambda: f"polygamma: order {order!r} is not a positive integer"
    )
    return library_float(x)


def _polygamma_numpy(x: Any, *, order: int) -> Any:
    return np.asarray(_polygamma_of_scipy(order, x)).astype(np.asarray(x).dtype)[()]


polygamma: Primitive = elementwise(
    "polygamma",
    _polygamma_numpy,
    spellings=(_polygamma_of_scipy,),
    type=_polygamma_type,
    jvp=(lambda x_dot, y, x, *, order: mul(x_dot, polygamma(x, order=order + 1)),),
    doc="The derivative of digamma of the given order.",
)

__all__ = ["erf", "erfc", "erfinv", "lgamma", "tgamma", "digamma", "polygamma"]
