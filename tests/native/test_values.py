"""Every corpus function: plain Python = native code = unfused native code = the loops stage run as Python.

Results, exceptions with their words, what is printed and what is written to the arguments. Without
contraction the results are the same bits wherever IEEE arithmetic fixes them; elsewhere within `BOUND`.

Each day others of the groups (tests/turns.py) are compiled, at the levels of tests/levels.py, and some of them once
more: unfused, contracted at -O3, and shared among threads in parts so small that most loops have several. Other cases
go the whole way through `jit`.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import replace

import numpy as np
import pytest
from grouped import build, module
from stages import CASES, CHUNKS, SAMPLE, TODAY, TURNS, core, loops, names_of_today, staged
from turns import part, turn
from ways import (
    SMALL_PARTS,
    assert_same,
    distance,
    evaluated,
    failures,
    is_exact,
    native,
    python,
    run_loops,
    several_threads,
)

from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.target import CPU

BOUND = 4  # units in the last place of an array's largest element: docs/limitations.md states it
CONTRACTED = 64
WAYS = [(chunk, "fused") for chunk in TODAY]
for k, way in enumerate(("contracted", "shared", "unfused")):
    WAYS += [(chunk, way) for chunk in part(TODAY, 4, of=TURNS, first=k)]


def bound(name: str) -> int:
    return 0 if is_exact(staged(name).function) else BOUND


@pytest.mark.parametrize("name", turn(CASES, 64, thorough=8))
def test_jitted_code(name):
    function, args = CASES[name]
    assert_same(python(function, args), native(function, args), bound(name), "native")


@pytest.mark.parametrize("chunk, way", WAYS)
def test_native_code(chunk, way):
    functions = {name: core(name) for name in CHUNKS[chunk]}
    contract = way == "contracted"
    programs = {name: loops(name) for name in functions}
    if way in ("unfused", "shared"):
        target = SMALL_PARTS if way == "shared" else CPU
        programs = {name: schedule(f, target, fuse=way != "unfused") for name, f in functions.items()}
    compiled = build(functions, programs, contract=contract, level="-O3" if contract else "")

    def test(name):
        want, got = python(*CASES[name]), evaluated(name, compiled[name].run)
        assert_same(want, got, CONTRACTED if contract else bound(name), "native")

    with several_threads() if way == "shared" else contextlib.nullcontext():
        assert not (wrong := failures(CHUNKS[chunk], test)), wrong


@pytest.mark.parametrize("chunk", turn(CHUNKS, 48, thorough=6))
def test_another_compiler(chunk, monkeypatch):
    """A part of the corpus by clang, where it is installed; float16 has none before version 15."""
    if shutil.which("clang"):
        monkeypatch.setenv("METAPHRASE_CC", "clang")
    programs = {name: loops(name) for name in CHUNKS[chunk]}
    programs = {name: p for name, p in programs.items() if "_Float16" not in module([p])[0]}
    compiled = build({name: core(name) for name in programs}, programs, level="-O2")

    def test(name):
        assert_same(python(*CASES[name]), evaluated(name, compiled[name].run), bound(name), "clang")

    assert programs and not (wrong := failures(programs, test)), wrong


@names_of_today
def test_loops_as_python(name):
    got = evaluated(name, lambda arrays: run_loops(loops(name), arrays))
    assert_same(python(*CASES[name]), got, bound(name), "loops")


@names_of_today
def test_loops_with_every_nest_outlined(name):
    """As a program of many loops is, whatever a nest's size."""
    scheduled = schedule(core(name), replace(CPU, whole=-1, call=0))
    got = evaluated(name, lambda arrays: run_loops(scheduled, arrays))
    assert_same(python(*CASES[name]), got, bound(name), "outlined loops")


@pytest.mark.turns(3)
def test_most_of_the_corpus_is_exact():
    exact = [name for name in SAMPLE if bound(name) == 0]
    assert len(exact) > 0.6 * len(SAMPLE), len(exact)


def test_distance_sees_a_bit():
    one = np.ones(3)
    near = one.copy()
    near[1] = np.nextafter(1.0, 2.0)
    assert distance(one, one.copy()) == 0 and distance([np.nan], [np.nan]) == 0
    assert distance(near, one) == 1
    assert distance(np.array([-0.0, 1.0]), np.array([0.0, 1.0])) > 0
    assert distance(one, one.astype(np.float32)) == np.inf and distance(one, one[:2]) == np.inf
    assert distance({"a": 1.0}, {"b": 1.0}) == np.inf and distance(1, 2) == np.inf
    assert distance(np.array([np.inf]), np.array([1.0])) == np.inf
