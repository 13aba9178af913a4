"""Functions of a number and an index of which some calls fail: each in another way.

In: x: f64, k: i64. Out: a float, or what Python raises. They stand in a file of their own, since pytest changes the
messages of `assert` in files of tests.
"""

from __future__ import annotations

import math

import numpy as np

from metaphrase import lax

TABLE = np.array([1.0, 2.0, 3.0])
NAMES = {"a": 1.0, "b": 2.0}


class Diverged(Exception):
    def __init__(self, at, k):
        super().__init__(f"{at} in step {k}")
        self.k = k


def domain(x, k):
    return math.log(x) * k


def asserted_in_a_loop(x, k):
    for i in range(5):
        assert x * i < 8, f"{x} at {i}"
        x = x * TABLE[k]
    return x


def key_in_a_nested_function(x, k):
    def inner(y):
        if y > 3:
            return y * NAMES["c"]
        return y * NAMES["b"]

    total = 0.0
    for i in range(3):
        total = total + inner(x + i * k)
    return total


def raised_in_a_while(x, k):
    n = 0
    while x < 100:
        if n > 6 + k:
            raise Diverged(x, n)
        x = x * 1.5 + TABLE[n % 3]
        n += 1
    return x


def condition_that_fails(x, k):
    while TABLE[k] < 2.5:
        x = np.sin(x) * 2
        k = k + 2
    return x


def while_in_a_loop(x, k):
    total = 0.0
    for i in range(4):
        y = abs(x) + i
        while y < 10:
            y = y * TABLE[k] + 1
            assert y < 30
            if y > 20:
                k = k + 1
        total = total + y
    return total


def rows_of_a_scan(x, k):
    last, ys = lax.scan(lambda c, t: (c * TABLE[k + t], c), x, np.arange(6) % 3)
    return last + ys.sum()


def singular(x, k):
    matrix = np.array([[1.0, 1.5], [k, x]])
    return np.linalg.solve(matrix, np.array([1.0, x])).sum()


def stored(x, k):
    out = np.zeros(3)
    for i in range(3):
        out[k * i] = x * i
        x = x / out.max() if out.max() > 0 else x
    return out.sum()


def divided(x, k):
    return x * (7 // int(k))


def many_indices(x, k):
    return (TABLE[np.array([0, 1]) * k] * x).sum()


def caught(x, k):
    try:
        y = TABLE[k]
    except IndexError:
        y = 5.0
    assert y * x < 12
    return y * x


def in_branches(x, k):
    if k > 1:
        if x > 2:
            raise OverflowError("x")
        x = x * TABLE[k]
    elif k == 0:
        x = x / 2
        assert x < 1
    return np.exp(x)


def part_of_a_size(x, k):
    part = TABLE[k:]
    return x * part[0] + np.max(part)


PROGRAMS = [
    domain,
    asserted_in_a_loop,
    key_in_a_nested_function,
    raised_in_a_while,
    condition_that_fails,
    while_in_a_loop,
    rows_of_a_scan,
    singular,
    stored,
    divided,
    many_indices,
    caught,
    in_branches,
    part_of_a_size,
]
