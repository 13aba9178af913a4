"""Arrays that names take over from others: rows of a loop, views that branches choose, arrays passed on."""

import numpy as np


def last_row_changed(rows):
    last = np.zeros(rows.shape[1])
    for row in rows[1:]:
        last = row
    last[0] = 99.0
    return rows


def first_large_row_changed(rows, limit):
    for row in rows:
        if row[0] > limit:
            break
    row[1] = -5.0
    return row.sum()


def row_of_either_branch(rows):
    for row in rows:
        if row[0] > 3.0:
            last = row
        else:
            last = row
    last[-1] = 4.0
    return last


def arrays_passed_on(x, n):
    a, b, c = x, x * 2, x * 3
    for _ in range(n):
        a, b, c = a + b + c, a, b
    c[0] = 99.0
    return a, b


def extremes_of_arrays(v):
    return max(v - v), min(v - v), max(v), min(-v), max(v > 1), max(v, default=3.0)


def view_or_view_in_branches(x, i, a, b):
    if a > 0:
        if b > 0:
            view = x[i]
        else:
            view = x[:, i]
    else:
        view = np.zeros(3)
    x[0, 0] += 2.0
    view[1] = 9.0
    return view


def one_of_three_arrays(x, y, z, a, b, c):
    if a > 0:
        if b > 0:
            v = x
        else:
            v = y[::-1]
        w = v if c > 0 else z
    else:
        w = y * 1.0
    w[1] += 100.0
    x[0] -= 1.0
    y[0] += 1.0
    return w


def types_settle_one_by_one(p):
    y, t, h = np.zeros(2), 0.0, 1.0
    for _ in range(4):
        t = t + h
        if p <= 5:
            y = y + 1
        h = p * np.float64(1)
    return y, t


_X = np.array([1.0, -2.0, 3.0, 0.5, 4.0, 2.5])
_A = np.array([[2.0, 1.0, 4.0], [6.0, 3.5, 1.0], [1.0, 5.0, 2.0]])

CASES = [
    (types_settle_one_by_one, (1.0,)),
    (types_settle_one_by_one, (6.0,)),
    (last_row_changed, (_A,)),
    (last_row_changed, (np.arange(320.0).reshape(80, 4),)),
    (first_large_row_changed, (np.arange(320.0).reshape(80, 4), 50.0)),
    (first_large_row_changed, (np.arange(320.0).reshape(80, 4), 999.0)),
    (row_of_either_branch, (np.arange(320.0).reshape(80, 4),)),
    (arrays_passed_on, (_X, 0)),
    (arrays_passed_on, (_X, 1)),
    (arrays_passed_on, (_X, 2)),
    (arrays_passed_on, (_X, 70)),
    (extremes_of_arrays, (np.array([-0.5, np.inf, 1.5]),)),
    (extremes_of_arrays, (np.array([np.nan, 1.0, 2.0]),)),
    (extremes_of_arrays, (np.array([1.0, np.nan, 2.0, -0.0]),)),
    (view_or_view_in_branches, (_A, 1, 1.0, 1.0)),
    (view_or_view_in_branches, (_A, -1, 1.0, -1.0)),
    (view_or_view_in_branches, (_A, 7, -1.0, -1.0)),
    (view_or_view_in_branches, (_A, 7, 1.0, -1.0)),
    (one_of_three_arrays, (_X, _X * 2, _X * 3, 1.0, 1.0, 1.0)),
    (one_of_three_arrays, (_X, _X * 2, _X * 3, 1.0, -1.0, 1.0)),
    (one_of_three_arrays, (_X, _X * 2, _X * 3, 1.0, 1.0, -1.0)),
    (one_of_three_arrays, (_X, _X * 2, _X * 3, -1.0, 1.0, 1.0)),
]
