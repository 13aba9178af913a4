"""Captured containers and objects that are shown or compared as a whole: another one makes another program.

In: programs that read a global tuple, list, dict or dataclass through text, `%`, `==` and `in`, called again after it
has changed. Out: what Python gives.
"""
# ruff: noqa: UP030, UP031, UP032 - old ways to write text are what is tested

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import metaphrase as mp

HELD: object = None


@dataclasses.dataclass(order=True)
class Limit:
    k: float


CONTAINERS = [
    (lambda x: x * len("%s %s" % HELD), ("a", "1"), ("a", "22")),
    (lambda x: x * len("{} {}".format(*HELD)), ("a", "1"), ("a", "22")),
    (lambda x: x * len(f"{HELD}"), ("a", "1"), ("a", "22")),
    (lambda x: x * len(f"{HELD!r:>20}"), ["a", "1"], ["a", "22" * 12]),
    (lambda x: x * len("%(a)s" % HELD), {"a": "1"}, {"a": "22"}),
    (lambda x: x * len("%s" % (HELD,)), {"a": 1}, {"a": 22}),
    (lambda x: x * len("".join(HELD)), ("a", "1"), ("a", "22")),
    (lambda x: x * len(str(HELD)), ("a", "1"), ("a", "22")),
    (lambda x: x * len(repr(HELD)), ["a", "1"], ["a", "22"]),
    (lambda x: x * (2.0 if HELD == ("a", "1") else 3.0), ("a", "1"), ("a", "2")),
    (lambda x: x * (2.0 if ("a", "2") > HELD else 3.0), ("a", "1"), ("a", "3")),
    (lambda x: x * (2.0 if "1" in HELD else 3.0), ["1"], ["2"]),
    (lambda x: x * (2.0 if HELD == {"a": 1} else 3.0), {"a": 1}, {"a": 2}),
    (lambda x: x * HELD.count("b"), ("b", "1"), ("b", "b")),
    (lambda x: x * len("%s" % HELD), Limit(1.0), Limit(25.0)),
    (lambda x: x * len(f"{HELD}"), Limit(1.0), Limit(25.0)),
    (lambda x: x * len("{0.k}".format(HELD)), Limit(1.0), Limit(25.0)),
    (lambda x: x * (2.0 if HELD == Limit(1.0) else 3.0), Limit(1.0), Limit(25.0)),
    (lambda x: x * (2.0 if HELD < Limit(2.0) else 3.0), Limit(1.0), Limit(25.0)),
]


@pytest.mark.turns(3)
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("case", range(len(CONTAINERS)))
def test_another_one_is_seen(monkeypatch, case, native):
    function, first, second = CONTAINERS[case]
    x = np.arange(3.0)
    with mp.config(native=native):
        jitted = mp.jit(function)
        for held in (first, second, first):
            monkeypatch.setitem(globals(), "HELD", held)
            assert jitted(x).tolist() == function(x).tolist(), held


def test_an_object_that_changes_is_seen(monkeypatch):
    limit = Limit(1.0)
    monkeypatch.setitem(globals(), "HELD", limit)
    x = np.arange(3.0)
    for function, first, _ in CONTAINERS:
        if isinstance(first, Limit):
            jitted = mp.jit(function)
            for limit.k in (1.0, 25.0, 300.0, 1.0):
                assert jitted(x).tolist() == function(x).tolist()
                assert type(limit.k) is float
