"""Where the iterator stands is only known when the program runs."""

import numpy as np


def second_positive(x):
    positive = (v for v in x if v > 0)
    next(positive)
    return next(positive)


CASE = (second_positive, (np.arange(5.0),))
