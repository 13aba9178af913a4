"""An index error that is to be caught when the program runs."""

import numpy as np


def function(x, k):
    try:
        y = x[k]
    except IndexError:
        y = 0.0
    return y


CASE = (function, (np.ones(3), 1))
