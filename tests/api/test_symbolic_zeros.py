"""Rules that are told which tangents are zero: under every transformation, with each set of arguments.

In: rules that say by a factor which zeros they were told. Out: gradients with these factors.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import lax
from metaphrase.custom_derivatives import CustomVJPPrimal, SymbolicZero
from metaphrase.source import UnsupportedError

X, Y = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])


@mp.custom_jvp
def product(x, y):
    return x * y


def product_jvp(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    if type(x_dot) is SymbolicZero and type(y_dot) is SymbolicZero:
        return x * y, SymbolicZero(np.zeros_like(x))
    if type(y_dot) is SymbolicZero:
        return x * y, 10 * x_dot * y + np.zeros(y_dot.shape, y_dot.dtype)
    if isinstance(x_dot, SymbolicZero):
        return x * y, 100 * x * y_dot
    return x * y, x_dot * y + x * y_dot


product.defjvp(product_jvp, symbolic_zeros=True)


def summed(x, y):
    return np.sum(product(x, y))


def in_a_loop(x, y):
    for _ in range(2):
        x = product(x, y)
    return np.sum(x)


def in_a_branch(x, y):
    return np.sum(product(x, y)) if x[0] > 0 else np.sum(y)


def in_a_scan(x, y):
    return np.sum(lax.scan(lambda c, v: (product(c, v), c), x, np.stack([y, y]))[0])


def test_a_jvp_rule_is_told_which_arguments_a_derivative_reaches():
    np.testing.assert_array_equal(mp.grad(summed)(X, Y), 10 * Y)
    np.testing.assert_array_equal(mp.grad(summed, 1)(X, Y), 100 * X)
    for got, want in zip(mp.grad(summed, (0, 1))(X, Y), (Y, X)):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(mp.grad(lambda x: summed(x, Y))(X), 10 * Y)
    assert mp.jvp(summed, (X, Y), (X, 0 * Y))[1] == np.sum(X * Y)  # zeros that are given are tangents
    np.testing.assert_array_equal(product(X, Y), X * Y)


@pytest.mark.parametrize(
    "transform", [mp.grad, mp.jacfwd, mp.jacrev, lambda f: mp.jit(mp.grad(f)), lambda f: mp.grad(mp.jit(f))]
)
def test_in_every_mode(transform):
    np.testing.assert_array_equal(transform(summed)(X, Y), 10 * Y)


def test_in_loops_branches_and_scans():
    np.testing.assert_array_equal(mp.grad(in_a_loop)(X, Y), 100 * Y**2)
    np.testing.assert_array_equal(mp.grad(in_a_branch)(X, Y), 10 * Y)
    np.testing.assert_array_equal(mp.grad(in_a_scan)(X, Y), 100 * Y**2)
    np.testing.assert_array_equal(mp.grad(in_a_loop, (0, 1))(X, Y)[0], Y**2)


def test_in_lanes_whichever_is_outside():
    np.testing.assert_array_equal(mp.vmap(mp.grad(product))(X, Y), 10 * Y)
    np.testing.assert_array_equal(mp.grad(lambda x, y: np.sum(mp.vmap(product)(x, y)))(X, Y), 10 * Y)
    one = mp.grad(lambda x, y: np.sum(mp.vmap(product, (0, None))(x, y)), 1)(X, 2.0)
    np.testing.assert_array_equal(one, 100 * X.sum())


def test_derivatives_of_derivatives():
    """The first derivative by x says 10; what it computes is differentiated as any code."""
    np.testing.assert_array_equal(mp.jacfwd(mp.grad(summed), 1)(X, Y), np.diag(10 * np.ones(3)))
    np.testing.assert_array_equal(mp.hessian(lambda x: summed(x, x))(X), 2 * np.eye(3))


def test_all_sizes_have_one_program():
    gradient = mp.jit(mp.grad(summed))
    for n in (3, 5, 8):
        np.testing.assert_array_equal(gradient(np.ones(n), np.arange(float(n))), 10 * np.arange(n))


def test_what_a_variant_reads_is_watched():
    @mp.custom_jvp
    def f(x, y):
        return x * y

    def rule(primals, tangents):
        (x, y), (x_dot, y_dot) = primals, tangents
        if type(y_dot) is SymbolicZero:
            return x * y, FACTORS["one"] * x_dot * y
        return x * y, x_dot * y + x * y_dot

    f.defjvp(rule, symbolic_zeros=True)
    gradient = mp.grad(lambda x, y: f(x, y))
    assert gradient(1.0, 2.0) == 6.0
    FACTORS["one"] = 4.0
    assert gradient(1.0, 2.0) == 8.0
    FACTORS["one"] = 3.0


FACTORS = {"one": 3.0}


def test_integers_have_symbolic_zeros():
    @mp.custom_jvp
    def power(x, n):
        return x**n

    @power.defjvp
    def _(primals, tangents):
        raise AssertionError("replaced below")

    def rule(primals, tangents):
        (x, n), (x_dot, n_dot) = primals, tangents
        assert type(n_dot) is SymbolicZero
        return x**n, n * x ** (n - 1) * x_dot

    power.defjvp(rule, symbolic_zeros=True)
    assert mp.grad(power)(3.0, 2) == 6.0


# ---- reverse mode -----------------------------------------------------------------------------------------


@mp.custom_vjp
def two(x, y):
    return np.sin(x) * y, np.cos(y)


def two_forward(x, y):
    assert type(x) is CustomVJPPrimal
    scale = 1.0 if x.perturbed and y.perturbed else 10.0 if x.perturbed else 100.0
    return (np.sin(x.value) * y.value, np.cos(y.value)), (x.value, y.value, scale)


def two_backward(kept, bars):
    x, y, scale = kept
    a, b = bars
    x_bar, y_bar = np.zeros_like(x), np.zeros_like(y)
    if type(a) is not SymbolicZero:
        x_bar, y_bar = a * np.cos(x) * y, a * np.sin(x)
    else:
        scale = 7 * scale
    if type(b) is SymbolicZero:
        return scale * x_bar, 2 * scale * y_bar
    return scale * x_bar, scale * (y_bar - b * np.sin(y))


two.defvjp(two_forward, two_backward, symbolic_zeros=True)


def first(x, y):
    return np.sum(two(x, y)[0])


def second(x, y):
    return np.sum(two(x, y)[1])


def both(x, y):
    a, b = two(x, y)
    return np.sum(a + b)


def test_forward_rules_are_told_what_is_perturbed_and_backward_rules_what_is_zero():
    x_bar, y_bar = np.cos(X) * Y, np.sin(X)
    np.testing.assert_allclose(mp.grad(first)(X, Y), 10 * x_bar)
    np.testing.assert_allclose(mp.grad(first, 1)(X, Y), 200 * y_bar)
    np.testing.assert_allclose(mp.grad(first, (0, 1))(X, Y)[1], 2 * y_bar)
    np.testing.assert_allclose(mp.grad(both, (0, 1))(X, Y)[1], y_bar - np.sin(Y))
    np.testing.assert_allclose(mp.grad(second, (0, 1))(X, Y)[1], -7 * np.sin(Y))
    np.testing.assert_allclose(mp.jit(mp.grad(both))(X, Y), 10 * x_bar)
    np.testing.assert_allclose(mp.vmap(mp.grad(first))(X[:, None], Y[:, None])[:, 0], 10 * x_bar)
    lanes = mp.grad(lambda x, y: np.sum(mp.vmap(two)(x, y)[0]), 1)(X, Y)
    np.testing.assert_allclose(lanes, 200 * y_bar)
    np.testing.assert_array_equal(two(X, Y)[1], np.cos(Y))


def test_a_backward_rule_may_return_a_symbolic_zero():
    f = mp.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x.value * y.value, y.value), lambda y, bar: (bar * y, SymbolicZero(y)), symbolic_zeros=True)
    np.testing.assert_array_equal(mp.grad(lambda x, y: np.sum(f(x, y)), (0, 1))(X, Y), [Y, 0 * Y])


def test_rules_are_pickled_with_what_they_are_told():
    again = pickle.loads(pickle.dumps(product))
    assert again is product and product.symbolic_zeros


def test_a_rule_must_not_capture_more_for_zeros():
    def made(w):
        f = mp.custom_jvp(lambda x, y: x * y)

        def rule(primals, tangents):
            (x, y), (x_dot, y_dot) = primals, tangents
            return x * y, (w if type(y_dot) is SymbolicZero else x_dot) * y

        f.defjvp(rule, symbolic_zeros=True)
        return mp.grad(lambda x, y: np.sum(f(x, y)))(X, Y)

    with pytest.raises(UnsupportedError, match="only where a tangent is a SymbolicZero"):
        made(np.ones(3))
