"""Where Python tells numbers from arrays: numbers have no attributes of arrays, and an array is no number."""

import math

import numpy as np
import pytest

import metaphrase as mp


def outcome(function, *args):
    """The result, or the class of what is raised, and its message as far as it is NumPy's or Python's."""
    try:
        return function(*args)
    except Exception as error:
        kind = next(c for c in type(error).__mro__ if c.__module__ == "builtins" and c is not Exception)
        return kind, getattr(error, "message", str(error))


def any_or_scalar(x):
    try:
        if (x > 1).any():
            return 1.0
    except AttributeError:
        return 2.0
    return 3.0


def rank_or_none(x):
    try:
        return x.ndim
    except AttributeError:
        return -1


@pytest.mark.parametrize("function", [any_or_scalar, rank_or_none])
@pytest.mark.parametrize("x", [1.5, 2, True, np.float64(1.5), np.ones(3)], ids=repr)
def test_the_idiom_of_arrays_or_numbers(function, x):
    assert outcome(mp.jit(function), x) == outcome(function, x)


@pytest.mark.parametrize("x", [1.5, 2, 1j], ids=repr)
@pytest.mark.parametrize("name", ["ndim", "shape", "dtype", "T", "sum", "copy", "dot", "real", "conjugate"])
def test_attributes_of_numbers(name, x):
    def there(x):
        return callable(getattr(x * 2, name)) or 1

    wanted, got = outcome(there, x), outcome(mp.jit(there), x)
    assert wanted == got


def stored(x, v):
    x[0] = v
    return x


def stored_in_rows(x, v):
    y = np.zeros((2, 2))
    y[0, 1] = v
    y[1] = v
    return y.sum() + x.sum()


def stored_anywhere(x, v):
    x[..., 0] = v
    x[[1]] = v
    x[:1] = v
    return x.sum()


def updated(x, v):
    for i in range(len(x)):
        x[i] += v
    return x


def as_float(x, v):
    return float(v)


def as_integer(x, v):
    return int(v)


def square_root(x, v):
    return math.sqrt(v)


SHAPES = [np.ones(1), np.ones((1, 1)), np.array(4.0), np.ones(2)]


@pytest.mark.parametrize("v", SHAPES, ids=lambda v: str(v.shape))
@pytest.mark.parametrize(
    "function", [stored, stored_in_rows, stored_anywhere, updated, as_float, as_integer, square_root]
)
def test_an_array_of_one_element_is_no_number(function, v):
    wanted, got = outcome(function, np.zeros(2), v), outcome(mp.jit(function), np.zeros(2), v)
    if isinstance(wanted, tuple) and "sequence" not in wanted[1]:
        wanted, got = wanted[0], got[0]
    assert type(wanted) is type(got) and np.array_equal(wanted, got)
