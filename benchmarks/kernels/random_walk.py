"""A walk in the plane in steps of one length: how far from its start it comes, and where it ends."""

import numpy as np


def random_walk(turns):
    x, y, far = 0.0, 0.0, 0.0
    for k in range(len(turns)):
        angle = 2 * np.pi * turns[k]
        x += np.cos(angle)
        y += np.sin(angle)
        squared = x * x + y * y
        if squared > far:
            far = squared
    return np.array([np.sqrt(far), x, y])


def arguments(rng, n):
    return (rng.random(n),)


SMALL, LARGE = (40,), (500_000,)
DIFFERENTIABLE = ()
