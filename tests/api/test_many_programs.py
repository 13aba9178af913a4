"""Functions with many programs: how many are kept, which goes first, how they are found.

In: functions that need a program for each value of an argument, of a captured value, or of a size. Out: right
answers, a bounded number of programs, libraries and texts, and look-ups that try few of them.
"""

from __future__ import annotations

import gc
import linecache
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import tree_util
from metaphrase.runtime import abi, cython_build, dispatch
from metaphrase.runtime import entry as E

X = np.arange(3.0)
MODE = ""


class Point(NamedTuple):
    a: object
    b: object


@dataclass(frozen=True)
class Choice:
    name: str


class Box:
    def __init__(self, value, name):
        self.value, self.name = value, name


tree_util.register_pytree_node(Box, lambda box: ((box.value,), box.name), lambda name, c: Box(c[0], name))


class Model:
    def __init__(self, weight):
        self.weight = weight

    @mp.jit
    def scaled(self, x):
        return x * self.weight


def mode_length(x, k):
    global MODE
    MODE = "m" * k
    return captured(x)


@mp.jit
def captured(x):
    return x * len(MODE)


def of_size(x):
    return sum({k: v * k for k, v in enumerate(x)}.values())


# name -> (function, arguments of the k-th program, what it gives)
KINDS = {
    "a text": (lambda x, name: x * len(name), lambda k: (X, "a" * k), lambda k: X * k),
    "a pinned number": (
        lambda x, k: x + len(np.zeros(3).reshape(3, *[1] * k).shape),
        lambda k: (X, k),
        lambda k: X + k + 1,
    ),
    "a size": (of_size, lambda k: (np.ones(k + 2),), lambda k: sum(range(k + 2))),
    "a list": (lambda xs: sum(xs), lambda k: ([X] * k,), lambda k: X * k),
    "a key": (lambda d: sum(d.values()), lambda k: ({"k" * k: X},), lambda k: X),
    "a frozen dataclass": (lambda x, c: x * len(c.name), lambda k: (X, Choice("c" * k)), lambda k: X * k),
    "a named tuple": (lambda p: p.a * len(p.b), lambda k: (Point(X, "b" * k),), lambda k: X * k),
    "metadata": (lambda box: box.value * len(box.name), lambda k: (Box(X, "n" * k),), lambda k: X * k),
    "any arguments": (lambda *xs, **names: xs[0] * len(names["n"]), lambda k: (X, X, "n" * k), lambda k: X * k),
}


def call(function, kind, k):
    args = KINDS[kind][1](k)
    return function(*args[:-1], n=args[-1]) if kind == "any arguments" else function(*args)


