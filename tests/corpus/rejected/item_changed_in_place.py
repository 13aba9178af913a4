"""An array is changed in place after a list got it: Python's list would show the change."""

import numpy as np


def function(x, n):
    path = []
    while len(path) < n:
        x += 1.0
        path.append(x)
    return np.array(path)


CASE = (function, (np.ones(2), 3.0))
