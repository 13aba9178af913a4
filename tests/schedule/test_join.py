"""Lanes with branches, and what stands between them, are one loop; where lanes read one another they stay apart."""

import re

import numpy as np
import pytest

import metaphrase as mp


def turned(r, p):
    square = r @ r
    if square == 0.0:
        return p + np.cross(r, p)
    angle = np.sqrt(square)
    axis = r / angle
    return np.cos(angle) * p + np.sin(angle) * np.cross(axis, p) + (1.0 - np.cos(angle)) * (axis @ p) * axis


def projected(r, p):
    x, y, z = turned(r, p)
    return np.array([x / z, y / z])


def blocks(r, p):
    return mp.vmap(mp.jacrev(projected, argnums=(0, 1)))(r, p)


def bent(p):
    return p * 0.5 if p[0] > 0.0 else p[::-1] * p


def behind(r, p):
    return mp.vmap(bent)(mp.vmap(turned)(r, p) * 2.0)


def backwards(r, p):
    return mp.vmap(bent)(mp.vmap(turned)(r, p)[::-1])


def called(r, p):
    return mp.vmap(bent)(np.exp(mp.vmap(turned)(r, p)))


def loops(function, *args):
    """How many loops over the lanes the native program has, the functions that share them included."""
    text = mp.source(function, *args, stage="cython")
    return len(re.findall(rf"^    for \w+ in range\(({len(args[0])}|count\w*)\):", text, re.MULTILINE))


def lanes(size):
    random = np.random.default_rng(size)
    r, p = random.standard_normal((size, 3)), random.standard_normal((size, 3)) + (0.0, 0.0, 4.0)
    r[size // 2] = 0.0
    return r, p


def by_differences(r, p):
    found = []
    for k in (0, 1):
        columns = []
        for j in range(3):
            above, below = ([x.copy() for x in (r, p)] for _ in range(2))
            above[k][:, j] += 1e-6
            below[k][:, j] -= 1e-6
            ends = [np.array([projected(a, b) for a, b in zip(*rows)]) for rows in (above, below)]
            columns.append((ends[0] - ends[1]) / 2e-6)
        found.append(np.stack(columns, axis=2))
    return found


@pytest.mark.parametrize("size", [1, 9])
def test_derivatives(size):
    for found, expected in zip(mp.jit(blocks)(*lanes(size)), by_differences(*lanes(size))):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "function, between",
    [(behind, lambda p: p * 2.0), (backwards, lambda p: p[::-1]), (called, np.exp)],
    ids=["behind", "backwards", "called"],
)
def test_values(function, between):
    r, p = lanes(9)
    first = np.array([turned(a, b) for a, b in zip(r, p)])
    expected = np.array([bent(row) for row in between(first)])
    np.testing.assert_allclose(mp.jit(function)(r, p), expected, rtol=1e-12, atol=1e-12)


def test_a_derivative_of_lanes_is_one_loop():
    r, p = lanes(2000)
    assert loops(blocks, r, p) == 1


def test_lanes_that_read_others_or_call_functions_between_stay_apart():
    r, p = lanes(2000)
    assert loops(behind, r, p) == 1
    assert loops(backwards, r, p) > 1
    assert loops(called, r, p) > 1
