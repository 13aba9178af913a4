"""A store into an array that is a read-only view if a branch is taken."""

import numpy as np


def function(x, a):
    v = np.broadcast_to(a, 3) if a > 0 else x * 2
    v[0] = 5.0
    return v


CASE = (function, (np.arange(3.0), 1.0))
