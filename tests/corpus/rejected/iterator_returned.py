"""A result that would be made when the program has ended."""

import numpy as np


def squares(x):
    return (v * v for v in x)


CASE = (squares, (np.ones(3),))
