"""Arrays change places in a loop that reads one of them by a third name."""
import numpy as np


def function(u, v, steps):
    w = u
    for _ in range(steps):
        v[0] += w[1]
        u, v = v, u
    return w


CASE = (function, (np.ones(3), np.zeros(3), 400))
