"""Stores, views and run-time sizes of the corpus in native code: results and arguments end up as in Python.

In: the corpus themes about memory, an eighth each day. Out: the same outcome, twice (the second call finds the
compiled program).
"""

from __future__ import annotations

import numpy as np
import pytest
from corpus import alike, cases, fresh
from together import jitted
from turns import turn

import metaphrase as mp
from metaphrase.source import SourceError

THEMES = ("stores", "mutation", "updates", "views", "aliases", "sizes", "joined", "places")
CASES = {name: (function, args) for name, function, args in cases(*THEMES)}
GROUPS = [list(CASES)[k::40] for k in range(40)]
FAULTS = (ArithmeticError, ValueError, IndexError, AssertionError, UnboundLocalError)


def outcome(function, args):
    """The result and the arguments afterwards; or what was raised."""
    given = fresh(args)
    with np.errstate(all="ignore"):
        try:
            return function(*given), list(given)
        except SourceError:
            raise
        except FAULTS as error:
            return type(error).__name__, None


def same(a, b):
    if isinstance(a[0], str) or isinstance(b[0], str):
        return isinstance(a[0], str) and isinstance(b[0], str) and a[0] == b[0]
    return alike(a[0], b[0], 1e-9) and alike(a[1], b[1], 1e-9)


@pytest.mark.parametrize("names", turn(GROUPS, 8), ids=lambda names: names[0])
def test_jitted(names):
    for name, function in jitted({name: CASES[name] for name in names}).items():
        expected = outcome(*CASES[name])
        for _ in range(2):
            assert same(outcome(function, CASES[name][1]), expected), name


def rolled(x, y, n):
    x = x.copy()
    g = np.stack([x, y, x - y])
    if 1.0 < x[0]:
        x[0] = 1.0
    else:
        x = np.roll(g[2], 1)
        for _ in range(n):
            g[0][0] = 1.0
        g[2] -= g[0]
    return x, g


@pytest.mark.parametrize("native", [True, False])
def test_what_reads_a_row_is_done_before_a_loop_stores_into_the_table(native):
    """The loop stores in place; what waited to be written read the table by the name of its row."""
    x, y = np.array([0.0, 3.0, 4.0, 1.0]), np.array([1.0, 1.0, 2.0, 3.0])
    with mp.config(native=native):
        for one, other in zip(mp.jit(rolled)(x, y, 2), rolled(x, y, 2), strict=True):
            np.testing.assert_array_equal(one, other)


def moved_over(a, b):
    a[:] = b


def swapped(a, b):
    a[...], b[...] = b.copy(), a.copy()
    return a - b


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("function", [moved_over, swapped])
def test_a_program_for_one_array_given_twice_that_changes_nothing_serves_no_two_arrays(function, native):
    with mp.config(native=native):
        jitted = mp.jit(function)
        for is_one in (True, False, True, False):
            a, b, c, d = (np.array([k, k + 2.0, k * k]) for k in (1, 7, 1, 7))
            got, want = jitted(a, a if is_one else b), function(c, c if is_one else d)
            np.testing.assert_array_equal([a, b], [c, d])
            assert (got is None) == (want is None)
            if want is not None:
                np.testing.assert_array_equal(got, want)


def restored(a, b):
    before = a.copy()
    a[:] = b * 2
    seen = b.copy()
    a[:] = before
    return seen


def test_a_store_that_is_undone_is_one_of_every_name_of_the_array():
    x, y = np.ones(3), np.full(3, 2.0)
    jitted = mp.jit(restored)
    assert jitted(x, x).tolist() == [2.0, 2.0, 2.0] and x.tolist() == [1.0, 1.0, 1.0]
    assert jitted(x, y).tolist() == [2.0, 2.0, 2.0] and jitted(y, y).tolist() == [4.0, 4.0, 4.0]
    assert x.tolist() == [1.0, 1.0, 1.0] and y.tolist() == [2.0, 2.0, 2.0]
