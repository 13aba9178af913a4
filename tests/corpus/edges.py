"""The edges of sizes and parameters: nothing picked, one element, a step too far, bins that fall.

In: arrays and bounds that leave few elements or none. Out: what NumPy gives there, or its exception.
"""

import numpy as np


def differences_of_some(x, limit):
    y = x[x > limit]
    return np.diff(y), np.ediff1d(y), np.diff(y, n=2), np.trapezoid(y)


def interpolated_of_some(x, limit):
    y = np.sort(x[x > limit])
    return np.interp(x, y, 2 * y)


def interpolated(x, knots, heights):
    return np.interp(x, np.sort(knots), heights)


def partition_of_some(x, limit):
    return np.partition(x[x > limit], 1)


def partition_far(x):
    return np.partition(x, 2)[2]


def histogram_of_some(x, limit):
    return np.histogram(x[x > limit], bins=4)


def histogram_bins(x, bins):
    return np.histogram(x, bins=bins)


def digitized(x, bins):
    return np.digitize(x, bins), np.digitize(x, bins, right=True)


def quantiles(x, q):
    return np.quantile(x, q), np.percentile(x, 100 * q)


def median_of_none(x):
    return np.median(x)


def line(start, stop, count):
    return np.linspace(start, stop, count)


def steps(start, stop, step):
    return np.arange(start, stop, step)


def taken(x, i):
    return np.take(x, i, mode="clip"), np.take(x, i, mode="wrap")


def put_values(x, i, v):
    np.put(x, i, v)
    return x


def counted(i, weights):
    return np.bincount(i, weights, minlength=3)


def repeated(x, counts):
    return np.repeat(x, counts)


def far_slices(x, start, stop, step):
    return x[start:stop:step]


def rows_of(x, n):
    return x.reshape(n, -1)


def unpacked_of_some(x, limit):
    a, b = x[x > limit]
    return a - b


def equal_to_some(x, limit):
    y = x[x > limit]
    return np.array_equal(y, x), np.array_equal(y, y)


def average_of_some(x, limit):
    y = x[x > limit]
    return np.average(y, weights=y)


def spread_of_some(x, limit):
    y = x[x > limit]
    return np.cov(y, 2 * y), np.linalg.norm(y, np.inf)


def unwrapped_of_some(x, limit):
    return np.unwrap(x[x > limit])


def frequencies_of_some(x, limit):
    return np.abs(np.fft.fft(x[x > limit]))


def pressures(p):
    if np.any(p <= 0):
        raise FloatingPointError(f"negative pressure in cell {np.argmax(p <= 0)}")
    return np.sqrt(p)


def largest_where_there_are(x, wanted):
    if wanted > 0:
        return np.max(x) - np.min(x)
    return np.median(x + 1) if wanted < -1 else -1.0


_X = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
_ONE = np.array([1.0, 9.0, 7.0])
_NONE = np.array([])
_PICKS = ((_X, 0.5), (_ONE, 2.0), (_ONE, 8.0), (_ONE, 9.0))
_I = np.array([1, 2])
_NO_INDEX = np.array([], int)

CASES = [
    *((differences_of_some, picks) for picks in _PICKS),
    *((interpolated_of_some, picks) for picks in _PICKS),
    (interpolated, (_X, np.sort(_X), _X)),
    (interpolated, (_X, np.array([2.0]), np.array([7.0]))),
    *((partition_of_some, picks) for picks in _PICKS),
    (partition_far, (_X,)),
    *((histogram_of_some, picks) for picks in _PICKS),
    *((histogram_bins, (_X, bins)) for bins in (3, 0, np.sort(_X), np.array([2.0, 1.0]))),
    (histogram_bins, (np.array([np.nan, 1.0]), 3)),
    *((digitized, (_X, bins)) for bins in (np.sort(_X), -_X.cumsum(), _X, np.array([2.0]), _NONE)),
    *((quantiles, (_X, q)) for q in (0.5, 1.0, 1.5, -0.1, np.nan, np.array([0.1, 1.9]))),
    (median_of_none, (_NONE,)),
    *((line, (0.0, 1.0, count)) for count in (0, 1, 2, 5)),
    *((steps, (0.0, 1.0, step)) for step in (0.25, -0.25, 0.0)),
    (steps, (0, 5, 0)),
    (taken, (_X, np.array([7, -9, 2]))),
    (taken, (_NONE, _I)),
    (taken, (_NONE, _NO_INDEX)),
    *((put_values, (_X, _I, v)) for v in (np.array([8.0]), _X, _NONE)),
    (counted, (_I, np.array([0.5, 2.0]))),
    (counted, (_NO_INDEX, _NONE)),
    *((repeated, (_X, counts)) for counts in (np.array([2]), np.array([1, 0, 2, 1, 1]))),
    (far_slices, (_X, 2**62, -(2**62), -(2**62))),
    (far_slices, (_X, -(2**63), 2**63 - 1, 2**63 - 1)),
    *((rows_of, (_X, n)) for n in (5, 1)),
    *((unpacked_of_some, picks) for picks in _PICKS),
    *((equal_to_some, picks) for picks in _PICKS),
    *((average_of_some, picks) for picks in _PICKS),
    *((spread_of_some, picks) for picks in _PICKS),
    *((unwrapped_of_some, picks) for picks in _PICKS),
    *((frequencies_of_some, picks) for picks in _PICKS),
    *((pressures, (x,)) for x in (_X, _NONE, _X - 2)),
    *((largest_where_there_are, (_X, wanted)) for wanted in (1, 0, -2)),
    *((largest_where_there_are, (_NONE, wanted)) for wanted in (1, 0)),
]
