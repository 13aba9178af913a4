"""What keeps the loops of gradients short: temporaries are no streams, small products of a stack stand in the loop that
reads them, and short loops are vectorised."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp


def many_temporaries(x):
    """Thirty values of each element, all of them read twice."""
    values = [np.sin(x)]
    for k in range(30):
        values.append(values[-1] * np.exp(-values[-1]) + k * values[max(0, k - 3)])
    return values[-1] - values[-2]


def products(L, x):
    return (np.einsum("kij,nkj->nki", L, x) ** 2).sum(2)


def grams(x, y):
    return np.einsum("nki,nkj->kij", x, y)


def test_a_long_elementwise_chain_is_one_loop_without_arrays():
    text = mp.source(many_temporaries, "f64[n]", stage="loops")
    assert text.count(" = empty(") == 1, text  # the result
    x = np.linspace(0, 1, 1000)
    np.testing.assert_allclose(mp.jit(many_temporaries)(x), many_temporaries(x), rtol=1e-11)


def test_small_products_that_lie_between_one_another_are_no_library_calls():
    rng = np.random.default_rng(0)
    L, x = rng.standard_normal((7, 9, 9)), rng.standard_normal((300, 7, 9))
    assert "library(" not in mp.source(products, L, x, stage="loops")
    np.testing.assert_allclose(mp.jit(products)(L, x), products(L, x), rtol=1e-12)
    assert "library(" in mp.source(lambda a, b: a @ b, "f64[3000, 9]", "f64[9, 9]", stage="loops")


@pytest.mark.parametrize("k, d", [(7, 9), (3, 40)])
def test_results_in_the_order_of_their_reader(k, d):
    """Of small matrices by a nest, of larger ones by a library that writes between the others."""
    rng = np.random.default_rng(0)
    L, x = rng.standard_normal((k, d, d)), rng.standard_normal((90, k, d))
    y = rng.standard_normal((90, k, d))
    scaled = mp.jit(lambda L, x: np.einsum("kij,nkj->nki", L, x) + 1)
    np.testing.assert_allclose(scaled(L, x), np.einsum("kij,nkj->nki", L, x) + 1, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(mp.jit(grams)(x, y), grams(x, y), rtol=1e-11, atol=1e-12)
    turned = mp.jit(lambda a, b: (a @ b).T * 2)
    np.testing.assert_allclose(turned(x[:, 0], L[0]), (x[:, 0] @ L[0]).T * 2, rtol=1e-12, atol=1e-13)


def test_short_loops_are_vectorised():
    def gates(x, h):
        for t in range(5):
            h = np.tanh(x[t] * h) / (1 + np.exp(-h))
        return h

    rng = np.random.default_rng(0)
    x, h = rng.standard_normal((5, 14)), rng.standard_normal(14)
    assert "mp_simd_apart(" in mp.source(gates, x, h, stage="cython")
    np.testing.assert_allclose(mp.jit(gates)(x, h), gates(x, h), rtol=1e-12)
