"""Cholesky factorisation in place, row by row: the lower triangle of `a` becomes L with L L' = A."""

import numpy as np


def cholesky(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j]
        a[i, i] -= a[i, :i] @ a[i, :i]
        a[i, i] = np.sqrt(a[i, i])


def arguments(rng, n):
    root = rng.standard_normal((n, n))
    return (root @ root.T + n * np.eye(n),)


SMALL, LARGE = (7,), (100,)
DIFFERENTIABLE = (0,)
