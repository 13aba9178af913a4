"""What a condition says of numbers is known in its branches: their checks, and choices between them, are left out
there; and nothing is that does not follow.
"""

from __future__ import annotations

import numpy as np
import pytest
from corpus import fresh

import metaphrase as mp
from metaphrase.astpasses.optimize.simplify import simplify
from metaphrase.core.build import Builder
from metaphrase.core.ir import Literal, Var
from metaphrase.core.types import Array, i64
from metaphrase.ops.arithmetic import add
from metaphrase.ops.compare import and_, ge, le, lt
from metaphrase.ops.regions import cond

N = "f64[n]"


def deposited(grid, x, w):
    n = len(grid)
    for p in range(len(x)):
        i = int(x[p])
        if 0 <= i < n - 1:
            f = x[p] - i
            grid[i] += w[p] * (1 - f)
            grid[i + 1] += w[p] * f
    return grid


def curvature(a, k):
    s = 0.0
    for i in range(len(k)):
        j = k[i]
        if j > 0 and j < len(a) - 1:
            s += a[j - 1] - 2 * a[j] + a[j + 1]
        elif not (j < 0 or j >= len(a)):
            s += a[j]
    return s


def in_branches_of_branches(a, k):
    s = 0.0
    for j in k:
        if j >= 0:
            if j < len(a):
                s += a[j]
            elif j > len(a):
                s -= 1.0
    return s


@pytest.mark.parametrize(
    "function, types",
    [(deposited, (N, "f64[m]", "f64[m]")), (curvature, (N, "i64[m]")), (in_branches_of_branches, (N, "i64[m]"))],
)
def test_no_check_is_left(function, types):
    assert "IndexError" not in mp.source(function, *types, stage="numpy")


def test_both_sides_of_and_stand_in_one_condition():
    text = mp.source(deposited, N, "f64[m]", "f64[m]", stage="numpy")
    assert "i >= 0 and i < n - 1" in text

    def place(s, x):
        i = 0
        while i < len(s) and s[i] != x:
            i += 1
        return i

    assert "while i < n and s[i] != x:" in mp.source(place, N, "f64", stage="numpy")


@pytest.mark.parametrize("seed", range(4))
def test_values(seed):
    random = np.random.default_rng(seed)
    a, x, w = random.random(6), random.uniform(-3, 9, 40), random.random(40)
    k = random.integers(-4, 10, 40)
    assert mp.jit(deposited)(a.copy(), x, w) == pytest.approx(deposited(a.copy(), x, w))
    assert mp.jit(curvature)(a, k) == pytest.approx(curvature(a, k))
    assert mp.jit(in_branches_of_branches)(a, k) == pytest.approx(in_branches_of_branches(a, k))


def one_side(a, j):
    return a[j] if j >= 0 else 0.0


def other_side(a, j):
    return a[j] if j < len(a) else 0.0


def one_of_two(a, j):
    return a[j] if j < 0 or j < len(a) else 0.0


def not_both(a, j):
    return a[j] if not (j < 0 and j < len(a)) else 0.0


def the_one_beside(a, j):
    return a[j + 1] if 0 <= j < len(a) else 0.0


def not_equal(a, j):
    return a[j] if j != 7 else 0.0


@pytest.mark.parametrize(
    "function, places",
    [
        (one_side, (-1, 2, 3)),
        (other_side, (-4, -3, 2, 3)),
        (one_of_two, (-4, -1, 2, 3)),
        (not_both, (-1, 2, 3)),
        (the_one_beside, (-1, 0, 2, 3)),
        (not_equal, (-4, -3, 2, 3, 7)),
    ],
)
def test_what_does_not_follow_is_checked(function, places):
    a = np.arange(3.0) + 1
    for j in places:
        results = []
        for f in (function, mp.jit(function)):
            try:
                results.append(f(*fresh((a, j))))
            except IndexError:
                results.append("an IndexError")
        assert results[0] == results[1], (j, results)


def test_sums_of_numbers_without_a_bound_may_wrap_around():
    """k is at most j, and j at least 0: k + 1 may be more than an integer can be."""
    with Builder("f") as builder:
        j, k = builder.parameter("j", Array(i64)), builder.parameter("k", Array(i64))
        known = and_(and_(ge(j, 0), ge(k, 0)), le(k, j))
        branches = []
        for name in ("otherwise", "then"):
            with Builder(name) as branch:
                inner = branch.parameter("k", Array(i64))
                branches.append(branch.function([lt(add(inner, 1), 0), lt(inner, 0)]))
        made = builder.function(cond(known, k, branches=tuple(branches)))
    (let,) = (let for let in simplify(made).lets if let.primitive is cond)
    wrapping, negative = let.attributes["branches"][1].results
    assert isinstance(wrapping, Var) and isinstance(negative, Literal) and not negative.value
