"""Code brought from JAX: what `x.at[...]`, gradients of complex numbers and JAX's options give.

In: calls as JAX's documentation writes them. Out: the numbers that JAX gives.
"""
from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import DTypeError

X = np.arange(6.0).reshape(2, 3)
TWICE = np.array([0, 0, 1])


def at(change, *args):
    """What `change` gives, natively and as NumPy source; x itself stays."""
    given = X.copy()
    first = mp.jit(change)(given, *args)
    second = mp.vmap(change)(given[None], *(np.asarray(a)[None] for a in args))[0]
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(first, second)
    return first


def test_updates_give_a_new_array_and_count_every_naming_of_a_place():
    np.testing.assert_array_equal(at(lambda x: x.at[0].set(9.0)), [[9, 9, 9], [3, 4, 5]])
    np.testing.assert_array_equal(at(lambda x, i: x.at[i, 1].add(1.0), TWICE), [[0, 3, 2], [3, 5, 5]])
    np.testing.assert_array_equal(at(lambda x, i: x.at[i, 1].subtract(1.0), TWICE), [[0, -1, 2], [3, 3, 5]])
    np.testing.assert_array_equal(at(lambda x, i: x.at[i, 1].multiply(3.0), TWICE), [[0, 9, 2], [3, 12, 5]])
    np.testing.assert_array_equal(at(lambda x, i: x.at[i, 2].divide(2.0), TWICE), [[0, 1, 0.5], [3, 4, 2.5]])
    np.testing.assert_array_equal(at(lambda x, i: x.at[i, 2].power(2.0), TWICE), [[0, 1, 16], [3, 4, 25]])
    np.testing.assert_array_equal(
        at(lambda x, i: x.at[0, i].max(np.array([3.0, 2.0, 0.5])), TWICE), [[3, 1, 2], [3, 4, 5]]
    )
    np.testing.assert_array_equal(at(lambda x: x.at[1, ::2].min(4.0)), [[0, 1, 2], [3, 4, 4]])
    squares = at(lambda x, i: x.at[i].apply(np.square), TWICE)
    np.testing.assert_array_equal(squares, [[0, 1, 16], [9, 16, 25]])


def test_a_division_of_integers_gives_floats():
    made = mp.jit(lambda x: x.at[0].divide(2))(np.array([3, 4]))
    assert made.dtype == float and made.tolist() == [1.5, 4.0]


def test_modes():
    far = np.array([1, 5, -9])
    np.testing.assert_array_equal(at(lambda x, i: x.at[0, i].get(mode="fill"), far), [1, np.nan, np.nan])
    np.testing.assert_array_equal(at(lambda x, i: x.at[0, i].get(mode="fill", fill_value=7), far), [1, 7, 7])
    np.testing.assert_array_equal(at(lambda x, i: x.at[:, i].get(mode="clip"), far), X[:, [1, 2, 0]])
    np.testing.assert_array_equal(at(lambda x, i: x.at[:, i].get(mode="wrap"), far), X[:, [1, 2, 0]])
    dropped = at(lambda x, i: x.at[0, i].set(9.0, mode="drop"), far)
    np.testing.assert_array_equal(dropped, [[0, 9, 2], [3, 4, 5]])
    clipped = at(lambda x, i: x.at[0, i].add(1.0, mode="clip"), far)
    np.testing.assert_array_equal(clipped, [[1, 2, 3], [3, 4, 5]])
    np.testing.assert_array_equal(at(lambda x, i: x.at[i].get(mode="fill", fill_value=0.0), 4), np.zeros(3))
    np.testing.assert_array_equal(at(lambda x, i: x.at[i].set(0.0, mode="drop"), 4), X)
    with pytest.raises(IndexError):
        at(lambda x, i: x.at[i].get(), 4)
    with pytest.raises(ValueError, match="the modes are"):
        at(lambda x, i: x.at[i].get(mode="wide"), 0)


def test_what_fills_has_the_dtype():
    integers = np.arange(3)
    assert mp.jit(lambda x: x.at[9].get(mode="fill"))(integers) == np.iinfo(np.int64).min
    assert mp.jit(lambda x: x.at[9].get(mode="fill"))(integers.astype(np.uint8)) == 255
    assert mp.jit(lambda x: x.at[9].get(mode="fill"))(integers > 0)


def test_updates_have_derivatives():
    x, far = np.array([1.0, 2.0, 3.0]), np.array([0, 0, 5])
    gradient = mp.grad(lambda x: (x.at[far].multiply(3.0, mode="drop") ** 2).sum())(x)
    np.testing.assert_allclose(gradient, [162, 4, 6])
    gradient = mp.grad(lambda x: x.at[far].get(mode="fill", fill_value=0.0).sum())(x)
    np.testing.assert_allclose(gradient, [2, 0, 0])


def test_gradients_with_respect_to_complex_numbers():
    assert mp.grad(lambda z: abs(z) ** 2)(3 + 4j) == pytest.approx(6 - 8j)
    value, gradient = mp.jit(mp.value_and_grad(lambda z: (z * z.conj()).real))(3 + 4j)
    assert value == pytest.approx(25) and gradient == pytest.approx(6 - 8j)
    jacobian = mp.jacrev(lambda z: np.real(z * z))(np.array([1 + 2j, 3.0]))
    np.testing.assert_allclose(jacobian, np.diag([2 + 4j, 6]))
    with pytest.raises(DTypeError, match="which is complex"):
        mp.jacfwd(lambda z: np.real(z * z))(1 + 2j)
    for transform in (mp.grad, mp.jacrev):
        with pytest.raises(DTypeError, match="returns c128"):
            transform(lambda x: x * 1j)(2.0)
