"""Users' objects and functions under `__array__`, `__array_wrap__` and `array_function_dispatch`."""

import numpy as np
import pytest
from numpy._core.overrides import array_function_dispatch

import metaphrase as mp

X = np.arange(3.0)


class Polynomial:
    def __init__(self, c):
        self.c = np.atleast_1d(c)

    def __array__(self, dtype=None, copy=None):
        return self.c


class Branching:
    def __init__(self, c):
        self.c = c

    def __array__(self, dtype=None, copy=None):
        if self.c.sum() > 2:
            return self.c * 2
        return -self.c


class NoArray:
    def __array__(self, dtype=None, copy=None):
        return 3


KEPT = Polynomial(np.ones(3))


def converted(c):
    return np.asarray(Polynomial(c)) * 2, np.array(Polynomial(c), dtype=np.float32), np.asarray(Branching(c))


def given_to_functions(c):
    p = Polynomial(c)
    reduced = np.sum(p), np.linalg.norm(p)
    return *reduced, np.convolve(p, np.ones(2)), np.sin(p), np.stack([p, c]), np.add(KEPT, c)


def among_operators(c):
    p = Polynomial(c + 1)
    return c + p, p * c, c < p, c[Polynomial(np.array([0, 1]))]


def a_store_goes_through(c):
    np.asarray(Polynomial(c))[0] = 5.0
    return c


def wrapped(x):
    wrap = getattr(x, "__array_wrap__", x.__array_wrap__)
    return wrap(x * 2), wrap(np.asarray(x.sum()), None, True)


@array_function_dispatch(lambda x, y=None: (x, y))
def dispatched(x, y=None):
    if x.sum() > 2:
        return x * 2
    return x if y is None else x * y


def calls_what_is_dispatched(x):
    return dispatched(x), dispatched(x, y=x + 1), dispatched(-x, -x)


EVERY = [
    converted,
    given_to_functions,
    among_operators,
    a_store_goes_through,
    wrapped,
    dispatched,
    calls_what_is_dispatched,
]


@pytest.mark.parametrize("f", EVERY, ids=lambda f: f.__name__)
def test_as_in_numpy(f):
    jitted = mp.jit(f)
    for x in (X, X / 10):
        got, want = jitted(x.copy()), f(x.copy())
        for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            assert type(a) is type(b) and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_what_gives_no_array():
    with pytest.raises(ValueError, match="__array__ method not producing an array"):
        mp.jit(lambda x: np.sum(NoArray()) + x)(X)
    with pytest.raises(TypeError, match="argument 1 must be numpy.ndarray, not list"):
        mp.jit(lambda x: x.__array_wrap__([1.0]) + x)(X)


def test_a_float_wraps_nothing():
    assert mp.jit(lambda x: hasattr(x, "__array_wrap__"))(1.0) is False
