"""Objects that a loop or branch replaces on one path and changes on another: they run as in Python where
nothing else reaches what was replaced; where something may, the write is refused."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError


class Best:
    def __init__(self, v, items=None):
        self.v = v
        self.items = [v, 1.0] if items is None else items

    def add(self):
        self.v += 1.0


# --- fine ---


def replaced_or_changed(x, n):
    best = Best(x[0])
    for i in range(n):
        if x[i] > 1.5:
            best = Best(x[i] * 2)
        else:
            best.v *= 0.5
    best.v += 1
    return best.v


def by_another_name(x, n):
    best = Best(x[0])
    for i in range(n):
        now = best
        if x[i] > 1.5:
            best = Best(x[i] * 2)
        else:
            now.v *= 0.5
    return best.v


def list_replaced_or_changed(x, n):
    best = [x[0], 0.0]
    for i in range(n):
        if x[i] > 1.5:
            best = [x[i] * 2, best[1]]
        else:
            best[1] += 1.0
    best[0] += 1
    return best


def table_replaced_or_changed(x, n):
    names = {"a": x[0], "b": 1.0}
    for i in range(n):
        if x[i] > 1.5:
            names = dict(names, a=x[i])
        else:
            names["b"] += 1.0
    names["a"] += 1
    return list(names.values())


def items_of_an_object(x, n):
    best = Best(x[0])
    for i in range(n):
        items = best.items
        if x[i] > 1.5:
            best = Best(x[i] * 2, items)
        else:
            best.items[0] *= 0.5
        items[1] += 1.0
    return best.v, *best.items


def in_an_attribute(x, n):
    held = Best(x[0])
    held.best = Best(x[1])
    for i in range(n):
        if x[i] > 1.5:
            held.best = Best(x[i])
        else:
            held.best.v *= 0.5
    return held.best.v


def seen_by_a_closure(x, n):
    best, total = Best(x[0]), 0.0

    def now():
        return best.v

    for i in range(n):
        if x[i] > 1.5:
            best = Best(x[i] * 2)
        else:
            best.v *= 0.5
        total += now()
    return total


def nested_loops(x, n):
    best = Best(x[0])
    for i in range(n):
        for j in range(n):
            if x[i] > x[j]:
                best = Best(x[i] * 2)
            else:
                best.v *= 0.5
        best.v += 1
    return best.v


def while_loop(x, n):
    best, i = Best(x[0]), 0
    while i < n and best.v < 50:
        if x[i] > 1.5:
            best = Best(best.v * 2)
        else:
            best.v *= 0.5
        i += 1
    best.v += 1
    return best.v


def swapped_on_one_path(x, n):
    a, b = Best(x[0]), Best(x[1])
    for i in range(n):
        if x[i] > 1.5:
            a, b = b, a
        a.v += 1.0
    return a.v, b.v


def passed_on(x, n):
    a, b = Best(x[0]), Best(x[1])
    for i in range(n):
        if x[i] > 1.5:
            a = b
            b = Best(x[i])
        else:
            a.v += 1
        b.v += 1
    return a.v, b.v


def the_one_before(x, n):
    best, old = Best(x[0]), Best(x[1])
    for i in range(n):
        if x[i] > 1.5:
            old = best
            best = Best(x[i] * 2)
        else:
            best.v *= 0.5
            old.v += 1
    old.v += 3
    return best.v, old.v


def given_up(x, n):
    a = Best(x[0])
    b = a
    for i in range(n):
        if x[i] > 1.5:
            a = Best(x[i])
    b = Best(0.0)
    a.v += 1.0
    return a.v, b.v


def stepped(state, t):
    if t > 1.0:
        state = Best(t)
    else:
        state.v *= 0.5
    return state


def through_a_function(x, n):
    state = Best(x[0])
    for i in range(n):
        state = stepped(state, x[i])
        state.v += 1
    return state.v


def branch_in_a_branch(x, n):
    items = [x[0], 1.0]
    if x[1] > 0:
        if x[2] > 0:
            items = [x[1], items[0]]
        else:
            items[0] = 5.0
        items[1] += 1
    else:
        items[0] -= 1
    items[0] += 1
    return items


def list_of_an_attribute(x, n):
    held = Best(x[0])
    if x[1] > 0:
        held.items = held.items[:]
    held.items[0] += 1
    return held.items


def row_of_a_table(x, n):
    rows = [[x[0], 1.0], [x[1], 2.0]]
    if x[1] > 0:
        rows[0] = rows[0][:]
    rows[0][0] += 1
    return rows[0] + rows[1]


def older_one_at_the_start(x, n):
    root, total = Best(x[0]), 0.0
    for i in range(n):
        node = root
        node.v += x[i]
        total += root.v
    return total


def older_one_in_each_iteration(x, n):
    a, b = Best(x[0]), Best(x[1])
    for _ in range(n):
        b = a
    b = Best(b.v + 1.0)
    b.v += 1.0
    return a.v, b.v


def place_and_what_is_in_it(x, n):
    """The item is replaced, and what it was before is changed."""
    rows = [[2.0], [x[0]]]
    for i in range(n):
        if x[i] > 1.5:
            rows[0][0] = x[i]
        rows[1] = [rows[0][0] + 1.0]
        rows[0] = [2.0]
    return rows[0] + rows[1]


FINE = [
    replaced_or_changed,
    by_another_name,
    list_replaced_or_changed,
    table_replaced_or_changed,
    items_of_an_object,
    in_an_attribute,
    seen_by_a_closure,
    nested_loops,
    while_loop,
    swapped_on_one_path,
    passed_on,
    the_one_before,
    given_up,
    through_a_function,
    branch_in_a_branch,
    list_of_an_attribute,
    row_of_a_table,
    older_one_at_the_start,
    older_one_in_each_iteration,
    place_and_what_is_in_it,
]

# --- refused: another name may see the object ---


def named_before(x, n):
    best = Best(x[0])
    first = best
    for i in range(n):
        if x[i] > 1.5:
            best = Best(x[i] * 2)
        else:
            best.v *= 0.5
    return best.v, first.v


def named_on_one_path(x, n):
    best = Best(x[0])
    old = best
    for i in range(n):
        if x[i] > 1.5:
            old = best
            best = Best(x[i] * 2)
        else:
            best.v *= 0.5
    return best.v, old.v


def late_twins(x, n):
    p, q, r = Best(x[0]), Best(x[1]), Best(x[2])
    for i in range(n):
        r = q
        q = p
        if x[i] > 2.5:
            p = Best(9.0)
        r.v += 1.0
    return p.v, q.v, r.v


def in_a_list(x, n):
    best = Best(x[0])
    kept = [best, best]
    for i in range(n):
        if x[i] > 1.5:
            best = Best(x[i] * 2)
            kept[0] = best
        else:
            best.v *= 0.5
    return best.v, kept[0].v, kept[1].v


def its_items_named(x, n):
    best = Best(x[0])
    items = best.items
    for i in range(n):
        if x[i] > 1.5:
            best = Best(x[i] * 2)
        else:
            best.items[0] *= 0.5
        items[1] += 1.0
    return best.items[0], items[1]


def of_an_attribute(x, n):
    held = Best(x[0])
    held.best = Best(x[1])
    other = held.best
    for i in range(n):
        if x[i] > 1.5:
            held.best = Best(x[i])
        else:
            held.best.v *= 0.5
    return held.best.v, other.v


def of_a_bound_method(x, n):
    best = Best(x[0])
    add = best.add
    for i in range(n):
        if x[i] > 1.5:
            best = Best(x[i] * 2)
        else:
            best.v *= 0.5
    add()
    return best.v


def of_a_default(x, n):
    best = Best(x[0])

    def first(one=best):
        return one.v

    for i in range(n):
        if x[i] > 1.5:
            best = Best(x[i] * 2)
        else:
            best.v *= 0.5
    return first(), best.v


def under_a_generator(x, n):
    items = [x[0], 2.0]
    rest = (v for v in items)
    if x[1] > 0:
        items = items[:]
    items[0] = 7.0
    return sum(rest), items[0]


def the_older_one_is_changed(x, n):
    old, one = Best(x[0]), Best(x[1])
    for i in range(n):
        old.v += 1
        if x[i] > 1.5:
            one = old
        else:
            one = Best(x[i])
    return old.v, one.v


def after_the_loop(x, n):
    a = Best(x[0])
    b = a
    for i in range(n):
        if x[i] > 1.5:
            a = Best(x[i])
    a.v += 1.0
    return a.v, b.v


def since_an_iteration(x, n):
    """From the second iteration on, `node` is `root`."""
    root, node, total = Best(x[0]), None, 0.0
    for _ in range(n):
        root.v += 1
        if node is not None:
            total += node.v
        node = root
    return total


def not_bound_at_first(x, n):
    root, total = Best(x[0]), 0.0
    for i in range(n):
        root.v += 1
        if i > 0:
            total += node.v  # noqa: F821
        node = root  # noqa: F841
    return total


def changed_by_the_later_name(x, n):
    root, total = Best(x[0]), 0.0
    for i in range(n):
        if i > 0:
            node.v += 1  # noqa: F821
        total += root.v
        node = root  # noqa: F841
    return total


REFUSED = [
    named_before,
    named_on_one_path,
    late_twins,
    in_a_list,
    its_items_named,
    of_an_attribute,
    of_a_bound_method,
    of_a_default,
    under_a_generator,
    the_older_one_is_changed,
    after_the_loop,
    since_an_iteration,
    not_bound_at_first,
    changed_by_the_later_name,
]
X = np.array([1.0, 2.0, 3.0, 0.5, -1.0, 1.75])


def flat(values):
    return [float(v) for v in values] if isinstance(values, (list, tuple)) else [float(values)]


@pytest.mark.parametrize("function", FINE)
def test_what_nothing_else_reaches_is_changed(function):
    jitted = mp.jit(function)
    for x in (X, -X, X[::-1].copy()):
        for n in (6, 3, 0, 1):
            assert flat(jitted(x, n)) == flat(function(x, n))


@pytest.mark.parametrize("function", [replaced_or_changed, items_of_an_object, swapped_on_one_path])
def test_the_loop_is_one_loop_and_has_a_slope(function):
    """The gradient of ten iterations against differences; the program has no copy of the body for each."""
    x = np.linspace(0.1, 2.9, 10)

    def total(x):
        return sum(flat_sum(function(x, len(x))))

    def flat_sum(value):
        return value if isinstance(value, tuple) else (value,)

    along = np.cos(np.arange(10.0))
    slope = (total(x + 1e-6 * along) - total(x - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose(mp.jit(mp.grad(total))(x) @ along, slope, rtol=1e-6)
    assert mp.source(total, x).count("while") + mp.source(total, x).count("for ") == 1


@pytest.mark.parametrize("function", REFUSED)
def test_what_another_name_may_reach_is_refused(function):
    x = np.linspace(0.1, 3.0, 100)  # too many iterations to be told apart
    with pytest.raises(SourceError) as caught:
        mp.jit(function)(x, 90)
    assert caught.value.code == "alias"
