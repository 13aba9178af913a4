"""The module `statistics` on staged numbers, arrays and what only the run can count."""

import statistics
from statistics import fmean, median

import numpy as np

X = np.array([0.5, -1.25, 2.0, 3.5, -0.75])


def of_numbers(x, y):
    data = [x, y, 2.5]
    return statistics.mean(data), statistics.stdev(data), statistics.pvariance(data), median((x, y))


def of_array(a):
    return statistics.mean(a), fmean(a), statistics.variance(a), statistics.stdev(a), median(a)


def in_lists(a):
    return statistics.pstdev([*a, 1.0]), statistics.median_low(a), statistics.median_high(a[1:])


def of_some(a, limit):
    return fmean(v for v in a if v > limit), median([v for v in a if v > limit])


def around_a_value(a, center):
    return statistics.variance(a, center), statistics.pvariance(a, mu=center), fmean(a, weights=a * a)


def of_pairs(a, b):
    a, b = a.tolist(), b.tolist()  # of NumPy's numbers a correlation without spread is NaN from Python 3.12 on
    return statistics.correlation(a, b), statistics.covariance(a, b)


def geometric(a):
    return statistics.geometric_mean(abs(v) for v in a)


def of_ints(i, j):
    return fmean([i, j, 3]), statistics.median_low([i, j, 3]), statistics.stdev([i, j, 3])


def caught(a, limit):
    try:
        return statistics.mean([v for v in a if v > limit])
    except statistics.StatisticsError:
        return np.float64(-1.0)


CASES = [
    (of_numbers, (0.5, 1.75)),
    (of_array, (X,)),
    (of_array, (X[:4],)),
    (of_array, (X.astype(np.float32),)),
    (in_lists, (X,)),
    (of_some, (X, 0.0)),
    (of_some, (X, 9.0)),
    (around_a_value, (X, 0.75)),
    (of_pairs, (X, X**2)),
    (of_pairs, (X, 0 * X)),
    (geometric, (X,)),
    (of_ints, (1, 5)),
    (caught, (X, 0.0)),
    (caught, (X, 9.0)),
]
