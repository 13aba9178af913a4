"""An array that a branch appended to a growing list is changed in place in the next iteration."""

import numpy as np


def function(x, n):
    path, k = [], 0
    v = x * 2
    while k < n:
        if k % 2 == 0:
            v[0] += 1
            path.append(v)
        k += 1
    return np.array(path)


CASE = (function, (np.ones(2), 3.0))
