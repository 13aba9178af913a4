"""Nussinov's folding of RNA: the largest number of nested pairs of bases, by dynamic programming."""

import numpy as np


def nussinov(bases):
    n = len(bases)
    table = np.zeros((n, n), dtype=np.int64)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = max(table[i, j], table[i, j - 1])
            table[i, j] = max(table[i, j], table[i + 1, j])
            if i < j - 1:
                pair = 1 if bases[i] + bases[j] == 3 else 0
                table[i, j] = max(table[i, j], table[i + 1, j - 1] + pair)
            else:
                table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def arguments(rng, n):
    return (rng.integers(0, 4, n),)


SMALL, LARGE = (10,), (45,)
DIFFERENTIABLE = ()
