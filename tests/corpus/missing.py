"""A number that is None on some paths, used behind the test that says it is there: in lists of indices, in
what arrays are made of, as a bound of a slice.

In: an array whose first element above zero may be missing. Out: what is made of its place.
"""

import numpy as np


def _first(x):
    found = None
    for i in range(len(x)):
        if x[i] > 0:
            found = i
            break
    return found


def rows_swapped(x):
    k = _first(x)
    if k is None:
        return x
    x[[0, k]] = x[[k, 0]]
    return x


def made_of_it(x):
    k = _first(x)
    if k is None:
        return 0.0
    made = np.array([k, 1.0]) + np.stack([k, 1]) + np.concatenate(([k], [1]))
    return made.sum() + np.dot([k, 1.0], [2.0, 3.0]) + np.max([[k, 1], [2, k]], axis=0).sum()


def in_places(x):
    k = _first(x)
    if k is not None:
        y = x.reshape(1, -1)
        x = np.concatenate([x[k:], x[: k + 1], y[0, [k, 0]], y[:, k], x.take([k, 0])])
        x[k,] = 7.0
        x[:2] = [k, 5]
    return x


def among_others(x):
    k = _first(x)
    if k is None:
        raise ValueError("nothing is above zero")
    told = 2 in [k, 5], k in (1, 2), [k, 1] == [2, 1]
    return sorted([k, 1]), told, min((k, 1), (2, 2)), x[[k, 0]], x[k:].sum()


def said_twice(x, t):
    k = None if t < 0 else 2
    if k is None:
        raise ValueError("t is below zero")
    if t > 1:
        x = x + np.array([k, 0, 0, 1])
    if k is None:
        x = x * 0
    return x[[k, 1]], k


def raised_in_a_try(x, t):
    try:
        k = _first(x)
        if k is None:
            raise KeyError(t)
        if t < 0:
            raise ValueError("t")
        y = x[[k, 0]] / t
        if k > 2:
            y = y + 1
    except ValueError:
        y = x[:2]
    return y


def late_check(x):
    total = 0.0
    for v in x:
        k = None if v < 0 else v * 2
        if k is None:
            raise ValueError("below zero")
        total = total + np.array([k, v]).sum()
    return total


_X = np.array([0.0, -1.0, 3.0, 1.0])
_NONE = np.array([0.0, -1.0, -3.0, -1.0])
CASES = [
    *((function, (_X,)) for function in (rows_swapped, made_of_it, in_places, among_others)),
    *((function, (_NONE,)) for function in (rows_swapped, made_of_it, in_places, among_others)),
    *((said_twice, (_X, t)) for t in (-1.0, 0.5, 2.0)),
    *((raised_in_a_try, (x, t)) for x in (_X, _NONE) for t in (-1.0, 2.0)),
    (late_check, (_X,)),
    (late_check, (np.abs(_X),)),
]
