"""Whether a `with` may end an exception has to be known by its look."""

import contextlib

import numpy as np


def quietly():
    return contextlib.suppress(IndexError)


def function(x, k):
    with quietly():
        return x[k]
    return 0.0


CASE = (function, (np.arange(3.0), 1))
