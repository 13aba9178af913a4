"""Indices far outside of an array: an IndexError where Python raises one, and nothing where no iteration asks.

In: loops that read or store at an index that they are given, 10**12 and its like among them, with and without
iterations. Out: Python's results and errors, of values, gradients and batches. A place outside that is touched all the
same ends the process.
"""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp

FAR = 10**12


def same_element(x, k, n):
    total = 0.0
    for i in range(n):
        total += np.sin(x[k]) * i
    return total


def moving_element(x, k, n):
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += np.sin(x[k + i]) * j
    return total


def asked_by_a_while(x, k, n):
    total, i = 0.0, 0
    while i < n:
        total += np.exp(x[k]) * i
        i += 1
    return total


def two_elements(x, k, n):
    y = np.zeros(n)
    for i in range(n):
        y[i] = np.exp(x[k]) + x[k + 1]
    return y.sum()


def on_a_branch(x, k, n):
    y = np.zeros(n)
    for i in range(n):
        if n > 100:
            y[i] = np.exp(x[k])
    return y.sum()


def of_a_part(x, k, n):
    total = 0.0
    for i in range(n):
        total += np.sum(x[k : k + 3][[1, 2]]) * i
    return total


def a_row(x, k, n):
    table, total = x.reshape(2, -1), 0.0
    for i in range(n):
        total += np.sum(np.cos(table[k])) * i
    return total


def added_to(x, k, n):
    y = x * 2.0
    for i in range(n):
        y[k] += x[i] * 3.0
    return y.sum()


def added_in_two_loops(x, k, n):
    y = x * 2.0
    for i in range(n):
        for j in range(n - 1):
            y[k] += x[i] * x[j]
    return y.sum()


def added_after_a_test(x, k, n):
    y = x * 2.0
    for i in range(n):
        if x[i] > 0.5:
            y[k] += x[i]
    return y.sum()


def into_zeros(x, k, n):
    total = 0.0
    for i in range(n):
        y = np.zeros(6)
        y[k] = x[0]
        total += np.sum(np.cos(y)) * i
    return total


def into_a_copy(x, k, n):
    total, i = 0.0, 0
    while i < n:
        y = x * 2
        y[[k, 0]] = x[1]
        total += np.sum(np.cos(y)) * i
        i += 1
    return total


def of_a_part_before(x, k, n):
    total, part = 0.0, x[k : k + 3]
    for i in range(n):
        total += np.sum(part[[1, 2]]) * i
    return total


FUNCTIONS = (
    *(same_element, moving_element, asked_by_a_while, two_elements, on_a_branch, of_a_part, a_row),
    *(added_to, added_in_two_loops, added_after_a_test, into_zeros, into_a_copy, of_a_part_before),
)
CALLS = [(k, n) for k in (1, FAR, -FAR) for n in (0, 1, 2, 3)]


def slope(function, x, k, n):
    """The gradient by central differences."""
    steps = np.eye(len(x)) * 1e-6
    return np.array([(function(x + s, k, n) - function(x - s, k, n)) / 2e-6 for s in steps])


def outcome(function, *args):
    try:
        return np.asarray(function(*args), float)
    except IndexError:
        return IndexError


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_outside_is_touched(function, native):
    with mp.config(native=native):
        value = mp.jit(lambda x, k, n: function(x, k, n))
        gradient = mp.jit(mp.grad(lambda x, k, n: function(x, k, n)))
        lanes = mp.jit(mp.vmap(lambda x, k, n: function(x, k, n), (0, None, None)))
        for length in (6, 8):
            x = np.linspace(0.25, 0.75, length)
            for k, n in CALLS:
                wants = outcome(function, x, k, n), outcome(slope, function, x, k, n)
                gots = outcome(value, x, k, n), outcome(gradient, x, k, n)
                for got, want in zip(gots, wants, strict=True):
                    if want is IndexError:
                        assert got is IndexError, (k, n)
                    else:
                        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8, err_msg=f"{k}, {n}")
                rows = outcome(lanes, np.stack([x, x]), k, n)
                assert rows is IndexError if wants[0] is IndexError else np.allclose(rows, wants[0], rtol=1e-12)


def array_of_no_size(x, k, n):
    total, i = 0.0, 0
    size = k - 5
    while i < min(size, n):
        total += np.sum(np.ones(size) * x[0]) % 64.0
        i += 1
    return total


