"""Checks that are looked at behind their loop: the same errors, and where the loop has to stop at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

import metaphrase as mp

LONG = np.linspace(0.1, 2.0, 100)


def loops(function, *args):
    return mp.source(function, *args, stage="loops")


def failed(function, *args):
    with pytest.raises((ValueError, OverflowError, AssertionError, IndexError, ZeroDivisionError)) as caught:
        function(*args)
    return caught.value


def message(error):
    """Without what pytest adds to the assertions of a test's module."""
    return str(error).partition("\n")[0]


def as_in_python(function, *args, late=True):
    """The error is Python's, on its line; and whether the loop goes on until its end."""
    want = failed(function, *args)
    got = failed(mp.jit(function), *args)
    assert (type(got), str(got)) == (type(want), message(want))
    lines = [e.__traceback__ for e in (want, got)]
    lasts = []
    for trace in lines:
        while trace.tb_next is not None:
            trace = trace.tb_next
        lasts.append(trace.tb_lineno)
    assert lasts[0] == lasts[1]
    assert ("fault = fault | " in loops(function, *args)) == late


def exponentials(x):
    out = np.empty(len(x))
    for i in range(len(x)):
        out[i] = math.exp(x[i]) * 2.0
    return out


def checked(x, limit):
    out = np.empty(len(x))
    for i in range(len(x)):
        assert x[i] < limit, f"too large: {x[i]}"
        if x[i] < -limit:
            raise ValueError(f"too small: {x[i]}")
        out[i] = math.sqrt(abs(x[i]))
    return out


def two_kinds(x):
    total = 0.0
    for i in range(len(x)):
        total += math.sqrt(x[i])
        total += math.exp(x[i])
    return total


def by_what_came_before(x):
    state = 0.0
    out = np.empty(len(x))
    for i in range(len(x)):
        state = 0.5 * state + x[i]
        out[i] = math.sqrt(state)
    return out


def into_the_argument(x, y):
    for i in range(len(x)):
        y[i] = math.sqrt(x[i])
    return y


def places(x, k):
    out = np.empty(len(x))
    for i in range(len(x)):
        assert x[i] < 9.0, "too large"
        out[i] = x[k[i]]
    return out


def kepler(M, e):
    E = M
    d = 1.0
    while abs(d) > 1e-12:
        assert E < 10.0, "lost"
        d = (E - e * math.sin(E) - M) / (1 - e * math.cos(E))
        E = E - d
    return E


def put(x, **at):
    x = x.copy()
    for place, value in at.items():
        x[int(place[1:])] = value
    return x


def test_the_loop_vectorises_and_gives_pythons_numbers():
    np.testing.assert_allclose(mp.jit(exponentials)(LONG), exponentials(LONG), rtol=1e-15)
    text = loops(exponentials, LONG)
    assert "fault = fault | isinf(" in text and text.count("raise Failed(0)") == 2, text


@pytest.mark.parametrize("place", [0, 50, 99])
def test_an_overflow(place):
    as_in_python(exponentials, put(LONG, **{f"_{place}": 800.0}))
    assert mp.jit(exponentials)(put(LONG, _3=np.inf, _4=np.nan))[3] == np.inf


def test_the_first_of_two_checks():
    as_in_python(two_kinds, put(LONG, _70=-1.0, _80=800.0))
    as_in_python(two_kinds, put(LONG, _80=-1.0, _70=800.0))


def test_messages_with_values():
    plain, small = mp.jit(checked), put(LONG, _40=-7.0)
    np.testing.assert_array_equal(plain(LONG, 5.0), checked(LONG, 5.0))
    for x in (put(LONG, _40=7.0, _60=8.0), small, put(small, _90=7.0)):
        want, got = failed(checked, x, 5.0), failed(plain, x, 5.0)
        assert type(want) is type(got)
        assert message(want) == str(got)


def test_what_an_iteration_hands_to_the_next_stops_the_loop():
    as_in_python(by_what_came_before, put(LONG, _50=-9.0), late=False)


def test_an_argument_is_stored_into_up_to_the_failure():
    x, y, z = put(LONG, _50=-1.0), np.zeros(100), np.zeros(100)
    as_in_python(into_the_argument, x, np.zeros(100), late=False)
    jitted = mp.jit(into_the_argument)
    jitted(LONG, np.zeros(100))
    failed(jitted, x, y)
    failed(into_the_argument, x, z)
    np.testing.assert_array_equal(y, z)


def test_places_are_checked_at_once():
    k = np.arange(100)
    as_in_python(places, put(LONG, _50=9.5), k, late=False)
    as_in_python(places, LONG, put(k, _50=100), late=False)


def picked(x, k):
    return x[k] * 2.0


@pytest.mark.parametrize("wrong", [100, -101, 2**62, -(2**63), 2**63 - 1])
def test_places_of_a_gather_are_all_checked_before_it(wrong):
    k = np.arange(-100, 100, 2)
    as_in_python(picked, LONG, put(k, _99=wrong))
    as_in_python(picked, LONG, put(k, _7=wrong, _50=-101))
    np.testing.assert_array_equal(mp.jit(picked)(LONG, k), picked(LONG, k))
    rows = np.stack([k, k[::-1]])
    np.testing.assert_array_equal(mp.jit(mp.vmap(picked, (None, 0)))(LONG, rows), picked(LONG, rows))
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
        mp.jit(mp.vmap(picked, (None, 0)))(LONG, np.stack([k, put(k, _60=wrong)]))


def divided(x, k):
    assert np.all(k != 0), "nothing to divide by"
    return x // k


def test_a_check_before_a_division_of_integers():
    x, k = np.arange(100), np.arange(1, 101)
    np.testing.assert_array_equal(mp.jit(divided)(x, k), x // k)
    assert message(failed(divided, x, put(k, _50=0))) == str(failed(mp.jit(divided), x, put(k, _50=0)))


def test_lanes_stop_where_their_check_fails():
    batched = mp.vmap(kepler, (0, None))
    compiled, M = mp.jit(batched), np.linspace(0.1, 3.0, 100)
    assert "running" in loops(batched, M, 0.5) and "stopped" in loops(batched, M, 0.5)
    np.testing.assert_allclose(compiled(M, 0.5), [kepler(m, 0.5) for m in M], rtol=1e-14)
    for bad in (np.inf, 11.0):
        with pytest.raises(type(failed(kepler, bad, 0.5))):
            compiled(put(M, _33=bad), 0.5)


def test_short_loops_stay():
    assert "fault" not in loops(exponentials, LONG[:8])
