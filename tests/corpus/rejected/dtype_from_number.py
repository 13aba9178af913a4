"""A staged number where a dtype is needed."""

import numpy as np


def dtype_from_number(x, kind):
    return x.astype(kind)


CASE = (dtype_from_number, (np.arange(3), 2.0))