@pytest.mark.parametrize("native", [True, False])
def test_an_array_of_a_negative_size_is_made_by_no_iteration(native):
    with mp.config(native=native):
        compiled = mp.jit(array_of_no_size)
        for k in (1, 5, 7):
            for n in (0, 3):
                x = np.array([0.5, 2.0])
                assert compiled(x, k, n) == array_of_no_size(x, k, n)


def of_a_mask(y, c, d, n):
    for _ in range(n):
        y = np.tanh(y * np.sin(c[d > 0]).sum())
    return y.sum()


def of_two_as_long(y, c, d, n):
    for _ in range(n):
        y = np.tanh(y * np.sin(c * d).sum())
    return y.sum()


def of_a_place(y, c, d, n):
    for _ in range(n):
        y = np.tanh(y * np.sin(c[5]) + d[0])
    return y.sum()


def of_rows(y, c, d, n):
    for _ in range(n):
        y = np.tanh(y * np.sin(c[2:7].reshape(5)))
    return y.sum() + d[0]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("function", [of_a_mask, of_two_as_long, of_a_place, of_rows])
def test_what_a_derivative_does_again_is_not_done_by_no_iteration(function, native):
    """The check is in the loop of the value, which has none either."""
    with mp.config(native=native, residual_limit=1):
        gradient = mp.jit(mp.grad(function))
        for length in (8, 10):
            y, c = np.ones(5), np.linspace(0.5, 1.0, length)
            slope_of_two = outcome(slope, lambda y, c, n: function(y, c, c, n), y, c, 2)
            np.testing.assert_allclose(gradient(y, c, c, 2), slope_of_two, rtol=1e-5, atol=1e-8)
        for c, d in ((3, 20_000_000), (20_000_000, 2), (3, 4)):
            np.testing.assert_array_equal(gradient(np.ones(5), np.ones(c), np.ones(d), 0), np.ones(5))


def of_sizes_that_part(y, c, d, k):
    w = 0
    while w < k:
        w += 1
        y = np.tanh(y + np.sin(c * d).sum() * 0.2)
    return y.sum()


def test_second_derivatives_of_sizes_that_no_iteration_compares():
    """Steps that run again compare the sizes of two arrays, so the sizes are among what they are given."""
    with mp.config(native=False, residual_limit=1):
        slopes = mp.grad(of_sizes_that_part, 1)
        second = mp.jit(mp.grad(lambda *args: slopes(*args).sum(), 1))
        for length in (8, 6):
            y, c, d = np.linspace(0.1, 0.5, length), np.linspace(0.5, 0.9, length), np.linspace(0.7, 0.8, length)
            want = slope(lambda c, y, k, d=d: slopes(y, c, d, k).sum(), c, y, 2)
            np.testing.assert_allclose(second(y, c, d, 2), want, rtol=1e-5, atol=1e-8)
        for c, d in ((2, 3), (3, 2), (2, 2)):
            np.testing.assert_array_equal(second(np.ones(6), np.ones(c), np.ones(d), 0), np.zeros(c))


def of_a_solution(y, a, b, k, n):
    for _ in range(n):
        y = np.tanh(y * b[k] * np.linalg.solve(a, b).sum())
    return y.sum()


def of_a_factor(y, a, b, k, n):
    for _ in range(n):
        y = np.tanh(y * b[k] * np.linalg.cholesky(a).sum())
    return y.sum()


def of_the_largest(y, a, b, k, n):
    for _ in range(n):
        y = np.tanh(y * np.max(np.sin(b[b > k])) + a[0, 0])
    return y.sum()


@pytest.mark.parametrize("function", [of_a_solution, of_a_factor, of_the_largest])
def test_what_numpy_refuses_is_not_asked_of_it_by_no_iteration(function):
    with mp.config(native=False, residual_limit=1):
        gradient = mp.jit(mp.grad(function))
        y, a, b = np.full(3, 0.3), np.eye(3) * 2.0 + 0.1, np.full(3, 0.4)
        for n in (2, 3):
            want = slope(lambda y, k, n: function(y, a, b, k, n), y, 0, n)
            np.testing.assert_allclose(gradient(y, a, b, 0, n), want, rtol=1e-5, atol=1e-8)
        np.testing.assert_array_equal(gradient(y, np.zeros((3, 3)), y, 7, 0), np.ones(3))
        with pytest.raises((ValueError, IndexError, np.linalg.LinAlgError)):
            gradient(y, np.zeros((3, 3)), y, 7, 2)
