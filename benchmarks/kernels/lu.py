"""LU factorisation without pivoting, in place: a becomes L (below the diagonal, its own being 1) and U."""

import numpy as np


def lu(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            a[i, j] -= a[i, :i] @ a[:i, j]


def arguments(rng, n):
    return (rng.standard_normal((n, n)) + n * np.eye(n),)


SMALL, LARGE = (6,), (80,)
DIFFERENTIABLE = (0,)
