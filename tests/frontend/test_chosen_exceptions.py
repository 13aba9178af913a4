"""Exceptions, their classes and their messages that a staged test chooses: the run raises what Python raises,
and handlers take it."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError


class Failed(Exception):
    pass


def raised_and_caught(x):
    try:
        raise KeyError("a") if x > 1 else ValueError("b")
    except KeyError:
        return 1.0
    except ValueError as error:
        return 2.0 if str(error) == "b" else 3.0


def one_of_three(x):
    try:
        raise KeyError("a") if x > 1 else ValueError("b") if x > 0 else TypeError("c")
    except (ValueError, KeyError):
        return 5.0


def kept_or_none(x):
    error = ValueError("bad") if x > 1 else None
    if error is not None:
        raise error
    return x


def kept_with_values(x):
    error = None
    if x > 1:
        y = x * 2
        error = ValueError(f"bad {y}")
    if error:
        raise error
    return x


def kept_in_a_loop(x):
    error = None
    for k in range(20):
        if x * 10 > k:
            error = ValueError("seen")
    if error is not None:
        raise error
    return x


def chosen_class(x):
    cls = ValueError if x > 1 else Failed
    if x > 0:
        raise cls("m")
    return x


def class_without_call(x):
    cls = ValueError if x > 1 else TypeError
    try:
        raise cls
    except ValueError:
        return 5.0


def chosen_exception(x):
    if x > 1:
        error = ValueError("p")
    else:
        error = KeyError("q")
    raise error


def chosen_message(x):
    word = "large" if x > 1 else "small"
    raise ValueError(f"{word}: {x}") if x > 0 else ValueError("negative")


def chosen_argument(x):
    raise ValueError("a" if x > 1 else "b")


def from_none(x):
    raise (KeyError("a") if x > 1 else Failed("b")) from None


def chosen_in_a_loop(x):
    total = 0.0
    for k in range(5):
        try:
            if k * x > 2:
                raise TypeError(k) if x > 1 else ValueError(k)
            total += k
        except ValueError:
            total += 10.0
    return total


CHOSEN = [
    raised_and_caught,
    one_of_three,
    kept_or_none,
    kept_with_values,
    kept_in_a_loop,
    chosen_class,
    class_without_call,
    chosen_exception,
    chosen_message,
    chosen_argument,
    from_none,
    chosen_in_a_loop,
]


def outcome(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("f", CHOSEN, ids=lambda f: f.__name__)
def test_the_run_raises_what_python_raises(f, native):
    jitted = mp.jit(f)
    with mp.config(native=native):
        for x in (2.0, 0.75, -1.0):
            assert outcome(jitted, x) == outcome(f, x)


def test_what_has_no_common_form_is_refused():
    def f(x):
        y = x * 2
        error = ValueError(f"bad {y}") if x > 1 else KeyError("k")
        raise error

    with pytest.raises(SourceError, match="is a ValueError where the test holds and a KeyError where"):
        mp.jit(f)(2.0)


def test_a_chosen_exception_is_a_result():
    def f(x):
        return ValueError("p") if x > 1 else KeyError("q"), ValueError(x * 2 if x > 1 else x)

    jitted = mp.jit(f)
    for x in (2.0, 0.5):
        for mine, theirs in zip(jitted(x), f(x)):
            assert type(mine) is type(theirs) and mine.args == theirs.args


def test_a_batch_raises_too():
    with pytest.raises(ValueError, match="bad"):
        mp.vmap(kept_or_none)(np.array([0.5, 2.0]))
    np.testing.assert_array_equal(mp.vmap(kept_or_none)(np.array([0.5, 0.25])), [0.5, 0.25])
