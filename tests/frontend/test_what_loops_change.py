"""What a loop changes is what its body is seen to change: code that does not run, tests on what nothing changes, and
questions of type or identity leave no trace in values, types and errors."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.frontend.staging.stage import stage

OFF = False
X = np.array([1.0, 2.0, 3.0])


def outcome(function, args):
    given = copy.deepcopy(args)
    try:
        with np.errstate(all="ignore"):
            return _shown((function(*given), given))
    except Exception as error:
        return type(error).__name__


def _shown(value):
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *map(_shown, value)]
    return type(value).__name__, getattr(value, "dtype", None), np.asarray(value).tolist()


# --- numbers that are not NumPy's ---


def set_in_code_that_never_runs(x, n):
    t = 0.0
    for i in range(n):
        if OFF:
            t = x[i]
        t = t + 1.0
    return t, 1.0 / (t - 3.0)


def an_index_in_code_that_never_runs(x, n):
    k = 0
    for i in range(n):
        if OFF:
            k = x[i]
        k = k + 1
    return k, x[-k]


def doubled_beyond_64_bits(x, n):
    t = 1
    for _ in range(n):
        if OFF:
            t = x.argmax()
        t = t * 2
    return t


def chosen_by_a_flag(x, n):
    t = 0.0
    for i in range(n):
        y = x[i] if OFF else 2
        t = t + y
    return t


def a_name_used_twice(x, n):
    u = 0.0
    for i in range(n):
        t = x[i]
        s = t * 2
        t = 0.5
        u = u + t
    return u, s


def python_numbers_of_arrays(x, n):
    size, total = 0, 0.0
    for i in range(n):
        size = size + np.size(x)
        total = total + x.item(i)
    return size, total


def converted(x, n):
    c = 0.0
    for i in range(n):
        y = x[i]
        if OFF:
            c = y
        c = c + float(y)
    return c


def in_a_loop_of_no_iterations(x, n):
    t = 0.0
    for _ in range(n):
        for j in range(0):
            t = x[j]
        for _ in range(2):
            t = t + 1.0
    return t


def rounded_and_sorted(x, n):
    t = 0.0
    for i in range(n):
        t = sorted([round(t, 3), 7.0, 2.0])[0]
        if OFF:
            t = x[i]
    return t


def in_a_list(x, n):
    t, items = 0.0, [1.0, 2.0, 3.0]
    for i in range(n):
        items[i] = t
        t = items[i] + 1.0
        if OFF:
            t = x[i]
    return t, items


def by_its_type(x, n):
    t = 0.0
    for i in range(n):
        if isinstance(t, np.floating):
            t = x[i]
        else:
            t = t + 1.0
    return t


def by_an_attribute_of_its_type(x, n):
    t = 0.0
    for i in range(n):
        t = t.item() + x[i]
    return t


# --- attributes that stay what they are ---


class State:
    def __init__(self):
        self.count, self.total, self.size = 0, 0.0, 2

    def tick(self, x, i):
        if self.count != 0:
            self.count = self.count + 1
            self.total = x[i]
        self.total = self.total + 1.0


def counted_only_where_it_was(x, n):
    state = State()
    for i in range(n):
        state.tick(x, i)
    return state.count, state.total


def counted_down(x, n):
    state, t = State(), 0.0
    for i in range(n):
        while state.count > 0:
            state.count -= 1
            t = x[i]
        t = t + 1.0
    return state.count, t


# --- objects that stay what they are ---


@dataclass(frozen=True)
class Pair:
    p: float
    v: np.ndarray


def doubled_if_another(x, n):
    y, t = x, 0.0
    for i in range(n):
        if y is not x:
            y = y * 2
            t = x[i]
        t = t + 1.0
    return y, t


def made_if_another(x, n):
    p = q = Pair(0.0, x)
    t = 0.0
    for _ in range(n):
        if p is not q:
            p = Pair(1.0, x)
            t = x[0]
        t += 1.0
    return p.p, t


class Holder:
    def __init__(self, x):
        self.x = x


def held_if_another(x, n):
    holder, t = Holder(x), 0.0
    for _ in range(n):
        if holder.x is not x:
            holder.x = holder.x * 2
            t = x[0]
        t += 1.0
    return holder.x, t


FUNCTIONS = [
    (set_in_code_that_never_runs, 3),
    (set_in_code_that_never_runs, 0),
    (an_index_in_code_that_never_runs, 3),
    (doubled_beyond_64_bits, 50),
    (chosen_by_a_flag, 3),
    (a_name_used_twice, 3),
    (python_numbers_of_arrays, 3),
    (converted, 3),
    (in_a_loop_of_no_iterations, 3),
    (rounded_and_sorted, 3),
    (in_a_list, 3),
    (by_its_type, 3),
    (by_an_attribute_of_its_type, 3),
    (counted_only_where_it_was, 3),
    (counted_down, 3),
    (doubled_if_another, 3),
    (made_if_another, 3),
    (held_if_another, 3),
]


@pytest.mark.parametrize("function, n", FUNCTIONS)
def test_as_in_python(function, n):
    with mp.config(native=False):
        assert outcome(mp.jit(function), (X, n)) == outcome(function, (X, n))


# --- loops that could not be rolled as the code says ---


def stored_into_after_a_name_changed(x, n):
    y = x
    for _ in range(n):
        if OFF:
            y = y * 2
        y[0] += 1
    return y


def bound_again_each_time(x, n):
    y = x
    for i in range(n):
        y = x
        y[i] = 5.0
    return y


@pytest.mark.parametrize("function", [stored_into_after_a_name_changed, bound_again_each_time])
def test_no_loop_is_unrolled(function):
    assert _loops(function) == 1


def _loops(function):
    return sum(let.primitive.name == "loop" for let in stage(function, (X.copy(), 3)).function.lets)


# --- names and attributes that keep what they had ---


class Half:
    def __init__(self):
        self.whole = 0.0

    @property
    def half(self):
        return self.whole * 0.5

    @half.setter
    def half(self, value):
        self.whole = value * 2


def a_property_set(x, n):
    made = Half()
    for i in range(n):
        for _ in range(n):
            made.half = i * 0.5
    return made.whole


def a_property_added_to(x, n):
    made = Half()
    for e in x:
        for _ in range(n):
            made.half += e
    return made.whole


def not_bound_to_another(x, n):
    z = x.copy()
    held = Holder(z)
    for _ in range(n):
        if OFF:
            z = x
    held.x[0] += 1.0
    return z


def bound_to_itself(x, n):
    y = x
    for i in range(n):
        if x[i] > 1.5:
            y = x
    y[0] = 2.0
    return y


def a_part_that_stays(x, n):
    z = x.copy()
    pair = Pair(0.0, z)
    for _ in range(n):
        for i in range(n):
            if x[i] > 1.5:
                pair = Pair(pair.p + 1.0, pair.v)
        pair.v[0] += 1.0
    return pair.p, z


KEPT = [a_property_set, a_property_added_to, not_bound_to_another, bound_to_itself, a_part_that_stays]


@pytest.mark.parametrize("function", KEPT)
def test_what_stays_is_as_in_python(function):
    with mp.config(native=False):
        assert outcome(mp.jit(function), (X, 3)) == outcome(function, (X, 3))
