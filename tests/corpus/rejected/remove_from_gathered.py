"""A list of unknown length is used as a list, in a way that has no translation."""

import numpy as np


def function(x):
    values = []
    while x > 1:
        values.append(x)
        x = x / 2
    values.remove(8.0)
    return np.array(values)


CASE = (function, (8.0,))
