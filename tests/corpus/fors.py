"""Loops over ranges and arrays."""

import numpy as np


def total(n, x):
    s = 0
    for i in range(n):
        s += x * i
    return s


def factorial(n):
    out = 1
    for k in range(2, n + 1):
        out *= k
    return out


def horner(coefficients, x):
    y = 0.0
    for c in coefficients:
        y = y * x + c
    return y


def backwards(x):
    s = 0.0
    for i in range(len(x) - 1, -1, -1):
        s = s / 2 + x[i]
    return s


def stepped(x):
    s = 0.0
    for i in range(0, len(x), 2):
        s += x[i]
    return s


def with_break(x, limit):
    s = 0.0
    for v in x:
        if s > limit:
            break
        s += v
    return s


def with_continue(x):
    s = 0.0
    for v in x:
        if v < 0:
            continue
        s += v
    return s


def find(x, wanted):
    for i in range(len(x)):
        if x[i] == wanted:
            return i
    return -1


def for_else(x, wanted):
    for v in x:
        if v == wanted:
            found = 1.0
            break
    else:
        found = -1.0
    return found


def rows_of_matrix(a):
    s = np.zeros(a.shape[1])
    for row in a:
        s = s + row * row
    return s


def write_rows(a):
    b = a.copy()
    for row in b:
        row[0] = row.sum()
    return b


def enumerated(x):
    s = 0.0
    for i, v in enumerate(x):
        s += i * v
    return s


def zipped(x, y):
    s = 0.0
    for a, b in zip(x, y):
        s += a * b
    return s


def triangle(n):
    s = 0
    for i in range(n):
        for j in range(i):
            s += i - j
    return s


def three_deep(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(5):
                s += a[i, j] * k
    return s


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def last_value(x):
    for v in x:
        y = v * 2
    return y


def list_of_arrays(x):
    parts = [x, x + 1, x * 2]
    s = 0.0
    for p in parts:
        s = s + p.sum()
    return s


def small_unrolled(x):
    for k in (1, 2, 3):
        x = x + k
    return x


def build_list(x):
    out = []
    for k in range(3):
        out.append(x * k)
    return np.stack(out)


def running_max(x):
    best = x[0]
    where = 0
    for i in range(1, len(x)):
        if x[i] > best:
            best = x[i]
            where = i
    return best, where


def reversed_sum(x):
    s = 0.0
    for v in reversed(x):
        s = 0.5 * s + v
    return s


def index_after(x):
    i = -1
    for i in range(len(x)):  # noqa: B007
        pass
    return i


def int_array_total(k):
    s = 0
    for v in k:
        s += v
    return s


def nested_break(a):
    count = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] < 0:
                break
            count += 1
        if count > 100:
            break
    return count


def swap(x, n):
    u = x.copy()
    v = np.zeros_like(x)
    for _ in range(n):
        v[1:-1] = 0.5 * (u[:-2] + u[2:])
        u, v = v, u
    return u


def steps_of_the_run(x, first, stop, step):
    total, k = 0.0, 0
    for j in range(first, stop, step):
        total += x[j] * (k + 1)
        k = j
    return total, k


def steps_that_grow(x, stop):
    step, seen = 1, np.zeros(len(x))
    while step < 4:
        for j in range(step * step, stop, step):
            seen[j] += x[j - step]
        step += 1
    return seen


_X = np.array([1.0, -2.0, 3.0, 4.0, 5.0, -6.0])
_M = np.arange(12.0).reshape(3, 4) - 3
CASES = [
    *(
        (steps_of_the_run, (_X, *bounds))
        for bounds in ((0, 6, 2), (1, 6, 3), (5, -1, -2), (4, 2, 1), (0, 6, 0), (0, 9, 4))
    ),
    (steps_of_the_run, (_X, -5, 0, 2)),
    (steps_that_grow, (_X, 6)),
    (steps_that_grow, (_X, 9)),
    (total, (10, 1.5)),
    (total, (1, 1.5)),
    (factorial, (6,)),
    (horner, (_X, 0.5)),
    (backwards, (_X,)),
    (stepped, (_X,)),
    (with_break, (_X, 4.0)),
    (with_continue, (_X,)),
    (find, (_X, 4.0)),
    (find, (_X, 7.0)),
    (for_else, (_X, 4.0)),
    (for_else, (_X, 9.0)),
    (rows_of_matrix, (_M,)),
    (write_rows, (_M,)),
    (enumerated, (_X,)),
    (zipped, (_X, _X + 1)),
    (triangle, (7,)),
    (three_deep, (_M,)),
    (fibonacci, (20,)),
    (last_value, (_X,)),
    (list_of_arrays, (_X,)),
    (small_unrolled, (1.0,)),
    (build_list, (_X,)),
    (running_max, (_X,)),
    (reversed_sum, (_X,)),
    (index_after, (_X,)),
    (int_array_total, (np.arange(7),)),
    (nested_break, (_M,)),
    (swap, (_X, 5)),
    (swap, (_X, 4)),
]
