"""Reading parts of arrays."""

import numpy as np


def basic(a):
    return a[0], a[-1], a[1, 2], a[:, 1], a[1:, ::2], a[::-1], a[..., 0], a[-2:, -3:-1]


def staged_index(a, i):
    return a[i], a[:, i], a[i, i], a[i + 1, 0]


def negative_staged(x, i):
    return x[i], x[-i - 1]


def out_of_range(x, i):
    return x[i]


def staged_slices(x, i):
    return x[i:].sum(), x[:i].sum(), x[i : i + 2], x[-i:].sum()


def windows(x):
    s = 0.0
    for i in range(len(x) - 2):
        w = x[i : i + 3]
        s += w.max() * w.mean()
    return s


def growing(x):
    s = 0.0
    for i in range(len(x)):
        s += x[: i + 1].sum() * x[i:].sum()
    return s


def integer_arrays(a, k):
    return a[k], a[:, k], a[k, k], a[[0, 2]], a[np.array([0, 1])[:, None], k]


def masks(x):
    return x[x > 1], x[x > 1].sum(), x[~(x > 1)].mean(), np.where(x > 1)[0], np.nonzero(x > 1)[0]


def wheres(x, y):
    return np.where(x > y, x, y), np.where(x > 1, 1.0, 0.0), np.where([True, False, True, False], x, y)


def takes(a, k):
    return np.take(a, k), np.take(a, k, axis=1), np.take_along_axis(a, np.argsort(a, axis=1), axis=1)


def gather_loop(x, k):
    s = 0.0
    for i in k:
        s += x[i]
    return s


def pick_labels(logits, labels):
    return -logits[np.arange(len(labels)), labels].mean()


def neighbours(u):
    return u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])


def swap_elements(x):
    y = x.copy()
    y[0], y[-1] = y[-1], y[0]
    return y


def clips(x):
    return np.clip(x, 0.0, 2.0), np.minimum(x, 1.0), np.maximum(x, x[::-1]), x.clip(1)


def diffs(x):
    return np.diff(x), np.diff(x, n=2), x[1:] - x[:-1]


def flat_places(i, j):
    return np.ravel_multi_index((i, j), (2, 3)), np.ravel_multi_index((i, j), (2, 3), order="F")


def places_of_flat(k):
    return np.unravel_index(k, (2, 3)), np.unravel_index(k, (2, 3), order="F")


_M = np.arange(12.0).reshape(3, 4)
_X = np.array([3.0, 1.0, -4.0, 1.5])
_K = np.array([0, 2, 1])


def backwards(x, i, j):
    return x[i:j:-1].sum(), x[i::-2].sum(), len(x[:j:-3]), x[4:1:-1], x[-2::-1]


def truth_as_index(x, limit):
    y = x.copy()
    y[limit > 1.0] = 7.0  # all of it, or nothing
    y[np.bool_(limit > 9.0)] += 1.0
    return y, x[limit > 1.0].sum(), x[limit > 9.0].shape, x[True].shape, x[np.False_].shape


CASES = [
    (truth_as_index, (np.arange(6.0), 2.0)),
    (truth_as_index, (np.arange(6.0).reshape(2, 3), 0.0)),
    (backwards, (np.arange(6.0), 4, 0)),
    (backwards, (np.arange(6.0), -1, -9)),
    (backwards, (np.arange(7.0), 9, 2)),
    (basic, (_M,)),
    (staged_index, (_M, 1)),
    (negative_staged, (_X, 2)),
    (negative_staged, (_X, -3)),
    (out_of_range, (_X, 7)),
    (out_of_range, (_X, -4)),
    (staged_slices, (_X, 1)),
    (windows, (_X,)),
    (growing, (_X,)),
    (integer_arrays, (_M, _K)),
    (masks, (_X,)),
    (wheres, (_X, -_X)),
    (takes, (_M, _K)),
    (gather_loop, (_X, _K)),
    (pick_labels, (_M, _K)),
    (neighbours, (_X,)),
    (swap_elements, (_X,)),
    (clips, (_X,)),
    (diffs, (_X,)),
    (flat_places, (np.array([1, 0]), np.array([2, 1]))),
    (flat_places, (np.array([1, 0]), np.array([2, -1]))),
    (places_of_flat, (np.array([3, 1]),)),
    (places_of_flat, (np.array([3, -1]),)),
]
