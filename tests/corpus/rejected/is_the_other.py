"""Whether two arguments are one array."""

import numpy as np


def function(a, b):
    return 1.0 if a is b else a.sum() + b.sum()


CASE = (function, (np.ones(2), np.ones(2)))
