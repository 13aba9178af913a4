"""A store into an array that an attribute may share with a variable since an earlier iteration."""

import numpy as np


class Pair:
    def __init__(self, u):
        self.u = u


def function(x):
    pair, b = Pair(x * 1), x * 2
    for i in range(500):
        b[0] += 1
        pair.u[1] += 3
        if i * x[0] > 4:
            pair.u = b
    return pair.u, b


CASE = (function, (np.arange(3.0),))
