"""An array that grows in a loop of unknown length."""
import numpy as np


def function(x, t):
    while t > 0:
        x = np.concatenate([x, x])
        t = t - 1
    return x


CASE = (function, (np.ones(3), 2.5))
