"""A draw from NumPy's own generator."""

import numpy as np

RNG = np.random.default_rng(0)


def function(x):
    return x + RNG.normal()


CASE = (function, (1.0,))
