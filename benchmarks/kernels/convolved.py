"""A small convolution written as loops over pixels and over what is around them."""

import numpy as np


def convolved(image, weights):
    n, m = image.shape
    out = np.zeros((n - 2, m - 2))
    for i in range(n - 2):
        for j in range(m - 2):
            s = 0.0
            for p in range(3):
                for q in range(3):
                    s += image[i + p, j + q] * weights[p, q]
            out[i, j] = s
    return out


def arguments(rng, n, m):
    return rng.standard_normal((n, m)), rng.standard_normal((3, 3))


SMALL, LARGE = (7, 9), (600, 500)
DIFFERENTIABLE = (0, 1)
