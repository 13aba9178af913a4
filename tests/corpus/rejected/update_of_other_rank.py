"""A result of two dimensions into a part of one, whose size is a matter of the run."""

import numpy as np


def function(b, n, m):
    c = np.ones(n + m)
    c[:n] += b[None]
    return c


CASE = (function, (np.ones(3), 3, 2))
