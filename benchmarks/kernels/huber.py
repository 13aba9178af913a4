"""P. J. Huber's loss (1964) of residuals, and how many lie far out: a loop with branches that data decide."""

import numpy as np


def huber(residuals, width):
    total, far = 0.0, 0
    for i in range(len(residuals)):
        r = residuals[i]
        if r > width:
            total += width * (r - 0.5 * width)
            far += 1
        elif r < -width:
            total -= width * (r + 0.5 * width)
            far += 1
        else:
            total += 0.5 * r * r
    return np.array([total, far])


def arguments(rng, n):
    return rng.standard_normal(n), 0.8


SMALL, LARGE = (30,), (1_000_000,)
DIFFERENTIABLE = (0,)
