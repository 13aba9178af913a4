"""What branches and loops leave: objects made on several paths, values that are missing on some, containers
that are replaced.

In: numbers and arrays. Out: numbers, arrays, objects made in the call.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass
class State:
    x: float
    v: object


@dataclass(frozen=True)
class Point:
    x: float
    y: float

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)


class Slotted:
    __slots__ = ("count", "total")

    def __init__(self, count, total):
        self.count, self.total = count, total


class Found(NamedTuple):
    x: object
    residual: object


def returns_objects(c):
    if c > 1:
        return State(c, 2.0)
    return State(c, c)


def replaces_object(c):
    s = State(c, np.ones(3))
    while c > 1:
        s = State(s.x + 1, s.v * 2)
        c = c - 1
    s.x = s.x * 2
    return s.x, s.v


def keeps_the_best(c):
    best = State(c, 1.0)
    for i in range(10):
        new = State(best.x + (1 if i % 2 else -2) * c, best.v + 1)
        if new.x > best.x:
            best = new
    return best


def slotted_object(c):
    held = Slotted(0, c)
    for i in range(8):
        if held.total > 10:
            held = Slotted(held.count + 1, held.total - 10)
        else:
            held = Slotted(held.count, held.total + i)
    return held.count, held.total


def frozen_points(c):
    p = Point(0.0, c)
    for _ in range(6):
        p = p + Point(c, 1.0) if p.x < 5 else p + Point(1.0, c)
    return p


def object_in_early_return(x):
    for i in range(len(x)):
        if x[i] > 2:
            return Found(x * i, State(i, x[i]))
    return Found(x, State(-1, 0.0))


def none_before_loop(c):
    x, g = 0.0, None
    for _ in range(20):
        x = x + c
        g = np.ones(2) * x
        if x > 5:
            return x, g
    return x, g


def none_until_found(c):
    best = None
    for i in range(10):
        candidate = c * (i - 5) ** 2
        if best is None or candidate < best:
            best = candidate
    return best


def none_after_a_while(c):
    x = 1.0
    for i in range(10):
        if i * c > 5:
            x = None
    return 7.0 if x is None else x


def partly_none_result(c, x):
    for _ in range(5):
        found, g = c, None
        for _ in range(30):
            found += 1.0
            g = x * found
            if found > 4.0:
                break
        if np.sum(g) > 20:
            return found, g
        c = c + 0.7
    return c, x


def list_changed_and_replaced(c):
    a = [c]
    b = a
    for _ in range(10):
        a[0] += 1.0
        a = [a[0] * 2]
    return b[0], a[0]


def joined_list_is_read(c):
    a, b = [1.0, 2.0], [c, 4.0]
    s = a if c > 0 else b
    return s[0] * s[1]


def new_list_on_each_side(c):
    if c > 0:
        s = [c, 1.0]
    else:
        s = [1.0, c]
    s[0] += 5.0
    return s


def parents_of(parents, start=3):
    node, steps = start, 0
    while node != -1:
        node = parents[node]
        steps += 1
    return steps


def rows_of_a_made_array(n):
    xs = np.linspace(0.0, 1.0, n)
    out = np.zeros(len(xs))
    for i, x in enumerate(xs):
        for j, y in zip(range(len(xs)), reversed(xs)):
            out[i] += x * y + j
    return out


def gradient_by_stores(x):
    g = np.zeros_like(x)
    g[::2] = x[::2]
    return g


def one_of_many_arrays(x):
    """Arrays that stores made, returned from inside a loop in a loop."""

    def inner(g0, a):
        b, g = a, g0
        for _ in range(30):
            b = b + 1
            g = gradient_by_stores(x * b)
            if np.sum(g) > 3:
                return b, g
            if b > 9:
                break
        return b, g

    a = 1.0
    while True:
        g = gradient_by_stores(a * x)
        if np.sum(g) > 100:
            return inner(g, a)
        if a > 50:
            return a, g
        a = 2 * a


def branches_in_methods_of_inner_classes(x):
    class Clip:
        limit = 2.0

        def __init__(self, k):
            self.k = k

        def __call__(self, v):
            if v > self.limit:
                return self.limit * self.k + x
            return v

    clip = Clip(3)
    return clip(x) + clip(x - 5)


_BOTH = (np.array([1.0, 2.0]), np.array([3.0, 4.0]))


def unpacks_captured_arrays(x):
    a, b = _BOTH
    (c, d), e = (_BOTH, x)
    return a * x + b, c - d * e


def replaces_objects_of_captured_arrays(x):
    s = Pair(*_BOTH)
    for _ in range(10):
        s = Pair(s.u * 0.5 + x, s.v)
    return s.u + s.v


def one_of_many_numbers(x):
    weights, order = [1.5, 2.5, 3.5], (2, 0, 1)
    total = 0.0
    for i in range(len(x)):
        total = total + weights[order[i % 3]] * x[i]
    best, candidates = 0, (0.0, x[0], x[1], x[2])
    for j in range(1, 4):
        if candidates[j] > candidates[best]:
            best = j
    return total, best, candidates[best]


class Pair:
    """Two arrays."""

    def __init__(self, u, v):
        self.u, self.v = u, v


def attribute_is_a_variable(x):
    o, b = Pair(x * 1, x), x * 2
    for _ in range(10):
        b[0] += 1
        o.u = b
        b[1] += 2
    b[2] = 50
    return o.u, b


def attribute_written_and_replaced(x):
    o = Pair(x * 1, x)
    keep = o.u
    for _ in range(9):
        o.u[0] += 1
        o.u = o.u * 2
    return o.u, keep


def attributes_swapped(x):
    o = Pair(x * 1, x * 2)
    for _ in range(9):
        o.u[0] += 1
        o.u, o.v = o.v, o.u
    o.u[1] = 7
    return o.u, o.v


def tuple_written_and_replaced(x):
    a = x.copy()
    t = (a, 1.0)
    for _ in range(10):
        t[0][0] += 1
        t = (t[0] * 2, t[1])
    return a, t


def tuple_swapped(x):
    t = (x * 1, x * 2)
    for _ in range(10):
        t[0][0] += 1
        t = (t[1], t[0])
    return t


def made_then_kept(x):
    """An array that stores make in each iteration, kept where it is better."""
    best, f = x * 0, 1e9
    for i in range(12):
        g = np.zeros_like(x)
        for j in range(len(x)):
            g[j] = x[j] * (i - 4)
        if np.sum(g * g) < f:
            f = np.sum(g * g)
            best = g
    return best, f


def python_number_or_narrow(a, c):
    """A Python number on one path, a NumPy number of a narrower type on the other, as a loop's variable and behind a
    branch: no value is lost."""
    m, n = 1e300, c
    for k in range(len(a)):
        if a[k] > 2:
            m = a[k]
            n = n * a[k] + c
        else:
            n = n * 0.5
    return float(m), float(n), m + a, n - a[0]


def run_of_zeros(a, n):
    t = n
    for v in a:
        t = t + 1 if v == 0 else v
    return int(t), t > a[0]


def replaced_by_another_type(x, c):
    found = np.zeros(len(x))
    for _ in range(5):
        found = np.argmin((x[:, None] - c[None]) ** 2, 1)
        c = c * 0.9
    return c[found], found


CASES = [
    (python_number_or_narrow, (np.array([1, 2.5, 3, 0.5], np.float32), 0.1)),
    (python_number_or_narrow, (np.array([1, 1.5, 2, 0.5], np.float32), 0.1)),
    (run_of_zeros, (np.array([1, 0, 3, 0, 0], np.uint8), 0)),
    (run_of_zeros, (np.array([0, 0, 0], np.int32), 3 * 10**9)),
    (replaced_by_another_type, (np.arange(4.0), np.array([0.5, 2.0]))),
    (unpacks_captured_arrays, (2.0,)),
    (replaces_objects_of_captured_arrays, (2.0,)),
    (one_of_many_numbers, (np.arange(8.0)[::-1].copy(),)),
    (attribute_is_a_variable, (np.arange(1.0, 4.0),)),
    (attribute_written_and_replaced, (np.arange(1.0, 4.0),)),
    (attributes_swapped, (np.arange(1.0, 4.0),)),
    (tuple_written_and_replaced, (np.arange(1.0, 4.0),)),
    (tuple_swapped, (np.arange(1.0, 4.0),)),
    (made_then_kept, (np.arange(1.0, 4.0),)),
    (branches_in_methods_of_inner_classes, (3.0,)),
    (returns_objects, (3.0,)),
    (returns_objects, (-2.0,)),
    (replaces_object, (3.5,)),
    (replaces_object, (-2.0,)),
    (keeps_the_best, (3.0,)),
    (keeps_the_best, (-3.0,)),
    (slotted_object, (4.0,)),
    (frozen_points, (2.0,)),
    (object_in_early_return, (np.array([1.0, 2.0, 3.0]),)),
    (object_in_early_return, (np.array([1.0, 2.0, 1.0]),)),
    (none_before_loop, (3.0,)),
    (none_before_loop, (-3.0,)),
    (none_until_found, (3.0,)),
    (none_until_found, (-3.0,)),
    (none_after_a_while, (3.0,)),
    (none_after_a_while, (0.1,)),
    (partly_none_result, (1.0, np.ones(3))),
    (partly_none_result, (1.0, np.ones(6))),
    (list_changed_and_replaced, (3.0,)),
    (joined_list_is_read, (3.0,)),
    (joined_list_is_read, (-3.0,)),
    (new_list_on_each_side, (3.0,)),
    (parents_of, (np.array([-1, 0, 1, 2]),)),
    (rows_of_a_made_array, (4,)),
    (one_of_many_arrays, (np.ones(3),)),
]
