"""Results of run-time size are made where they lie: no copy in the end, and all that may not be one stays as it is."""

import numpy as np
import pytest
from thread_counts import thread_counts

import metaphrase as mp

random = np.random.default_rng(5)


def picked(x):
    return x[x > 0]


def fused(x):
    """Two results and what they are made of in one loop."""
    mask = x > 0
    a, places = x[mask], np.flatnonzero(mask)
    return a, np.sin(a), places, a + places


def twice(x):
    """One array is two results: the second one is a copy."""
    a = x[x > 0]
    return a, a


def read_again(x):
    """A result that others are made of."""
    a = x[x > 0]
    b = a[a > 0.5]
    return a, b, a.sum() + b.sum()


def changed_behind(x):
    """What is stored into later is not what was returned."""
    a = x[x > 0]
    b = a.copy()
    b[: b.shape[0] // 2] = 7.0
    return a, b


def of_a_loop(x):
    """An array that a loop carries is no result until the loop ends."""
    for _ in range(3):
        x = x[x > 0.1]
    return x


def rows(x):
    """Rows that are picked, of an array of two dims."""
    y = x.reshape(-1, 2)
    return y[y[:, 0] > 0]


def in_a_branch(x):
    if x.sum() > 0:
        a = x[x > 0]
    else:
        a = x[x < 0]
    return a


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    "function",
    [picked, fused, twice, read_again, changed_behind, of_a_loop, rows, in_a_branch],
    ids=lambda f: f.__name__,
)
def test_values(function):
    jitted = mp.jit(function)
    for size in (0, 2, 100, 40_000):
        for x in (random.standard_normal(size), np.full(size, -1.0), np.ones(size)):
            want = function(x.copy())
            for _ in thread_counts(1, 3):
                have = jitted(x.copy())
                for a, b in zip(have, want) if isinstance(want, tuple) else ((have, want),):
                    np.testing.assert_allclose(a, b, rtol=1e-12)


def test_results_share_no_memory():
    a, b = mp.jit(twice)(np.ones(1000))
    a[:] = 2.0
    assert (b == 1.0).all()


@pytest.mark.parametrize("function", [picked, fused])
def test_nothing_is_copied(function):
    text = mp.source(function, "f64[n]", stage="loops")
    stores = [line.split("=")[1].strip() for line in text.splitlines() if line.strip().startswith("out")]
    assert not [value for value in stores if value.startswith("t_")]


def test_a_failure_behind_a_result():
    """The result was there already, and nobody sees it."""

    def checked(x):
        a = x[x > 0]
        if a.shape[0] > 3:
            raise ValueError("too many")
        return a

    jitted = mp.jit(checked)
    np.testing.assert_array_equal(jitted(np.array([1.0, -1.0])), [1.0])
    with pytest.raises(ValueError, match="too many"):
        jitted(np.ones(50_000))
    np.testing.assert_array_equal(jitted(np.array([1.0, -1.0, 2.0])), [1.0, 2.0])
