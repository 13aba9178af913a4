"""`a is b` of arrays: known while translating, told by the run, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError

from .test_what_loops_change import outcome


def chosen(x, n):
    a = x * 1
    y = a if x[0] > 0 else x * 2
    return 1 if y is a else 2


def bound_in_a_branch(x, n):
    a, y = x * 1, x * 2
    if x[0] > 0:
        y = a
    if y is a:
        y = y + 1.0
    return y, y is a


def chosen_twice(x, n):
    a, b = x * 1, x * 3
    y = a if x[0] > 0 else b
    z = y if x[1] > 1.0 else a
    return (z is a) + 2 * (z is b)


def one_of_two_in_turns(x, n):
    a, b = x * 1.0, x * 3.0
    for _ in range(4):
        if a is b:
            b = a * 2.0
        else:
            b = a
    return b


def only_at_first(x, n):
    y = a = x * 1.0
    count = 0
    for _ in range(n):
        if y is a:
            count += 1
        y = y * 2
    return count, y


def never_one(x, n):
    a, b = x * 1.0, x * 2.0
    count = 0
    for _ in range(n):
        if a is b:
            count += 1
        a, b = b, a
    return count, a


def new_in_each(x, n):
    a, b = x * 1.0, x * 2.0
    count = 0
    for _ in range(n):
        a = a + 1.0
        if a is not b:
            count += 1
        b = b + a
    return count, b


def views(x, n):
    a = x * 1.0
    b = a
    return a[:] is a, a[...] is a, a[1:] is a[1:], b is a


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    "function",
    [chosen, bound_in_a_branch, chosen_twice, one_of_two_in_turns, only_at_first, never_one, new_in_each, views],
)
def test_as_in_python(function, sign, n):
    args = (np.array([sign, 2.0]), n)
    with mp.config(native=False):
        assert outcome(mp.jit(function), args) == outcome(function, args)


def depends_on_the_round(x, n):
    a, b = x * 1.0, x * 3.0
    for i in range(n):
        if a is b and x[0] > 0:
            b = a * 2.0
        elif x[1] > i:
            b = a
    return b


def test_what_depends_on_the_round_is_refused_or_right():
    x = np.array([1.0, 2.0])
    with mp.config(native=False):
        jitted = mp.jit(depends_on_the_round)
        try:
            found = jitted(x, 5)
        except SourceError as error:
            assert "arrays are one" in str(error)
        else:
            np.testing.assert_array_equal(found, depends_on_the_round(x, 5))
