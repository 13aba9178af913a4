"""Rows beside the kernels: softmax, a loss with its gradient, a chain of cheap operations, two `while` loops.

In: nothing. Out: `seeds()`, a list of `Seed`s, each with the program in NumPy, and what each tool is given.
The NumPy column of a gradient is the gradient by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import metaphrase as mp


@dataclass
class Seed:
    """`numba` and `jax` make the forms, when these packages are there: (label, function)."""

    name: str
    reference: Callable[..., Any]
    arguments: tuple
    ours: Callable[..., Any]
    numba: Callable[[], list[tuple[str, Callable]]] = list
    jax: Callable[[], list[tuple[str, Callable]]] = list
    rtol: float = 1e-9
    loops: list[Callable] = field(default_factory=list)


def softmax(x):
    weights = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return weights / np.sum(weights, axis=-1, keepdims=True)


def softmax_loops(x):
    flat = x.reshape(-1, x.shape[-1])
    out = np.empty_like(flat)
    for i in range(flat.shape[0]):
        largest = flat[i].max()
        total = flat.dtype.type(0)
        for j in range(flat.shape[1]):
            out[i, j] = np.exp(flat[i, j] - largest)
            total += out[i, j]
        for j in range(flat.shape[1]):
            out[i, j] /= total
    return out.reshape(x.shape)


def mse(w, x, y):
    return np.mean((x @ w - y) ** 2)


def mse_and_gradient(w, x, y):
    error = x @ w - y
    return np.mean(error**2), x.T @ error * (error.dtype.type(2) / error.dtype.type(len(y)))


def mse_loops(w, x, y):
    n, m = x.shape
    total, gradient = 0.0, np.zeros_like(w)
    for i in range(n):
        error = -y[i]
        for j in range(m):
            error += x[i, j] * w[j]
        total += error * error
        for j in range(m):
            gradient[j] += error * x[i, j]
    return total / n, gradient * (2.0 / n)


def chain(x):
    for _ in range(5):
        x = np.maximum(x * 0.9 + 0.1, x - 0.5)
    return x


def chain_loops(x):
    out = np.empty_like(x)
    for i in range(x.size):
        v = x[i]
        for _ in range(5):
            v = max(v * 0.9 + 0.1, v - 0.5)
        out[i] = v
    return out


def escape(re, im):
    x = y = 0.0
    steps = 0
    while steps < 200 and x * x + y * y <= 4.0:
        x, y = x * x - y * y + re, 2.0 * x * y + im
        steps += 1
    return steps


def escape_arrays(re, im):
    """With NumPy: all points, then those still inside."""
    steps = np.zeros(re.shape, np.int64)
    x, y, inside = np.zeros_like(re), np.zeros_like(re), np.arange(re.size)
    for _ in range(200):
        steps[inside] += 1
        a, b = x[inside], y[inside]
        a, b = a * a - b * b + re[inside], 2.0 * a * b + im[inside]
        x[inside], y[inside] = a, b
        inside = inside[a * a + b * b <= 4.0]
    return steps


def period(e, m):
    anomaly = m
    while abs(anomaly - e * np.sin(anomaly) - m) > 1e-12:
        anomaly = anomaly - (anomaly - e * np.sin(anomaly) - m) / (1 - e * np.cos(anomaly))
    return anomaly


def period_arrays(e, m):
    anomaly = np.full_like(e, m)
    error = anomaly - e * np.sin(anomaly) - m
    going = np.abs(error) > 1e-12
    while going.any():
        anomaly = np.where(going, anomaly - error / (1 - e * np.cos(anomaly)), anomaly)
        error = anomaly - e * np.sin(anomaly) - m
        going = np.abs(error) > 1e-12
    return anomaly


def as_numba(array_form, loop_form):
    """The forms Numba may choose from: arrays or loops, plain or with its options."""

    def forms():
        import numba

        found = []
        for kind, function in (("arrays", array_form), ("loops", loop_form)):
            if function is None:
                continue
            for label, options in (
                ("", {}),
                (" fastmath", {"fastmath": True}),
                (" parallel fastmath", {"fastmath": True, "parallel": True}),
            ):
                found.append((kind + label, numba.njit(**options)(function)))
        return found

    return forms


def as_numba_points(point, result):
    """A function of two numbers over an array of the first, in a parallel loop."""

    def forms():
        import numba

        inner = numba.njit(point)

        def over(a, b):
            out = np.empty(a.shape, result)
            for i in numba.prange(a.size):
                out[i] = inner(a[i], b[i])
            return out

        return [("loops", numba.njit(over)), ("loops parallel", numba.njit(parallel=True)(over))]

    return forms


def as_jax(make):
    def forms():
        import jax

        return [("jit", jax.jit(make(jax)))]

    return forms


def _jax_softmax(jax):
    return lambda x: jax.nn.softmax(x, axis=-1)


def _jax_mse(jax):
    return jax.value_and_grad(lambda w, x, y: jax.numpy.mean((x @ w - y) ** 2))


def _jax_chain(jax):
    def chain_jax(x):
        for _ in range(5):
            x = jax.numpy.maximum(x * 0.9 + 0.1, x - 0.5)
        return x

    return chain_jax


def _jax_escape(jax):
    def point(re, im):
        def step(state):
            x, y, k = state
            return x * x - y * y + re, 2.0 * x * y + im, k + 1

        go_on = lambda s: (s[2] < 200) & (s[0] * s[0] + s[1] * s[1] <= 4.0)
        return jax.lax.while_loop(go_on, step, (0.0, 0.0, 0))[2]

    return jax.vmap(point)


def _jax_period(jax):
    jnp = jax.numpy

    def point(e, m):
        go_on = lambda a: jnp.abs(a - e * jnp.sin(a) - m) > 1e-12
        step = lambda a: a - (a - e * jnp.sin(a) - m) / (1 - e * jnp.cos(a))
        return jax.lax.while_loop(go_on, step, m)

    return jax.vmap(point)


def seeds() -> list[Seed]:
    """The rows. Sizes are those at which the tools differ, not those that flatter one of them."""
    rng = np.random.default_rng(0)
    found = []
    for shape, dtype in (((1000,), "f4"), ((1_000_000,), "f4"), ((1024, 1024), "f4"), ((1024, 1024), "f8")):
        x = rng.standard_normal(shape).astype(dtype)
        found.append(
            Seed(
                f"softmax {'x'.join(map(str, shape))} {'f32' if dtype == 'f4' else 'f64'}",
                softmax,
                (x,),
                mp.jit(softmax),
                as_numba(None, softmax_loops),
                as_jax(_jax_softmax),
                1e-5 if dtype == "f4" else 1e-9,
            )
        )
    for n, m in ((100, 10), (10_000, 100), (1_000_000, 10)):
        x, y = rng.standard_normal((n, m)).astype("f4"), rng.standard_normal(n).astype("f4")
        found.append(
            Seed(
                f"mse + grad {n}x{m} f32",
                mse_and_gradient,
                (rng.standard_normal(m).astype("f4"), x, y),
                mp.jit(mp.value_and_grad(mse)),
                as_numba(mse_and_gradient, mse_loops),
                as_jax(_jax_mse),
                2e-3,
            )
        )
    for dtype in ("f4", "f8"):
        x = rng.standard_normal(10_000_000).astype(dtype)
        found.append(
            Seed(
                f"chain of 20 cheap operations, 1e7 {'f32' if dtype == 'f4' else 'f64'}",
                chain,
                (x,),
                mp.jit(chain),
                as_numba(chain, chain_loops),
                as_jax(_jax_chain),
                1e-5 if dtype == "f4" else 1e-9,
            )
        )
    re, im = (g.ravel() for g in np.meshgrid(np.linspace(-2, 0.6, 512), np.linspace(-1.3, 1.3, 512)))
    found.append(
        Seed(
            "escape time 512x512, at most 200 steps (`while`)",
            escape_arrays,
            (re, im),
            mp.jit(mp.vmap(escape)),
            as_numba_points(escape, np.int64),
            as_jax(_jax_escape),
        )
    )
    e = np.linspace(0.01, 0.9, 100_000)
    found.append(
        Seed(
            "Newton on Kepler's equation, 100,000 (`while`)",
            period_arrays,
            (e, np.full_like(e, 1.0)),
            mp.jit(mp.vmap(period)),
            as_numba_points(period, np.float64),
            as_jax(_jax_period),
        )
    )
    return found
