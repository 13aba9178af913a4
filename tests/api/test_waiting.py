"""The word to a person who waits for a program to be made."""

from __future__ import annotations

import io
import logging
import threading
import time
import types

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.api import waiting
from metaphrase.api.transforms import jitted_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    monkeypatch.setattr(waiting, "PATIENCE", 0.01)
    made = Terminal()
    monkeypatch.setattr(waiting, "sys", types.SimpleNamespace(stderr=made))  # pytest has its own between phases
    return made


def test_a_line_comes_and_goes(terminal, caplog):
    caplog.set_level(logging.INFO, "metaphrase")
    before = threading.active_count()
    with waiting.waited_for("hessian"), waiting.waited_for("gradient"):
        end = time.monotonic() + 20
        while not terminal.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        assert terminal.getvalue() == "metaphrase: translating and compiling hessian ..."
    assert terminal.getvalue().endswith("...\r\x1b[K")
    assert [record.message for record in caplog.records] == ["translating and compiling hessian ..."]
    assert threading.active_count() == before


def test_nothing_is_said_of_what_is_quick_or_fails(terminal, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 60.0)
    with pytest.raises(ZeroDivisionError), waiting.waited_for("hessian"):
        raise ZeroDivisionError
    assert terminal.getvalue() == "" and not waiting._lock.locked()


@pytest.mark.parametrize("stderr", [None, object(), io.StringIO()])
def test_where_there_is_no_terminal(stderr, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    monkeypatch.setattr(waiting, "sys", types.SimpleNamespace(stderr=stderr))
    with waiting.waited_for("hessian"):
        time.sleep(0.05)
    assert stderr is None or not getattr(stderr, "getvalue", str)()


def test_a_call_that_compiles_says_its_name(terminal):
    @mp.jit
    def slow_to_make(x):
        return np.sin(x) * 2

    def late(*arguments):
        end = time.monotonic() + 20
        while not terminal.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        return made(*arguments)

    jitted = jitted_of(slow_to_make)
    made, jitted._memo.make = jitted._memo.make, late
    slow_to_make(np.arange(3.0))
    assert "translating and compiling slow_to_make ..." in terminal.getvalue()
