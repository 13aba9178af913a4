"""Gray and Scott's reaction and diffusion of two substances on a torus."""

import numpy as np


def gray_scott(steps, u, v):
    for _ in range(steps):
        spread_u = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4.0 * u
        spread_v = np.roll(v, 1, 0) + np.roll(v, -1, 0) + np.roll(v, 1, 1) + np.roll(v, -1, 1) - 4.0 * v
        eaten = u * v * v
        u, v = u + 0.16 * spread_u - eaten + 0.06 * (1.0 - u), v + 0.08 * spread_v + eaten - 0.122 * v
    return u, v


def arguments(rng, steps, n):
    return steps, 1.0 - 0.5 * rng.random((n, n)), 0.5 * rng.random((n, n))


SMALL, LARGE = (3, 6), (20, 256)
DIFFERENTIABLE = (1, 2)
