"""A truth value as one of several indices."""

import numpy as np


def function(x):
    return x[x[0, 0] > 0, 1]


CASE = (function, (np.ones((2, 2)),))
