"""Loops that run again, whose steps have branches that make the known state and its tangent at once.

In: a loop with two branches, one behind the other, and its checkpointed twin. Out: the same gradients.
"""

import numpy as np
import pytest

import metaphrase as mp


def branching(w, n):
    d = w[0].copy()
    k = 0
    while k < n and np.sum(d) < 9.0:
        if np.sum(d) > 0.2:
            d[k % 4] = np.cos(w[0, 1] * d[0])
        if w[0, 1] > 0.0:
            d[1:] += 0.1 * np.sin(d)[:3]
        else:
            d[1:] += 0.1 * np.where(d > 0, d, 0.5)[:3]
        k += 1
    return np.sum(d * d)


@pytest.mark.parametrize("seed", [0, 3])
def test_gradients_of_branches_that_were_joined(seed):
    w = np.random.default_rng(seed).standard_normal((3, 4))
    want = mp.grad(branching)(w, 4)
    again = mp.loop_checkpoint(branching, slots=2)
    np.testing.assert_allclose(mp.grad(again)(w, 4), want, rtol=1e-12)
    np.testing.assert_allclose(mp.vmap(mp.grad(again), (0, None))(np.stack([w, w]), 4)[1], want, rtol=1e-12)
    with mp.config(residual_limit=64):
        np.testing.assert_allclose(mp.grad(branching)(w, 4), want, rtol=1e-12)
