"""Complex numbers counted in bins."""

import numpy as np


def histogram_of_complex(z):
    return np.histogram(z, 3)


CASE = (histogram_of_complex, (np.array([1 + 2j, 3j]),))
