"""Captured numbers that change: read at each call, written back, and no program for each value.

In: objects, globals, cells and containers that hold numbers. Out: what Python does, call after call, in
native code and by the NumPy stage, from at most two programs.
"""

from __future__ import annotations

import copy
import logging
import types

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.config import config
from metaphrase.source import SourceError

NATIVE = pytest.mark.parametrize("native", [True, False], ids=["native", "numpy"])


class Simulation:
    """What a user's class with a clock looks like."""

    drift = 0.25
    calls = 0

    def __init__(self):
        self.t, self.dt, self.n, self.x = 0.0, 0.125, 0, np.zeros(3)
        self.last, self.seed, self.name = 0.0, 7, "s"

    def step(self, f):
        self.x = self.x + self.dt * f
        self.t += self.dt
        self.n += 1
        return self.t

    def branch(self, f):
        if self.n % 3 == 0:
            self.last = self.t
            self.x = np.ones(3)
        else:
            self.x += f
        self.n += 1
        self.t += self.drift
        return self.x.sum() + self.last

    def loop(self, f):
        for i in range(self.n % 4 + 20):
            self.t += self.dt * i
            self.x = self.x * 0.5 + f
        self.n += 1
        return self.t

    def early(self, f):
        self.n += 1
        if self.n > 2:
            return self.t
        self.t = self.t + f
        return f

    def helpers(self, f):
        return self.tick(f) + self.tick(2 * f)

    def tick(self, f):
        self.t += f
        self.calls += 1
        return self.t * self.calls

    def generator(self, f):
        self.seed = (self.seed * 1103515245 + 12345) % 2147483648
        return self.seed / 2147483648 + f

    def swap(self, f):
        self.t, self.last = self.last + f, self.t
        return self.t

    def through_setattr(self, f):
        for name in ("t", "dt"):
            setattr(self, name, getattr(self, name) + f)
        return self.t - self.dt

    def becomes_float(self, f):
        self.n += f
        return self.n

    def size(self, f):
        self.n += 1
        return np.full(self.n, f)

    def only_on_one_side(self, f):
        if f > 0.75:
            self.last = 5.0
        return f


METHODS = [
    name
    for name, made in vars(Simulation).items()
    if isinstance(made, types.FunctionType) and name not in ("__init__", "tick")
]


def same_objects(a, b):
    for name in vars(b):
        mine, theirs = getattr(a, name), getattr(b, name)
        assert type(mine) is type(theirs), name
        if not isinstance(mine, str):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@NATIVE
@pytest.mark.parametrize("name", METHODS)
def test_method_with_state(name, native):
    method = getattr(Simulation, name)
    f = mp.jit(method)
    ours, theirs = Simulation(), Simulation()
    with config(native=native):
        for k in range(6):
            force = 0.5 + 0.1 * (k % 4)
            got, want = f(ours, force), method(theirs, force)
            np.testing.assert_allclose(got, want, rtol=1e-12)
            same_objects(ours, theirs)
    assert f.cache_info().currsize <= 2, f.cache_info()


@NATIVE
def test_jitted_methods_nest(native):
    class Outer(Simulation):
        inner = mp.jit(Simulation.step)

        @mp.jit
        def advance(self, f):
            return self.inner(f) + self.inner(2 * f) + self.t

    ours, theirs = Outer(), Simulation()
    with config(native=native):
        for _ in range(4):
            want = Simulation.step(theirs, 1.0) + Simulation.step(theirs, 2.0) + theirs.t
            assert ours.advance(1.0) == want
            same_objects(ours, theirs)
    assert Outer.advance.cache_info().currsize == 1


@NATIVE
def test_bound_methods_and_callable_objects(native):
    class Counter:
        count = 0

        def __call__(self, x):
            self.count += 1
            return x * self.count

    with config(native=native):
        counter, ours, theirs = Counter(), Simulation(), Simulation()
        f, g = mp.jit(counter), mp.jit(ours.step)
        assert [f(2.0) for _ in range(4)] == [2.0, 4.0, 6.0, 8.0]
        assert counter.count == 4 and Counter.count == 0
        for _ in range(3):
            assert g(1.0) == theirs.step(1.0)
    assert f.cache_info().currsize == g.cache_info().currsize == 1


def test_calls_are_served_by_the_dispatcher():
    """A store into an attribute is done by the dispatcher, not by a slow way round it."""
    f, s = mp.jit(Simulation.step), Simulation()
    for _ in range(5):
        f(s, 1.0)
    assert f.hits == 4 and f.cache_info().misses == 1
    assert (type(s.t), s.t, type(s.n), s.n) == (float, 0.625, int, 5)


