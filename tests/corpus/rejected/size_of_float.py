"""A size that is a float."""

import numpy as np


def size_of_float(n):
    return np.zeros((n / 2, 2))


CASE = (size_of_float, (4,))
