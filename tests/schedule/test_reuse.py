"""An array that is made of one that nobody reads any more lies where that one does; all others keep their own place."""

import numpy as np
import pytest
from thread_counts import thread_counts

import metaphrase as mp

random = np.random.default_rng(11)


def softmax(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def standardised(x):
    """Three arrays in a row, each of which is needed as a whole before the next one."""
    centred = x - x.mean()
    scaled = centred / np.sqrt((centred * centred).sum() + 1.0)
    return scaled - scaled.max()


def in_rounds(x):
    total = 0.0
    for _ in range(3):
        e = np.exp(x * 0.1 - x.max())
        x = x + e / e.sum()
        total += x.sum()
    return x, total


def of_two_dims(x):
    y = x.reshape(2, -1)
    e = np.exp(y)
    return e / e.sum()


def read_later(x):
    e = np.exp(x)
    y = e / e.sum()
    return y, (e * y.sum()).max()


def shifted(x):
    """Elements of other places are read: they may have been overwritten."""
    e = np.exp(x)
    return e[::-1] * e.sum() + e


def turned(x):
    y = x.reshape(2, -1) if x.size % 2 == 0 else np.outer(x, x)
    e = np.exp(y @ y.T)
    return e.T / e.sum()


def stored_twice(x):
    e = np.exp(x)
    y = e / e.sum()
    y[1:] += e[:-1]
    return y


def of_another_type(x):
    e = np.exp(x)
    return (e / e.sum()).astype(np.float32)


def in_a_branch(x):
    e = np.exp(x)
    if e.sum() > 5:
        y = e / e.sum()
    else:
        y = e + 1.0
    return y * y.max()


def filled(x):
    """Where the result is not made as a whole."""
    e = np.cos(x)
    y = np.zeros_like(x)
    if e.sum() > 0:
        y[1:] = e[1:] / e.sum()
    return y


ALL = (
    softmax,
    standardised,
    in_rounds,
    of_two_dims,
    read_later,
    shifted,
    turned,
    stored_twice,
    of_another_type,
    in_a_branch,
    filled,
)


@pytest.mark.turns(4)
@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_values(f):
    jitted = mp.jit(f)
    for n in (2, 4, 40, 30_000) if f is not turned else (2, 4, 40):
        x = random.normal(size=n) / 3
        kept = x.copy()
        want = f(x)
        for _ in thread_counts(1, 2):
            got = jitted(x)
            for g, w in zip(got if isinstance(want, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
                np.testing.assert_allclose(g, w, rtol=1e-11, atol=1e-12)
        np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize(
    "f, arrays", [(softmax, 1), (standardised, 1), (in_rounds, 3), (read_later, 2), (shifted, 2), (of_another_type, 2)]
)
def test_arrays(f, arrays):
    """How many of the whole length there are, the result among them."""
    text = mp.source(f, "f64[30000]", stage="loops")
    assert text.count("= empty((30000,)") == arrays, text
