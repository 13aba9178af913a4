"""A list that a loop changes and reads, of arrays of two shapes."""

import numpy as np


def function(n):
    rows = [np.ones(2)]
    while len(rows) < n:
        rows.append(np.ones(3) * rows[-1][0])
    return rows


CASE = (function, (5.0,))
