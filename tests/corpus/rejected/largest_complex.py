"""The running largest of complex numbers."""

import numpy as np


def largest_complex(z):
    return np.maximum.accumulate(z)


CASE = (largest_complex, (np.array([1 + 2j, 3j]),))
