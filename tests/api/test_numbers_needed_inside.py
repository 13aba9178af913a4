"""Numbers of a staging that a transformed function inside it needs while it is translated: they are pinned there."""

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import UnsupportedError

DEPTH = 2


def grown(n, h):
    m = np.eye(1)
    for _ in range(n):
        m = np.kron(m, np.eye(2) * h)
    return m.sum()


def along(axis, x):
    return (np.ones((2, 3)) * x).sum(axis=axis)[0]


def powers(depth, x):
    return x if depth < 1 else x * powers(depth - 1, x)


@pytest.mark.parametrize("function", [grown, along, powers])
def test_a_number_that_is_given(function):
    def slope(n, x):
        return mp.grad(function, argnums=1)(n, x)

    compiled = mp.jit(slope)
    for n in (0, 1, 0):
        assert compiled(n, 1.5) == slope(n, 1.5)


def test_lanes_inside_a_derivative():
    def total(n, xs):
        return np.sum(mp.vmap(grown, in_axes=(None, 0))(n, xs))

    xs = np.arange(3.0) + 1
    np.testing.assert_allclose(mp.grad(total, argnums=1)(2, xs), 8 * xs)


def test_a_number_of_the_function_around():
    def total(n, xs):
        return np.sum(mp.vmap(lambda x: mp.jit(lambda y: grown(n, y))(x))(xs))

    xs = np.arange(3.0) + 1
    np.testing.assert_allclose(mp.jit(total)(3, xs), np.sum((2 * xs) ** 3))
    np.testing.assert_allclose(mp.jit(mp.grad(total, argnums=1))(2, xs), 8 * xs)


def test_a_number_that_is_captured():
    slope = mp.jit(lambda x: mp.grad(lambda y: grown(DEPTH, y))(x))
    assert slope(1.5) == 12.0


def test_numbers_that_nothing_settles_are_refused():
    slope = mp.jit(lambda n, x: mp.grad(grown, argnums=1)(n, x))
    with pytest.raises(UnsupportedError, match="can't be translated"):
        slope(65, 1.5)  # more iterations than are written out
    with pytest.raises(UnsupportedError, match="only known when it runs"):
        mp.jit(lambda n, x: mp.grad(along, argnums=1)(n[0], x))(np.array([1]), 1.5)
