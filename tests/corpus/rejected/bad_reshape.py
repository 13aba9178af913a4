"""A reshape to another number of elements."""
import numpy as np


def function(x):
    return x.reshape(2, 4)


CASE = (function, (np.ones(6),))
