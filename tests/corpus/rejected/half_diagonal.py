"""A triangle from the middle between two diagonals."""

import numpy as np


def half_diagonal(x):
    return np.tril(x, 0.5)


CASE = (half_diagonal, (np.eye(3),))
