"""Lists whose length only the run knows where NumPy joins them, and where `map`, `zip` and the like take
them: as arrays made of them, with the types of their items."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError


def under_a_test(x):
    ts, ys = [], []
    for v in x:
        if v > 1:
            ts.append(v)
            ys.append(v * 2)
    return ts, ys


def while_it_lasts(x):
    ts, ys = [], []
    v = x[0]
    while v < 8:
        ts.append(v)
        ys.append(v * 2)
        v = v * 1.5
    return ts, ys


def pairs(x):
    p = []
    for i, v in enumerate(x):
        if v > 1:
            p.append((i, float(v)))
    return p


def numbers(x):
    return [i for i, v in enumerate(x) if v > 1]


def shown(value):
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [shown(v) for v in value]
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    return type(value), value


JOINED = {
    "column_stack": lambda ts, ys, x: np.column_stack([ts, ys]),
    "vstack": lambda ts, ys, x: np.vstack((ts, ys)),
    "stack": lambda ts, ys, x: (np.stack([ts, ys]), np.stack([ts, ys], axis=1)),
    "index": lambda ts, ys, x: (np.c_[ts, ys], np.r_[ts, ys], np.r_[0, ts, 5], np.r_[x, ts]),
    "concatenate": lambda ts, ys, x: (np.concatenate([x, ts]), np.concatenate((ts, ys, [1.0]))),
    "hstack": lambda ts, ys, x: np.hstack([x, ts]),
    "dstack": lambda ts, ys, x: np.dstack([ts, ys]),
    "block": lambda ts, ys, x: (np.block([ts, ys]), np.block([[ts], [ys]]), np.block(ts)),
    "array": lambda ts, ys, x: (np.array([ts, ys]), np.asarray((ts, ys)).T),
    "with an array": lambda ts, ys, x: np.column_stack([ts, np.array(ys) + 1]),
    "reduced": lambda ts, ys, x: (np.add.reduce([ts, ys]), np.mean([ts, ys], axis=0), np.max([ts, ys])),
    "ends": lambda ts, ys, x: np.concatenate([[0.0], ts, [1.0]]),
    "zipped": lambda ts, ys, x: (np.array(list(zip(ts, ys))), list(zip(ts, ys)), list(enumerate(ts))),
}


@pytest.mark.parametrize("make", [under_a_test, while_it_lasts], ids=lambda f: f.__name__)
@pytest.mark.parametrize("names, native", [*(([name], False) for name in JOINED), (list(JOINED), True)])
def test_joined(names, make, native):
    def f(x):
        ts, ys = make(x)
        return [JOINED[name](ts, ys, x) for name in names]

    jitted = mp.jit(f)
    with mp.config(native=native):
        for x in (np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.0, 5.0, 0.25, 7.0])):
            assert shown(jitted(x)) == shown(f(x))


def test_lists_of_other_lengths_are_refused_by_the_run():
    def f(x):
        return np.column_stack([[v for v in x if v > 1], [v for v in x if v > 2]])

    jitted = mp.jit(f)
    np.testing.assert_array_equal(jitted(np.array([3.0, 0.0])), [[3.0, 3.0]])
    with pytest.raises(ValueError):
        jitted(np.array([1.5, 3.0]))


def test_reduce_of_nothing_raises():
    def f(x):
        return functools.reduce(operator.mul, [v for v in x if v > 0])

    jitted = mp.jit(f)
    assert jitted(np.array([2.0, -1.0, 3.0])) == 6.0
    with pytest.raises(TypeError, match="empty iterable with no initial value"):
        jitted(np.array([-2.0, -1.0]))


TAKEN = {
    "list of each": lambda p, q: list(map(list, p)),
    "first of each": lambda p, q: list(map(lambda t: t[0], p)),
    "filtered": lambda p, q: (list(filter(lambda t: t[0] > 1, p)), list(filter(lambda i: i % 2, q))),
    "loop over a map": lambda p, q: [t for t in map(lambda t: (t[1], t[0]), p)],
    "ints": lambda p, q: (list(map(lambda i: i * 2, q)), list(map(float, q))),
    "sum": lambda p, q: sum(map(lambda t: t[0] * t[1], p)),
    "any": lambda p, q: (any(map(lambda t: t[1] > 2, p)), all(map(lambda t: t[1] > 2, p))),
    "two": lambda p, q: (list(map(lambda i, t: i + t[1], q, p)), list(zip(q, p))),
    "reversed": lambda p, q: (list(reversed(q)), [t for t in reversed(p)]),
}


@pytest.mark.parametrize("names, native", [*(([name], False) for name in TAKEN), (list(TAKEN), True)])
def test_the_items_keep_their_types(names, native):
    def f(x):
        return [TAKEN[name](pairs(x), numbers(x)) for name in names]

    jitted = mp.jit(f)
    with mp.config(native=native):
        for x in (np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.0, 5.0, 0.25, 7.0])):
            assert shown(jitted(x)) == shown(f(x))


# --- sizes that are equal when it runs ---


SPREAD = {
    "to": lambda a, b: np.broadcast_to(a, b.shape),
    "rows": lambda a, b: np.broadcast_to(a, (3, len(b))).sum(axis=0),
    "arrays": lambda a, b: sum(np.broadcast_arrays(a, b)),
    "known": lambda a, b: np.broadcast_to(a, (2,)),
    "of known": lambda a, b: np.broadcast_to(np.ones(2), b.shape),
    "one": lambda a, b: (np.broadcast_to(a[:, None], (len(a), len(b))), np.broadcast_to(2.0, b.shape)),
}


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", list(SPREAD))
def test_broadcast_checks_sizes_of_the_run(name, native):
    def f(x, least):
        w = x > 1
        return SPREAD[name](x[w], x[np.flatnonzero(x > least)])

    jitted = mp.jit(f)
    x = np.array([1.0, 2.0, 3.0])
    with mp.config(native=native):
        assert shown(jitted(x, 1.0)) == shown(f(x, 1.0))
        if name in ("to", "rows", "arrays", "of known"):
            with pytest.raises(ValueError, match="could not be broadcast"):
                jitted(x, 0.5)


def appends_on_one_path(x, n):
    items, found = [x[0], 2.0, x[1]], [x[2]]
    for _ in items[:]:
        if x[1] < 1.0:
            items[0] = 1.0
        else:
            items = items[:]
            for _ in range(n):
                found.append(1.0)
    return items, found


def test_an_inner_loop_that_appends_on_one_path_is_refused():
    with pytest.raises(SourceError, match="each time as often as only the run knows"):
        mp.jit(appends_on_one_path)(np.zeros(5), 2)
