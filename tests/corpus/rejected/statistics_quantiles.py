"""A function of the module `statistics` that has no translation."""

import statistics

import numpy as np


def function(x):
    return statistics.quantiles(x, n=4)


CASE = (function, (np.arange(5.0),))
