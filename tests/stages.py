"""The corpus at every stage, each made once for the tests of a process that ask for it.

In: a case's name. Out: the case staged, and its core programs. `names` and `chunks` parametrize tests by
case; a theme's tests run in one process (tests/parallel.py), so that little is made twice and little has to be
kept. Native code is compiled of a chunk at a time, `SIZE` cases of a theme, and each day of another part of the
chunks (`TODAY`, and the cases in them). Example:

    @names
    def test_it_reads_back(name):
        assert same(read(show(core(name))), core(name))
"""

from __future__ import annotations

import functools

import pytest
from corpus import THEMES, cases, fresh
from turns import turn

from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.astpasses.frontend.staging.staged import Staged
from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.nest import Program
from metaphrase.core.ir import Function

CASES = {name: (function, args) for name, function, args in cases()}
SIZE = 16
SIZES = {"textbook": 4, "published": 8, "swept": 8, "control_programs": 8}  # whose cases are long
CHUNKS = {
    found[k]: found[k : k + size]
    for theme in THEMES
    for found in [[name for name in CASES if name.startswith(f"{theme}.")]]
    for size in [SIZES.get(theme, SIZE)]
    for k in range(0, len(found), size)
}
SAMPLE = list(CASES)[::12]  # where the corpus as a whole is counted
TURNS = 16  # days in which each chunk is tested in all ways
TODAY = turn(CHUNKS, TURNS)
names = pytest.mark.parametrize("name", CASES)
names_of_today = pytest.mark.parametrize("name", [name for chunk in TODAY for name in CHUNKS[chunk]])
once = functools.lru_cache(maxsize=256)  # more than any theme has


@once
def given(name: str) -> tuple[Staged, tuple]:
    """A case staged, and the arguments it was staged for."""
    function, args = CASES[name]
    mine = fresh(args)
    return stage(function, mine), mine


def staged(name: str) -> Staged:
    return given(name)[0]


@once
def core(name: str) -> Function:
    """The core program as code is made of it."""
    return optimize(staged(name).function, before_transform=False)


@once
def primal(name: str) -> Function:
    """The core program as transformations get it."""
    return optimize(staged(name).function, before_transform=True)


@once
def loops(name: str) -> Program:
    return schedule(core(name))
