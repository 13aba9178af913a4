"""A loop of many iterations puts lists into a list, and one of them is changed afterwards."""

import numpy as np


def pairs(x):
    rows = []
    for v in x:
        rows.append([v, 2 * v])
    rows[3][0] = 7.0
    return np.array(rows)


CASE = (pairs, (np.linspace(0.0, 1.0, 100),))
