"""Collectives over named axes: the corpus against NumPy on whole arrays, values and derivatives in every order, alone and
under other transformations; names, sizes, and what is refused.

In: `corpus.collectives`. The gradient inside of vmap is that of what all lanes give, added up: finite differences of the
whole.
"""

from __future__ import annotations

import numpy as np
import pytest
from corpus.collectives import CORPUS, LANES

import metaphrase as mp
from metaphrase import lax
from metaphrase.source import SourceError

RNG = np.random.default_rng(7)
X = RNG.uniform(-1.5, 1.5, (LANES, 3))
T = RNG.uniform(-1, 1, (LANES, 3))
H = 1e-4
SMOOTH = sorted(name for name, p in CORPUS.items() if p.smooth)
TWICE = sorted(name for name, p in CORPUS.items() if p.smooth > 1)


def mapped(f):
    return mp.vmap(f, axis_name="i")


def weights(f):
    """Numbers that each lane weighs its results with."""
    shape = np.shape(CORPUS[f].whole(X))[1:]
    return np.cos(np.arange(1.0, 1 + np.prod(shape))).reshape(shape)


def total(name):
    """What all lanes give, weighted, of a whole array."""
    whole, w = CORPUS[name].whole, weights(name)
    return lambda A: np.sum(whole(A) * w)


def lane_total(name):
    lane, w = CORPUS[name].lane, weights(name)
    return lambda x: np.sum(lane(x) * w)


def slope(f, A, along):
    """The derivative of f at A along a direction, by a five-point difference."""
    far, near, back, behind = (f(A + k * H * along) for k in (2, 1, -1, -2))
    return (behind - far + 8 * (near - back)) / (12 * H)


def gradient(f, A):
    """The gradient of f at A by differences."""
    found = np.empty_like(A)
    for place in np.ndindex(A.shape):
        unit = np.zeros_like(A)
        unit[place] = 1
        found[place] = slope(f, A, unit)
    return found


def close(got, want, tolerance=1e-7):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CORPUS)
def test_values(name):
    close(mapped(CORPUS[name].lane)(X), CORPUS[name].whole(X), 1e-12)


@pytest.mark.parametrize("name", SMOOTH)
def test_native_values_and_gradients(name):
    values, found = mp.jit(mapped(lambda x: (CORPUS[name].lane(x), mp.grad(lane_total(name))(x))))(X)
    close(values, CORPUS[name].whole(X), 1e-12)
    close(found, gradient(total(name), X))


@pytest.mark.parametrize("name", SMOOTH)
def test_grad_outside(name):
    w = weights(name)
    close(mp.grad(lambda A: np.sum(mapped(CORPUS[name].lane)(A) * w))(X), gradient(total(name), X))


@pytest.mark.parametrize("name", TWICE)
def test_jvp_inside_and_outside(name):
    lane, whole = CORPUS[name].lane, CORPUS[name].whole
    want = slope(whole, X, T)
    close(mapped(lambda x, t: mp.jvp(lane, (x,), (t,))[1])(X, T), want)
    close(mp.jvp(mapped(lane), (X,), (T,))[1], want)


@pytest.mark.parametrize("name", TWICE)
def test_twice(name):
    """grad of grad inside, and jvp outside of grad inside, against differences of the gradient."""
    inner = mp.grad(lane_total(name))
    want = slope(mapped(inner), X, T)
    close(mp.jvp(mapped(inner), (X,), (T,))[1], want, 1e-6)
    close(mapped(lambda x, t: mp.jvp(inner, (x,), (t,))[1])(X, T), want, 1e-6)
    # lanes' second cotangents are all ones, and the Hessian of the total is symmetric
    want = slope(mapped(inner), X, np.ones_like(X))
    close(mapped(mp.grad(lambda x: np.sum(inner(x))))(X), want, 1e-6)


@pytest.mark.parametrize("name", SMOOTH)
def test_under_another_axis(name):
    many = np.stack([X, X[::-1], 0.5 * X])
    got = mp.vmap(mapped(mp.grad(lane_total(name))), in_axes=1, out_axes=1, axis_name="j")(many.transpose(1, 0, 2))
    close(got, np.stack([gradient(total(name), A) for A in many], 1))
