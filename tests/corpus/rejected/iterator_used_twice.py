"""A second loop over an iterator, which has nothing left in Python."""

import numpy as np


def function(x, y):
    pairs = zip(x, y)
    total = 0.0
    for a, b in pairs:
        total += a * b
    for a, b in pairs:
        total += 100
    return total


CASE = (function, (np.ones(5), np.ones(5)))
