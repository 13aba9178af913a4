"""Containers whose classes compute with their leaves when they are made, under every transformation.

In: a registered class that turns what it is given into arrays, a dataclass with a `__post_init__`. Out: the
numbers that the function gives by itself; the caller's object stays as it was.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import lax, tree


class Pair:
    def __init__(self, a: Any, b: Any):
        self.a, self.b = np.asarray(a), np.asarray(b)


mp.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))


@mp.tree_util.register_dataclass
@dataclasses.dataclass
class Model:
    weights: Any
    scale: Any = 1.0

    def __post_init__(self):
        self.weights = np.asarray(self.weights) * 1.0


def doubled(pair):
    return Pair(pair.a * 2, pair.b + 1)


@pytest.mark.parametrize("transform", [mp.jit, lambda f: f, lambda f: lambda p: mp.vjp(f, p)[0]])
def test_a_class_that_makes_arrays(transform):
    given = Pair(np.ones(2), 3.0)
    made = transform(doubled)(given)
    np.testing.assert_array_equal(made.a, [2, 2])
    assert made.b == 4
    np.testing.assert_array_equal(given.a, [1, 1])
    assert given.b == 3


def test_transformations_of_such_a_class():
    pair = Pair(np.arange(3.0), 2.0)
    gradient = mp.jit(mp.grad(lambda p: (p.a**2).sum() * p.b))(pair)
    np.testing.assert_array_equal(gradient.a, [0, 4, 8])
    assert gradient.b == 5
    lanes = mp.vmap(doubled)(Pair(np.ones((4, 2)), np.arange(4.0)))
    np.testing.assert_array_equal(lanes.b, [1, 2, 3, 4])
    mapped = mp.jit(lambda p: tree.map(lambda x: x * 2, p))(pair)
    np.testing.assert_array_equal(mapped.a, [0, 2, 4])
    chosen = mp.jit(lambda x, p: lax.cond(x > 1, doubled, lambda q: q, p))(2.0, pair)
    np.testing.assert_array_equal(chosen.a, [0, 2, 4])

    def step(carry, x):
        return Pair(carry.a + x, carry.b), carry.b * x

    last, rows = mp.jit(lambda p: lax.scan(step, p, np.arange(3.0)))(pair)
    np.testing.assert_array_equal(last.a, [3, 4, 5])
    np.testing.assert_array_equal(rows, [0, 2, 4])


def test_a_dataclass_that_computes_after_it_is_made():
    model = Model(np.arange(3.0), 2.0)
    step = mp.jit(lambda m, x: Model(m.weights + x, m.scale))
    np.testing.assert_array_equal(step(model, 1.0).weights, [1, 2, 3])
    np.testing.assert_array_equal(model.weights, [0, 1, 2])
    gradient = mp.grad(lambda m: (m.weights * m.scale).sum())(model)
    np.testing.assert_array_equal(gradient.weights, [2, 2, 2])
    assert gradient.scale == 3
