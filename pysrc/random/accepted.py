"""Distributions whose samples are drawn until one is accepted, and those that are made of them.

In: a key, the parameters, a shape. Out: arrays: the samples that JAX draws with the same key, up to rounding.
Every element has a key of its own, a uint64 word here; all are drawn at once until each has been accepted.

>>> from metaphrase import random
>>> np.round(random.gamma(random.key(0), 2.0, (3,)), 4).shape
(3,)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._special import erf_inv
from ..ops.counters import threefry
from ..ops.elementary import sampled
from .draws import (
    _as_vector,
    _check_key,
    _finish,
    _float_dtype,
    _halves,
    _hash_counters,
    _shape,
    exponential,
    normal,
    split,
    uniform,
)


def _shape_for(name: str, shape: Any, *parameters: Any) -> tuple:
    """The shape of the result: that of the parameters, or one that they can be stretched to."""
    own = np.broadcast_shapes(*map(np.shape, parameters))
    if shape is None:
        return own
    shape = _shape(shape)
    if np.broadcast_shapes(own, shape) != shape:
        raise ValueError(f"random.{name}: the parameters have the shape {own}, which does not fit {shape}")
    return shape


def _next(words: Any, count: int) -> Any:
    """The key number `count` of those that each key is split into."""
    return threefry(words, np.full(words.shape, count, np.uint64))


def _uniforms(words: Any, dtype: np.dtype) -> Any:
    """A float in [0, 1) for each key."""
    words, width, mantissa = _next(words, 0), 8 * dtype.itemsize, np.finfo(dtype).nmant
    if width < 64:
        high, low = _halves(words)
        words = (high ^ low).astype(np.dtype(f"uint{width}"))
    counts = words >> np.dtype(f"uint{width}").type(width - mantissa)
    return counts.astype(dtype) * dtype.type(2.0**-mantissa)


def _normals(words: Any, dtype: np.dtype) -> Any:
    low = np.nextafter(dtype.type(-1), dtype.type(0))
    u = np.maximum(low, _uniforms(words, dtype) * (dtype.type(1) - low) + low)
    return dtype.type(np.sqrt(2)) * erf_inv(u)


def _gammas(key: Any, a: Any, shape: tuple, dtype: np.dtype, in_logs: bool) -> Any:
    """Marsaglia and Tsang, "A simple method for generating gamma variables", 2000: d v**3 for a normal x and
    v = 1 + c x is accepted by a squeeze, or by the exact test. Below 1 the sample is one for a + 1 times a
    power of a uniform number."""
    alpha = sampled(_as_vector(np.broadcast_to(np.asarray(a), shape), shape).astype(dtype))
    words = _hash_counters(key, shape)
    large = alpha >= 1
    third = dtype.type(1 / 3)
    d = np.where(large, alpha, alpha + dtype.type(1)) - third
    c = third / np.sqrt(d)
    keys, boosts = _next(words, 0), _next(words, 1)
    cubes = np.ones_like(d)
    open_ = d == d
    while np.any(open_):
        following, inner, u = _next(keys, 0), _next(keys, 1), _uniforms(_next(keys, 2), dtype)
        x, v = np.zeros_like(d), -np.ones_like(d)
        while np.any(v <= 0):
            redo = v <= 0
            x = np.where(redo, _normals(_next(inner, 1), dtype), x)
            v = np.where(redo, dtype.type(1) + x * c, v)
            inner = np.where(redo, _next(inner, 0), inner)
        square, cube = x * x, v * v * v
        with np.errstate(divide="ignore"):
            exact = np.log(u) >= square * dtype.type(0.5) + d * (dtype.type(1) - cube + np.log(cube))
        again = (u >= dtype.type(1) - dtype.type(0.0331) * (square * square)) & exact
        cubes = np.where(open_, cube, cubes)
        keys = np.where(open_, following, keys)
        open_ = open_ & again
    u = _uniforms(boosts, dtype)
    if in_logs:
        logs = np.log1p(-u)
        return np.log(d) + np.log(cubes) + np.where(large | (logs == 0), dtype.type(0), logs / alpha)
    return d * cubes * np.where(large, dtype.type(1), (dtype.type(1) - u) ** (dtype.type(1) / alpha))


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = float) -> Any:
    """Gamma of scale 1 and shape parameter a."""
    shape, dtype = _shape_for("gamma", shape, a), _float_dtype("gamma", dtype)
    return _finish(_gammas(_check_key("gamma", key), a, shape, dtype, False), shape)


def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = float) -> Any:
    """The logarithm of a gamma sample, which keeps small ones apart."""
    shape, dtype = _shape_for("loggamma", shape, a), _float_dtype("loggamma", dtype)
    return _finish(_gammas(_check_key("loggamma", key), a, shape, dtype, True), shape)


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = float) -> Any:
    """Beta: X / (X + Y) for gamma samples X of a and Y of b."""
    shape, dtype = _shape_for("beta", shape, a, b), _float_dtype("beta", dtype)
    keys = split(_check_key("beta", key))
    x, y = loggamma(keys[0], a, shape, dtype), loggamma(keys[1], b, shape, dtype)
    top = np.maximum(x, y)
    return np.exp(x - top) / (np.exp(x - top) + np.exp(y - top))


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = float) -> Any:
    """Dirichlet: gamma samples over their sum, along the last axis."""
    if np.ndim(alpha) < 1:
        raise ValueError("random.dirichlet takes an array of at least one dimension")
    size = np.shape(alpha)[-1]
    lead = np.shape(alpha)[:-1] if shape is None else _shape(shape)
    logs = loggamma(key, alpha, (*lead, size), dtype)
    shares = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
    return shares / np.sum(shares, axis=-1, keepdims=True)


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = float) -> Any:
    """Chi-square of df degrees of freedom."""
    return np.exp(loggamma(key, np.asarray(df) / 2, shape, dtype)) * np.dtype(dtype).type(2)


def t(key: Any, df: Any, shape: Any = (), dtype: Any = float) -> Any:
    """Student's t of df degrees of freedom."""
    shape, dtype = _shape_for("t", shape, df), _float_dtype("t", dtype)
    keys = split(_check_key("t", key))
    half = np.asarray(df).astype(dtype) / dtype.type(2)
    return normal(keys[0], shape, dtype) * np.sqrt(half / gamma(keys[1], half, shape, dtype))


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = int) -> Any:
    """Poisson of mean lam: Knuth's products of uniform numbers below 10, from there on Hoermann's transformed
    rejection ("The transformed rejection method for generating Poisson random variables", 1993)."""
    key, shape = _check_key("poisson", key), _shape_for("poisson", shape, lam)
    lam = np.broadcast_to(np.asarray(lam), shape).astype(np.float32)
    few = np.isnan(lam) | (lam < 10)
    small, large = np.where(few, lam, np.float32(0)), np.where(few, np.float32(1e5), lam)
    counts = np.where(few, _products(key, small, shape), _transformed(key, large, shape, few))
    counts = np.where(lam == 0, 0, counts).astype(dtype)
    return counts if len(shape) else counts[()]