class Slotted:
    __slots__ = ("t",)


@NATIVE
def test_slots_and_own_setattr(native):
    class Guarded:
        def __init__(self):
            object.__setattr__(self, "t", 1)
            object.__setattr__(self, "stores", 0)

        def __setattr__(self, name, value):
            object.__setattr__(self, "stores", self.stores + 1)
            object.__setattr__(self, name, value)

    @mp.jit
    def tick(thing, x):
        thing.t += 1
        return x * thing.t

    slotted, guarded = Slotted(), Guarded()
    slotted.t = 1
    with config(native=native):
        assert [tick(slotted, 1.0) for _ in range(3)] == [2.0, 3.0, 4.0] and slotted.t == 4
        assert [tick(guarded, 1.0) for _ in range(3)] == [2.0, 3.0, 4.0]
        assert (guarded.t, guarded.stores) == (4, 3)


rate = 0.5
settings = {"rate": 0.5, "steps": 2, "inner": [1.0, 2]}
axis = 0


@NATIVE
def test_globals_cells_items(native):
    global rate
    factor = 1

    def by_global(x):
        return x * rate

    def by_cell(x):
        return x * factor

    def by_item(x):
        for _ in range(settings["steps"]):
            x = x - settings["rate"] * x + settings["inner"][1]
        return x

    def nested(x):
        return mp.grad(lambda w: w * w * rate)(x) + factor

    functions = [by_global, by_cell, by_item, nested]
    with config(native=native):
        jitted = [mp.jit(f) for f in functions]
        for _ in range(5):
            want = [3.0 * rate, 3.0 * factor, by_item(3.0), 6.0 * rate + factor]
            assert [f(3.0) for f in jitted] == pytest.approx(want, rel=1e-14)
            rate *= 0.9
            factor += 1
            settings["rate"] *= 0.5
            settings["steps"] += 1
            settings["inner"][1] += 1
    assert [f.cache_info().currsize for f in jitted] == [2, 2, 2, 2]


class Trainer:
    """State in containers, as many programs have it."""

    def __init__(self):
        self.state = {"n": 0, "w": np.ones(3), "inner": [1.0, np.zeros(2)]}
        self.other = {"n": 0}

    def items(self, f):
        self.state["n"] += 1
        self.state["w"] = self.state["w"] - f * self.state["n"]
        self.state["inner"][0] *= 0.5
        self.state["inner"][-1] += f
        return self.state["w"].sum() + self.state["inner"][-2] + self.other["n"]

    def in_branch(self, f):
        if self.state["n"] % 2 == 0:
            self.state["n"] += 3
            self.state["w"] = np.full(3, f)
        else:
            self.state["n"] -= 2
        return sum(self.state["w"]) * self.state["n"]

    def in_loop(self, f):
        for k in range(40):
            self.state["n"] += k
            self.state["w"] = self.state["w"] * 0.5 + f
        return self.state["w"] * self.state["n"]

    def whole(self, f):
        before = mp.tree.map(lambda leaf: leaf * f, self.state)
        self.state["w"] = self.state["w"] + 1.0
        after = mp.tree.map(lambda leaf: leaf * f, self.state)
        return before, after


@NATIVE
@pytest.mark.parametrize("name", ["items", "in_branch", "in_loop", "whole"])
def test_items_of_captured_containers(name, native):
    method = getattr(Trainer, name)
    f, ours, theirs = mp.jit(method), Trainer(), Trainer()
    with config(native=native):
        for k in range(5):
            got, want = f(ours, 0.5 + k), method(theirs, 0.5 + k)
            for mine, wanted in zip(mp.tree.leaves((got, ours.state)), mp.tree.leaves((want, theirs.state))):
                np.testing.assert_allclose(mine, wanted, rtol=1e-12)
                assert type(mine) is type(wanted)
    assert f.cache_info().currsize == 1
    if native:
        assert f.hits == 4


@NATIVE
def test_one_object_in_two_places(native):
    """Which places hold one object is part of the program."""
    weights, shared = np.ones(2), {"n": 1}
    first, second = types.SimpleNamespace(w=weights, d=shared), types.SimpleNamespace(w=weights, d=shared)

    @mp.jit
    def both(x):
        first.d["n"] += 1
        return first.w * x + second.w, second.d["n"]

    def check():
        n = second.d["n"] + (first.d is second.d)
        w = first.w * 2.0 + second.w
        got = both(2.0)
        np.testing.assert_array_equal(got[0], w)
        assert got[1] == n

    with config(native=native):
        check(), check()
        first.w = np.full(2, 5.0)
        check()
        second.d = {"n": 10}
        check(), check()
        second.w = first.w
        second.d = first.d
        check(), check()
    assert both.cache_info().currsize <= 4


