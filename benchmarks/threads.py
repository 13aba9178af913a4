"""What threads are worth: each row by one thread and by all, in one process, its results equal to the bit.

    python benchmarks/threads.py [--threads 2] [--rounds 30] [--markdown]

Medians, in microseconds or milliseconds. Run it on an idle machine: threads share what is left of it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from kernels import KERNELS

import metaphrase as mp
from metaphrase.runtime import threads

rng = np.random.default_rng(0)


def chain(x):
    return np.sin(x) * np.cos(x) + np.exp(-x * x)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def length(x):
    return np.sqrt((x * x).sum())


def columns(x):
    return x.mean(0), x.var(0)


def residual(w, x, y):
    return ((np.tanh(x * w) - y) ** 2).sum()


def attraction(x, m):
    a = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(len(x)):
            d = x[j] - x[i]
            a[i] += m[j] * d * (d @ d + 1e-3) ** -1.5
    return a


def escape(c, steps):
    out = np.zeros(len(c), dtype=np.int64)
    for i in range(len(c)):
        z, k = 0j, 0
        while k < steps and z.real * z.real + z.imag * z.imag < 4:
            z, k = z * z + c[i], k + 1
        out[i] = k
    return out


def sparse(starts, columns, values, x):
    y = np.zeros(len(starts) - 1)
    for i in range(len(starts) - 1):
        for k in range(starts[i], starts[i + 1]):
            y[i] += values[k] * x[columns[k]]
    return y


def nearest(x, y, a, b):
    least, where = np.inf, -1
    for i in range(len(x)):
        d = (x[i] - a) ** 2 + (y[i] - b) ** 2
        if d < least:
            least, where = d, i
    return where, least


def kepler(mean, e):
    angle = mean
    while abs(angle - e * np.sin(angle) - mean) > 1e-12:
        angle = angle - (angle - e * np.sin(angle) - mean) / (1 - e * np.cos(angle))
    return angle


STARTS = np.arange(0, 400_001, 8)
ROWS: dict[str, tuple[Callable, tuple[Any, ...]]] = {
    "sin, cos, exp of 20,000": (chain, (rng.random(20_000),)),
    "sin, cos, exp of 1,000,000": (chain, (rng.random(1_000_000),)),
    "softmax of 1,000 rows of 1,000, f32": (softmax, (rng.random((1000, 1000), np.float32),)),
    "length of 1,000,000": (length, (rng.random(1_000_000),)),
    "mean and variance of 1,000 columns": (columns, (rng.random((1000, 1000)),)),
    "gradient for 1,000 weights, 1,000 samples": (
        mp.grad(residual),
        (rng.random(1000), rng.random((1000, 1000)), rng.random((1000, 1000))),
    ),
    "attraction of 1,000 bodies, loops": (attraction, (rng.random((1000, 3)), rng.random(1000))),
    "escape times of 10,000 points, loops": (escape, (rng.normal(size=10_000) + 1j * rng.normal(size=10_000), 200)),
    "sparse matrix, 400,000 numbers, loops": (
        sparse,
        (STARTS, rng.integers(0, 50_000, 400_000), rng.random(400_000), rng.random(50_000)),
    ),
    "nearest of 1,000,000 points, loop": (nearest, (rng.random(1_000_000), rng.random(1_000_000), 0.3, 0.6)),
    **{
        f"{name.replace('_', ' ')}, loops": (KERNELS[name].function, KERNELS[name].arguments(KERNELS[name].large))
        for name in ("asian_option", "trial_division")
    },
    "Kepler's equation, 100,000 lanes": (mp.vmap(kepler, in_axes=(0, None)), (rng.random(100_000) * 6, 0.7)),
}
ARRAYS = (chain, softmax, length, columns)  # NumPy runs them as they are


def median(call: Callable[[], Any], rounds: int) -> float:
    spent = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        spent.append(time.perf_counter() - begin)
    return statistics.median(spent)


def told(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=threads.available())
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    between = " | " if options.markdown else "  "
    print(between.join(["row" + " " * 40, "NumPy", "1 thread", f"{options.threads} threads", "ratio"]))
    if options.markdown:
        print("|".join(["---"] * 5))
    for name, (function, arguments) in ROWS.items():
        compiled = mp.jit(function)
        results, times = [], []
        for count in (1, options.threads):
            threads.use(count)
            results.append([np.asarray(leaf).tobytes() for leaf in mp.tree.leaves(compiled(*arguments))])
            times.append(median(lambda c=compiled, a=arguments: c(*a), options.rounds))
        assert results[0] == results[1], f"{name}: other numbers with {options.threads} threads"
        alone, shared = times
        plain = told(median(lambda f=function, a=arguments: f(*a), 5)) if function in ARRAYS else ""
        print(between.join([f"{name:43}", plain, told(alone), told(shared), f"{alone / shared:.2f}x"]))


if __name__ == "__main__":
    main()
