"""One of a list's arrays, which one only the run knows, and they have several shapes."""

import numpy as np


def items_of_two_shapes(x):
    rows = [np.zeros(2), np.ones(3)]
    return rows[np.argmax(x)].sum()


CASE = (items_of_two_shapes, (np.array([3.0, 4.0]),))
