"""Ordinary differential equations: `odeint`, by JAX's name and arguments, with two kinds of adjoint.

In: dy/dt = func(y, t, *args) with y a pytree of floats, y at the first time, and the times. Out: y at all times.

    odeint(lambda y, t, a: -a * y, 1.0, np.array([0.0, 0.5, 1.0]), 2.0)      # exp(-2 t)

Dormand and Prince's pair of orders 5 and 4 with step control, and a polynomial of degree 4 between steps (Hairer,
Nørsett & Wanner, Solving Ordinary Differential Equations I, II.4 to II.6; Shampine 1986).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import tree
from .api.calculus import closure_convert
from .api.custom import custom_vjp
from .api.public import vjp
from .flatten_util import joined, ravel_pytree
from .lax import stop_gradient

_NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_MIDDLE = (
    6025192743 / 30085553152 / 2,
    0.0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)


def _weighted(weights: tuple, slopes: list) -> Any:
    total = weights[0] * slopes[0]
    for weight, slope in zip(weights[1:], slopes[1:]):
        if weight:
            total = total + weight * slope
    return total


def _step(f: Callable, y: Any, slope: Any, t: Any, dt: Any) -> tuple:
    """y one step later, an estimate of its error, and the slopes of the stages, the last of which is the next first."""
    slopes = [slope]
    for node, weights in zip(_NODES, _STAGES):
        ahead = y + dt * _weighted(weights, slopes)
        slopes.append(f(ahead, t + node * dt))
    return ahead, dt * _weighted(_ERROR, slopes), slopes


def _between(y: Any, after: Any, slopes: list, dt: Any) -> tuple:
    """The coefficients, the highest first, of the polynomial through both ends and the middle of a step."""
    middle = y + dt * _weighted(_MIDDLE, slopes)
    first, last = dt * slopes[0], dt * slopes[-1]
    return (
        2 * (last - first) - 8 * (y + after) + 16 * middle,
        5 * first - 3 * last + 18 * y + 14 * after - 32 * middle,
        last - 4 * first - 11 * y - 5 * after + 16 * middle,
        first,
        y,
    )


def _norm(x: Any) -> Any:
    return np.sqrt(np.sum(x * x))


def _first_step(f: Callable, t: Any, y: Any, slope: Any, rtol: float, atol: float) -> Any:
    """(Hairer, Nørsett & Wanner, II.4.)"""
    scale = atol + np.abs(y) * rtol
    d0, d1 = _norm(y / scale), _norm(slope / scale)
    h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    d2 = _norm((f(y + h0 * slope, t + h0) - slope) / scale) / h0
    steepest = d2 if d2 > d1 else d1
    h1 = max(1e-6, h0 * 1e-3) if steepest <= 1e-15 else (0.01 / steepest) ** 0.2
    return 100 * h0 if 100 * h0 < h1 else h1


def _factor(ratio: Any) -> Any:
    """By what the next step is longer, for an error that is `ratio` times what is tolerated."""
    if np.isnan(ratio):
        return 0.2
    if ratio == 0:
        return 10.0
    return min(10.0, max(0.9 * ratio**-0.2, 1.0 if ratio < 1 else 0.2))


def _trajectory(f: Callable, y: Any, ts: Any, rtol: float, atol: float, mxstep: float, hmax: float) -> Any:
    """The vector y at the times ts, which is y at the first. The step is a constant for derivatives."""
    rows = np.zeros((ts.shape[0], y.shape[0]), y.dtype)
    rows[0] = y
    t = last = ts[0]
    slope = f(y, t)
    dt = stop_gradient(min(_first_step(f, t, y, slope, rtol, atol), hmax))
    nothing = np.zeros_like(y)
    a, b, c, d, e = nothing, nothing, nothing, nothing, y
    for i in range(1, ts.shape[0]):
        count = 0
        while t < ts[i] and t + dt > t and count < mxstep:
            count += 1
            after, error, slopes = _step(f, y, slope, t, dt)
            tolerated = atol + rtol * np.maximum(np.abs(y), np.abs(after))
            ratio = np.sqrt(np.mean((error / tolerated) ** 2))
            length = stop_gradient(min(dt * _factor(ratio), hmax))
            if ratio <= 1.0:
                a, b, c, d, e = _between(y, after, slopes, dt)
                last, t = t, t + dt
                y, slope = after, slopes[-1]
            dt = length
        if not t >= ts[i]:
            cause = "mxstep steps do not reach it" if count >= mxstep else "no step is small enough"
            raise RuntimeError(f"odeint stops at t = {t}, before {ts[i]}: {cause}")
        share = (ts[i] - last) / (t - last)
        rows[i] = (((a * share + b) * share + c) * share + d) * share + e
    return rows


def _with_continuous_adjoint(f: Callable, y: Any, ts: Any, *options: Any) -> Any:
    """`_trajectory`, whose cotangents solve the adjoint equation backwards, between one time and the next."""
    converted, consts = closure_convert(f, y, ts[0])

    @custom_vjp
    def continuous_odeint(y: Any, ts: Any, consts: Any) -> Any:
        return _trajectory(lambda y, t: converted(y, t, *consts), y, ts, *options)

    def forward(y: Any, ts: Any, consts: Any) -> tuple:
        rows = continuous_odeint(y, ts, consts)
        return rows, (rows, ts, consts)

    def backward(residuals: tuple, bars: Any) -> tuple:
        rows, ts, consts = residuals
        n = rows.shape[1]
        zeros = [np.zeros_like(const) for const in consts]
        flat, unravel = ravel_pytree([ts[0] * 0, *zeros])

        def adjoint(z: Any, s: Any) -> Any:
            slope, pullback = vjp(converted, z[:n], -s, *consts)
            y_bar, *others = pullback(z[n : 2 * n])
            return np.concatenate([-slope, y_bar, joined(others)])

        y_bar, others_bar, t_bars = bars[-1], flat, np.zeros_like(ts)
        for i in range(ts.shape[0] - 1, 0, -1):
            t_bar = converted(rows[i], ts[i], *consts) @ bars[i]
            t_bars[i] = t_bar
            others_bar = np.concatenate([others_bar[:1] - t_bar, others_bar[1:]])
            z = np.concatenate([rows[i], y_bar, others_bar])
            z = _trajectory(adjoint, z, np.stack([-ts[i], -ts[i - 1]]), *options)[1]
            y_bar, others_bar = z[n : 2 * n] + bars[i - 1], z[2 * n :]
        t_bars[0] = others_bar[0]
        return y_bar, t_bars, unravel(others_bar)[1:]

    continuous_odeint.defvjp(forward, backward)
    continuous_odeint.through = True  # forward mode takes the derivative of the steps, which keeps nothing of them
    return continuous_odeint(y, ts, consts)


def odeint(
    func: Callable,
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
    adjoint: str = "discrete",
) -> Any:
    """y at the times t, which increase: a pytree like y0, of arrays with a first axis more; y0 is its first row.

    `func(y, t, *args)` is dy/dt, of the structure of y. A step's error is at most `atol + rtol * abs(y)`, in the mean;
    there are at most `mxstep` steps between two times, none longer than `hmax`.

    Derivatives reach y0, t, args and what func reads of what is around it. With `adjoint="discrete"` they are those of
    the steps that were made, in both modes and of every order; reverse mode keeps the steps. With `"continuous"`
    reverse mode solves the adjoint equation backwards, to the same tolerances: it keeps y at the times t alone;
    forward mode is that of the steps. (Chen et al., Neural ordinary differential equations, 2018.)

    Raises ValueError for times that don't increase and another `adjoint`, RuntimeError where the steps don't reach a
    time.
    """
    if adjoint not in ("discrete", "continuous"):
        raise ValueError(f"odeint: adjoint is 'discrete' or 'continuous', not {adjoint!r}")
    ts = _float(t)
    if ts.ndim != 1 or ts.shape[0] == 0:
        raise ValueError(f"odeint: t is a vector of times, and has shape {ts.shape}")
    if not np.all(ts[1:] > ts[:-1]):
        raise ValueError("odeint: the times t must increase")
    flat, unravel = ravel_pytree(tree.map(_float, y0))

    def slope(y: Any, t: Any) -> Any:
        return joined(func(unravel(y), t, *args)).astype(flat.dtype)

    solve = _trajectory if adjoint == "discrete" else _with_continuous_adjoint
    return unravel(solve(slope, flat, ts, rtol, atol, mxstep, hmax))


def _float(x: Any) -> Any:
    """x in floats: its own, float64 for ints."""
    x = np.asarray(x)
    return x.astype(np.result_type(x.dtype, np.float32))


__all__ = ["odeint"]
