"""Rounds that run side by side, each a little behind the one before: Python's numbers to the bit; and which may."""

import copy
import linecache

import numpy as np
import pytest
from random_nests import nest
from thread_counts import thread_counts
from turns import turn

import metaphrase as mp

random = np.random.default_rng(11)
SIZES = ((5, 40), (1, 1), (2, 9), (3, 3), (6, 5), (9, 8), (12, 12), (23, 31), (0, 4))


def smoothed(a, b):
    """Gauss and Seidel's sweep, element by element."""
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            a[i, j] = (a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1] + a[i, j] + a[i, j + 1] + a[i + 1, j]) / 5.0


def smoothed_rows(a, b):
    """The same with vectors for all that does not wait."""
    for i in range(1, a.shape[0] - 1):
        a[i, 1:-1] += a[i - 1, :-2] + a[i - 1, 2:] + a[i, 2:] + a[i + 1, 1:-1]
        for j in range(1, a.shape[1] - 1):
            a[i, j] += a[i, j - 1]
            a[i, j] /= 5.0


def distances(a, b):
    """Of two rows, by dynamic programming with a choice of three."""
    d = np.zeros((a.shape[0] + 1, b.shape[1] + 1))
    for i in range(a.shape[0]):
        x = a[i, 0]
        for j in range(b.shape[1]):
            d[i + 1, j + 1] = abs(x - b[0, j]) + min(d[i, j + 1], d[i + 1, j], d[i, j])
    return d


def edits(a, b):
    d = np.zeros((a.shape[0] + 1, b.shape[1] + 1), dtype=np.int64)
    for i in range(a.shape[0]):
        d[i + 1, 0] = i + 1
        for j in range(b.shape[1]):
            cost = 0 if a[i, 0] > b[0, j] else 1
            d[i + 1, j + 1] = min(d[i, j + 1] + 1, d[i + 1, j] + 1, d[i, j] + cost)
    return d


def sums(a, b):
    """Sums in the order in which they are written."""
    y = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        s, least = 0.0, 9.0
        for j in range(a.shape[1]):
            s += a[i, j] - b[0, j]
            least = min(least, s)
        y[i] = s - least
    return y


def filtered(a, b):
    for i in range(a.shape[0]):
        for j in range(2, a.shape[1]):
            a[i, j] -= (a[i, j - 1] + a[i, j - 2]) / 3.0


def triangle(a, b):
    """A row's end needs all rows before it."""
    for i in range(min(a.shape[0], a.shape[1])):
        for j in range(i):
            s = a[i, j]
            for k in range(j):
                s -= a[i, k] - a[j, k]
            a[i, j] = s / 3.0
        a[i, i] /= 2.0


WAVES = [smoothed, smoothed_rows, distances, edits, sums, filtered, triangle]


def far_ahead(a, b):
    """An element needs what the end of the row before it leaves."""
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = (a[i, j - 1] + a[i - 1, a.shape[1] - j]) / 3.0


def last_needed(a, b):
    """A row needs, before it begins, what is done behind the one before it."""
    s = 0.0
    for i in range(a.shape[0]):
        a[i, 0] += s
        for j in range(1, a.shape[1]):
            a[i, j] = (a[i, j] + a[i, j - 1]) / 3.0
        s = a[i, a.shape[1] - 1]


def handed_on(a, b):
    """What is done behind a row goes where the next row begins."""
    for i in range(a.shape[0] - 1):
        for j in range(1, a.shape[1]):
            a[i, j] = (a[i, j] + a[i, j - 1]) / 3.0
        a[i + 1, 0] = a[i, a.shape[1] - 1]


def same_row(a, b):
    """All rounds work on one row."""
    for _ in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            a[0, j] = (a[0, a.shape[1] - j] + a[0, j - 1]) / 3.0


def shrinking(a, b):
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1] - i):
            a[i, j] = (a[i, j] + a[i, j - 1]) / 3.0


def in_branches(a, b):
    """A branch that is foreseen wrongly stops all rounds: they stay apart."""
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            if a[i - 1, j] > 0.0:
                a[i, j] = (a[i, j] + a[i, j - 1]) / 3.0


OTHERS = [far_ahead, last_needed, handed_on, same_row, shrinking, in_branches]


def same_outcome(function, jitted, args):
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    got, want = jitted(*mine), function(*theirs)
    for x, y in zip((got, *mine), (want, *theirs), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.turns(4)
@pytest.mark.parametrize("function", WAVES + OTHERS, ids=lambda f: f.__name__)
def test_values(function):
    jitted = mp.jit(function)
    for size in SIZES:
        args = random.standard_normal(size), random.standard_normal((1, size[1]))
        if not (function in (handed_on, last_needed) and 0 in size):
            for _ in thread_counts(1, 3):
                same_outcome(function, jitted, args)


@pytest.mark.parametrize("function", WAVES + OTHERS, ids=lambda f: f.__name__)
def test_which_rounds_run_side_by_side(function):
    text = mp.source(function, "f64[n,m]", "f64[1,m]", stage="loops")
    assert ("// (4))):" in text) == (function in WAVES), text


def test_lags():
    """Rounds are two elements behind one another where the row before is needed one element ahead, else one."""
    text = mp.source(smoothed, "f64[30,40]", "f64[1,40]", stage="loops")
    assert "for j in range(3):\n            for k in range(6 - 2*j):" in text
    assert "for j in range(32):" in text  # the 38 elements of a row, less those of the triangle
    text = mp.source(distances, "f64[30,2]", "f64[1,38]", stage="loops")
    assert "for j in range(35):" in text


def test_rows_that_share_memory():
    """Two arguments that are one array: what is known of their places is known of both."""

    def both(a, b):
        for i in range(1, a.shape[0]):
            for j in range(1, a.shape[1]):
                a[i, j] = (a[i, j - 1] + b[i - 1, a.shape[1] - j]) / 3.0

    x = random.standard_normal((9, 20))
    y = x.copy()
    mp.jit(both)(x, x)
    both(y, y)
    np.testing.assert_array_equal(x, y)


def test_gradients():
    x = random.standard_normal((9, 20))
    row = random.standard_normal((1, 20))

    def loss(a, b):
        a = a.copy()
        smoothed_rows(a, b)
        return np.sum(np.sin(a))

    with mp.disable_jit():
        want = mp.grad(loss)(x, row)
    np.testing.assert_allclose(mp.jit(mp.grad(loss))(x, row), want, rtol=1e-12)


def loaded(text: str, name: str):
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict = {}
    exec(compile(text, name, "exec"), scope)
    return scope["nest"]


@pytest.mark.parametrize("seed", turn(range(96), 32, thorough=4))
def test_random_nests(seed):
    text = nest(seed)
    function = loaded(text, f"<random nest {seed}>")
    jitted = mp.jit(function)
    for rows, columns in ((14, 25), (9, 12), (4, 5), (21, 11)):
        args = (*random.standard_normal((2, rows, columns)), random.standard_normal(rows))
        for _ in thread_counts(1, 3):
            try:
                same_outcome(function, jitted, args)
            except AssertionError as error:
                raise AssertionError(f"{text}\n{error}") from None
