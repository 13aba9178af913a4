"""Which programs of a quick run the compiler takes at full optimization."""

from __future__ import annotations

import levels
import numpy as np
import pytest
from levels import GROUPED, PARTS, QUICKEST, USUAL, level

import metaphrase as mp
from metaphrase.runtime import cython_build

TEXTS = [f"cdef int entry{k}" for k in range(800)]


def test_each_text_has_its_day(monkeypatch):
    monkeypatch.setattr(levels, "QUICK", True)
    monkeypatch.setattr(levels, "_about_code", False)
    days = [{text for text in TEXTS if level(text, day=day) == USUAL} for day in range(PARTS)]
    assert set().union(*days) == set(TEXTS) and sum(map(len, days)) == len(TEXTS)
    assert all(len(day) > len(TEXTS) / PARTS / 2 for day in days)
    assert {level(text, GROUPED) for text in TEXTS} == {GROUPED, QUICKEST}


@pytest.mark.optimized
def test_a_mark_asks_for_what_users_get():
    assert {level(text) for text in TEXTS} == {USUAL}


def test_a_whole_run_has_all_as_users_have_it(monkeypatch):
    monkeypatch.setattr(levels, "QUICK", False)
    assert {level(text) for text in TEXTS} == {USUAL}


@pytest.mark.parametrize("wanted", [USUAL, QUICKEST], ids=["usual", "quickest"])
def test_the_compiler_is_told(monkeypatch, wanted):
    """`jit` goes through it: its programs are compiled with the flags."""
    seen = []
    compiled = cython_build._compile
    monkeypatch.setattr(levels, "level", lambda text: wanted)
    monkeypatch.setattr(cython_build, "open_cache", lambda: None)
    monkeypatch.setattr(cython_build, "_compile", lambda *given: seen.append(given[6]) or compiled(*given))
    shift = 0.5 if wanted else 0.25
    np.testing.assert_array_equal(mp.jit(lambda x: x + shift)(np.arange(3.0)), np.arange(3.0) + shift)
    (options,) = seen
    assert [flag for flag in options if flag.startswith("-O")] == ["-O3", *wanted]
