"""What the text of a loop says that it changes is known in the first pass over it; where the text misleads, results are
Python's all the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.frontend.flow import loops

from .test_what_loops_change import outcome

X = np.array([1.0, 2.0, 3.0, 4.0])
ON, OFF = True, False


class Walker:
    """An object whose methods change it."""

    def __init__(self, x):
        self.x, self.steps, self.path, self.adapts = x, 0, np.zeros(8), False

    def step(self, h):
        self.x = self.x + h
        self.note(self.x.sum())

    def note(self, value):
        self.path[self.steps % 8] = value
        self.steps += 1

    def adapted(self, h):
        if self.adapts:
            self.steps += 100
        return 0.5 * h


@dataclass(frozen=True)
class State:
    place: np.ndarray
    time: float


def fill(target, i, value):
    target[i] += value


# --- loops that are staged once ---


def arrays_and_stores(x, n):
    total, seen = np.zeros(4), np.zeros(4)
    for i in range(n):
        x = x * 0.5 + 1.0
        total += x
        seen[i % 4] = x[0]
    return x, total, seen


def stores_of_callees(x, n):
    table = np.zeros(4)
    for i in range(n):
        for j in range(4):
            fill(table, j, x[j] * i)
    return table


def methods(x, n):
    walker = Walker(x)
    for i in range(n):
        walker.step(x * i)
    return walker.x, walker.steps, walker.path


def lists_and_objects(x, n):
    z, state = [x[0], x[1]], State(x, 0.0)
    for i in range(n):
        z = [z[1], z[0] + i]
        state = State(state.place * 2, state.time + x[0])
    return z[0], z[1], state.place, state.time


def pythons_floats_become_numpys(x, n):
    t, h, s = 0.0, 0.1, 0.0
    while t < n:
        error = np.abs(x).sum() * h
        t += h
        h = h * 0.9 if error > 1.0 else h * 1.1
        for i in range(4):
            s += x[i] * h + t
        h = min(0.5, h + 0.01 * x[0])
    return t, h, s


def pythons_integers_become_numpys(x, n):
    count, best, where = 0, 0, 0
    for i in range(n + 1):
        above = (x > i).sum()
        count += above
        if above > best:
            best = above
        for j in range(4):
            where = where + np.int64(i * j)
    return count, best, where


def floats_stay_pythons(x, n):
    t, u = 0.0, 1.0
    for _ in range(n):
        t, u = t + 0.5, u * 2.0 - t
        for _ in range(n):
            u = u + t
    return t, u, 1 if t < u else 2


def first_bound_inside(x, n):
    last = x[0]
    for i in range(n):
        before = last
        last = before * 2 + i
        least = before - i
    return last, least, i


def comprehensions(x, n):
    total = 0.0
    for i in range(n):
        total += sum([v * i for v in x]) + len([v for v in x])
    return total, np.array([[x[i] * j for j in range(3)] for i in range(4)])


ONCE = [
    arrays_and_stores,
    stores_of_callees,
    methods,
    lists_and_objects,
    pythons_floats_become_numpys,
    pythons_integers_become_numpys,
    floats_stay_pythons,
    comprehensions,
]

# --- texts that mislead ---


def stores_that_never_run(x, n):
    table, s = np.array([1.0, 2.0]), 0.0
    for i in range(n):
        if OFF:
            table[0] = x[0]
        s += x[i % 4] * table[0] + np.zeros(int(table[1])).shape[0]
    return s, table


def methods_that_change_nothing(x, n):
    walker, h = Walker(x), 1.0
    for _ in range(n):
        h = walker.adapted(h)
    return h, walker.steps


def bound_to_what_it_was(x, n):
    y = x
    for _ in range(n):
        y = x
    y[0] = 5.0
    return x, y


def bound_to_what_it_was_in_turns(x, n):
    a, b = x, x * 2
    for _ in range(n):
        a, b = b, a
    return a, b


def told_by_a_number_that_is_known(x, n):
    walker = Walker(x)
    t = 0.0
    for _ in range(n):
        left = walker.steps
        if left > 0:
            walker.steps = left - 1
            t = x[0]
        t = t + 1.0
    return walker.steps, t


def told_by_an_item_that_is_known(x, n):
    z, t = [0, x[0]], 0.0
    for _ in range(n):
        if z[0] > 0:
            z = [z[0] - 1, z[1] * 2]
            t = x[1]
        t = t + 1.0
    return z[0], z[1], t


def told_by_how_long_a_loop_is(x, n):
    walker, t = Walker(x), 0.0
    for _ in range(n):
        for _ in range(walker.steps):
            walker.steps += 1
            t = x[0]
        t = t + 1.0
    return walker.steps, t


def told_by_identity(x, n):
    state, t = State(x, 0.0), 0.0
    first = state
    for _ in range(n):
        if state is not first:
            state = State(x * 2, 1.0)
            t = x[0]
        t = t + 1.0
    return state.time, t


def told_by_a_test_before(x, n):
    walker, t = Walker(x), 0.0
    for _ in range(n):
        while walker.steps > 0:
            walker.steps -= 1
            t = x[0]
        t = t + 1.0
    return walker.steps, t


def told_by_the_range_of_another(x, n):
    walker, t = Walker(x), 0.0
    for _ in range(n):
        i = 0
        while i < walker.steps and walker.steps < 9:
            i += 1
            walker.steps += 1
            t = x[0]
        t = t + 1.0
    return walker.steps, t


def asked_whose_it_is(x, n):
    t, kinds = 0.0, 0
    for i in range(n):
        kinds = kinds + isinstance(t, np.float64) + 2 * (type(t) is float)
        t = t + x[i % 4]
    return t


def an_integer_that_is_an_index_and_becomes_numpys(x, n):
    k, total = 0, 0.0
    for i in range(n + 1):
        total = total + x[k] + np.zeros(k + 1).sum()
        k = (x * (i + 1)).argmax() % 3
    return k, total


def an_integer_beside_a_narrow_number(x, n):
    k, y = 0, x.astype(np.float32)
    s = y[0]
    for _ in range(n + 1):
        s = y[0] * k + s
        k = k + (x > 2.0).sum()
    return s, k


def asked_of_one_that_is_made_of_another(x, n):
    walker, t, y = Walker(x), 1.0, x.copy()
    walker.mass = 0.0
    for _ in range(n + 1):
        y[1] = t
        t = walker.mass
        walker.mass = min(np.sin(y[1]), x[0])
    return t, walker.mass


def divided_by_zero_as_python_does(x, n):
    t, u = 0.0, 1.0
    for i in range(n):
        u = 1.0 / t if i > 5 else u
        t = t + 0.0
    return t, u


def a_narrow_number_beside_pythons(x, n):
    t = 0.0
    y = x.astype(np.float32)
    s = y[0]
    for i in range(n):
        s = y[i % 4] * t + s
        t = t + 1.0
    return s, t


def one_float_of_two_that_is_numpys(x, n):
    t, u, v = 0.0, 0.0, 0.0
    for i in range(n + 2):
        t = t + u
        u = u + v
        v = v + x[i % 4]
    return t, u, v


MISLEADING = [
    stores_that_never_run,
    methods_that_change_nothing,
    bound_to_what_it_was,
    bound_to_what_it_was_in_turns,
    told_by_a_number_that_is_known,
    told_by_an_item_that_is_known,
    told_by_how_long_a_loop_is,
    told_by_identity,
    told_by_a_test_before,
    told_by_the_range_of_another,
    asked_whose_it_is,
    asked_of_one_that_is_made_of_another,
    an_integer_that_is_an_index_and_becomes_numpys,
    an_integer_beside_a_narrow_number,
    divided_by_zero_as_python_does,
    a_narrow_number_beside_pythons,
    one_float_of_two_that_is_numpys,
    first_bound_inside,
]


@pytest.mark.parametrize("n", [1, 3, 7])
@pytest.mark.parametrize("function", ONCE + MISLEADING)
def test_as_in_python(function, n):
    with mp.config(native=False):
        assert outcome(mp.jit(function), (X, n)) == outcome(function, (X, n))


@pytest.mark.parametrize("function", ONCE)
def test_a_loop_is_staged_once(function, monkeypatch):
    passes = []
    plain = loops._pass
    monkeypatch.setattr(loops, "_pass", lambda here, loop, *rest: passes.append(loop.site) or plain(here, loop, *rest))
    with mp.config(native=False):
        mp.jit(function)(X, 3)
    assert passes and len(passes) == len(set(passes))
