"""First results at once, native code when it is there: `config.tier = "background"`.

In: functions that compute, print and store. Out: the same results before and after native code takes over, and each
effect once.
"""

from __future__ import annotations

import logging
import shutil
import threading

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.api.jit import Jit
from metaphrase.runtime import cache, scratch


@pytest.fixture
def held(monkeypatch):
    """Native code comes when the event is set."""
    gate = threading.Event()
    native = Jit._native

    def gated(self, *args):
        if threading.current_thread() is not threading.main_thread():
            assert gate.wait(60)
        return native(self, *args)

    monkeypatch.setattr(Jit, "_native", gated)
    yield gate
    gate.set()


def smooth(x):
    total = 0.0
    for k in range(len(x)):
        total += np.sin(x[k]) * k
    return total


def test_numpy_source_runs_until_native_code_is_there(held):
    x = np.linspace(0.0, 1.0, 50)
    with mp.config(tier="background"):
        f = mp.jit(lambda x: smooth(x))
        first = f(x)
        assert f(x) == first and not f.entries and f.cache_info().currsize == 1
        held.set()
        assert f.wait(60)
        assert len(f.entries) == 1
        hits = f.hits
        assert f(x) == pytest.approx(first, rel=1e-14) and f.hits == hits + 1
        assert f(x[:20]) == pytest.approx(smooth(x[:20]), rel=1e-14)


def test_a_function_prints_and_stores_once(held, capsys):
    def told(x):
        x[0] += 1.0
        print(f"x begins with {x[0]}")

    x = np.zeros(2)
    with mp.config(tier="background"):
        f = mp.jit(told)
        f(x)
        held.set()
        assert f.wait(60)
        f(x)
    assert x.tolist() == [2.0, 0.0]
    assert capsys.readouterr().out == "x begins with 1.0\nx begins with 2.0\n"


def test_settings_of_the_caller_hold_for_the_build():
    def contracted(x, y, z):
        return x * y + z

    numbers = np.random.default_rng(0).normal(size=(3, 1000))
    with mp.config(tier="background", contract=False):
        f = mp.jit(contracted)
        f(*numbers)
        assert f.wait(60) and len(f.entries) == 1
        np.testing.assert_array_equal(f(*numbers), contracted(*numbers))


def test_a_build_that_fails_leaves_the_numpy_source(monkeypatch, caplog):
    monkeypatch.setenv("METAPHRASE_CC", "no-such-compiler")
    with mp.config(tier="background"), caplog.at_level(logging.WARNING, logger="metaphrase"):
        f = mp.jit(lambda x: x * 2.0 + 0.125)
        assert f(1.0) == 2.125
        assert f.wait(60) and not f.entries and f(2.0) == 4.125
    assert "the generated NumPy source of function runs on" in caplog.text


def test_a_missing_compiler_is_told_once(monkeypatch, caplog):
    monkeypatch.setenv("METAPHRASE_CC", "no-such-compiler-either")
    with mp.config(tier="background"), caplog.at_level(logging.WARNING, logger="metaphrase"):
        for f in (mp.jit(lambda x: x * 2.0 + 0.25), mp.jit(lambda x: x * 2.0 + 0.375)):
            f(1.0)
            assert f.wait(60)
    assert caplog.text.count("no-such-compiler-either") == 1


def test_a_build_that_fails_otherwise_is_told(monkeypatch, caplog):
    def failing(*args):
        raise AssertionError("of ours")

    with mp.config(tier="background"), caplog.at_level(logging.WARNING, logger="metaphrase"):
        f = mp.jit(lambda x: x * 2.0 + 0.625)
        monkeypatch.setattr(f.jitted, "_take_over", failing)
        assert f(1.0) == 2.625 and f.wait(60) and f(2.0) == 4.625
    assert "function is not native; its generated NumPy source runs on" in caplog.text and "of ours" in caplog.text


def test_what_fails_because_the_process_ends_is_not_told(monkeypatch, caplog, tmp_path):
    """What is in the making is removed at exit, when a thread may still make it."""
    started, ended = threading.Event(), threading.Event()
    stored = cache.Cache.store

    def store(self, key, library, texts):
        started.set()
        ended.wait(60)
        shutil.rmtree(library.parent)
        return stored(self, key, library, texts)

    monkeypatch.setenv("METAPHRASE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache.Cache, "store", store)
    with mp.config(tier="background"), caplog.at_level(logging.WARNING, logger="metaphrase"):
        f = mp.jit(lambda x: x * 2.0 + 0.875)
        f(1.0)
        assert started.wait(60)
        monkeypatch.setattr(scratch, "_over", True)
        ended.set()
        assert f.wait(60) and not f.entries
    assert not caplog.text


def test_many_are_built_side_by_side():
    with mp.config(tier="background"):
        functions = [mp.jit(lambda x, k=k: np.cos(x) * k + 0.5) for k in range(6)]
        first = [f(0.25) for f in functions]
        assert all(f.wait(120) for f in functions) and all(len(f.entries) == 1 for f in functions)
        assert [f(0.25) for f in functions] == pytest.approx(first, rel=1e-15)


def test_what_is_forgotten_meanwhile_does_not_come_back(held, monkeypatch):
    with mp.config(tier="background", max_programs=1):
        f = mp.jit(lambda x: x + 0.0625)
        f(np.ones(3))
        f(np.ones(3, np.float32))
        held.set()
        assert f.wait(60) and len(f.entries) == 1 and f.cache_info().currsize == 1


def test_a_tier_is_one_of_two():
    with pytest.raises(ValueError, match="'later' is no tier; say wait or background"):
        mp.config.tier = "later"
