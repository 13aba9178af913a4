"""Derivatives through control flow: reverse = forward = differences, at once, native, batched, and twice."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp


def break_out(x):
    total = 0.0 * x[0]
    value = x[0]
    while True:
        total = total + value
        value = value / 2
        if value < 0.01:
            break
    return total * x[1] * x[2]


def rows_and_break(x):
    total = 0.0
    for one in x:
        if total > 2.0:
            break
        total = total + one * one * np.sin(x[0]) * one
    return total


def while_in_for(x):
    total = 0.0
    for k in range(3):
        value = x[k]
        while value > 0.1:
            value = value * 0.7 * np.cos(0.1 * value)
            total = total + value * x[0]
    return total


def while_in_branch(x):
    value = x[0]
    if x[1] > 0:
        while value < 5.0:
            value = value * (1.0 + x[2] * x[2])
    else:
        value = value * x[2]
    return value


def stores_under_branches(x):
    y = np.ones(6)
    for i in range(1, 6):
        if y[i - 1] > 0.2:
            y[i] = np.sin(y[i - 1]) + x[i % 3]
    return (y * y).sum()


FUNCTIONS = [break_out, rows_and_break, while_in_for, while_in_branch, stores_under_branches]
POINT = np.array([0.9, 0.7, 1.3])


def differences(f, x, step=1e-6):
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))])


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_reverse_is_forward_is_finite_differences(f):
    want = differences(f, POINT)
    np.testing.assert_allclose(mp.grad(f)(POINT), want, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(mp.jit(mp.grad(f))(POINT), want, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(mp.jacfwd(f)(POINT), want, rtol=1e-6, atol=1e-8)
    value, pullback = mp.vjp(f, POINT)
    np.testing.assert_allclose(value, f(POINT), rtol=1e-13)
    np.testing.assert_allclose(pullback(1.0)[0], want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_lanes_go_their_own_ways(f):
    points = POINT * np.array([[1.0], [0.5], [1.7], [3.0]])
    want = np.array([mp.grad(f)(p) for p in points])
    np.testing.assert_allclose(mp.vmap(mp.grad(f))(points), want, rtol=1e-12)
    np.testing.assert_allclose(mp.jit(mp.vmap(mp.grad(f)))(points), want, rtol=1e-12)
    together = mp.grad(lambda xs: mp.vmap(f)(xs).sum())(points)
    np.testing.assert_allclose(together, want, rtol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_second_derivatives(f):
    want = np.array([differences(lambda x, k=k: mp.grad(f)(x)[k], POINT) for k in range(3)])
    np.testing.assert_allclose(mp.hessian(f)(POINT), want, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(mp.jacrev(mp.grad(f))(POINT), want, rtol=1e-5, atol=1e-7)
