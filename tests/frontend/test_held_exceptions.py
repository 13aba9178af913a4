"""Exceptions that the program raises hold what they hold in Python: arguments, attributes, text."""

import numpy as np
import pytest
import raising
from raising import X, caught_and_raised_anew, caught_outside, holds_an_array, own_class, too_many

import metaphrase as mp
from metaphrase.astpasses.emit.source_text import compile_numpy
from metaphrase.source import UnsupportedError

NOT_ALWAYS = ("caught_outside", "caught_and_raised_anew", "too_many", "holds_an_array")
RAISING = [f for name, f in vars(raising).items() if hasattr(f, "__code__") and name not in NOT_ALWAYS]


def told(function, *args):
    """All that an exception says."""
    with pytest.raises(Exception) as caught:
        function(*args)
    error = caught.value
    args = [(type(a), a) for a in error.args]
    return type(error), args, {k: (type(v), v) for k, v in vars(error).items()}, str(error)


@pytest.mark.parametrize("function", RAISING, ids=lambda f: f.__name__)
def test_raised_as_in_python(function):
    wanted = told(function, X)
    assert told(mp.jit(function), X) == wanted
    assert told(compile_numpy(mp.jit(function).source("numpy", X)), X) == wanted


def test_handlers_read_what_an_exception_holds():
    for x in (X, X * 0.1):
        wanted, got = caught_outside(x), mp.jit(caught_outside)(x)
        assert np.array_equal(wanted[0], got[0]) and wanted[1] == got[1]
    assert told(mp.jit(caught_and_raised_anew), X) == told(caught_and_raised_anew, X)


def test_a_lane_or_a_derivative_raises_it():
    def loss(x):
        return np.sum(own_class(x) ** 2)

    lanes = np.stack([X * 0.1, X, X * 2])
    assert told(mp.jit(mp.vmap(loss)), lanes) == told(own_class, X)
    assert told(mp.jit(mp.grad(loss)), X)[:2] == told(own_class, X)[:2]


@pytest.mark.parametrize("function, why", [(too_many, "more than 16 numbers"), (holds_an_array, "an array")])
def test_what_a_program_can_not_keep(function, why):
    with pytest.raises(UnsupportedError, match=why) as caught:
        mp.jit(function)(X)
    assert caught.value.code == "raise"
