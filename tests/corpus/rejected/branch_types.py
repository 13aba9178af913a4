"""Branches that leave a number and an array."""
import numpy as np


def function(x, t):
    if t > 0:
        y = x
    else:
        y = 0.0
    return y + 1


CASE = (function, (np.ones(3), 1.0))
