"""Loops around operations on arrays that become axes of them: those whose iterations have nothing to do with one
another, and no others."""

import numpy as np
import pytest
from thread_counts import thread_counts

import metaphrase as mp

random = np.random.default_rng(4)
SHIFTS = np.array([0, 2, -1, 5, -3, 1])
WEIGHTS = np.array([0.5, 2.0, -1.0, 0.25, 3.0, -2.0])


def by_a_table(x, y):
    """Each column is one shift's."""
    out = np.zeros((len(x), 6))
    for k, shift, weight in zip(np.arange(6), SHIFTS, WEIGHTS):
        out[:, k] = weight * x + shift * y
    return out


def rows(x, y):
    out = np.empty((4, len(x)))
    for i in range(4):
        out[i] = x * i + y
    return out


def nested(x, y):
    out = np.zeros((6, len(x), 2))
    for i in range(6):
        for j in range(2):
            out[i, :, j] = WEIGHTS[i] * x - j * y
    return out * 2


def through_an_array(x, y):
    out = np.zeros((6, len(x)))
    for i in range(6):
        t = x * WEIGHTS[i]
        out[i] = t * t + t * y
    return out


def rolled(x, y):
    """What is between two sweeps is needed at other places."""
    f = np.stack([x, y, x * y, x, y, x + y], axis=1)
    for i, s in zip(np.arange(6), SHIFTS):
        f[:, i] = np.roll(f[:, i], s)
        f[:, i] = np.roll(f[:, i], 2 * s) + 1
    return f


def one_after_the_other(x, y):
    """Each iteration reads what the one before it has stored."""
    out = np.zeros((5, len(x)))
    out[0] = x
    for i in range(4):
        out[i + 1] = out[i] * 0.5 + y * i
    return out


def into_one(x, y):
    out = np.zeros(len(x))
    for i in range(6):
        out += x * WEIGHTS[i] + y
    return out


def overwritten(x, y):
    """The last iteration's stays."""
    out = np.zeros(len(x))
    for i in range(6):
        out[:] = x * WEIGHTS[i] + y
    return out


def last_number(x, y):
    """A number of the last iteration is read behind the loop."""
    out, w = np.zeros((6, len(x))), 0.0
    for i in range(6):
        w = WEIGHTS[i] * 2
        out[i] = x * w
    return out * w + y


def counted(x, y):
    """A number that iterations hand on."""
    out, c = np.zeros((6, len(x))), 1.0
    for i in range(6):
        c = c * 1.5 + i
        out[i] = x * c
    return out


def changed_inside(x, y):
    """What a number is read from is stored into."""
    f = np.stack([x, y, x * y, x, y, x + y])
    for i in range(6):
        first = f[i, 0]
        f[i] = f[i] * 0 + first
    return f


def kept_of_all(x, y):
    """An array of each iteration is wanted behind the loop."""
    t, out = np.zeros(len(x)), np.zeros((6, len(x)))
    for i in range(6):
        t = x * WEIGHTS[i]
        out[i] = t + y
    return out + t


def in_rounds(x, y):
    f = np.stack([x, y, x * y, x, y, x + y], axis=1)
    for step in range(3):
        g = np.zeros_like(f)
        for i, w in zip(np.arange(6), WEIGHTS):
            g[:, i] = w * f.sum(1) + step
        f = 0.5 * (f + g)
    return f


def filled_in_part(x, y):
    """The rows of an earlier round that this one leaves."""
    g, total = np.zeros((4, len(x))), np.zeros((4, len(x)))
    for step in range(3):
        for i in range(2):
            g[i + step % 2] = x * i + step
        total += g
    return total


ALL = (
    by_a_table,
    rows,
    nested,
    through_an_array,
    rolled,
    one_after_the_other,
    into_one,
    overwritten,
    last_number,
    counted,
    changed_inside,
    kept_of_all,
    in_rounds,
    filled_in_part,
)


@pytest.mark.turns(4)
@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_values(f):
    jitted = mp.jit(f)
    for n in (1, 2, 7, 3000):
        x, y = random.normal(size=(2, n))
        want = f(x, y)
        for _ in thread_counts(1, 2):
            np.testing.assert_allclose(jitted(x, y), want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "f", [by_a_table, nested, rolled, changed_inside, kept_of_all, in_rounds], ids=lambda f: f.__name__
)
def test_derivatives(f):
    x, y = random.normal(size=(2, 4))
    weights = random.normal(size=f(x, y).shape)

    def weighted(x):
        return (f(x, y) * weights).sum()

    slope, step = mp.grad(weighted)(x), 1e-6
    for k in range(4):
        moved = step * (np.arange(4) == k)
        assert slope[k] == pytest.approx((weighted(x + moved) - weighted(x - moved)) / (2 * step), rel=1e-6, abs=1e-6)


def test_one_nest_is_left():
    """Neither the zeros nor a loop of their own around the sweep."""
    text = mp.source(by_a_table, "f64[300]", "f64[300]", stage="loops")
    assert text.count("for ") == 2 and text.count("] = ") == 1, text
    text = mp.source(in_rounds, "f64[300]", "f64[300]", stage="loops")
    assert "g = empty" not in text, text


def test_a_gpu_divides_each_of_several_sweeps():
    text = mp.source(rolled, "f64[5000]", "f64[5000]", stage="cuda")
    assert "mp_at < 6;" not in text and " i < 6;" not in text, text
