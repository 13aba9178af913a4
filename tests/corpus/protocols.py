"""Users' special methods that branch on staged values, and comparisons of containers."""

import functools
import math

from .classes import Frozen, Point


class Clipped:
    """Every protocol branches on a staged value."""

    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        total = self.value + (other.value if isinstance(other, Clipped) else other)
        if total > 5:
            total = 5.0
        return Clipped(total)

    def __radd__(self, other):
        return self + other

    def __imul__(self, other):
        if other > 0:
            self.value = self.value * other
        return self

    def __lt__(self, other):
        if self.value > 3:
            return False
        return self.value < other.value

    def __neg__(self):
        return Clipped(-self.value if self.value > 0 else self.value)

    def __invert__(self):
        return Clipped(1 - self.value)

    def __bool__(self):
        return self.value > 1

    def __contains__(self, v):
        return v <= self.value if v > 0 else False

    def __len__(self):
        return 3

    def __getitem__(self, k):
        return self.value * k if self.value > 2 else self.value

    def __setitem__(self, k, v):
        if v > self.value:
            self.value = v + k

    def __delitem__(self, k):
        self.value = self.value - k if self.value > 0 else self.value

    def __enter__(self):
        if self.value > 0:
            self.value = self.value + 1
        return self

    def __exit__(self, *exc):
        if self.value > 4:
            self.value = 4.0

    def __abs__(self):
        return self.value if self.value > 0 else -self.value

    def __getattr__(self, name):
        if name == "double":
            return self.value * 2 if self.value > 0 else 0.0
        raise AttributeError(name)

    @property
    def level(self):
        return self.value

    @level.setter
    def level(self, v):
        if v > 0:
            self.value = v


def operators_with_branches(x):
    a = Clipped(x) + Clipped(2.0) + 1.0
    a = 0.5 + a
    a *= x
    b = -a
    c = ~b
    return a.value, b.value, c.value, a < c, c < a, not a, abs(c)


def containers_with_branches(x):
    a = Clipped(x)
    first = a[2]
    a[1] = 2.5
    del a[0.5]
    return first, a.value, 1.0 in a, 9.0 in a, len(a), 7.0 if a else 8.0


def managers_with_branches(x):
    with Clipped(x) as a:
        a.level = a.level * 2
    return a.value, a.double


def comparisons_of_containers(x, y):
    return (x, 1) == (y, 1), [x, y] != [x, y], (x, y) < (y, x), Point(x) == Point(y), Frozen(x) < Frozen(y)


def generic_class(x):
    class Stack:
        def __init__(self):
            self.items = []

        def push(self, v):
            self.items.append(v)
            return self

        def pop(self):
            return self.items.pop()

        @property
        def empty(self):
            return not self.items

    s = Stack().push(x).push(x * 2)
    total = 0.0
    while not s.empty:
        total = total * 3 + s.pop()
    return total


class Interval:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def __float__(self):
        return float(self.high if self.high > 0 else self.low)

    def __round__(self, digits=0):
        return Interval(round(float(self.low), digits), round(float(self.high), digits))

    def __floor__(self):
        return math.floor(self.low if self.low > 0 else -self.low)

    def __divmod__(self, other):
        return (self.low, other) if self.low > other else (other, self.high)

    def __add__(self, other):
        return Interval(self.low + other.low, self.high) if other.high > 1 else other

    def __pow__(self, power):
        return self.low**power if self.low > 0 else 0.0

    def __reversed__(self):
        return iter([self.high, self.low])


def numbers_of_objects(x):
    one, other = Interval(x, x + 1), Interval(x * 2, 3.0)
    rounded = round(one, 1)
    total = sum([one, other], Interval(0.0, 0.0))
    return (float(one), math.floor(other), divmod(one, 2.0), rounded.low, total.low, pow(one, 2), list(reversed(one)))


@functools.total_ordering
class Version:
    def __init__(self, major, minor):
        self.major, self.minor = major, minor

    def __eq__(self, other):
        return self.major == other.major and self.minor == other.minor

    def __lt__(self, other):
        return self.major < other.major or (self.major == other.major and self.minor < other.minor)


def totally_ordered(x):
    one, other = Version(x, 1.0), Version(2.0, x)
    return [bool(b) for b in (one < other, one <= other, one > other, one >= other, one != other)]


def dicts_compared(x):
    one, other = {"a": x, "b": 1.0}, {"b": 1.0, "a": 2.0}
    return one == other, one != other, one == {"a": x}, [x, 2.0] == [2.0, 2.0], 3.0 if one == other else 4.0


def sets_made(x):
    seen = {1, 2}
    seen |= {3}
    seen.discard(1)
    return x, seen, {"also": {k for k in range(2)}}, bytearray(b"ab")


def hundred_deep(x):
    def below(k):
        return x if k == 0 else 0.5 * below(k - 1) + k

    return below(150)


CASES = [
    (generic_class, (2.0,)),
    *((operators_with_branches, (v,)) for v in (2.0, 0.5, -3.0, 9.0)),
    *((containers_with_branches, (v,)) for v in (2.0, 3.0, 0.5, -1.0)),
    *((managers_with_branches, (v,)) for v in (2.0, -2.0)),
    (comparisons_of_containers, (1.0, 2.0)),
    (comparisons_of_containers, (2.0, 2.0)),
    *((function, (x,)) for function in (numbers_of_objects, totally_ordered) for x in (2.0, 1.0, -1.5, 2.5)),
    *((dicts_compared, (x,)) for x in (2.0, 1.0)),
    (sets_made, (2.0,)),
    (hundred_deep, (2.0,)),
]
