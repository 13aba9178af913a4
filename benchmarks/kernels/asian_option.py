"""The price of an Asian option by simulation: paths of a geometric Brownian motion, written as two loops."""

import numpy as np


def asian_option(normals, start, strike, rate, volatility, step):
    paths, steps = normals.shape
    total = 0.0
    for i in range(paths):
        price, mean = start, 0.0
        for j in range(steps):
            price *= np.exp((rate - 0.5 * volatility**2) * step + volatility * np.sqrt(step) * normals[i, j])
            mean += price / steps
        total += max(mean - strike, 0.0)
    return np.exp(-rate * step * steps) * total / paths


def arguments(rng, paths, steps):
    return rng.standard_normal((paths, steps)), 100.0, 100.0, 0.02, 0.3, 1 / steps


SMALL, LARGE = (9, 12), (20_000, 50)
DIFFERENTIABLE = (1, 4)
