"""Functions of neural networks, as plain NumPy: they run at once and are staged like any user's code.

In: arrays of floats. Out: arrays of the same dtype. Names, arguments and derivatives at kinks are those of
`jax.nn`.

>>> softmax(np.array([0.0, 0.0, np.log(2.0)]))
array([0.25, 0.25, 0.5 ])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import erf as _erf

from .lax import stop_gradient

Axis = int | tuple[int, ...] | None


def _zero(x: Any) -> Any:
    return np.zeros_like(x)


# ---- activations -----------------------------------------------------------------------------------------


def identity(x: Any) -> Any:
    return x


def relu(x: Any) -> Any:
    """max(x, 0); the derivative at 0 is 0."""
    x = np.asarray(x)
    return np.where(x <= 0, _zero(x), x)


def relu6(x: Any) -> Any:
    """min(max(x, 0), 6); the derivative at 0 and 6 is 0."""
    x = np.asarray(x)
    return np.where(x >= 6, np.full_like(x, 6), relu(x))


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow on either side."""
    x = np.asarray(x)
    e = np.exp(np.where(x < 0, x, -x))
    return np.where(x < 0, e, np.ones_like(e)) / (1 + e)


def log_sigmoid(x: Any) -> Any:
    return -softplus(-np.asarray(x))


def softplus(x: Any) -> Any:
    """log(1 + exp(x))."""
    x = np.asarray(x)
    return np.logaddexp(x, _zero(x))


def sparse_plus(x: Any) -> Any:
    x = np.asarray(x)
    return np.where(x <= -1, _zero(x), np.where(x >= 1, x, (x + 1) ** 2 / 4))


def silu(x: Any) -> Any:
    """x * sigmoid(x)."""
    x = np.asarray(x)
    return x * sigmoid(x)


swish = silu


def mish(x: Any) -> Any:
    """x * tanh(softplus(x))."""
    x = np.asarray(x)
    return x * np.tanh(softplus(x))


def gelu(x: Any, approximate: bool = True) -> Any:
    """x times the normal distribution function, or its approximation by tanh."""
    x = np.asarray(x)
    if approximate:
        inner = x + 0.044715 * (x * x * x)
        return x * (0.5 * (1 + np.tanh(float(np.sqrt(2 / np.pi)) * inner)))
    return 0.5 * x * (1 + _erf(x / float(np.sqrt(2))))


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    x = np.asarray(x)
    return np.where(x >= 0, x, negative_slope * x)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x, or alpha * (exp(x) - 1) where x is negative."""
    x = np.asarray(x)
    return np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, _zero(x), x)))


def celu(x: Any, alpha: float = 1.0) -> Any:
    x = np.asarray(x)
    return np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, _zero(x), x) / alpha))


def selu(x: Any) -> Any:
    """The scaled elu that keeps mean 0 and variance 1."""
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def hard_tanh(x: Any) -> Any:
    x = np.asarray(x)
    return np.where(x > 1, np.ones_like(x), np.where(x < -1, -np.ones_like(x), x))


def hard_sigmoid(x: Any) -> Any:
    return relu6(np.asarray(x) + 3) / 6


def hard_silu(x: Any) -> Any:
    x = np.asarray(x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def soft_sign(x: Any) -> Any:
    x = np.asarray(x)
    return x / (np.abs(x) + 1)


def squareplus(x: Any, b: float = 4.0) -> Any:
    x = np.asarray(x)
    return (x + np.sqrt(x * x + b)) / 2


def tanh(x: Any) -> Any:
    return np.tanh(x)


def glu(x: Any, axis: int = -1) -> Any:
    """The first half along `axis` times the sigmoid of the second."""
    x = np.asarray(x)
    if x.shape[axis] % 2:
        raise ValueError(f"nn.glu halves axis {axis}, whose size {x.shape[axis]} is odd")
    first, second = np.split(x, 2, axis=axis)
    return first * sigmoid(second)


# ---- normalisers -----------------------------------------------------------------------------------------


def _top(x: Any, axis: Axis) -> Any:
    """The largest elements, a constant for derivatives; 0 where they are infinite."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return stop_gradient(np.where(np.isfinite(top), top, np.zeros_like(top)))


