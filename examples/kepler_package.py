"""A module to be compiled ahead of time: Kepler's equation, its derivative, and that of many orbits at once.

    metaphrase compile examples/kepler_package.py --out build --wheel

writes the package build/kepler_package and a wheel of it. Both need NumPy alone. Run as it is, this file uses
metaphrase, and prints what the package would give.
"""

import numpy as np

import metaphrase as mp


@mp.export("f64, f64")
def eccentric_anomaly(e, M):
    """The solution E of Kepler's equation E - e sin E = M, for eccentricities below 1."""
    E = M
    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


slope = mp.export("f64, f64")(mp.grad(eccentric_anomaly))
slopes = mp.export("f64[n], f64")(mp.vmap(mp.grad(eccentric_anomaly), (0, None)))

if __name__ == "__main__":
    print("E =", eccentric_anomaly(0.3, 1.0), " dE/de =", slope(0.3, 1.0))
    print("dE/de of 5 orbits:", slopes(np.linspace(0.1, 0.9, 5), 1.0))