@NATIVE
def test_attributes_that_hold_one_array(native):
    @mp.jit
    def join(s, x):
        s.x = s.x + x
        s.other = s.x
        return s.x.sum()

    @mp.jit
    def store(s, x):
        s.x[0] = x
        return s.other[0]

    s = Simulation()
    with config(native=native):
        for k in range(3):
            join(s, 1.0)
            assert s.x is s.other and s.x[0] == k * 3.0 + 1.0
            assert store(s, 3.0 * (k + 1)) == s.other[0] == 3.0 * (k + 1)


def test_transformations_read_them():
    scale = 1.0
    square = mp.grad(lambda x: x * x * scale)
    rows = mp.jit(mp.vmap(lambda x: x * scale))
    forward = mp.jacfwd(lambda x: x * scale)
    for _ in range(4):
        assert square(3.0) == 6.0 * scale
        np.testing.assert_array_equal(rows(np.ones(2)), [scale, scale])
        np.testing.assert_array_equal(forward(np.ones(2)), np.eye(2) * scale)
        scale += 1.0
    assert square._memo.misses == rows.cache_info().misses == forward._memo.misses == 2


def test_sizes_and_numbers_together():
    """A number that changes beside sizes that change makes no program for each size."""
    shift = 0.0
    f = mp.jit(lambda x: x.sum() + shift)
    for n in range(2, 12):
        shift += 0.5
        assert f(np.ones(n)) == n + shift
    assert f.cache_info().currsize <= 3


def test_pinned_where_the_value_is_needed(caplog):
    global axis
    f = mp.jit(lambda x: x.sum(axis=axis))
    x = np.arange(6.0).reshape(2, 3)
    with caplog.at_level(logging.INFO, "metaphrase"):
        for axis in (0, 1, 0, 1):
            np.testing.assert_array_equal(f(x), x.sum(axis=axis))
    assert f.cache_info().currsize == 2
    assert any("axis is pinned to 1" in r.getMessage() for r in caplog.records)


def test_the_log_says_what_changed(caplog):
    count = 1
    f = mp.jit(lambda x: x * count)
    with caplog.at_level(logging.INFO, "metaphrase"):
        f(1.0)
        count = 2
        f(1.0)
    assert "count changed from 1 to 2; it is read at each call from now on" in caplog.text


@NATIVE
def test_types_change(native):
    value = 0
    f = mp.jit(lambda x: x + value)
    with config(native=native):
        for value in (0, 1, 2, 0.5, 1.5, 3, True, False, 2**70, 4):
            got = f(1.0)
            assert got == 1.0 + value and type(got) is float
    assert f.cache_info().currsize <= 7


@NATIVE
def test_numpy_scalars(native):
    class Holder:
        t = np.float32(1.0)

    holder = Holder()

    def tick(x):
        holder.t = holder.t + x
        return holder.t

    f = mp.jit(tick)
    with config(native=native):
        for k in range(4):
            got = f(np.float32(0.5))
            assert got == np.float32(1.5 + 0.5 * k) and type(holder.t) is np.float32
    assert f.cache_info().currsize == 1


@NATIVE
def test_a_call_that_raises_leaves_objects(native):
    @mp.jit
    def tick(s, x):
        s.t += 1.0
        if x > 1:
            raise ValueError("too large")
        s.n += 1
        return x

    s = Simulation()
    with config(native=native):
        for x in (0.5, 2.0, 0.5, 3.0):
            if x > 1:
                with pytest.raises(ValueError, match="too large"):
                    tick(s, x)
            else:
                tick(s, x)
    assert (s.t, s.n) == (2.0, 2) and tick.cache_info().currsize == 1


def test_staging_leaves_no_trace():
    s = Simulation()
    before = copy.deepcopy(vars(s))
    mp.source(mp.jit(Simulation.branch), s, 1.0)
    mp.source(mp.jit(Simulation.tick), s, 1.0)
    same_objects(s, types.SimpleNamespace(**before))
    assert "calls" not in vars(s)


def test_derivatives_refuse_stores_into_objects():
    s = Simulation()
    with pytest.raises(SourceError, match="writes to attribute 't'"):
        mp.grad(lambda x: Simulation.tick(s, x))(1.0)
    assert s.t == 0.0


def test_the_source_is_a_program_of_the_object():
    f, s, again = mp.jit(Simulation.loop), Simulation(), Simulation()
    want = f(s, 1.0)
    space: dict = {}
    exec(f.source("numpy"), space)
    assert space["loop"](again, 1.0) == want and again.t == s.t and again.n == s.n
    np.testing.assert_array_equal(again.x, s.x)
