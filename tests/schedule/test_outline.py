"""Outlined programs: the same results, and equal nests are one function."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check
from programs import PROGRAMS, V, add, mul, n, one

from metaphrase.astpasses.schedule import outline, schedule
from metaphrase.core.build import trace
from metaphrase.ops.reduce import reduce_sum
from metaphrase.ops.shape import broadcast


@pytest.mark.parametrize("name", ["layernorm", "column_sums", "leapfrog", "lu", "running", "moves"])
def test_outlined_programs_run(name, monkeypatch):
    monkeypatch.setattr(outline, "WHOLE", 0)
    function, arguments = PROGRAMS[name]
    assert schedule(function).fns
    check(function, *arguments[0], ulps=16)


def many_updates(*xs):
    half = broadcast(one(0.5), shape=(n,), axes=())
    return tuple(add(x, mul(x, half)) for x in xs) + tuple(reduce_sum(mul(x, x), axes=(0,)) for x in xs)


def test_equal_nests_are_one_function():
    function = trace("many_updates", many_updates, [(f"x{k}", V) for k in range(20)])
    program = schedule(function)
    assert len(program.fns) == 1
    check(function, *(np.random.default_rng(k).normal(size=70) for k in range(20)))


def test_small_programs_stay_whole():
    assert schedule(PROGRAMS["softmax"][0]).fns == ()
