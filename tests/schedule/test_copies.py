"""Variables that are copies of one another become one, unless both of their values are wanted.

In: programs with carried variables, whose loops as Python are read and run. Out: as many variables as the user has,
and what Python gives.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.python_loops import python_loops, run
from metaphrase.pipeline import finished


def halved(goal, low, high):
    steps = 0
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        if middle * middle > goal:
            high = middle
        else:
            low = middle
        steps += 1
    return low, steps


def nearest(x, y, z):
    best, where = np.inf, -1
    for i in range(len(x)):
        d = (x[i] - y) ** 2
        if d < best:
            best, where = d, i
    return best + z, where


def exchanged(x, y, z):
    """Both of two values are wanted while one of them changes."""
    for i in range(len(x)):
        if x[i] > 0:
            y, z = z, y + x[i]
    return y, z


def kept(x, y, z):
    """The value of before is wanted behind the new one."""
    last = y
    for i in range(len(x)):
        last = y
        y = y + x[i] * z
    return last, y


def fibonacci(x, y, z):
    a, b, n = 0, 1, 0
    while b < 1000 * z:
        a, b = b, a + b
        n += len(x)
    return a, b, n


def nested(x, y, z):
    for i in range(len(x)):
        t = y
        for j in range(i):
            t = t * 0.5 + x[j]
            if t > z:
                t = z
        y = t
    return y


def counted_back(x, y, z):
    k, steps = len(x) * 3, 0
    while k > 1:
        before = k
        if k % 2:
            k = k // 2
            steps += before
        else:
            k = k - 1
    return k, steps


X = np.array([0.5, -1.0, 2.0, 0.25, -0.75])
PROGRAMS = (nearest, exchanged, kept, fibonacci, nested, counted_back)


def loops(function, *args):
    call = take_apart(args, {})
    return schedule(finished(program_of(function, call.structure, call.specs).function))


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("z", [1.0, 0.125])
def test_values(function, z):
    got = run(loops(function, X, 0.3, z), X, np.float64(0.3), np.float64(z))
    wanted = function(X, 0.3, z)
    for mine, theirs in zip(got, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_native_values(function):
    got = mp.jit(function)(X, 0.3, 1.0)
    wanted = function(X, 0.3, 1.0)
    for mine, theirs in zip(
        got if isinstance(got, tuple) else (got,), wanted if isinstance(wanted, tuple) else (wanted,)
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-14)


def test_text_has_the_variables_of_the_user():
    text = python_loops(loops(nearest, X, 0.3, 1.0))
    assert "        if d < best:\n            best = d\n            where = i64(i)\n" in text
    assert "else" not in text and not re.search(r"best_\d|where_\d", text)


def test_one_branch_stays():
    text = python_loops(loops(halved, 2.0, 1.0, 2.0))
    assert "            high_1 = middle\n        else:\n            low_1 = middle\n" in text
    assert not re.search(r"(high|low|steps)_[2-9]", text)


def test_both_of_two_values_stay():
    text = python_loops(loops(exchanged, X, 0.3, 1.0))
    assert len(set(re.findall(r"\b([yz]\w*) = ", text))) >= 2
