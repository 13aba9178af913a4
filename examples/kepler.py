"""Differentiate Kepler's equation through its own `while` loop, for 100,000 orbits at once.

In: eccentricities in [0.01, 0.9]. Out: the derivative of the eccentric anomaly in each, checked twice, and
the derivative printed as the NumPy program it is. Run: `python examples/kepler.py [--device gpu]` (`--size`: how
many orbits).
"""

import time

import numpy as np
from where import chosen, placed

import metaphrase as mp


@mp.jit
def period(e, M):  # Kepler's equation, plain Python, plain NumPy
    E = M
    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


def main(size):
    print(f"E(0.3, 1.0) = {float(period(0.3, 1.0)):.15f}")
    print(f"dE/de       = {float(mp.grad(period)(0.3, 1.0)):.15f}, by reverse mode through the loop\n")
    print("the derivative, as NumPy source that runs on its own:\n")
    print(mp.source(mp.grad(period), 0.3, 1.0))

    es, M = np.linspace(0.01, 0.9, size), 1.0
    derivative = mp.jit(mp.vmap(mp.grad(period), (0, None)))
    start = time.perf_counter()
    slopes = mp.device_get(derivative(es, M))
    first = time.perf_counter() - start
    start = time.perf_counter()
    slopes = mp.device_get(derivative(es, M))
    second = time.perf_counter() - start
    print(f"{size:,} derivatives: {first:.2f} s with compiling, then {1e3 * second:.1f} ms")

    # Differences of the executed loop. Between two neighbours the trip count may differ, so the step is not
    # too small.
    h = 1e-6
    solve = mp.jit(mp.vmap(period.py_func, (0, None)))
    E, above, below = (mp.device_get(solve(e, M)) for e in (es, es + h, es - h))
    differences = (above - below) / (2 * h)
    # From E - e sin E = M: dE/de = sin E / (1 - e cos E). The loop's own derivative lags one Newton step
    # behind the solution it returns: its last step squares the error of E but not that of dE/de. Near e = 0,
    # where one step is nearly enough, the two differ most.
    implicit = np.sin(E) / (1 - es * np.cos(E))
    lag = np.abs(slopes - implicit)
    print(
        f"largest difference from finite differences {np.abs(slopes - differences).max():.1e}, "
        f"from the implicit-function derivative {lag.max():.1e} (at e = {es[lag.argmax()]:.3f})"
    )
    assert np.abs(slopes - differences).max() < 1e-5
    assert lag.max() < 1e-6


if __name__ == "__main__":
    device, size = chosen(__doc__, "orbits", 100_000, emulator=500)
    with placed(device):
        main(size)
