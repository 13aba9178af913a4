"""Shapes that do not broadcast."""
import numpy as np


def function(x, y):
    z = x * 2
    return z + y


CASE = (function, (np.ones(3), np.ones(4)))
