"""The module `statistics` in plain NumPy, of numbers in an array: staged as a user's own functions are.

In: an array of float64, and the words of Python's own error. Out: a number. Python computes in fractions and
rounds once; here deviations are summed in two passes, which is within a few units in the last place.

    statistics.stdev([x, y, z])    is   math.sqrt(spread(np.array([x, y, z]), 1, None, "..."))
"""

from __future__ import annotations

import statistics

import numpy as np


def mean(x, weights, empty):
    if len(x) < 1:
        raise statistics.StatisticsError(empty)
    if weights is None:
        return x.mean()
    if len(x) != len(weights):
        raise statistics.StatisticsError("data and weights must be the same length")
    whole = weights.sum()
    if whole == 0.0:
        raise statistics.StatisticsError("sum of weights must be non-zero")
    return (x * weights).sum() / whole


def spread(x, freedom, center, short):
    """The sum of squares around the mean, or around what is given, by their number less `freedom`."""
    n = len(x)
    if n < 1 + freedom:
        raise statistics.StatisticsError(short)
    if center is not None:
        return ((x - center) ** 2).sum() / (n - freedom)
    off = x - x.mean()
    return ((off**2).sum() - off.sum() ** 2 / n) / (n - freedom)


def median(x, low, high, empty):
    """`low`, `high`: which of the two in the middle are meant."""
    n = len(x)
    if n < 1:
        raise statistics.StatisticsError(empty)
    inner = np.sort(x)
    below, above = inner[(n - 1) // 2], inner[n // 2]
    if low and high:
        return (below + above) / 2
    return below if low else above


def together(x, y, short):
    """The sum of products of deviations, and the sums of their squares."""
    if len(x) != len(y):
        raise statistics.StatisticsError(short[0])
    if len(x) < 2:
        raise statistics.StatisticsError(short[1])
    a, b = x - x.mean(), y - y.mean()
    return a @ b, a @ a, b @ b


def correlation(x, y, short, constant):
    both, xx, yy = together(x, y, short)
    if xx * yy == 0.0:
        raise statistics.StatisticsError(constant)
    return both / np.sqrt(xx * yy)


def covariance(x, y, short):
    return together(x, y, short)[0] / (len(x) - 1)


def geometric_mean(x, empty):
    if len(x) < 1 or not np.all(x > 0):
        raise statistics.StatisticsError(empty)
    return np.exp(np.log(x).mean())
