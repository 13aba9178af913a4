"""A sparse matrix in compressed rows times a vector."""

import numpy as np


def spmv(starts, columns, values, x):
    y = np.empty(starts.size - 1)
    for i in range(starts.size - 1):
        here = columns[starts[i] : starts[i + 1]]
        row = values[starts[i] : starts[i + 1]]
        y[i] = row @ x[here]
    return y


def arguments(rng, n, filled):
    counts = rng.integers(0, 2 * filled + 1, n)
    starts = np.concatenate([[0], np.cumsum(counts)])
    columns = rng.integers(0, n, starts[-1])
    return starts, columns, rng.standard_normal(starts[-1]), rng.standard_normal(n)


SMALL, LARGE = (8, 3), (4096, 20)
DIFFERENTIABLE = (2, 3)
