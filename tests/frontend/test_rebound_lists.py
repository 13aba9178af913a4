"""A list, dict or object that a name holds on one path, and another one on the other: it may be written to
where nothing else holds the old one; elsewhere that is refused."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError


class Held:
    def __init__(self, items):
        self.items = items


def copied(x):
    pair = [x[0], 2.0]
    if x[1] > 0:
        pair = pair[:]
    pair[0] += 1.0
    return pair


def made_anew(x):
    pair = [x[0], 2.0]
    pair.append(x[2])
    pair[1] = 7.0
    if x[1] > 0:
        pair = [v * 2.0 for v in pair]
    pair[0] += 1.0
    pair.reverse()
    return pair


def on_both_sides(x):
    pair = [x[0], 2.0]
    if x[1] > 0:
        pair = [x[1], 3.0]
    else:
        pair = pair[::-1]
    pair[0] += 1.0
    return pair


def table(x):
    names = {"a": x[0], "b": 1.0}
    if x[1] > 0:
        names = dict(names, a=3.0)
    names["a"] += 1.0
    return names


def seen_by_a_closure(x):
    pair = [x[0], 2.0]

    def put(value):
        pair[0] = value

    if x[1] > 0:
        pair = pair[:]
    put(7.0)
    return pair


def in_a_loop(x):
    pair = [x[0], 2.0]
    for v in x:
        if v > 0:
            pair = [pair[1], pair[0]]
        pair[0] += v
    return pair


def twice(x):
    pair = [x[0], 2.0]
    if x[1] > 0:
        pair = pair[:]
    if x[2] > 0:
        pair = [0.0, pair[0]]
    pair[1] += 1.0
    return pair


FINE = [copied, made_anew, on_both_sides, table, seen_by_a_closure, in_a_loop, twice]


def named_twice(x):
    pair = [x[0], 2.0]
    other = pair
    if x[1] > 0:
        pair = pair[:]
    pair[0] += 1.0
    return pair, other


def of_the_caller(x):
    def changed(pair):
        if x[1] > 0:
            pair = pair[:]
        pair[0] += 1.0
        return pair

    own = [x[0], 2.0]
    return changed(own), own


def of_an_object(x):
    held = Held([x[0], 2.0])
    pair = held.items
    if x[1] > 0:
        pair = pair[:]
    pair[0] += 1.0
    return pair, held.items


def of_a_tuple(x):
    pair = [x[0], 2.0]
    both = (pair, 3)
    if x[1] > 0:
        pair = pair[:]
    pair[0] = 9.0
    return pair, both


def of_a_list(x):
    rows = [[x[0], 1.0], [x[1], 2.0]]
    for row in rows:
        if x[2] > 0:
            row = row[:]
        row[0] += 1.0
    return rows


def under_an_iterator(x):
    pair = [x[0], 2.0]
    rest = iter(pair)
    next(rest)
    if x[1] > 0:
        pair = pair[:]
    pair[1] = 9.0
    return next(rest), pair


def of_a_default(x):
    pair = [x[0], 2.0]

    def first(items=pair):
        return items[0]

    if x[1] > 0:
        pair = pair[:]
    pair[0] = 9.0
    return first(), pair


def the_new_one_is_named_too(x):
    pair, other = [x[0], 2.0], [x[1], 5.0]
    if x[1] > 0:
        pair = other
    pair[0] = 9.0
    return pair, other


def grown_afterwards(x):
    items = [x[1]]
    other = items
    for k in range(int(x[2] > 0) + 1):
        if x[0] > k:
            items = items + [x[0]]
    items.append(5.0)
    return items, other


REFUSED = [
    named_twice,
    of_the_caller,
    of_an_object,
    of_a_tuple,
    of_a_list,
    under_an_iterator,
    of_a_default,
    the_new_one_is_named_too,
    grown_afterwards,
]
ARGUMENTS = [np.array([1.0, 2.0, 3.0]), np.array([1.0, -2.0, 3.0]), np.array([-1.0, 2.0, -3.0]), -np.ones(3)]


def plain(value):
    return [float(v) for v in (value.values() if isinstance(value, dict) else value)]


@pytest.mark.parametrize("function", FINE)
def test_what_nothing_else_holds_is_written_to(function):
    jitted, slope = mp.jit(function), mp.grad(lambda x: np.tanh(sum(plain_sum(function(x)))))
    for x in ARGUMENTS:
        assert plain(jitted(x)) == plain(function(x))
    assert slope(ARGUMENTS[0]).shape == (3,)


def plain_sum(value):
    return list(value.values()) if isinstance(value, dict) else value


@pytest.mark.parametrize("function", REFUSED)
def test_what_something_else_may_hold_is_refused(function):
    with pytest.raises(SourceError, match="may or may not be the same object") as caught:
        mp.jit(function)(ARGUMENTS[0])
    assert caught.value.code == "alias"


def test_a_list_that_a_loop_replaces_and_another_turns():
    """The loops may run no time: then both names are the same list."""

    @mp.jit
    def run(x, n):
        pair = [1.0, x[1]]
        other = pair
        for _ in range(n):
            pair = pair[:]
            pair[0] = 1.0
        for _ in range(n):
            pair.reverse()
        pair[0] = -2.0
        return pair, other

    for n in (2, 3, 0):
        assert run(ARGUMENTS[0], n) == run.py_func(ARGUMENTS[0], n)


def test_a_list_that_is_an_argument_is_the_callers():
    @mp.jit
    def changed(x, pair):
        if x[1] > 0:
            pair = pair[:]
        pair[0] += 1.0
        return pair

    with pytest.raises(SourceError, match="may or may not be the same object"):
        changed(ARGUMENTS[0], [1.0, 2.0])


# --- in loops, which may run no time ---


def turned(x, n):
    pair = [x[0], 2.0]
    pair[1] = x[1]
    for _ in range(n):
        pair = pair[::-1]
    pair[0] += 1.0
    for _ in range(n):
        pair = [v * 2.0 for v in pair]
    pair[1] += 1.0
    return pair


def renewed(x, n):
    held = Held([1.0, x[1]])
    for _ in range(n):
        held = Held(held.items[::-1])
    held.items[0] += 1.0
    return held.items


def counted(x, n):
    names = {"a": x[0]}
    for _ in range(n):
        names = dict(names, a=names["a"] + 1.0)
    names["a"] += 1.0
    return names


def turned_with_a_second_name(x, n):
    pair = [x[0], 2.0]
    other = pair
    for _ in range(n):
        pair = pair[::-1]
    pair[0] += 1.0
    return pair, other


def renewed_with_a_second_name(x, n):
    held = Held([1.0, x[1]])
    other = held
    for _ in range(n):
        held = Held(held.items[::-1])
    held.items[0] += 1.0
    return held.items, other.items


def renewed_with_its_list_named(x, n):
    held = Held([1.0, x[1]])
    items = held.items
    for _ in range(n):
        held = Held([v + 1.0 for v in held.items])
    held.items[0] += 1.0
    return held.items, items


def turned_in_a_tuple(x, n):
    pair = [x[0], 1.0]
    both = (pair, 2)
    for _ in range(n):
        pair = pair[::-1]
    pair[0] = 9.0
    return pair, both


def turned_of_the_caller(x, n):
    def change(pair):
        for _ in range(n):
            pair = pair[::-1]
        pair[0] = 9.0
        return pair

    own = [x[0], 1.0]
    return change(own), own


def two_names_replaced(x, n):
    pair = [x[0], 2.0]
    other = pair
    for _ in range(n):
        pair, other = pair[::-1], [1.0, x[1]]
    pair[0] += 1.0
    return pair, other


@pytest.mark.parametrize("function", [turned, renewed, counted])
def test_what_a_loop_replaced_is_written_to(function):
    jitted = mp.jit(function)
    for n in (2, 3, 0):
        assert plain(jitted(ARGUMENTS[0], n)) == plain(function(ARGUMENTS[0], n))


@pytest.mark.parametrize(
    "function",
    [
        turned_with_a_second_name,
        renewed_with_a_second_name,
        renewed_with_its_list_named,
        turned_in_a_tuple,
        turned_of_the_caller,
        two_names_replaced,
    ],
)
def test_what_a_loop_replaced_and_something_else_may_hold_is_refused(function):
    for n in (2, 0):
        with pytest.raises(SourceError, match="may or may not be the same object"):
            mp.jit(function)(ARGUMENTS[0], n)
