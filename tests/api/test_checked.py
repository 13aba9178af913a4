"""Errors as values: `checked(f)` returns what a call of `f` would have raised, under every transformation.

In: functions of which some calls fail. Out: the same class, message and line that Python has, as a value; the results of
the calls that don't fail; one error for each lane.
"""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import lax
from metaphrase.experimental import checkify
from metaphrase.experimental.checkify import all_checks, check, check_error, div_checks, index_checks, nan_checks
from . import failing_programs as programs
from .failing_programs import PROGRAMS, TABLE

X, K = np.array([0.5, 1.5, 2.5, 3.5, -1.0, 6.0]), np.array([0, 1, 2, 3, 1, -2])
LANES = list(zip(X.tolist(), K.tolist()))


def ran(function, *args):
    """What a call gives: the result, or the exception."""
    try:
        return function(*args)
    except Exception as error:
        return error


def line(error):
    """The last line of a file of ours in the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.lineno for frame in frames if "tests" in frame.filename][-1]


def same(error, result, expected, lane=None):
    """Whether an error and a result are what a plain call gave."""
    if not isinstance(expected, Exception):
        assert error.get() is None and not error.failed and error.throw() is None, (lane, error)
        np.testing.assert_allclose(result, expected, rtol=1e-9, err_msg=f"{lane}")
        return
    assert error.failed, (lane, expected)
    with pytest.raises(type(expected)) as caught:
        error.throw()
    found = caught.value
    assert type(found) is type(expected) and str(found) == str(expected), (lane, found, expected)
    assert error.get().endswith(str(expected)) and vars(found).get("k") == vars(expected).get("k")
    assert line(error.exception()) == line(expected), (lane, expected)


def each_lane(error, results, expected):
    assert error.failed.shape == (len(expected),)
    for lane, one in enumerate(expected):
        same(error[lane], results[lane], one, lane)
    failed = [lane for lane, one in enumerate(expected) if isinstance(one, Exception)]
    assert (error.get() or "").count("in lane ") == len(failed)


@pytest.mark.parametrize("function", PROGRAMS)
def test_a_call_is_what_python_does(function):
    run = mp.checked(function)
    for x, k in LANES:
        same(*run(x, k), ran(function, x, k))


@pytest.mark.parametrize("function", PROGRAMS)
def test_lanes(function):
    expected = [ran(function, x, k) for x, k in LANES]
    assert {isinstance(e, Exception) for e in expected} == {False, True}
    each_lane(*mp.vmap(mp.checked(function))(X, K), expected)


SOME = [programs.domain, programs.raised_in_a_while, programs.rows_of_a_scan, programs.in_branches]


@pytest.mark.parametrize("function", [*SOME, programs.while_in_a_loop, programs.stored, programs.singular])
def test_lanes_of_gradients(function):
    slope = mp.grad(function)
    expected = [ran(slope, x, k) for x, k in LANES]
    each_lane(*mp.vmap(mp.checked(slope))(X, K), expected)


@pytest.mark.parametrize("function", [*SOME, programs.while_in_a_loop])
def test_gradients_of_what_is_checked(function):
    def loss(x, k):
        error, out = mp.checked(function)(x, k)
        return out, error

    slopes, errors = mp.vmap(mp.grad(loss, has_aux=True))(X, K)
    for lane, (x, k) in enumerate(LANES):
        expected = ran(function, x, k)
        if not isinstance(expected, Exception):
            expected = mp.grad(function)(x, k)
        same(errors[lane], slopes[lane], expected, lane)


def test_native_code():
    def everything(x, k):
        return [mp.checked(f)(x, k) for f in PROGRAMS]

    native = mp.jit(mp.vmap(everything))(X, K)
    for function, (error, out) in zip(PROGRAMS, native, strict=True):
        each_lane(error, out, [ran(function, x, k) for x, k in LANES])
