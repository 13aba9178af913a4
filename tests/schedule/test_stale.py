"""Arrays that a loop makes shorter change places with a second storage; what else reads the first keeps its rows."""

import numpy as np
import pytest
from thread_counts import thread_counts

import metaphrase as mp

random = np.random.default_rng(11)


def escape(c, limit):
    at = np.arange(c.size)
    z = np.zeros_like(c)
    count = np.zeros(c.size, dtype=np.int64)
    for step in range(limit):
        z = z * z + c
        gone = z.real**2 + z.imag**2 > 4.0
        count[at[gone]] = step + 1
        at, z, c = at[~gone], z[~gone], c[~gone]
    return count


def rows_that_stay(x, n):
    for k in range(n):
        x = x[x[:, 0] > k]
        x = x[::-1] * 1.0
    return x


def until_few(x, least):
    rounds = 0
    while len(x) > least:
        x = x[x > np.mean(x)]
        rounds += 1
    return x, rounds


def first_rows_by_hand(x, n):
    """The user's own number of rows, whose array is read whole behind the loop."""
    count = len(x)
    for k in range(n):
        chosen = x[:count][x[:count] > k]
        count = len(chosen)
        x[:count] = chosen
    return x


def old_rows(x, n):
    """What lies behind the rows is read in the loop."""
    count, total = len(x), 0.0
    for k in range(n):
        chosen = x[:count][x[:count] > k]
        count = len(chosen)
        x[:count] = chosen
        total += x[-1]
    return total, x[:count]


FUNCTIONS = [escape, rows_that_stay, until_few, first_rows_by_hand, old_rows]


def arguments(function, size):
    if function is escape:
        return random.uniform(-2, 2, size) + 1j * random.uniform(-1, 1, size), 20
    x = random.uniform(0, 9, (size, 3) if function is rows_that_stay else size)
    return (x, 5)


@pytest.mark.turns(4)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [6, 100, 20_000])
def test_values(function, size):
    args = arguments(function, size)
    want = function(*(np.copy(a) if isinstance(a, np.ndarray) else a for a in args))
    jitted = mp.jit(function)
    for _ in thread_counts(1, 3):
        got = jitted(*(np.copy(a) if isinstance(a, np.ndarray) else a for a in args))
        for a, b in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_storages_change_places(function):
    types = {escape: ("c128[n]", "i64"), rows_that_stay: ("f64[n,3]", "i64")}.get(function, ("f64[n]", "i64"))
    text = mp.source(function, *types, stage="loops")
    changes = [
        line for line in text.splitlines() if "_1, " in line and line.count(" = ") == 1 and line.count(", ") == 2
    ]
    assert bool(changes) == (function in FUNCTIONS[:3]), text
