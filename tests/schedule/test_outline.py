"""Outlined programs: the same results, and equal nests are one function."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from differential import check
from programs import PROGRAMS, V, add, mul, n, one

from metaphrase.astpasses.schedule import schedule, target
from metaphrase.core.build import trace
from metaphrase.core.types import Array, f64
from metaphrase.ops.reduce import reduce_sum
from metaphrase.ops.shape import broadcast, reshape

ALWAYS = replace(target.ONE_THREAD, whole=0)  # no program is too small


@pytest.mark.parametrize("name", ["layernorm", "column_sums", "leapfrog", "lu", "running", "moves"])
def test_outlined_programs_run(name, monkeypatch):
    monkeypatch.setattr(target, "CPU", ALWAYS)
    function, arguments = PROGRAMS[name]
    assert schedule(function).fns
    check(function, *arguments[0], ulps=16)


def many_updates(*xs):
    half = broadcast(one(0.5), shape=(n,), axes=())
    return tuple(add(x, mul(x, half)) for x in xs) + tuple(reduce_sum(mul(x, x), axes=(0,)) for x in xs)


def test_equal_nests_are_one_function():
    function = trace("many_updates", many_updates, [(f"x{k}", V) for k in range(20)])
    assert len(schedule(function, target.ONE_THREAD).fns) == 1
    shared = {fn.name: [b.dtype for b in fn.bufs] for fn in schedule(function).fns}
    assert sorted(shared) == ["nest_0", "part_0"]  # partial sums are added up in one, all else is done in the other
    check(function, *(np.random.default_rng(k).normal(size=70) for k in range(20)))


def test_small_programs_stay_whole():
    assert schedule(PROGRAMS["softmax"][0], target.ONE_THREAD).fns == ()


def every_extent(x, y):
    flat = reshape(y, shape=(n * n,))
    return tuple(reduce_sum(mul(a, a), axes=(0,)) for a in (x, flat, *(add(a, a) for a in (x, flat))))


def test_nests_that_differ_in_how_far_they_run_are_one_function(monkeypatch):
    monkeypatch.setattr(target, "CPU", ALWAYS)
    function = trace("every_extent", every_extent, [("x", V), ("y", Array(f64, (n, n)))])
    assert len(schedule(function).fns) == 2
    rng = np.random.default_rng(1)
    check(function, rng.normal(size=9), rng.normal(size=(9, 9)), ulps=64)


def test_a_branch_with_loops_is_a_function(monkeypatch):
    import metaphrase as mp

    monkeypatch.setattr(target, "CPU", ALWAYS)

    def distance(x, y, limit):
        return np.sum(np.exp(x - y)) if limit > 0 else limit - 1.0

    def both(x, y):
        return distance(x, y, y[0]) - distance(y, x, x[0]) * distance(x, x + y, y[1])

    x, y = np.linspace(0, 1, 70), np.linspace(-1, 1, 70)
    text = mp.source(both, x, y, stage="cython")
    assert text.count("if a") == 1 and text.count("= nest_0(") == 3
    np.testing.assert_allclose(mp.jit(both)(x, y), both(x, y), rtol=1e-13)


def test_little_work_stays_where_it_is(monkeypatch):
    monkeypatch.setattr(target, "CPU", ALWAYS)
    few = Array(f64, (4,))
    assert not schedule(trace("few", lambda x, y: (add(x, y), mul(x, y)), [("x", few), ("y", few)])).fns


def test_a_branch_with_more_arrays_than_the_stack_holds(monkeypatch):
    """A function in which nothing can fail asks for no memory; what its stack has no room for is passed."""
    import metaphrase as mp

    monkeypatch.setattr(target, "CPU", ALWAYS)

    def totals(x, n):
        if n > 0:
            rows = [np.cumsum(x[k : 100 + 10 * k]) for k in range(8)]
            return sum(row[:8] * row[-1] for row in rows)
        return x[:8] * 2.0

    x = np.random.default_rng(3).normal(size=256)
    jitted = mp.jit(totals)
    for side in (1, 0):
        np.testing.assert_allclose(jitted(x, side), totals(x, side), rtol=1e-11)
