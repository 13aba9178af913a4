"""Captured containers, class attributes and modules: nothing of them is frozen, whoever takes them apart.

In: functions that hand captured containers to NumPy, the standard library, operators, joins and results.
Out: what Python gives, after what they read was changed, in native code and by the NumPy stage.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import types
from typing import NamedTuple

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import tree_util
from metaphrase.config import config

NATIVE = pytest.mark.parametrize("native", [True, False], ids=["native", "numpy"])


class Pair(NamedTuple):
    a: float
    b: np.ndarray


@dataclasses.dataclass
class Inner:
    v: np.ndarray
    k: float


class Holder:
    offset = 1.0
    table = np.ones(2)
    numbers = [1.0, 2.0]

    def __init__(self):
        self.tuple, self.list, self.inner = (1.0, np.ones(2)), [1.0, 2.0], Inner(np.ones(2), 1.0)
        self.array = np.ones(2)


def world():
    made = types.ModuleType("users_module")
    made.k, made.w, made.inner = 1.0, np.ones(2), {"k": 2.0}
    return made


P: dict = {}
L: list = []
N: list = []
T: tuple = ()
Q: Pair
S: set = set()
LONG: list = []
holder = Holder()
module = world()


def reset():
    global T, Q, holder, module
    P.clear(), P.update(w=np.ones(2), b=1.0)
    L[:] = [np.ones(2), np.ones(2)]
    N[:] = [1.0, 2.0]
    LONG[:] = [1.0] * 200
    S.clear(), S.update({1.0, 2.0})
    T, Q = (1.0, np.ones(2)), Pair(1.0, np.ones(2))
    holder, module = Holder(), world()
    Holder.offset, Holder.table, Holder.numbers = 1.0, np.ones(2), [1.0, 2.0]


def change():
    global T, Q
    P["w"], P["b"] = P["w"] + 1, P["b"] + 1
    L[0] = L[0] + 1
    L[1][0] += 1
    N[0], N[1] = N[0] + 1, N[1] + 3
    LONG[7] += 1
    S.add(len(S) + 1.0)
    T, Q = (T[0] + 1, T[1] + 1), Pair(Q.a + 1, Q.b + 1)
    holder.tuple, holder.inner.v = (holder.tuple[0] + 1, holder.tuple[1] + 1), holder.inner.v + 1
    holder.inner.k += 1
    holder.list[0] += 1
    holder.array[0] += 1
    Holder.offset += 1
    Holder.table = Holder.table + 1
    Holder.numbers[0] += 1
    module.k, module.inner["k"] = module.k + 1, module.inner["k"] + 1
    module.w[0] += 1


def carried_tuple(x):
    p = T
    for _ in range(30):
        p = (p[0], p[1] + p[0])
    return p[1] * x


def carried_dict(x):
    p = P
    for _ in range(30):
        p = {"w": p["w"] + p["b"], "b": p["b"]}
    return p["w"] * x


def carried_object(x):
    c = holder.inner
    for _ in range(30):
        c = Inner(c.v + c.k, c.k)
    return c.v * x


def branch_dict(x):
    p = P if x > 0 else {"w": np.zeros(2), "b": 0.0}
    return p["w"] * p["b"]


def branch_object(x):
    c = holder.inner
    if x > 5:
        c = Inner(np.zeros(2), 0.0)
    return c.v * c.k


def returned(x):
    return P, T, [L, x]


def stacked(x):
    return np.stack(L) * x


def made_array(x):
    return np.array(N) * x + np.asarray([N, N])[0]


def concatenated(x):
    return np.concatenate([*L, x * L[1]])


def summed(x):
    return np.sum(holder.list) * x + sum(N) + max(N) + np.linalg.norm(N) + np.dot(N, N)


def mapped(x):
    return tree_util.tree_map(lambda p: p * x, {"p": P, "t": T})


def reduced(x):
    return functools.reduce(lambda a, b: a + b, N) * x


def iterated(x):
    return [a * x for a, _ in zip(L, N)], sum(p for p in N), list(map(lambda a: a * x, N))


def displayed(x):
    return {**P, "x": x}, [*L, x], (*N, x)


def as_keywords(x):
    def inner(w, b):
        return w * b

    return inner(**P) * x


def added(x):
    return L + [x], T + (x,), N * 2


def compared(x):
    return x if N == [1.0, 2.0] else -x


def contained(x):
    return x if 1.0 in N else -x, 4.0 in S, "b" in P


def counted(x):
    return x * len(N) * len(S), (x if N else -x), N.index(max(N)), N.count(1.0)


def sorted_(x):
    return sorted(N)[0] * x + min(*N)


def many(x):
    return np.sum(np.array(LONG)) * x


def named(x):
    return Q.a * x + Q.b, Q


def by_vars(x):
    return vars(holder)["tuple"][0] * x + holder.__dict__["inner"].k


def copied(x):
    other = copy.copy(holder)
    other.k = x
    return other.tuple[0] * other.k + dataclasses.replace(holder.inner, k=x).v


def class_attributes(x):
    return holder.offset * x + holder.table + Holder.offset * Holder.numbers[0]


def module_attributes(x):
    return module.k * x + module.w * module.inner["k"]


def given_to_grad(x):
    return mp.grad(lambda p, y: (p["w"] * p["b"] * y).sum())(P, x)


def given_to_jit(x):
    return mp.jit(lambda p, y: p["w"] * p["b"] * y)(P, x)


FUNCTIONS = [
    made
    for made in list(globals().values())
    if isinstance(made, types.FunctionType) and made.__code__.co_varnames[:1] == ("x",)
]


def alike(a, b):
    if isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(alike, a, b))
    if isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[k], b[k]) for k in b)
    return type(a) is type(b) and np.allclose(a, b, rtol=1e-12)


@pytest.mark.turns(4)
@NATIVE
@pytest.mark.parametrize("function", FUNCTIONS, ids=[f.__name__ for f in FUNCTIONS])
def test_nothing_is_frozen(function, native):
    reset()
    jitted = mp.jit(function)
    with config(native=native):
        for step in range(4):
            want = function(2.0)
            got = jitted(2.0)
            assert alike(got, want), f"call {step}: {got} for {want}"
            change()
    most = {"contained": 4, "counted": 4, "sorted_": 4, "many": 4}.get(function.__name__, 2)
    assert jitted.cache_info().currsize <= most, jitted.cache_info()


@NATIVE
def test_what_is_there(native):
    """Which attributes and keys there are is part of the program."""

    @mp.jit
    def first(a, x):
        if not hasattr(a, "start"):
            a.start = x
        scale = getattr(a, "scale", 1.0)
        try:
            bonus = P["bonus"]
        except KeyError:
            bonus = 0.0
        return (x - a.start) * scale + bonus

    with config(native=native):
        ours, theirs = types.SimpleNamespace(), types.SimpleNamespace()
        reset()
        for x in (1.0, 2.0, 3.0):
            assert first(ours, x) == first.py_func(theirs, x)
        ours.scale = theirs.scale = 3.0
        assert first(ours, 4.0) == first.py_func(theirs, 4.0) == 9.0
        P["bonus"] = 1.0
        assert first(ours, 4.0) == first.py_func(theirs, 4.0) == 10.0


@NATIVE
def test_places_that_a_branch_or_loop_may_leave(native):
    """What an object holds before a store under a test is read at each call."""

    @mp.jit
    def loop(a, n):
        for _ in range(n):
            a.array = a.array * 2.0
            a.tuple = (a.tuple[0] + 1, a.tuple[1] + a.array)
        return a.array.sum()

    @mp.jit
    def branch(a, c):
        if c > 0:
            a.array = np.zeros(2)
            a.offset = 5.0
            a.inner = Inner(np.zeros(2), 0.0)
        return c

    ours, theirs = Holder(), Holder()
    with config(native=native):
        for n in (20, 20, 30):
            assert loop(ours, n) == loop.py_func(theirs, n)
            assert alike(ours.tuple, theirs.tuple)
        for c in (-1.0, -1.0, 1.0, -1.0):
            ours.array = theirs.array = ours.array + 1.0
            ours.inner.k = theirs.inner.k = ours.inner.k + 1.0
            assert branch(ours, c) == branch.py_func(theirs, c)
            assert alike(ours.array, theirs.array) and ours.offset == theirs.offset
            assert alike(vars(ours.inner), vars(theirs.inner))
    assert loop.cache_info().currsize <= 2


@NATIVE
def test_slices(native):
    @mp.jit
    def sliced(x):
        return sum(N[:2]) * x + N[::-1][0] + np.stack(L[::-1])

    with config(native=native):
        reset()
        for _ in range(4):
            assert alike(sliced(2.0), sliced.py_func(2.0))
            change()
    assert sliced.cache_info().currsize == 2
