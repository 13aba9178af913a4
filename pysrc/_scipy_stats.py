"""The normal distribution by the names of `scipy.stats.norm`: what its methods are in translated code.

In: arrays, `loc` and `scale`. Out: SciPy's values in double precision, NaN where `scale` is not positive. Far below 0
no digits are lost, and logarithms go on where the probabilities are 0.

    scipy.stats.norm.cdf(x, loc=m, scale=s)    is   ndtr((x - m) / s)

(`ppf`: Wichura, Algorithm AS 241, Applied Statistics 37, 1988, whose relative error is about 1e-16.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import erfc

_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)
_ROOT = math.sqrt(2.0 * math.pi)
_HALF = math.sqrt(0.5)
_FAR = -20.0  # below it an asymptotic series has all digits
# Numerator and denominator by the distance of q from 1/2, and by sqrt(-log(q)) above 1.6 and 5.
_MIDDLE = """2509.0809287301226727 33430.575583588128105 67265.770927008700853 45921.953931549871457
    13731.693765509461125 1971.5909503065514427 133.14166789178437745 3.3871328727963666080
    5226.4952788528545610 28729.085735721942674 39307.895800092710610 21213.794301586595867
    5394.1960214247511077 687.18700749205790830 42.313330701600911252 1"""
_TAIL = """7.74545014278341407640e-4 2.27238449892691845833e-2 2.41780725177450611770e-1 1.27045825245236838258
    3.64784832476320460504 5.76949722146069140550 4.63033784615654529590 1.42343711074968357734
    1.05075007164441684324e-9 5.47593808499534494600e-4 1.51986665636164571966e-2 1.48103976427480074590e-1
    6.89767334985100004550e-1 1.67638483018380384940 2.05319162663775882187 1"""
_END = """2.01033439929228813265e-7 2.71155556874348757815e-5 1.24266094738807843860e-3 2.65321895265761230930e-2
    2.96560571828504891230e-1 1.78482653991729133580 5.46378491116411436990 6.65790464350110377720
    2.04426310338993978564e-15 1.42151175831644588870e-7 1.84631831751005468180e-5 7.86869131145613259100e-4
    1.48753612908506148525e-2 1.36929880922735805310e-1 5.99832206555887937690e-1 1"""
MIDDLE, TAIL, END = ([float(number) for number in text.split()] for text in (_MIDDLE, _TAIL, _END))


def _ratio(numbers: list[float], x: Any) -> Any:
    """The quotient of two polynomials of degree 7."""
    above, below = x * 0.0 + numbers[0], x * 0.0 + numbers[8]
    for a, b in zip(numbers[1:8], numbers[9:]):
        above, below = above * x + a, below * x + b
    return above / below


def _standard(x: Any, loc: Any, scale: Any) -> Any:
    """The argument of the distribution around 0; NaN for a scale that there is none of."""
    scale = np.asarray(scale, float)
    return (np.asarray(x, float) - loc) / np.where(scale > 0.0, scale, np.nan)


def _log_cdf(x: Any) -> Any:
    near, far = np.where(x < _FAR, 0.0, x), np.where(x < _FAR, x, _FAR)
    low, high = np.where(near > 0.0, 0.0, near), np.where(near > 0.0, near, 0.0)
    terms = np.ones_like(far)
    for k in range(17, 0, -2):  # 1 - 1/x^2 + 1*3/x^4 - ...
        terms = 1.0 - k * terms / (far * far)
    series = np.log(terms) - 0.5 * far * far - np.log(-far) - _LOG_ROOT
    logs = np.where(near > 0.0, np.log1p(-0.5 * erfc(high * _HALF)), np.log(0.5 * erfc(-low * _HALF)))
    return np.where(x < _FAR, series, logs)


def _quantile(q: Any) -> Any:
    inside = (q > 0.0) & (q < 1.0)
    safe = np.where(inside, q, 0.5)
    away = safe - 0.5
    least = np.where(away < 0.0, safe, 1.0 - safe)
    root = np.sqrt(-np.log(least))
    tail = np.where(root > 5.0, _ratio(END, root - 5.0), _ratio(TAIL, root - 1.6))
    middle = away * _ratio(MIDDLE, 0.180625 - away * away)
    found = np.where(np.abs(away) <= 0.425, middle, np.where(away < 0.0, -tail, tail))
    return np.where(inside, found, np.where(q == 0.0, -np.inf, np.where(q == 1.0, np.inf, np.nan)))


class norm:
    """`scipy.stats.norm`."""

    @staticmethod
    def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        x = _standard(x, loc, scale)
        return np.exp(-0.5 * x * x) / _ROOT / scale

    @staticmethod
    def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        x = _standard(x, loc, scale)
        return -0.5 * x * x - _LOG_ROOT - np.log(np.where(np.asarray(scale) > 0, scale, np.nan))

    @staticmethod
    def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return 0.5 * erfc(-_HALF * _standard(x, loc, scale))

    @staticmethod
    def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return _log_cdf(_standard(x, loc, scale))

    @staticmethod
    def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return 0.5 * erfc(_HALF * _standard(x, loc, scale))

    @staticmethod
    def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return _log_cdf(-_standard(x, loc, scale))

    @staticmethod
    def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
        scale = np.where(np.asarray(scale) > 0, scale, np.nan)
        return _quantile(np.asarray(q, float)) * scale + loc

    @staticmethod
    def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
        scale = np.where(np.asarray(scale) > 0, scale, np.nan)
        return -_quantile(np.asarray(q, float)) * scale + loc


__all__ = ["norm"]
