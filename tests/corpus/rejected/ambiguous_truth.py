"""The truth of an array."""
import numpy as np


def function(x):
    if x > 0:
        return x
    return -x


CASE = (function, (np.ones(3),))
