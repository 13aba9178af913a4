"""An array of dates."""

import numpy as np


def function(x):
    return x + np.zeros(3, "M8[s]")


CASE = (function, (np.ones(3),))
