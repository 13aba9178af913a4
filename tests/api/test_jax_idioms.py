"""Code brought from JAX: what `x.at[...]`, gradients of complex numbers and JAX's options give.

In: calls as JAX's documentation writes them. Out: the numbers that JAX gives.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import lax
from metaphrase.source import DTypeError, SourceError, UnsupportedError

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
    number = mp.jit(lambda x: x.at[9].get(mode="fill"))(integers.astype(np.float32))
    assert type(number) is np.float32 and np.isnan(number)  # a scalar, as x[9] would be


def test_updates_have_derivatives():
    x, far = np.array([1.0, 2.0, 3.0]), np.array([0, 0, 5])
    gradient = mp.grad(lambda x: (x.at[far].multiply(3.0, mode="drop") ** 2).sum())(x)
    np.testing.assert_allclose(gradient, [162, 4, 6])
    gradient = mp.grad(lambda x: x.at[far].get(mode="fill", fill_value=0.0).sum())(x)
    np.testing.assert_allclose(gradient, [2, 0, 0])


def test_gradients_with_respect_to_complex_numbers():
    assert mp.grad(lambda z: abs(z) ** 2)(3 + 4j) == pytest.approx(6 - 8j)
    value, gradient = mp.jit(mp.value_and_grad(lambda z: (z * z.conjugate()).real))(3 + 4j)
    assert value == pytest.approx(25) and gradient == pytest.approx(6 - 8j)
    jacobian = mp.jacrev(lambda z: np.real(z * z))(np.array([1 + 2j, 3.0]))
    np.testing.assert_allclose(jacobian, np.diag([2 + 4j, 6]))
    with pytest.raises(DTypeError, match="which is complex"):
        mp.jacfwd(lambda z: np.real(z * z))(1 + 2j)
    for transform in (mp.grad, mp.jacrev):
        with pytest.raises(DTypeError, match="returns c128"):
            transform(lambda x: x * 1j)(2.0)


def both(function, *args):
    """What `function` gives at once; natively it must give the same."""
    first, second = function(*args), mp.jit(function)(*args)
    for a, b in zip(mp.tree.leaves(first), mp.tree.leaves(second), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-12)
    return first


def test_integers_are_divided_towards_zero_in_lax():
    x, y = np.array([7, -7, 7, -7, 5, -8]), np.array([2, 2, -2, -2, 0, 4])
    np.testing.assert_array_equal(both(lax.div, x, y), [3, -3, -3, 3, -1, -2])
    np.testing.assert_array_equal(both(lax.rem, x, y), [1, -1, 1, -1, 5, 0])
    np.testing.assert_array_equal(both(lax.div, np.uint8([7, 8]), np.uint8([2, 0])), [3, 255])
    np.testing.assert_allclose(both(lax.div, x / 2, y + 0.5), (x / 2) / (y + 0.5))


def test_lax_rounds_halves_away_from_zero():
    x = np.array([-2.5, -0.5, 0.5, 1.5, 2.4, 2.6])
    np.testing.assert_array_equal(both(lax.round, x), [-3, -1, 1, 2, 2, 3])
    even = lax.RoundingMethod.TO_NEAREST_EVEN
    np.testing.assert_array_equal(both(lambda x: lax.round(x, even), x), [-2, 0, 0, 2, 2, 3])


def test_windows_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="does not fit"):
        lax.dynamic_slice(np.arange(5), (0,), (7,))
    with pytest.raises(TypeError, match="does not fit"):
        mp.jit(lambda x: lax.dynamic_update_slice(x, np.arange(7), (0,)))(np.arange(5))


def test_several_arrays_are_sorted_by_their_keys():
    first, second, third = np.array([2, 1, 2, 1]), np.array([1, 5, 0, 4]), np.arange(4.0)
    one = both(lambda *arrays: lax.sort(arrays), first, second, third)
    two = both(lambda *arrays: lax.sort(arrays, num_keys=2), first, second, third)
    assert [a.tolist() for a in one] == [[1, 1, 2, 2], [5, 4, 1, 0], [1, 3, 0, 2]]
    assert [a.tolist() for a in two] == [[1, 1, 2, 2], [4, 5, 0, 1], [3, 1, 2, 0]]


def test_more_of_lax():
    x = np.array([0.5, 1.0, -2.0])
    np.testing.assert_allclose(both(lax.cumlogsumexp, x), np.log(np.cumsum(np.exp(x))))
    np.testing.assert_array_equal(both(lax.complex, x, x), x + 1j * x)
    assert both(lax.complex, np.float32(1), np.float32(2)).dtype == np.complex64
    np.testing.assert_array_equal(both(lax.population_count, np.array([0, 7, -1])), [0, 3, 64])
    assert [part.tolist() for part in both(lambda x: lax.split(x, (1, 2)), x)] == [[0.5], [1, -2]]
    assert lax.collapse(np.ones((2, 3, 4)), 0, 2).shape == (6, 4)
    assert both(lambda x: lax.reduce_or(x, (0,)), np.array([1, 4])) == 5


def test_older_forms_of_cond():
    def named(x):
        return lax.cond(x > 1, lambda x: 2 * x, lambda x: -x, operand=x)

    def two(x):
        return lax.cond(x > 1, x, lambda x: 2 * x, 3 * x, lambda y: -y)

    assert [both(named, x) for x in (2.0, 0.5)] == [4, -0.5]
    assert [both(two, x) for x in (2.0, 0.5)] == [4, -1.5]


def test_a_scan_needs_a_pair():
    for transform in (lambda f: f, mp.jit):
        with pytest.raises(TypeError, match=r"returns the pair \(carry, y\), and this one returns one value"):
            transform(lambda xs: lax.scan(lambda carry, x: carry + x, 0.0, xs))(np.arange(3.0))


def test_a_row_that_is_masked_whole_has_no_softmax():
    x, mask = np.arange(6.0).reshape(2, 3), np.array([[False] * 3, [True, True, False]])
    share = 1 / (1 + np.e)
    shares = both(lambda x: mp.nn.softmax(x, where=mask), x)
    np.testing.assert_allclose(shares, [[0, 0, 0], [share, 1 - share, 0]])
    logarithms = both(lambda x: mp.nn.log_softmax(x, where=mask), x)
    np.testing.assert_allclose(logarithms, [[-np.inf] * 3, [np.log(share), np.log(1 - share), -np.inf]])
    gradient = mp.grad(lambda x: (mp.nn.softmax(x, where=mask) ** 2).sum())(x)
    assert np.isfinite(gradient).all() and not gradient[0].any()


@pytest.mark.parametrize(
    ("module", "name", "said"),
    [
        (lax, "gather", "index with arrays"),
        (mp, "pmap", "vmap"),
        (mp.debug, "visualize_array_sharding", "one device"),
        (mp, "block_until_ready", "leave it out"),
        (mp, "make_jaxpr", "stage='core'"),
        (lax, "conv_general_dilated", "add up"),
        (lax, "scatter_add", "x.at"),
        (mp.random, "binomial", "bernoulli"),
    ],
)
def test_names_that_are_not_here_say_what_to_write(module, name, said):
    with pytest.raises(AttributeError, match=f"has no '{name}': .*{said}"):
        getattr(module, name)


@pytest.mark.parametrize(
    ("module", "name", "said"),
    [
        ("metaphrase", "pmap", "vmap"),
        ("metaphrase", "make_jaxpr", "metaphrase.source"),
        ("metaphrase.lax", "scatter_add", "x.at"),
        ("metaphrase.random", "binomial", "bernoulli"),
    ],
)
def test_an_import_of_such_a_name_says_it_too(module, name, said):
    with pytest.raises(ImportError, match=f"has no '{name}': .*{said}"):
        exec(f"from {module} import {name}", {})
    assert not hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("options", [{"backend": "tpu"}, {"device": "cpu:1"}, {"device": object()}])
def test_other_devices_are_refused_at_the_users_line(options):
    with pytest.raises(UnsupportedError, match="there is no such device.*\\[backend\\]") as caught:
        mp.jit(np.sin, **options)
    assert caught.value.span.file == __file__
    with pytest.raises(UnsupportedError, match="backend"):
        mp.jit(**options)
    assert mp.jit(np.sin, backend="cpu", device=None)(0.0) == 0


def test_a_compiled_function_may_be_called_without_its_static_arguments():
    power = mp.jit(lambda n, x: x**n, static_argnums=0).lower(3, 2.0).compile()
    assert power(5.0) == power(3, 5.0) == 125
    with pytest.raises(SourceError, match="was compiled for"):
        power(2, 5.0)
    scaled = mp.jit(lambda x, *, n: x * n, static_argnames="n").lower(2.0, n=4).compile()
    assert scaled(5.0) == scaled(5.0, n=4) == 20


def test_shapes_of_whatever_has_a_shape_and_a_dtype():
    class Description:
        def __init__(self, shape, dtype):
            self.shape, self.dtype = shape, np.dtype(dtype)

    out = mp.eval_shape(lambda a, b: np.tanh(a @ b), Description((20, 30), "f4"), Description((30,), "f4"))
    assert (out.shape, out.dtype) == ((20,), np.float32)
