"""What is overwritten before anyone reads it is not stored; an update of nearly all of an array is made beside it."""

import re

import numpy as np
import pytest

import metaphrase as mp

SIZES = (0, 1, 2, 3, 5, 9, 40)
random = np.random.default_rng(8)


def framed(x):
    y = np.zeros_like(x)
    y[1:-1] = x[:-2] + x[2:]
    return y


def with_ends(x):
    y = x.copy()
    y[1:-1] = x[:-2] * x[2:]
    if len(x) > 2:
        y[0], y[-1] = 2.0, y[1]
    return y


def added(x):
    y = x.copy()
    y[2:-1] += x[:-3] - x[3:]
    return y


def added_to_more(x):
    """What is filled is less than what is added to."""
    y = x * 2
    y[1:3] = 0.0
    y += x
    y[2:-2] = 1.0
    y[1:] += x[1:]
    return y


def added_elsewhere(x):
    """A copy of a part is added to other places of what it was copied from."""
    y = x * 3
    kept = y[1:].copy()
    y[:-1] += kept
    return y


def read_before(x):
    y = x * 2
    s = y.sum()
    y[1:-1] = x[:-2] + s
    return y


def heated(u, rounds):
    for _ in range(rounds):
        v = u.copy()
        v[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u = v
    return u


def settled(u, tolerance):
    change, rounds = 1.0, 0
    while change > tolerance and rounds < 50:
        old = u
        u = u.copy()
        u[1:-1] = 0.5 * (old[:-2] + old[2:])
        change = np.abs(u - old).sum()
        rounds += 1
    return u, rounds


def in_place(u, rounds):
    for _ in range(rounds):
        u[1:-1] = 0.5 * (u[:-2] + u[2:])


def scaled_inside(u, rounds):
    for _ in range(rounds):
        u = u.copy()
        u[1:-1] = u[1:-1] * 0.5 + 1
    return u


ROUNDS = {heated: (2, 3), settled: (1, 1e-3), in_place: (1, 3), scaled_inside: (1, 3)}


FUNCTIONS = [framed, with_ends, added, added_to_more, added_elsewhere, read_before, *ROUNDS]


@pytest.mark.turns(3)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_values(f):
    rank, *rest = ROUNDS.get(f, (1,))
    jitted = mp.jit(f)
    for n in SIZES:
        x = random.normal(size=(n + 1, n)[-rank:])
        if f is added and n < 3:  # NumPy's slices have no common shape there
            continue
        mine, theirs = x.copy(), x.copy()
        got, want = jitted(mine, *rest), f(theirs, *rest)
        for a, b in zip(mp.tree.leaves((got, mine)), mp.tree.leaves((want, theirs)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("f", [framed, added, added_to_more, added_elsewhere, heated], ids=lambda f: f.__name__)
def test_derivatives(f):
    rank, *rest = ROUNDS.get(f, (1,))
    x, weights = (random.normal(size=(7, 8)[-rank:]) for _ in range(2))

    def weighted(x):
        return (f(x, *rest) * weights).sum()

    slope, step = mp.grad(weighted)(x), 1e-6
    for place in np.ndindex(*x.shape):
        moved = np.zeros_like(x)
        moved[place] = step
        assert slope[place] == pytest.approx((weighted(x + moved) - weighted(x - moved)) / (2 * step), abs=1e-6)


def test_a_frame_is_stored_and_not_the_whole():
    text = mp.source(framed, "f64[1000]", stage="cython")
    assert "y[0] = 0.0" in text and "y[999] = 0.0" in text and text.count("for i in range") == 1
    text = mp.source(with_ends, "f64[1000]", stage="cython")
    assert "x_1[0] = 2.0" in text and text.count("for i in range") == 1


def test_an_update_of_nearly_all_is_made_beside_the_array():
    text = mp.source(heated, "f64[400, 300]", "i64", stage="loops")
    body = text[text.index("for i in range(count):") :]
    assert body.index("part_1(u_2, u_3") < body.index("u_2, u_3 = u_3, u_2")  # frame and inside, row by row
    assert len(re.findall(r"u_3\[.*\] = ", text)) == 5
    assert "t[" not in mp.source(
        scaled_inside, "f64[4000]", "i64", stage="cython"
    )  # each element from itself: in place
