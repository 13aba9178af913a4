"""Loops whose rounds wait for each other: a block's threads have a round each, some elements behind the one before.

In: tables of dynamic programming and relaxations in place. Out: NumPy's values to the bit, in any order of threads and
without races; and loops in which rounds need too much of one another, which stay one thread's.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from emulated import SMALL, run

import metaphrase as mp
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.astpasses.schedule.target import CUDA
from metaphrase.pipeline import finished

random = np.random.default_rng(6)


def warped(x, y):
    """Dynamic time warping."""
    n, m = len(x), len(y)
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0.0
    for i in range(n):
        for j in range(m):
            cost = abs(x[i] - y[j])
            D[i + 1, j + 1] = cost + min(D[i, j + 1], D[i + 1, j], D[i, j])
    return D[n, m]


def edited(x, y):
    """The distance of Levenshtein; stores stand in branches."""
    a, b = (x * 2).astype(int), (y * 2).astype(int)
    n, m = len(a), len(b)
    D = np.zeros((n + 1, m + 1), dtype=np.int64)
    D[:, 0] = np.arange(n + 1)
    D[0] = np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                D[i, j] = D[i - 1, j - 1]
            else:
                D[i, j] = 1 + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D


def relaxed(x, y):
    """Gauss and Seidel's method in place, with nine points: rounds lie two elements apart."""
    u = np.outer(x, y)
    n, m = u.shape
    for _ in range(2):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                above = u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1]
                u[i, j] = (above + u[i, j - 1] + u[i, j + 1] + u[i + 1, j]) / 6
    return u


def with_ends(x, y):
    """What a round does before its elements, and behind them."""
    n, m = len(x), len(y)
    D, last = np.zeros((n + 1, m + 1)), np.zeros(n)
    for i in range(n):
        D[i + 1, 0] = x[i]
        for j in range(m):
            D[i + 1, j + 1] = 0.5 * D[i + 1, j] - 0.25 * D[i, j + 1] + y[j]
        last[i] = D[i + 1, m] * 2
    return D, last


def far_behind(x, y):
    """The round of forty before is read: others lie between."""
    n, m = len(x), len(y)
    D = np.ones((n + 40, m + 1))
    for i in range(n):
        for j in range(m):
            D[i + 40, j + 1] = 0.5 * D[i + 40, j] - 0.25 * D[i, j + 1] + y[j] * x[i]
    return D


def of_all_before(x, y):
    """Each element needs the whole row before it: no wave."""
    n, m = len(x), len(y)
    D = np.ones((n + 1, m))
    for i in range(n):
        for j in range(m):
            D[i + 1, j] = 0.5 * D[i, m - 1 - j] + (D[i + 1, j - 1] if j > 0 else y[j]) * x[i]
    return D


def turned(x, y):
    """Elements are gone through from the last to the first."""
    n, m = len(x), len(y)
    D = np.zeros((n + 1, m + 1))
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            D[i, j] = max(D[i + 1, j] - 0.1, D[i, j + 1] - 0.2, D[i + 1, j + 1] + x[i] * y[j])
    return D


WAVES = (warped, edited, relaxed, with_ends, turned)
OTHERS = (far_behind, of_all_before)


@pytest.mark.parametrize("f", [*WAVES, *OTHERS], ids=lambda f: f.__name__)
def test_who_does_it(f):
    text = mp.source(f, "f64[n]", "f64[m]", stage="cuda")
    assert bool(re.search(r"j < m \+ \d+;|0 <= j - ", text)) == (f in WAVES), text


@pytest.mark.turns(4)
@pytest.mark.parametrize("target", [SMALL, CUDA], ids=["small", "large"])
@pytest.mark.parametrize("f", [*WAVES, *OTHERS], ids=lambda f: f.__name__)
def test_values(f, target, monkeypatch):
    monkeypatch.setenv("CUEMU_RACES", "1")
    for n, m in ((40, 7), (70, 45), (150, 33)):
        given = [random.normal(size=n), random.normal(size=m)]
        wanted = f(*given)
        call = take_apart(tuple(given), {})
        program = finished(program_of(f, call.structure, call.specs).function)
        for order in ("fwd", "rev", "rand"):
            monkeypatch.setenv("CUEMU_ORDER", order)
            got = run(program, given, target)
            for one, want in zip(got, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
                np.testing.assert_array_equal(one, want)


def test_each_lane_is_a_blocks():
    """Lanes of a batch are divided among blocks, the rounds of each among the threads of one."""
    text = mp.source(mp.vmap(warped), "f64[100, n]", "f64[100, m]", stage="cuda")
    host = text.partition("\ndef ")[2]
    assert "for i in range(" not in host and "c.rows(" in host, host
    assert "c.empty((100, n + 1, m + 1), 'f64')" in host and "(100, 100" not in host, host
    x, y = random.normal(size=(5, 40)), random.normal(size=(5, 33))
    call = take_apart((x, y), {})
    program = finished(program_of(mp.vmap(warped), call.structure, call.specs).function)
    for target in (SMALL, CUDA):
        (got,) = run(program, [x, y], target)
        np.testing.assert_array_equal(got, [warped(a, b) for a, b in zip(x, y)])
