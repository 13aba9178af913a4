"""Induction variables are made of counters, and sums of cotangents go through products: the answers stay."""

from __future__ import annotations

import re

import numpy as np
import pytest

import metaphrase as mp


def triangle(x, a):
    """`place` goes through a strictly lower triangle, and starts each row where the last one ended."""
    n = len(a)
    place, total = 2, 0.0
    for j in range(n):
        for i in range(j + 1, n):
            total += x[place] * a[i] * a[j]
            place += 1
    return total + place


def strides(x, a):
    k, total = 7, 0.0
    for i in range(len(a)):
        total += x[k] * a[i]
        k += 2
    return total * k


def handed_in(x, a, start=3, by=2):
    def run(first, step):
        total = 0.0
        for i in range(len(a)):
            total += x[first] * a[i] ** 2
            first += step
        return total + first

    return run(start, by)


def downwards(x, a):
    k, total = len(x) - 1, 0.0
    for i in range(len(a)):
        total += x[k] * a[i]
        k -= i
    return total - k


def of_data(x, a):
    """No induction variable: what is added depends on an array."""
    k, total = 0, 0.0
    for i in range(len(a)):
        total += x[k] * a[i]
        k += 2 if a[i] > 0 else 1
    return total + k


@pytest.mark.parametrize("f", [triangle, strides, handed_in, downwards, of_data], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [6, 0])
def test_answers_are_those_of_python(f, n):
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal(6)[:n], rng.standard_normal(40)
    np.testing.assert_allclose(mp.jit(f)(x, a), f(x, a), rtol=1e-12)
    if n:
        gradient = mp.jit(mp.grad(f, 1))(x, a)
        complex_steps = [f(x, a + 1e-30j * unit).imag / 1e-30 for unit in np.eye(n)] if f is not of_data else gradient
        np.testing.assert_allclose(gradient, complex_steps, rtol=1e-12)


@pytest.mark.parametrize("f", [strides, handed_in, downwards], ids=lambda f: f.__name__)
def test_a_derivative_keeps_no_places(f):
    text = mp.source(mp.grad(f, 1), "f64[40]", "f64[6]", stage="transformed")
    assert "i64[" not in text, text


def test_no_loop_carries_a_place():
    """Through a triangle neither; where the steps are data a loop has to."""

    def carried(f):
        text = mp.source(f, "f64[40]", "f64[6]", stage="transformed")
        return re.findall(r"def body.* -> .*i64", text)

    assert carried(triangle) == [] and len(carried(of_data)) == 1


def test_sizes_may_be_symbols():
    f = mp.jit(triangle)
    for n in (3, 5, 8):  # the second call makes the size a symbol
        x, a = np.arange(60.0), np.arange(float(n))
        np.testing.assert_allclose(f(x, a), triangle(x, a), rtol=1e-12)


def centred(mean, x, w):
    return np.sum(np.tanh(np.einsum("kij,nkj->nki", w, x[:, None, :] - mean)) ** 2)


def test_the_gradient_of_a_mean_sums_before_it_multiplies():
    rng = np.random.default_rng(1)
    mean, x, w = rng.standard_normal((3, 4)), rng.standard_normal((50, 4)), rng.standard_normal((3, 4, 4))
    gradient = mp.jit(mp.grad(centred))(mean, x, w)
    steps = np.zeros_like(mean)
    for place in np.ndindex(mean.shape):
        moved = mean.astype(complex)
        moved[place] += 1e-30j
        steps[place] = centred(moved, x, w).imag / 1e-30
    np.testing.assert_allclose(gradient, steps, rtol=1e-11)
    text = mp.source(mp.grad(centred), mean, x, w, stage="transformed")
    products = [line for line in text.splitlines() if "= dot_general(" in line]
    assert [line.split(":")[1].split("=")[0].strip() for line in products] == ["f64[3, 4, 50]", "f64[3, 4]"], products


def test_a_sum_of_the_users_own_stays_behind_the_product():
    text = mp.source(lambda x, w: (x @ w).sum(axis=0), "f64[50, 4]", "f64[4, 3]", stage="transformed")
    assert text.index("dot_general") < text.index("reduce_sum")
