"""A dict with as many keys as a loop that arrays decide ran."""

import numpy as np


def function(x):
    k = 0
    while x.sum() > 1:
        x = x / 2
        k += 1
    rows = {}
    for i in range(k):
        rows[i] = x * i
    return rows[0]


CASE = (function, (np.ones(3),))
