"""Either an array of one element or a number, as a value: only its truth has a common form."""

import numpy as np


def one_element_or_number(a, n):
    return a > 0 or n


CASE = (one_element_or_number, (np.array([3.0]), 2))
