"""Products of a matrix and a vector that are loops: what is computed of a matrix for one alone is never stored."""

import numpy as np
import pytest

import metaphrase as mp

random = np.random.default_rng(12)


def kernel_sums(x, y, v):
    return np.exp(-0.5 * (x[:, None] - y[None]) ** 2) @ v


def step(x, w, y):
    return w - 0.01 * x.T @ (x @ w - y) / len(x)


def from_the_left(x, w, y):
    return y @ np.tanh(x) * w


def of_both_sides(x, w, y):
    """The matrix has two readers, which share what is computed of it."""
    s = np.tanh(x)
    return s @ w, y @ s


def of_a_stack(x, w, y):
    return np.tanh(np.stack([x, 2 * x])) @ w


def of_vectors(x, w, y):
    return (2 * w) @ np.sin(w)


def given(f, n, m):
    if f is kernel_sums:
        return random.normal(size=n), random.normal(size=m), random.normal(size=m)
    return random.normal(size=(n, m)), random.normal(size=m), random.normal(size=n)


@pytest.mark.turns(3)
@pytest.mark.parametrize("f", [kernel_sums, step, from_the_left, of_both_sides, of_a_stack, of_vectors])
def test_values_and_derivatives(f):
    jitted = mp.jit(f)
    for n, m in ((1, 1), (3, 40), (40, 3), (70, 600), (900, 20)):
        arguments = given(f, n, m)
        results = [r if isinstance(r, tuple) else (r,) for r in (jitted(*arguments), f(*arguments))]
        for got, want in zip(*results, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)

    def total(a, b, c):
        results = f(a, b, c)
        return sum((r * r).sum() for r in (results if isinstance(results, tuple) else (results,)))

    arguments = given(f, 5, 4)
    direction = random.normal(size=arguments[0].shape)
    slope, h = (mp.grad(total)(*arguments) * direction).sum(), 1e-6
    moved = [total(arguments[0] + s * h * direction, *arguments[1:]) for s in (1, -1)]
    assert slope == pytest.approx((moved[0] - moved[1]) / (2 * h), rel=1e-6, abs=1e-6)


def test_no_matrix_is_stored():
    for f, types in (
        (kernel_sums, ("f64[3000]", "f64[2000]", "f64[2000]")),
        (step, ("f64[3000, 20]", "f64[20]", "f64[3000]")),
    ):
        text = mp.source(f, *types, stage="loops")
        assert "empty((3000, " not in text and "empty((20, " not in text, text
    text = mp.source(of_both_sides, "f64[3000, 20]", "f64[20]", "f64[3000]", stage="loops")
    assert text.count("tanh(") == 1, text
