"""Captured arrays that a transformed function returns as they are, outside of `jit` and under it.

In: functions that return an array of a global beside what they compute. Out: the array in each lane, a zero
derivative, or the array itself as aux.
"""

from __future__ import annotations

import numpy as np

import metaphrase as mp
from metaphrase import grad, hessian, jacfwd, jacrev, jit, jvp, linearize, tree_util, vjp, vmap

X, SCALAR = np.array([1.5, 2.5, 3.0]), np.array(4.0)


def alike(a, b):
    first, second = tree_util.tree_leaves(a), tree_util.tree_leaves(b)
    return len(first) == len(second) and all(np.allclose(p, q) for p, q in zip(first, second))


def test_a_captured_array_is_a_result_under_vmap():
    x = np.arange(3.0)
    got, repeated, number = vmap(lambda y: (y * 2, X, SCALAR))(x)
    assert alike((got, repeated, number), (x * 2, np.tile(X, (3, 1)), np.full(3, 4.0)))
    got, repeated = vmap(lambda y: (y * 2, X), out_axes=(0, None))(x)
    assert alike((got, repeated), (x * 2, X)) and repeated is not X
    got = vmap(lambda y: {"a": [X], "b": y}, out_axes=1)(np.ones((2, 4)))
    assert alike(got["a"][0], np.tile(X[:, None], (1, 2)))


def test_a_captured_array_is_a_result_under_derivatives():
    x, dot = np.arange(3.0), np.ones(3)
    assert alike(jvp(lambda y: (y * 2, X), (x,), (dot,)), ((x * 2, X), (dot * 2, dot * 0)))
    out, pull = vjp(lambda y: (y * 2, X), x)
    assert alike((out, pull((dot, dot))), ((x * 2, X), (dot * 2,)))
    out, push = linearize(lambda y: (y * 2, X), x)
    assert alike((out, push(dot)), ((x * 2, X), (dot * 2, dot * 0)))
    for jacobian in (jacfwd, jacrev):
        assert alike(jacobian(lambda y: (y * 2, X))(x), (2 * np.eye(3), np.zeros((3, 3))))
        assert alike(jacobian(lambda y: (y * 2, X), has_aux=True)(x), (2 * np.eye(3), X))
    assert alike(vjp(lambda y: (y * 2, X), x, has_aux=True)[2], X)
    assert alike(mp.value_and_grad(lambda y: SCALAR)(2.0), (4.0, 0.0))
    assert alike(hessian(lambda y: SCALAR)(x), np.zeros((3, 3)))


def test_a_captured_array_is_a_result_of_layers():
    x = np.arange(3.0)
    want = np.tile(X, (3, 1))
    assert alike(jit(vmap(lambda y: (y, X)))(x), (x, want))
    assert alike(vmap(jit(lambda y: (y, X)))(x), (x, want))
    assert alike(vmap(lambda y: vmap(lambda z: (z, X))(x))(x), (np.tile(x, (3, 1)), np.tile(X, (3, 3, 1))))
    assert alike(vmap(grad(lambda y: (y * y, X), has_aux=True))(x), (2 * x, want))
