"""Lists and dicts that one side of a branch changes in form and the other in an item: as in Python, or
refused."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError

pytestmark = pytest.mark.turns(6)

SIDES = [
    "pass",
    "l[0] = 7.0",
    "l[1] += x[1]",
    "l[-1] = l[0]",
    "l.reverse()",
    "l.append(l.pop(0))",
    "l[:2] = [5.0, x[1]]",
    "l[0] = 7.0; l.reverse()",
    "l.reverse(); l[0] = 7.0",
    "l[0], l[2] = l[2], l[0]",
    "l.append(x[1])",
    "l.pop()",
    "l.append(3.0); l[0] = 1.0",
    "l[1] = 4.0; l.pop()",
    "l += [x[0]]",
    "del l[0]",
    "l.insert(0, 8.0)",
    "l.clear()",
    "l = l[::-1]; l[0] = 6.0",
]
DICT_SIDES = [
    "pass",
    "d['a'] = 7.0",
    "d['b'] += x[1]",
    "d.update(a=x[1])",
    "d['a'] = 2.0; d.update(b=1.0)",
    "d['c'] = 1.0",
    "d.pop('b')",
    "d.pop('b'); d['b'] = 9.0",
    "d['a'], d['b'] = d['b'], d['a']",
    "d = {'a': 1.0, 'b': x[1]}",
]
AFTER = ["l[0] += 1.0", "l.append(x[1] + sum(l))"]
TESTED = [np.array([1.0, 4.0, 2.0]), np.array([-1.0, 4.0, 2.0])]


def made(start: str, one: str, two: str, after: str, result: str):
    text = (
        f"def f(x):\n    {start}\n    if x[0] > 0:\n        {one}\n    else:\n        {two}\n    {after}\n"
        f"    return {result}\n"
    )
    name = f"<forms {one} | {two} | {after}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    scope: dict = {}
    exec(compile(text, name, "exec"), scope)
    return scope["f"]


def agrees(function) -> bool:
    """False where it is refused, or Python fails."""
    jitted = mp.jit(function)
    for x in TESTED:
        try:
            wanted = function(x)
        except (IndexError, KeyError):
            return False
        try:
            with mp.config(native=False):
                got = jitted(x)
        except SourceError as error:
            assert error.remedy, error
            return False
        assert wanted.keys() == got.keys() if isinstance(wanted, dict) else len(wanted) == len(got)
        pairs = zip(*(v.values() if isinstance(v, dict) else v for v in (wanted, got)))
        assert all(a == b for a, b in pairs), (function.__code__.co_filename, x, wanted, got)
    return True


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("one", SIDES)
def test_lists(one, after):
    sides = [two for two in SIDES if two != one]
    done = [two for two in sides if agrees(made("l = [x[0], 2.0, x[2]]", one, two, after, "l"))]
    if not any(word in one for word in ("pop()", "insert", "del", "clear")):
        assert len(done) >= 6, done


@pytest.mark.parametrize("one", DICT_SIDES)
def test_dicts(one):
    sides = [two for two in DICT_SIDES if two != one]
    done = [two for two in sides if agrees(made("d = {'a': x[0], 'b': 2.0}", one, two, "d['a'] += 1.0", "d"))]
    if "'c'" not in one and "pop" not in one:
        assert len(done) >= 4, done


def test_a_loop_changes_an_item_and_a_slice():
    def run(x, n):
        pair = [x[0], 2.0, x[1]]
        for _ in range(n):
            pair[1] += 1.0
            pair[:2] = [pair[1], 1.0]
        return pair

    for n in (0, 1, 3):
        assert mp.jit(run)(TESTED[0], n) == run(TESTED[0], n)


class Held:
    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize("swapped", [False, True])
def test_one_side_makes_an_object_and_the_other_changes_the_old_one(swapped):
    def run(x):
        held = Held(x[0])
        if (x[0] > 0) != swapped:
            held = Held(5.0)
        else:
            held.value = 7.0
        return held.value

    for x in TESTED:
        assert mp.jit(run)(x) == run(x)
