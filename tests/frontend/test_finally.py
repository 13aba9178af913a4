"""What a `finally` does after what may fail when the program runs: as in Python, or refused."""

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import UnsupportedError

ARRAY = np.arange(3.0)
VALUES = (0.0, 0.5, 1.5, 2.0, 5.0)


def outcome(function, *args):
    try:
        return float(function(*args))
    except (ArithmeticError, AssertionError, LookupError, ValueError) as error:
        return type(error), str(error).split("\n")[0]  # pytest's own `assert` says more


def raise_in_both(x):
    try:
        if x > 0:
            raise ValueError("body")
    finally:
        if x > 1:
            raise KeyError("end")
    return x


def raise_always(x):
    try:
        assert x > 0
    finally:
        raise KeyError("end")


def index_then_assert(x):
    try:
        y = ARRAY[int(x)]
    finally:
        assert x < 3
    return y


def one_is_caught(x):
    try:
        try:
            assert x < 1, "body"
        finally:
            if x > 2:
                raise KeyError("end")
    except KeyError:
        x = x + 1
    return x


class Guard:
    def __init__(self, x):
        self.x = x

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.x > 2:
            raise KeyError("end")


def guarded(x):
    with Guard(x):
        assert x < 1, "body"
    return x


def in_a_loop(x):
    n = 20.0
    while n > 0:
        try:
            assert x < 4, "body"
            x = x + 1
        finally:
            n = n - 1
            assert n > 10, "end"
    return x


@pytest.mark.parametrize(
    "function", (raise_in_both, raise_always, index_then_assert, one_is_caught, guarded, in_a_loop)
)
def test_an_end_that_raises_after_what_may_fail_is_refused(function):
    with pytest.raises(UnsupportedError, match="raises, and what stands before it may fail") as caught:
        mp.jit(function)(0.5)
    assert caught.value.code == "finally"


def raise_alone(x):
    try:
        x = x * 2
    finally:
        if x > 1:
            raise KeyError("end")
    return x


def both_are_caught(x):
    try:
        try:
            assert x < 1, "body"
        finally:
            if x > 2:
                raise KeyError("end")
    except KeyError:
        x = x + 1
    except AssertionError:
        x = x - 1
    return x


def caught_inside(x):
    try:
        assert x < 1, "body"
    finally:
        try:
            assert x > 2
        except AssertionError:
            x = x + 1
    return x


def body_is_caught(x):
    try:
        try:
            assert x < 1, "body"
        finally:
            if x > 2:
                raise KeyError("end")
    except AssertionError:
        x = x + 1
    return x


def each_turn(x):
    for k in range(3):
        try:
            x = x + k
        finally:
            assert x < 4, "end"
    return x


@pytest.mark.parametrize("function", (raise_alone, both_are_caught, caught_inside, body_is_caught, each_turn))
def test_an_end_is_as_in_python(function):
    staged = mp.jit(function)
    for x in VALUES:
        assert outcome(staged, x) == outcome(function, x), x
