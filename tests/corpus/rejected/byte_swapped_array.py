"""An array that is not in the machine's byte order is stored into."""

import numpy as np


def function(x):
    x[0] = 1.0
    return x


CASE = (function, (np.ones(3).astype(">f8"),))
