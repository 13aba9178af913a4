"""Which loops are one: what an elementary function is called for is not computed in rounds around short loops."""

import numpy as np
import pytest

import metaphrase as mp

random = np.random.default_rng(9)


def spread(x):
    return np.sin(x)[:, None] * np.arange(9.0) + x[:, None]


def columns(x):
    y = np.zeros((len(x), 9))
    for j in range(9):
        y[:, j] = np.exp(x) * j + x
    return y


def summed(x):
    return (np.cos(x)[:, None] * np.arange(5.0)).sum(1)


def wide(x):
    """Beside a long row one call is nothing."""
    return np.sin(x)[:, None] * np.arange(500.0)


def logarithms(x):
    """What follows from a row is computed with it."""
    rows = x[:, None] * np.arange(1.0, 6.0)
    return rows - np.log(np.exp(rows).sum(1, keepdims=True))


@pytest.mark.turns(3)
@pytest.mark.parametrize("f", [spread, columns, summed, wide, logarithms])
def test_values(f):
    jitted = mp.jit(f)
    for n in (0, 1, 5, 2000):
        x = random.normal(size=n)
        np.testing.assert_allclose(jitted(x), f(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "f, arrays", [(spread, 2), (columns, 2), (summed, 1), (wide, 1), (logarithms, 1)], ids=lambda x: str(x)[:20]
)
def test_arrays(f, arrays):
    """How many of the whole length there are, the result among them."""
    text = mp.source(f, "f64[3000]", stage="loops")
    assert text.count("= empty((3000,") == arrays, text


def test_places_are_worked_out_where_they_are_used():
    """A loop that stands before what another one has to follow may as well stand behind it."""

    def counted(v, idx):
        out = np.zeros(1000)
        np.add.at(out, idx, v)
        return out

    text = mp.source(counted, "f64[50000]", "i64[50000]", stage="loops")
    assert "= empty((50000,)" not in text, text
    v, idx = random.normal(size=500), random.integers(-1000, 1000, size=500)
    np.testing.assert_allclose(mp.jit(counted)(v, idx), counted(v, idx), rtol=1e-12)