@pytest.mark.turns(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("native", [True, False], ids=["native", "numpy"])
def test_each_of_many_programs_is_found_again(kind, native):
    function, _, expected = KINDS[kind]
    with mp.config(native=native):
        jitted = mp.jit(function)
        for _ in range(3):
            for k in range(1, 13):
                np.testing.assert_array_equal(call(jitted, kind, k), expected(k))
    info = jitted.cache_info()
    assert (info.misses, info.hits, info.currsize) == (12, 24, 12)


def test_captured_values_and_objects_have_their_programs():
    for _ in range(3):
        for k in range(1, 10):
            assert mode_length(X, k).tolist() == (X * k).tolist()
    assert captured.cache_info().misses == 9
    models = [Model(float(k)) for k in range(10)]
    for _ in range(3):
        for k, model in enumerate(models):
            assert model.scaled(X).tolist() == (X * k).tolist()
    assert len({E.pattern(entry.entry) for entry in Model.scaled.entries}) == 1
    models[3].weight = 30.0
    assert models[3].scaled(X).tolist() == (X * 30).tolist()
    assert models[4].scaled(X).tolist() == (X * 4).tolist()


def test_a_look_up_does_not_slow_with_their_number():
    """Of 400 entries a call tries the newest four, and the one that served a call like it before."""
    text = abi.DECLARATIONS + (
        "cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:\n    return 0\n"
    )
    library = cython_build.build(text, name="nothing")
    asked = []

    def leaf(value):
        return E.StaticLeaf(value, lambda other: asked.append(other) or other == value, key=hash)

    function = dispatch.Dispatcher(None, ("x",))
    for k in range(400):
        roots = (E.Root(E.Position(0), leaf(Choice(str(k)))),)
        function.add(E.Entry(library.address, roots, output=E.Constant(k), keep=library))
    assert [function(Choice(str(k))) for k in range(400)] == list(range(400))  # tried, and remembered
    asked.clear()
    assert [function(Choice(str(k))) for k in range(400)] == list(range(400))
    assert len(asked) < 400 * 7 and function.hits == 800
    for entry in function.entries[100:]:
        function.remove(entry)
    assert len(function.entries) == 100 and function(Choice("399")) == 399
    with pytest.raises(LookupError):
        function(Choice("5"))


def test_what_fits_two_entries_is_served_by_one_that_still_fits():
    """What the look-up remembers is confirmed: the program may change what it was found by."""
    counter = Box(0.0, "")

    def count(x):
        counter.name += "n"
        return x * len(counter.name)

    jitted = mp.jit(count)
    for _ in range(2):
        counter.name = ""
        assert [jitted(X)[1] for _ in range(8)] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


@pytest.fixture
def at_most_five():
    with mp.config(max_programs=5):
        yield


@pytest.mark.parametrize("native", [True, False], ids=["native", "numpy"])
def test_the_least_recently_used_program_goes_first(at_most_five, caplog, native):
    with mp.config(native=native), caplog.at_level(logging.WARNING, "metaphrase"):
        jitted = mp.jit(lambda x, name: x * len(name))
        for k in range(1, 6):
            jitted(X, "a" * k)
        jitted(X, "a")  # the oldest, and now the last that was used
        assert "max_programs" not in caplog.text
        jitted(X, "a" * 6)
        jitted(X, "a" * 7)
    assert caplog.text.count("max_programs") == 1
    info = jitted.cache_info()
    assert (info.misses, info.currsize, len(jitted.signatures)) == (7, 5, 5)
    assert [s.text.count("a") for s in jitted.signatures] == [1, 4, 5, 6, 7]
    with mp.config(native=native):
        assert jitted(X, "a").tolist() == X.tolist() and jitted.cache_info().misses == 7
        assert jitted(X, "aa").tolist() == (2 * X).tolist() and jitted.cache_info().misses == 8
    if native:
        assert len(jitted.entries) == 5


def test_programs_outside_of_jit_are_bounded_too(at_most_five):
    slope = mp.grad(lambda x, name: (x * len(name)).sum())
    texts = len(linecache.cache)
    for k in range(1, 30):
        assert slope(X, "b" * k).tolist() == [k] * 3
    gc.collect()
    assert slope._memo.misses == 29 and sum(map(len, slope._memo.table.values())) == 5
    assert len(linecache.cache) - texts <= 8


def test_calls_with_sizes_of_their_own_are_bounded(at_most_five):
    jitted = mp.jit(of_size)
    for n in range(2, 20):
        assert jitted(np.ones(n)) == sum(range(n))
    assert jitted.cache_info().currsize == 5


def test_libraries_that_nothing_holds_are_unloaded(at_most_five):
    jitted = mp.jit(lambda x, name: x * len(name) + 0.625)
    before = mapped()
    for k in range(1, 25):
        jitted(X, "c" * k)
    jitted(X, "c" * 21), gc.collect()
    assert 5 <= mapped() - before <= 8
    lowered = jitted.lower(X, "kept").compile()
    for k in range(1, 10):
        jitted(X, "d" * k)
    gc.collect()
    assert lowered(X, "kept").tolist() == (X * 4 + 0.625).tolist()


def mapped():
    """How many compiled programs of ours the process has loaded."""
    gc.collect()
    with open("/proc/self/maps") as file:
        return len({line.split()[-1] for line in file if "r-xp" in line and ".so" in line})


@pytest.mark.parametrize("native", [False, True])
def test_what_is_forgotten_leaves_nothing(at_most_five, native):
    """Open files, mappings, objects, texts: as many after some programs as after more of them."""

    def held() -> tuple[int, ...]:
        gc.collect()
        maps = Path("/proc/self/maps").read_text().count("library.so")
        return len(os.listdir("/proc/self/fd")), maps, len(linecache.cache), len(gc.get_objects()) // 100

    def power(x, k):
        return x * k + 1.0

    f = mp.jit(power, static_argnames="k")
    rounds = []
    with mp.config(native=native):
        for start in (0, 8, 16):
            for k in range(start, start + 8):
                assert f(np.ones(3), k=float(k)).tolist() == [k + 1.0] * 3
            rounds.append(held())
    files, maps, texts, objects = zip(*rounds)
    assert files[1] == files[2] and maps[1] == maps[2] and texts[1] >= texts[2] and (maps[2] > 0 or not native)
    assert objects[2] <= objects[1] + 5


def test_no_bound(at_most_five):
    with mp.config(max_programs=0):
        jitted = mp.jit(lambda x, name: x * len(name))
        for k in range(1, 12):
            jitted(X, "e" * k)
        assert jitted.cache_info().currsize == 11
