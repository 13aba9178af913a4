"""C = alpha A B + beta C in place, where A is symmetric and only its lower triangle is read."""

import numpy as np


def symm(alpha, beta, c, a, b):
    n, m = c.shape
    below = np.empty(m)
    c *= beta
    for i in range(n):
        for j in range(m):
            c[:i, j] += alpha * b[i, j] * a[i, :i]
            below[j] = b[:i, j] @ a[i, :i]
        c[i, :] += alpha * b[i, :] * a[i, i] + alpha * below


def arguments(rng, n, m):
    return 1.5, 1.2, rng.standard_normal((n, m)), rng.standard_normal((n, n)), rng.standard_normal((n, m))


SMALL, LARGE = (5, 4), (50, 60)
DIFFERENTIABLE = (0, 1, 2, 3, 4)
