"""An array that a loop appended to a list is changed in place after the loop."""

import numpy as np


def function(x, n):
    path, k = [], 0
    while k < n:
        x = x + 1
        path.append(x)
        k += 1
    x[0] = 99.0
    return np.array(path)


CASE = (function, (np.ones(2), 3))
