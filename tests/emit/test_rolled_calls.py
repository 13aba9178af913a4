"""Many calls of one function in a row are a loop in Cython: what it gives, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp

WIDTH, ROWS = 12, 8


def layer(x, w, b, g):
    h = np.tanh(x @ w + b)
    mean = h.mean(axis=-1, keepdims=True)
    spread = ((h - mean) ** 2).mean(axis=-1, keepdims=True)
    return x + g * (h - mean) / np.sqrt(spread + 1e-5)


def network(x, layers):
    for w, b, g in layers:
        x = layer(x, w, b, g)
    return (x * x).mean()


def stored(x, layers, rows):
    """Results of some calls are those of the program, or lie in an argument."""
    states = []
    for w, b, g in layers:
        x = layer(x, w, b, g)
        states.append(x)
    rows[0] = x.sum()
    return states


def arguments(count: int) -> tuple:
    random = np.random.default_rng(count)
    shapes = (WIDTH, WIDTH), WIDTH, WIDTH
    return random.normal(size=(ROWS, WIDTH)), [tuple(random.normal(size=s) / 4 for s in shapes) for _ in range(count)]


def loops(function, *args) -> int:
    text = mp.source(function, *args, stage="cython")
    return text.count("    for mp_call in range(")


def test_many_calls_are_a_loop_and_few_are_not():
    assert loops(network, *arguments(24)) == 1 and loops(mp.grad(network, argnums=(0, 1)), *arguments(24)) == 2
    assert loops(network, *arguments(5)) == 0


@pytest.mark.parametrize("count", [11, 24])
def test_values_and_gradients(count):
    x, layers = arguments(count)
    value, (x_bar, layer_bars) = mp.jit(mp.value_and_grad(network, argnums=(0, 1)))(x, layers)
    assert value == pytest.approx(network(x, layers), rel=1e-13)
    step = 1e-6
    for array, bar in [
        (x, x_bar),
        *((layers[k][p], layer_bars[k][p]) for k in (0, count // 2, count - 1) for p in range(3)),
    ]:
        place = tuple(n // 2 for n in array.shape)
        kept, around = array[place], []
        for moved in (kept + step, kept - step):
            array[place] = moved
            around.append(network(x, layers))
        array[place] = kept
        assert bar[place] == pytest.approx((around[0] - around[1]) / (2 * step), rel=1e-5, abs=1e-9)


def test_results_and_arguments_are_among_the_places():
    x, layers = arguments(20)
    mine, theirs = np.zeros(2), np.zeros(2)
    compiled = mp.jit(stored)
    for got, want in zip(compiled(x, layers, mine), stored(x, layers, theirs), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    assert mine == pytest.approx(theirs) and loops(stored, x, layers, mine) == 1


def test_lengths_of_the_run():
    """Where temporaries have no offsets that are known, calls stand one by one."""
    x, layers = arguments(12)
    compiled = mp.jit(network)
    for rows in (3, 5, 6):
        assert compiled(x[:rows], layers) == pytest.approx(network(x[:rows], layers), rel=1e-12)
