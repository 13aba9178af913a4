"""A known index that is out of range."""
import numpy as np


def function(x):
    return x[5]


CASE = (function, (np.ones(3),))