def logsumexp(
    a: Any, axis: Axis = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """log(sum(b * exp(a))), shifted by the largest element; with `return_sign` (log|sum|, sign of the
    sum)."""
    a = np.asarray(a)
    if where is not None:
        a = np.where(where, a, -np.inf)
    top = _top(a, axis)
    scaled = np.exp(a - top)
    if b is not None:
        scaled = scaled * b
    total = np.sum(scaled, axis=axis, keepdims=keepdims)
    shift = top if keepdims else np.reshape(top, np.shape(total))
    if not return_sign:
        return _log(total) + shift
    return _log(np.abs(total)) + shift, np.sign(total)


def _log(total: Any) -> Any:
    """The logarithm of a sum of exponentials; flat where there is nothing in it."""
    nothing = total == 0
    return np.where(nothing, -np.inf * np.ones_like(total), np.log(np.where(nothing, np.ones_like(total), total)))


def logmeanexp(x: Any, axis: Axis = None, where: Any = None, keepdims: bool = False) -> Any:
    """log(mean(exp(x)))."""
    x = np.asarray(x)
    counted = np.ones_like(x) if where is None else np.broadcast_to(where, x.shape).astype(x.dtype)
    count = np.sum(counted, axis=axis, keepdims=keepdims)
    return logsumexp(x, axis=axis, where=where, keepdims=keepdims) - np.log(count)


def log_softmax(x: Any, axis: Axis = -1, where: Any = None) -> Any:
    """x - logsumexp(x) along `axis`; -inf where `where` is false."""
    x = np.asarray(x)
    if where is not None:
        x = np.where(where, x, -np.inf)
        shifted = x - _top(x, axis)
        total = np.sum(np.exp(shifted), axis=axis, keepdims=True)
        made = shifted - np.log(np.where(total == 0, np.ones_like(total), total))
        return np.where(where, made, -np.inf)
    shifted = x - stop_gradient(np.max(x, axis=axis, keepdims=True))
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def softmax(x: Any, axis: Axis = -1, where: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along `axis`; 0 where `where` is false."""
    x = np.asarray(x)
    if where is not None:
        x = np.where(where, x, -np.inf)
        exponentials = np.exp(x - _top(x, axis))
        total = np.sum(exponentials, axis=axis, keepdims=True)
        return exponentials / np.where(total == 0, np.ones_like(total), total)
    exponentials = np.exp(x - stop_gradient(np.max(x, axis=axis, keepdims=True)))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


def standardize(
    x: Any, axis: Axis = -1, mean: Any = None, variance: Any = None, epsilon: float = 1e-5, where: Any = None
) -> Any:
    """x minus its mean, over its standard deviation, along `axis`: those given, or those of the elements where `where`
    is true. About a mean that is given the variance is the mean square without the square of the mean, as in JAX."""
    x, counted = np.asarray(x), True if where is None else where
    centred = x - (np.mean(x, axis=axis, keepdims=True, where=counted) if mean is None else mean)
    if variance is None:
        square = centred * centred if mean is None else x * x
        variance = np.mean(square, axis=axis, keepdims=True, where=counted)
        variance = variance if mean is None else np.maximum(variance - mean * mean, 0)
    return centred / np.sqrt(variance + epsilon)


def one_hot(x: Any, num_classes: int, *, dtype: Any = float, axis: int = -1) -> Any:
    """Rows of zeros with a one at x, on a new axis; a row of zeros where x is not in range(num_classes)."""
    x = np.asarray(x)
    axis = axis % (x.ndim + 1)
    shape = [1] * (x.ndim + 1)
    shape[axis] = num_classes
    classes = np.reshape(np.arange(num_classes), shape)
    return (np.expand_dims(x, axis) == classes).astype(dtype)
