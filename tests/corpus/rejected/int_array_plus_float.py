"""Floats added in place to an array of integers."""
import numpy as np


def function(k):
    k += 0.5
    return k


CASE = (function, (np.arange(3),))
