"""Small calls beside the peers that are installed: first call and median call, in one run.

In: nothing. Out: a table. A peer that is not installed is left out, and named.
"""

from __future__ import annotations

import time

import numpy as np

import metaphrase as mp

X = np.array([0.5, 1.5, -2.0])


def f(x):
    return (x * x + 1).sum()


def median_call(call, repeats=300, inner=100):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(inner):
            call()
        times.append((time.perf_counter() - start) / inner)
    return float(np.median(times))


def candidates():
    """(name, function to compile, how to call it) for each tool at hand."""
    yield "metaphrase", mp.jit(f), X
    yield "metaphrase value_and_grad", mp.jit(mp.value_and_grad(f)), X
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        here = jax.device_put(X)
        yield "jax", jax.jit(f), here
        yield "jax value_and_grad", jax.jit(jax.value_and_grad(f)), here
    except ImportError:
        print("jax is not installed: left out")
    try:
        import numba

        yield "numba", numba.njit(f), X
    except ImportError:
        print("numba is not installed: left out")


def main() -> None:
    print(f"{'':28}{'first call':>12}{'median call':>14}")
    for name, compiled, x in candidates():
        start = time.perf_counter()
        value = compiled(x)
        first = time.perf_counter() - start
        np.testing.assert_allclose(value[0] if isinstance(value, tuple) else value, f(X), rtol=1e-12)
        wait = "jax" in name

        def call(compiled=compiled, x=x, wait=wait):
            out = compiled(x)
            if wait:
                (out[1] if isinstance(out, tuple) else out).block_until_ready()

        print(f"{name:28}{first * 1e3:>9.1f} ms{median_call(call) * 1e6:>11.3f} us")


if __name__ == "__main__":
    main()