def _products(key: Any, lam: Any, shape: tuple) -> Any:
    """How many uniform numbers have a product above exp(-lam)."""
    counts, logs = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
    while np.any(logs > -lam):
        keys = split(key)
        key = keys[0]
        counts = counts + (logs > -lam)
        with np.errstate(divide="ignore"):
            logs = logs + np.log(uniform(keys[1], shape, np.float32))
    return counts - 1


def _transformed(key: Any, lam: Any, shape: tuple, accepted: Any) -> Any:
    from scipy.special import gammaln

    one = np.float32
    b = one(0.931) + one(2.53) * np.sqrt(lam)
    a = one(-0.059) + one(0.02483) * b
    inverse_alpha = one(1.1239) + one(1.1328) / (b - one(3.4))
    v_r = one(0.9277) - one(3.6224) / (b - one(2))
    counts = np.full(shape, -1, np.float32)
    while not np.all(accepted):
        keys = split(key, 3)
        key = keys[0]
        u, v = uniform(keys[1], shape, np.float32) - one(0.5), uniform(keys[2], shape, np.float32)
        inner = one(0.5) - np.abs(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = np.floor((one(2) * a / inner + b) * u + lam + one(0.43))
            s = np.log(v * inverse_alpha / (a / (inner * inner) + b))
            exact = s <= -lam + k * np.log(lam) - gammaln(k + one(1))
        reject = (k < 0) | ((inner < one(0.013)) & (v > inner))
        accept = ((inner >= one(0.07)) & (v <= v_r)) | (~reject & exact)
        counts = np.where(accept, k, counts)  # as JAX: those that were accepted before, too
        accepted = accepted | accept
    return counts.astype(np.int64)


# ---- made of draws that need no rejection ----------------------------------------------------------------


def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = float, method: str = "cholesky"
) -> Any:
    """Normal vectors of a mean and a covariance, by Cholesky's factor, or one of `eigh` or `svd`: a singular covariance
    has these, too."""
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError(f"random.multivariate_normal: method is 'svd', 'eigh' or 'cholesky', not {method!r}")
    mean, cov = np.asarray(mean), np.asarray(cov)
    if mean.ndim < 1 or cov.ndim < 2 or cov.shape[-2:] != (mean.shape[-1], mean.shape[-1]):
        raise ValueError(
            f"random.multivariate_normal: mean and covariance of shapes {mean.shape}, {cov.shape} do not fit"
        )
    lead = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) if shape is None else _shape(shape)
    drawn = normal(key, (*lead, mean.shape[-1]), dtype)
    if method == "cholesky":
        factor = np.linalg.cholesky(cov)
    elif method == "eigh":
        values, vectors = np.linalg.eigh(cov)
        factor = vectors * np.sqrt(values[..., None, :])
    else:
        vectors, values, _ = np.linalg.svd(cov)
        factor = vectors * np.sqrt(values[..., None, :])
    return mean + np.matmul(factor, drawn[..., None])[..., 0]


def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = float) -> Any:
    """The exponential of a normal sample of deviation sigma."""
    return np.exp(normal(key, _shape_for("lognormal", shape, sigma), dtype) * np.asarray(sigma).astype(dtype))


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = float) -> Any:
    """Pareto of exponent b, from 1 on."""
    return np.exp(exponential(key, _shape_for("pareto", shape, b), dtype) / np.asarray(b).astype(dtype))


def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = float) -> Any:
    """Rayleigh of a scale."""
    u = uniform(key, _shape_for("rayleigh", shape, scale), dtype)
    with np.errstate(divide="ignore"):
        return np.asarray(scale).astype(dtype) * np.sqrt(np.log(u) * np.dtype(dtype).type(-2))


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = float) -> Any:
    """Weibull of a scale and a concentration."""
    u = uniform(key, _shape_for("weibull_min", shape, scale, concentration), dtype)
    power = 1.0 / np.asarray(concentration).astype(dtype)
    return (-np.log1p(-u)) ** power * np.asarray(scale).astype(dtype)


def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = int) -> Any:
    """How many trials of probability p the first success takes."""
    p = np.asarray(p)
    p = p if p.dtype.kind == "f" else p.astype(np.float64)
    u = uniform(key, _shape_for("geometric", shape, p), p.dtype)
    u = np.where(u == 0, p.dtype.type(1), u)
    return (np.floor(np.log(u) / np.log1p(-p)) + 1).astype(dtype)
