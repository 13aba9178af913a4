"""Sums, counts and extremes that loops of the user's carry: all threads of a GPU work on them.

In: loops as people write them. Out: what Python gives, but for the order of a sum; which of them are divided, and which
stay one thread's, since their iterations depend on one another.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from carried_loops import DIVIDED, INPUTS, ORDERED, agree, flat, statistics
from emulated import SMALL, run

import metaphrase as mp
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.pipeline import finished

random = np.random.default_rng(11)
STRICT = replace(SMALL, regroups=False)


def core(function, *args):
    call = take_apart(args, {})
    return finished(program_of(function, call.structure, call.specs).function)


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", [*DIVIDED, *ORDERED])
def test_values(name, kind):
    function, x = (DIVIDED | ORDERED)[name], INPUTS[kind]
    if name == "whole_numbers" and not np.isfinite(x).all():
        x = np.nan_to_num(x, posinf=3.0, neginf=-3.0)
    with np.errstate(all="ignore"):
        agree(function, x, run(core(function, x), [x], SMALL))


@pytest.mark.parametrize("name", DIVIDED)
def test_batches_and_gradients(name):
    function, xs = DIVIDED[name], random.normal(size=(3, 12))
    got = run(core(mp.vmap(function), xs), [xs], SMALL)
    rows = [flat(function(x)) for x in xs]
    for k, mine in enumerate(got):
        np.testing.assert_allclose(mine, np.stack([row[k] for row in rows]), rtol=1e-12)
    if name in ("integral", "pair_energy", "nearest", "closest_pair", "with_own_array"):
        chosen = -1 if name in ("nearest", "closest_pair") else 0
        gradient = mp.grad(lambda x: flat_result(function(x), chosen))
        (mine,) = run(core(gradient, xs[0]), [xs[0]], SMALL)
        np.testing.assert_allclose(mine, gradient(xs[0]), rtol=1e-10)


def flat_result(results, chosen):
    return results[chosen] if isinstance(results, tuple) else results


def in_order(function):
    """Whether a thread goes through all elements, one after the other."""
    return bool(re.search(r"= 0; \w+ < n( - 1)?;", mp.source(function, "f64[n]", stage="cuda")))


@pytest.mark.parametrize("name", [*DIVIDED, *ORDERED])
def test_who_does_it(name):
    assert in_order((DIVIDED | ORDERED)[name]) == (name in ORDERED)


@pytest.mark.parametrize("name", ["integral", "statistics", "nearest", "whole_numbers"])
def test_that_contract_decides_about_sums_of_floats(name):
    with mp.config(contract=False):
        assert in_order(DIVIDED[name]) == (name in ("integral", "statistics"))


def test_the_order_of_python():
    x = INPUTS["many"]
    np.testing.assert_array_equal(run(core(statistics, x), [x], STRICT), [np.asarray(v) for v in statistics(x)])


def test_the_same_to_the_bit_again():
    x = random.normal(size=500)
    first = run(core(statistics, x), [x], SMALL)
    for mine, again in zip(first, run(core(statistics, x), [x], SMALL, again=True)):
        np.testing.assert_array_equal(mine, again)


def test_two_loops_one_after_the_other():
    """Both add to one variable, in one kernel."""

    def f(x):
        total = 1.5
        for v in x:
            total += v
        for v in x:
            total -= v * v
        return total

    x = random.normal(size=40)
    for target in (SMALL, replace(SMALL, grid_from=1000)):
        np.testing.assert_allclose(run(core(f, x), [x], target)[0], f(x), rtol=1e-12)


def test_a_counter_that_another_variable_reads():
    def f(x):
        a, b = 0, 1
        for i in range(len(x)):
            for _ in range(i % 3):
                a -= 2
                b = a + i
        return a, b

    x = random.normal(size=30)
    for mine, theirs in zip(run(core(f, x), [x], SMALL), f(x), strict=True):
        assert mine == theirs


def test_what_a_branch_leaves_is_wanted_behind_others():
    def f(x):
        b, c, low = 1, 2, 9.0
        for i in range(len(x)):
            if i % 2 == 0:
                for _ in range(i % 3):
                    low = x[i]
                    b = 3 * i
            elif i % 4 == 3:
                if x[i] > 0:
                    c = max(c, i)
                    b = i
            else:
                low = x[i] + 1
        return low, b, c

    for seed in range(4):
        x = np.random.default_rng(seed).normal(size=31 + seed)
        for mine, theirs in zip(run(core(f, x), [x], SMALL), f(x), strict=True):
            assert mine == theirs
