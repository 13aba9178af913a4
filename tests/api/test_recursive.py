"""Jitted functions that call themselves, by themselves or through one another.

In: the decorated functions. Out: what Python gives for them undecorated, for several arguments and sizes.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.config import config


@mp.jit
def count(n):
    return 1 if n < 1 else count(n - 1) + 1


@mp.jit
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@functools.partial(mp.jit, static_argnums=0)
def power(n, x):
    return 1.0 if n == 0 else x * power(n - 1, x)


@mp.jit
def even(n, x):
    return x if n == 0 else odd(n - 1, x * 2)


@mp.jit
def odd(n, x):
    return x if n == 0 else even(n - 1, x * 3)


@mp.jit
def product(x):
    return x.sum() if len(x) < 2 else product(x[1:]) * x[0]


@mp.jit
def halves(x):
    if len(x) == 1:
        return x
    middle = len(x) // 2
    a, b = halves(x[:middle]), halves(x[middle:])
    out = np.empty(len(x))
    i = j = 0
    for k in range(len(x)):
        if j == len(b) or i < len(a) and a[i] <= b[j]:
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out


def through_a_plain_function(n):
    return 0 if n == 0 else helped(n - 1) + 1


@mp.jit
def helped(n):
    return through_a_plain_function(n) + 1


@mp.jit
def endless(x):
    return endless(x + 1)


X = np.array([3.0, 1.5, 2.0, 0.5, 4.0])
CASES = [
    (count, [(0,), (3,), (5,)], [1, 4, 6]),
    (fibonacci, [(1,), (7,)], [1, 13]),
    (power, [(3, 1.5), (0, 2.0)], [3.375, 1.0]),
    (even, [(5, 1.5), (2, 1.0)], [108.0, 6.0]),
    (product, [(X,), (X[:3],)], [18.0, 9.0]),
    (halves, [(X,), (X[:3],), (X[:4],)], [np.sort(X), np.sort(X[:3]), np.sort(X[:4])]),
    (through_a_plain_function, [(3,)], [6]),
    (helped, [(3,), (1,)], [7, 3]),
]


@pytest.mark.turns(3)
@pytest.mark.parametrize("native", [True, False], ids=["native", "numpy"])
@pytest.mark.parametrize("function, arguments, wanted", CASES, ids=[c[0].__name__ for c in CASES])
def test_a_jitted_function_calls_itself(function, arguments, wanted, native):
    with config(native=native):
        for args, want in zip(arguments, wanted, strict=True):
            assert np.array_equal(mp.jit(function)(*args), want)
            assert np.array_equal(function(*args), want)


def test_derivatives_and_lanes():
    assert mp.grad(even, 1)(5, 1.5) == 72.0
    assert mp.grad(lambda x: power(3, x))(1.5) == 3 * 1.5**2
    assert np.array_equal(mp.vmap(lambda x: power(2, x))(X), X * X)
    assert np.array_equal(mp.jit(mp.vmap(mp.grad(lambda x: odd(2, x) * x)))(X), 12 * X)


def test_a_recursion_without_end_says_so():
    with pytest.raises(RecursionError, match="while translating 'endless'"):
        endless(1.0)


@mp.jit
def square(x):
    return x * x


def test_transformations_of_jitted_functions_while_jit_is_disabled():
    with mp.disable_jit():
        assert mp.grad(square)(3.0) == 6.0
        assert mp.value_and_grad(square)(3.0) == (9.0, 6.0)
        assert mp.grad(mp.grad(square))(3.0) == 2.0
        assert mp.jit(mp.grad(square))(3.0) == 6.0
        assert np.array_equal(mp.vmap(square)(X), X * X)
        assert np.array_equal(mp.vmap(mp.jit(mp.grad(square)))(X), 2 * X)
        assert mp.jvp(square, (3.0,), (1.0,)) == (9.0, 6.0)
        assert mp.vjp(square, 3.0)[1](1.0) == (6.0,)
        assert np.array_equal(mp.jacfwd(square)(X), np.diag(2 * X))
        assert np.array_equal(mp.jacrev(square)(X), np.diag(2 * X))
        assert np.array_equal(mp.hessian(lambda x: square(x).sum())(X), 2 * np.eye(5))
        assert mp.jit(lambda x: square(x) + mp.grad(square)(x))(3.0) == 15.0
        assert count(3) == 4
    assert mp.grad(square)(3.0) == 6.0
