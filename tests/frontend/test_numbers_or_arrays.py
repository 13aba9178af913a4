"""A variable that is an array on one path and a number on the other."""

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError, UnsupportedError


def previous(x, tolerance):
    held = 0
    while True:
        new = x / 2 + held / 4
        if abs(new - held).max() < tolerance:
            break
        held = new
    return held


def alike(got, wanted):
    return type(got) is type(wanted) and np.array_equal(got, wanted)


@pytest.mark.parametrize("tolerance", [1e-3, 0.1, 2.0])
def test_first_iteration_makes_it_an_array(tolerance):
    x = np.ones(3)
    assert alike(mp.jit(previous)(x, tolerance), previous(x, tolerance))


@pytest.mark.parametrize("missing", [0, 1.5, np.nan, 2j, True, np.float32(0.5)])
def test_result_is_one_or_the_other(missing):
    def function(x, t):
        found = missing
        if t > 0:
            found = x * 2
        return {"found": found, "sure": t}

    staged = mp.jit(function)
    assert alike(staged(np.ones(2), 1.0)["found"], np.full(2, 2.0))
    made = staged(np.ones(2), -1.0)["found"]
    assert type(made) is type(missing) and (made == missing or np.isnan(made))


def test_it_is_used_where_the_test_says_which():
    def function(x, t):
        found, there = 0.5, t > 0
        if there:
            found = x * 2
        more = found + 1 if not there else found.sum()
        if there:
            found = found - x
        return found, more

    for t in (1.0, -1.0):
        for got, wanted in zip(mp.jit(function)(np.ones(2), t), function(np.ones(2), t)):
            assert np.array_equal(got, wanted)


def test_result_of_a_staged_function_is_used_in_another():
    inner = mp.jit(previous)

    def function(x, tolerance):
        return inner(x, tolerance), x + 1

    for tolerance in (0.1, 2.0):
        got, wanted = mp.jit(function)(np.ones(3), tolerance), function(np.ones(3), tolerance)
        assert all(map(alike, got, wanted))


def test_two_numbers_are_not_told_apart():
    def function(x, t):
        found = 0
        if t > 0:
            found = x
        if t > 1:
            found = 1
        return found

    with pytest.raises(UnsupportedError, match="is an array f64.3. where the test holds and int 0 where"):
        mp.jit(function)(np.ones(3), 2.0)


def test_use_where_no_test_says_which_is_refused():
    def function(x, t):
        found = 0
        if t > 0:
            found = x
        return found + 1

    with pytest.raises(UnsupportedError, match="is an array f64.3. where the test holds and int 0 where"):
        mp.jit(function)(np.ones(3), 2.0)


def test_derivatives_and_lanes_are_refused():
    def function(x):
        found = 0.0
        if x.sum() > 0:
            found = x[:1]
        return found

    with pytest.raises(SourceError, match="a number on some paths and a value on others"):
        mp.jacrev(function)(np.ones(3))
    with pytest.raises(SourceError, match="a number on some paths and a value on others"):
        mp.vmap(function)(np.ones((2, 3)))


@pytest.mark.parametrize("missing", [0, np.nan, 2j, np.float32(np.inf)])
def test_source_gives_the_number(missing):
    def function(x, t):
        return x if t > 0 else missing

    scope = {}
    exec(mp.source(function, np.ones(2), 1.0), scope)
    assert np.array_equal(scope["function"](np.ones(2), -1.0), missing, equal_nan=True)
    assert np.array_equal(scope["function"](np.ones(2), 1.0), np.ones(2))


def last_but_one(x, tolerance):
    previous = 0  # an array from the first iteration on, and still 0 where that is the last
    while True:
        new = x / 2 + previous / 4
        if abs(new - previous).max() < abs(tolerance) + 1e-9:
            break
        previous = new
    return previous


def last_or_nan(x, least):
    found = np.nan
    while x.sum() > abs(least) + 1e-3:
        found = x = x / 2
    return found


def last_two(x, most):
    before = new = 0
    turns = 0
    while turns < most:
        new, before = x * 2 + before, new
        turns = turns + (new.max() > 0) + 1
    return new


LOOPS = [
    *((last_but_one, (np.ones(3), tolerance)) for tolerance in (1e-3, 0.1, 2.0)),
    *((last_or_nan, (np.ones(3), least)) for least in (0.5, 4.0)),
    *((last_two, (np.arange(3.0), most)) for most in (0, 1, 7)),
]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("function, args", LOOPS, ids=lambda v: getattr(v, "__name__", ""))
def test_loops_that_leave_an_array_or_a_number(function, args, native):
    with mp.config(native=native):
        wanted, got = function(*args), mp.jit(function)(*args)
    assert type(wanted) is type(got)
    np.testing.assert_allclose(got, wanted, rtol=1e-15)
