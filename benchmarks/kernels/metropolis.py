"""Ising's model of a magnet by the method of N. Metropolis and others (1953): one spin after the other, on a torus."""

import numpy as np


def metropolis(spins, where, chances, beta):
    n = int(np.sqrt(len(spins)) + 0.5)
    grid = (1 * spins).reshape(n, n)
    for k in range(len(where)):
        i, j = where[k] // n, where[k] % n
        s = grid[i, j]
        around = grid[(i + 1) % n, j] + grid[(i - 1) % n, j] + grid[i, (j + 1) % n] + grid[i, (j - 1) % n]
        change = 2 * s * around
        if change <= 0 or chances[k] < np.exp(-beta * change):
            grid[i, j] = -s
    return grid


def arguments(rng, n, steps):
    return rng.choice([-1, 1], n * n), rng.integers(0, n * n, steps), rng.random(steps), 0.4


SMALL, LARGE = (5, 40), (64, 100_000)
DIFFERENTIABLE = ()
