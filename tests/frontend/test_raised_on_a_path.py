"""What Python raises on a path, without a `raise` of the user's (`None.x`, `table["b"]`, `1 // 0`), is raised
when the program takes that path, and at no other time."""

from __future__ import annotations

import linecache
import math
import traceback
import zlib

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError

LINES = [
    "r = nothing[0]",
    "r = nothing.v",
    "r = nothing + 1.0",
    "r = nothing < 1",
    "r = len(nothing)",
    "r = nothing()",
    "nothing.q = 3; r = 1.0",
    "nothing[0] = 1.0; r = 1.0",
    "for q in nothing: r = q",
    "r = table['b']",
    "r = table.pop('q')",
    "del table['z']; r = 1.0",
    "r = items[3]",
    "r = [][0]",
    "r = (1,)[1]",
    "items[4] = 1.0; r = 2.0",
    "items.remove(5.0); r = 1.0",
    "r = items.index(7)",
    "a, b = items; r = a",
    "r = items.pop() + items.pop()",
    "r = next(iter([]))",
    "r = max([])",
    "r = 1 // zero",
    "r = 1.0 / zero",
    "r = 1 % zero",
    "r = math.sqrt(-1.0)",
    "r = float(text)",
    "r = int(text)",
    "r = abs(text)",
    "r = -text",
    "r = text.foo",
    "text[0] = 'q'; r = 1.0",
    "r = np.zeros(3)[7]",
    "r = np.foo",
    "r = unknown",
    "r = 1.0 if nothing[0] > x else 2.0",
    "r = x > 0 or table['b'] > x",
    "raise ValueError('no')",
    "assert False",
]
TEXT = """
def function(x):
    nothing, table, items, zero, text = None, {{'a': 1.0}}, [1.0], 0, 'ab'
    if x > 0:
        r = 2.0
    else:
        {line}
    return r
"""


def made(line):
    text = TEXT.format(line=line.replace("; ", "\n        "))
    file = f"<{zlib.crc32(text.encode())} of {__name__}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"np": np, "math": math, "__name__": __name__}
    exec(compile(text, file, "exec"), names)
    return names["function"]


def outcome(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("line", LINES)
def test_it_is_raised_where_the_path_is_taken(line):
    function = made(line)
    jitted = mp.jit(function)
    assert jitted(1.0) == 2.0
    raised = outcome(function, -1.0)
    assert issubclass(raised, Exception)
    assert outcome(jitted, -1.0) is raised


def test_the_line_is_that_of_the_operation():
    def deeper(table, x):
        return table["b"] * x

    def function(table, x):
        if x > 0:
            return x
        y = x + 1.0
        return deeper(table, y)

    with pytest.raises(KeyError, match="b") as caught:
        mp.jit(function)({"a": 1.0}, -1.0)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == 'return table["b"] * x'


def test_it_can_be_caught():
    @mp.jit
    def function(x):
        table = {"a": 1.0}
        try:
            r = table["b"] if x > 0 else table["a"]
        except KeyError:
            r = -1.0
        return r

    assert [function(1.0), function(-1.0)] == [-1.0, 1.0]


class State:
    def __init__(self, v):
        self.v = v


def test_in_loops_of_unknown_length():
    """What is None in the first iteration is used in the others alone."""

    def products(x):
        before, total = None, 0.0
        for i in range(len(x)):
            if i > 0:
                total += before.v * x[i]
            before = State(x[i])
        return total

    def best(x):
        found = None
        for v in x:
            if v > 1.2 and (found is None or v > found.v):
                found = State(v)
        return -1.0 if found is None else found.v

    for function in (products, best):
        jitted = mp.jit(function)
        for x in (np.arange(1.0, 7.0), np.array([1.0]), np.array([0.5, 2.0, 1.5]), np.zeros(0)):
            assert jitted(x) == function(x)
    x = np.arange(1.0, 7.0)
    np.testing.assert_allclose(mp.grad(products)(x), [2.0, 4.0, 6.0, 8.0, 10.0, 5.0])


def test_recursion_of_unknown_depth_is_refused_while_translating():
    def endless(x):
        return x[0] if x[0] > 100 else endless(x + 1.0)

    with pytest.raises(SourceError, match="depth") as caught:
        mp.jit(endless)(np.ones(2))
    assert caught.value.code == "concrete"


@pytest.mark.parametrize("x", [1.0, -1.0])
def test_attributes_of_what_is_none_on_some_paths(x):
    def stored(x):
        state = State(1.0) if x > 0 else None
        state.v = 2.0
        return state.v

    jitted = mp.jit(stored)
    if x > 0:
        assert jitted(x) == 2.0
    else:
        with pytest.raises(TypeError, match="None"):
            jitted(x)


def told_before(y, n):
    print("first", n)
    return {"a": 1.0}["q"]


def fails_before(y, n):
    y = y[n] + y
    return None.x


def loops_before(y, n):
    for k in range(n):
        y[k] = 2.0
    return 1 // 0


@pytest.mark.parametrize("function", [told_before, fails_before, loops_before])
def test_what_comes_first_happens_first(function, capfd):
    jitted = mp.jit(function)
    for n in (1, 4, 1):
        found = []
        for one in (function, jitted):
            with pytest.raises((KeyError, AttributeError, ZeroDivisionError, IndexError)) as caught:
                one(np.zeros(3), n)
            found.append((type(caught.value), str(caught.value), capfd.readouterr().out))
        assert found[0] == found[1]
