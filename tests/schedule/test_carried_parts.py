"""Loops that carry counts and extremes: several threads do parts of them, and find what Python finds, to the bit.

In: loops as people write them. Out: the same results from any number of parts and threads; which loops are cut, and
which are not, since the order of their iterations counts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from carried_loops import DIVIDED, INPUTS, ORDERED, flat
from grouped import build
from thread_counts import thread_counts

import metaphrase as mp
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.astpasses.schedule import python_loops, schedule
from metaphrase.astpasses.schedule.nest import For, Program, walk
from metaphrase.astpasses.schedule.target import CPU
from metaphrase.pipeline import finished

SMALL = replace(CPU, a_part=20, few=2)
ANY_ORDER = replace(SMALL, regroups=True)
random = np.random.default_rng(12)


def odd_ones(x):
    """Counts in a branch of a branch, and a sum of integers in an inner loop."""
    k = (x * 9).astype(int)
    odd, total = 0, k[0]
    for i in range(len(k)):
        if x[i] > -1:
            for j in range(i % 4):
                total += k[j]
                if k[i] % 2:
                    odd += 1
    return odd, total


def largest_of_rows(x):
    """A loop that is cut in a loop that is not."""
    best, y = np.zeros(3), x
    for step in range(3):
        top = -np.inf
        for v in y:
            if v > top:
                top = v
        best[step] = top
        y = np.sin(y) + top
    return best, y


def by_integer_functions(x):
    k = (x * 9).astype(int)
    lo, hi, some, every = 99, -99, False, True
    for v in k:
        lo = min(lo, v)
        hi = np.maximum(v, hi)
        some = some or v > 10
        every = every and v > -50
    return lo, hi, some, every


def until_it_fails(x):
    count = 0
    for v in x:
        if v > 1.5:
            raise ValueError(f"{v} is too large")
        if v > 0:
            count += 1
    return count


def found_twice(x):
    """What is kept is stored at two places: the later one counts."""
    best, where = np.inf, -1
    for i in range(len(x)):
        if x[i] < best:
            best = x[i]
            where = i
        if -x[i] < best:
            best = -x[i]
            where = -i
    return best, where


OWN = {f.__name__: f for f in (odd_ones, largest_of_rows, found_twice, by_integer_functions)}
CUT = ("both_ends", "closest_pair", "nearest", "odd_ones", "largest_of_rows", "with_own_array", "by_integer_functions")
PROGRAMS = DIVIDED | ORDERED | OWN


def core(function, x):
    call = take_apart((x,), {})
    return finished(program_of(function, call.structure, call.specs).function)


def program(function, x, target=SMALL) -> Program:
    return schedule(core(function, x), target, checked=True)


def cut(function, target=SMALL) -> bool:
    """Whether a loop of the user's is in parts."""
    made = program(function, random.normal(size=64), target)
    carried = {fn.name for fn in made.fns if any("_parts" in buf.name for buf in fn.bufs)}
    inside = [s for fn in (made.entry, *made.fns) for s in walk(fn.body)]
    loops = [s for s in inside if isinstance(s, For) and s.parts is not None]
    return any(s.body[0].fn in carried for s in loops)


def given(name, kind):
    x = INPUTS[kind]
    whole = name in ("whole_numbers", "odd_ones", "by_integer_functions") and not np.isfinite(x).all()
    return np.nan_to_num(x, posinf=3.0, neginf=-3.0) if whole else x


def same(mine, function, x):
    with np.errstate(all="ignore"):
        wanted = flat(function(x))
    for one, other in zip(mine, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
        if other.dtype.kind == "f":
            numbers = ~np.isnan(other)
            np.testing.assert_array_equal(np.signbit(one)[numbers], np.signbit(other)[numbers])


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", CUT)
def test_python_finds_the_same(name, kind):
    function, x = PROGRAMS[name], given(name, kind)
    with np.errstate(all="ignore"):
        same(python_loops.run(program(function, x), x), function, x)


def test_so_do_threads():
    x = INPUTS["many"]
    functions = {name: core(PROGRAMS[name], x) for name in CUT}
    compiled = build(functions, {name: schedule(f, SMALL) for name, f in functions.items()}, contract=True)
    for name in CUT:
        runs = [[np.asarray(r).tobytes() for r in compiled[name].run([x])] for _ in thread_counts(1, 2, 3)]
        assert runs[0] == runs[1] == runs[2]
        for mine, theirs in zip(compiled[name].run([x]), flat(PROGRAMS[name](x)), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-14)


@pytest.mark.parametrize("name", PROGRAMS)
def test_which_are_cut(name):
    assert cut(PROGRAMS[name]) == (name in CUT)


@pytest.mark.parametrize("name", ["integral", "pair_energy", "statistics", "sums_in_rounds"])
def test_sums_of_floats_are_if_their_order_is_no_matter(name):
    assert cut(PROGRAMS[name], ANY_ORDER)
    x = INPUTS["many"]
    for mine, theirs in zip(python_loops.run(program(PROGRAMS[name], x, ANY_ORDER), x), flat(PROGRAMS[name](x))):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_fastmath_says_so():
    source = "f64[n]"
    assert "mp_share" not in mp.source(DIVIDED["integral"], source, stage="cython")
    with mp.config(fastmath=True):
        assert "mp_share" in mp.source(DIVIDED["integral"], source, stage="cython")


@pytest.mark.optimized
def test_the_first_failure_is_told():
    x = np.concatenate([random.uniform(-1, 1, 300_000), [7.0], random.uniform(-1, 1, 300_000), [8.0]])
    jitted = mp.jit(until_it_fails)
    for _ in thread_counts(1, 2, 3):
        with pytest.raises(ValueError, match=r"^7\.0 is too large$"):
            jitted(x)
        assert jitted(x[:300_000]) == until_it_fails(x[:300_000])
