"""A staged array as the dtype of a new one."""

import numpy as np


def dtype_from_array(x):
    return np.zeros(3, dtype=x)


CASE = (dtype_from_array, (np.arange(3.0),))
