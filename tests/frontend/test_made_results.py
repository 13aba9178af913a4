"""Python objects in results and in what a call stores: nothing of staging stays inside. What Python makes is
made by each call of the run's values; what can't be is refused."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
import types
from typing import Any, NamedTuple

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError

LONG = np.arange(100.0)


class Bag:
    def __init__(self, **given):
        self.__dict__.update(given)

    def __eq__(self, other):
        return type(self) is type(other) and shown(self.__dict__) == shown(other.__dict__)

    __hash__ = None


@dataclasses.dataclass
class Kept:
    a: object


class Pair(NamedTuple):
    a: Any


class Written:
    def __init__(self, a):
        self.a = a

    def first(self):
        return self.a


@dataclasses.dataclass
class Static:
    a: object
    n: object


mp.tree_util.register_dataclass(Static, data_fields=["a"], meta_fields=["n"])


class Slots:
    __slots__ = ("a",)


class Items(list):
    pass


class Both(tuple):
    pass


class Own(ValueError):
    def __init__(self, a):
        super().__init__("own")
        self.a = a


class WithNew:
    def __new__(cls, v):
        made = super().__new__(cls)
        made.v = v
        return made


def shown(value):
    """A value with the types of all that it holds."""
    if isinstance(value, dict):
        return type(value).__name__, [(k, shown(v)) for k, v in sorted(value.items())]
    if isinstance(value, (list, tuple, type({}.values()), type({}.keys()), type({}.items()))):
        return type(value).__name__, [shown(v) for v in value], shown(getattr(value, "__dict__", None))
    if isinstance(value, np.ndarray):
        return "array", value.dtype, value.tolist()
    if isinstance(value, BaseException):
        return type(value).__name__, shown(value.args), shown(vars(value))
    if isinstance(value, functools.partial):
        return "partial", value.func, shown(value.args), shown(value.keywords)
    if isinstance(value, types.MethodType):
        return "method", value.__func__, shown(value.__self__)
    if hasattr(value, "__slots__") and type(value).__module__ == __name__:
        return type(value).__name__, [shown(getattr(value, n)) for n in value.__slots__]
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return type(value).__name__, shown(vars(value))
    return type(value).__name__, repr(value)


# --- made ---


def list_in_an_object(x, n):
    c = Bag()
    c.h = [v * 2 for v in x]
    c.d = {"a": [v for v in x], "b": (x[0], [n])}
    return c


def list_in_a_dataclass(x, n):
    return Kept([v * 2 for v in x]), [Kept({"k": [v for v in x]})]


def lists_in_lists(x, n):
    return [[[v * 2 for v in x], n]], {"k": [[v + 1 for v in x]]}


def range_of(x, n):
    return range(n), [range(1, n, 2)], {"a": range(n, 0, -1)}


def slice_of(x, n):
    return slice(n), slice(1, n, None), x[slice(n)]


def views(x, n):
    table = {"a": n, "b": x * 2}
    return table.items(), table.values(), table.keys(), collections.OrderedDict(z=n, a=x[0]).values()


def exceptions(x, n):
    return ValueError(n), KeyError(x[0], "k"), Own(n), StopIteration(n)


def namespace(x, n):
    return types.SimpleNamespace(b=n, a=[x, {"k": n}])


def partial_of(x, n):
    return functools.partial(max, n, key=abs), functools.partial(np.add, x)


def method_of_a_new_object(x, n):
    return Written(n).first


def derived_from_builtins(x, n):
    items = Items([x[0], n])
    items.append(x[1])
    items.name = x[2]
    return items, Both((n, x[0])), collections.Counter({"a": n})


def objects_of_any_class(x, n):
    slots = Slots()
    slots.a = [v for v in x]
    return slots, WithNew(n)


def gathered_in_a_dataclass(x, n):
    h = []
    for v in x:
        if v > 1:
            h.append(v)
    return Kept(h), Pair(h), Written(h), types.SimpleNamespace(a=h), Bag(h=h), ValueError(h)


def gathered_in_a_call(x, n):
    h = [v for v in x if v > 1]
    return Caller()(h), len(Caller()(h))


class Caller:
    def __call__(self, h):
        return h


MADE = [
    list_in_an_object, list_in_a_dataclass, lists_in_lists, range_of, slice_of, views, exceptions, namespace,
    partial_of, method_of_a_new_object, derived_from_builtins, objects_of_any_class, gathered_in_a_dataclass,
    gathered_in_a_call,
]  # fmt: skip


@pytest.mark.turns(3)
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("f", MADE, ids=lambda f: f.__name__)
def test_it_is_what_python_makes(f, native):
    jitted = mp.jit(f)
    with mp.config(native=native):
        for x, n in ((np.array([1.0, 2.0, 3.0]), 5), (np.array([4.0, 0.5, 7.0]), 2), (LONG, 3)):
            assert shown(jitted(x, n)) == shown(f(x, n))


class Ordered:
    def __init__(self, z, a):
        self.z, self.m = z, 1.0
        self.a = a


def branched_object(x):
    if x > 0:
        made = Ordered(x, 2.0)
        made.y, made.b = x, 1.0
    else:
        made = Ordered(-x, 3.0)
        made.y, made.b = 1.0, x
    return made


def looped_object(x):
    made = Ordered(x, 1.0)
    for _ in range(100):
        made = Ordered(made.z + x, made.a + 1)
    return made


def exception_with_attributes(x):
    made = ValueError("far")
    made.place, made.at = x, 2 * x
    return made


def test_attributes_keep_the_order_of_their_assignment():
    for f in (lambda x: Ordered(x, x), branched_object, looped_object, exception_with_attributes):
        made, want = mp.jit(f)(2.0), f(2.0)
        assert list(vars(made).items()) == list(vars(want).items())


def test_each_call_makes_its_own():
    jitted = mp.jit(list_in_an_object)
    one, two = jitted(LONG, 1), jitted(LONG, 1)
    one.h.append(7.0)
    assert len(two.h) == 100


# --- stored ---


def store_lists(c, x, n):
    c.h = [v for v in x if v > 1]
    c.d = {"a": [v for v in x if v > 2]}
    c.o = Written([v * 2 for v in x])


def store_python_objects(c, x, n):
    c.r, c.s, c.e, c.n = range(n), slice(n), ValueError(n), types.SimpleNamespace(a=x[0])
    c.v = {"k": x[1]}.values()


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("f", [store_lists, store_python_objects], ids=lambda f: f.__name__)
def test_stored_it_is_what_python_makes(f, native):
    jitted = mp.jit(f)
    with mp.config(native=native):
        for x in (np.array([1.0, 2.0, 3.0]), LONG):
            mine, theirs = Bag(), Bag()
            jitted(mine, x, 4)
            f(theirs, x, 4)
            assert shown(vars(mine)) == shown(vars(theirs))


# --- under other transformations ---


def test_ranges_go_through_a_nested_call():
    def inner(x, n):
        return range(n), {"a": x}.items(), slice(n)

    def f(x, n):
        numbers, items, part = mp.jit(inner)(x, n)
        total = 0.0
        for k in numbers:
            total += x[k]
        return total, numbers, items, x[part]

    x = np.array([1.0, 2.0, 3.0])
    assert shown(mp.jit(f)(x, 2)) == shown((np.float64(3.0), range(2), {"a": x}.items(), x[:2]))


def test_lanes_have_no_ranges():
    with pytest.raises(SourceError, match="the function returns a range, which would be another one"):
        mp.vmap(lambda n: range(n))(np.array([1, 2]))
    made = mp.vmap(lambda n: {"a": n}.items())(np.array([1, 2]))
    assert shown(made) == shown({"a": np.array([1, 2])}.items())


def test_beside_a_derivative():
    def f(x, n):
        return (x * x).sum(), {"r": range(n), "l": [v for v in x]}

    slope, aux = mp.grad(f, has_aux=True)(np.array([1.0, 2.0]), 3)
    np.testing.assert_array_equal(slope, [2.0, 4.0])
    assert aux["r"] == range(3) and aux["l"] == [1.0, 2.0]


def test_source_shows_them():
    text = mp.source(lambda x, n: (range(n), {"a": x}.items(), types.SimpleNamespace(a=n)), LONG, 3)
    assert "range(0, n, 1)" in text and "{'a': x}.items()" in text and "SimpleNamespace(a=n)" in text


# --- refused ---


def local_class(x, n):
    class Local:
        def read(self):
            return x

    return Local()


def holds_itself(x, n):
    c = Bag(x=x[0])
    c.me = [c]
    return c


REFUSED = {
    "an iterator": [
        lambda x, n: enumerate(x), lambda x, n: zip(x, x), lambda x, n: [np.ndindex(n, 2)],
        lambda x, n: np.ndenumerate(x), lambda x, n: {"a": reversed(range(n))}, lambda x, n: Kept(zip(x, x)),
    ],
    "a function": [lambda x, n: lambda: n, lambda x, n: {"f": lambda: x}, lambda x, n: Kept(lambda v=n: v)],
    "a bound method": [
        lambda x, n: x.sum, lambda x, n: [x.T.astype], lambda x, n: [n].append, lambda x, n: x[0].item,
    ],
    "a flags object": [lambda x, n: x.flags],
    "a broadcast object": [lambda x, n: np.broadcast(x, x)],
    "a class Local": [local_class],
    "a Bag that holds itself": [holds_itself],
    "a class Static": [lambda x, n: Static(x, n), lambda x, n: [Static(x, [x])]],
    "a class Made": [lambda x, n: type("Made", (), {"v": x})],
    "an itemgetter": [lambda x, n: operator.itemgetter(n)],
    "a property": [lambda x, n: property(lambda self: x)],
}  # fmt: skip


@pytest.mark.parametrize("what, f", [(what, f) for what, fs in REFUSED.items() for f in fs])
def test_what_ends_with_the_call_is_refused(what, f):
    with pytest.raises(SourceError, match=f"the function returns {what}"):
        mp.jit(f)(np.array([1.0, 2.0, 3.0]), 2)


@pytest.mark.parametrize(
    "what, made",
    [("an iterator", lambda x: enumerate(x)), ("a function", lambda x: lambda: x), ("a flags", lambda x: x.flags)],
)
def test_it_is_not_stored_either(what, made):
    def f(c, x):
        c.held = made(x)

    with pytest.raises(SourceError, match=f"the function keeps {what}"):
        mp.jit(f)(Bag(), np.ones(2))


def test_functions_that_hold_nothing_of_the_run_are_results():
    def f(x):
        offset = 3

        def shift(v):
            return v + offset

        return shift, np.sin, Written, x.sum()

    shift, sine, kind, total = mp.jit(f)(np.ones(2))
    assert shift(1) == 4 and sine is np.sin and kind is Written and total == 2.0


# --- objects that are called ---


class Equal:
    """Says what it is equal to by a field that other things lack."""

    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __call__(self, v):
        return v * 2 + self.n


class Hashed(Equal):
    def __hash__(self):
        return hash(self.n)


CALLED = {"f": Equal(1), "g": Hashed(2)}


@pytest.mark.parametrize("native", [True, False])
def test_calls_ask_no_object_whether_it_is_equal(native):
    def f(x):
        g = CALLED["g"]
        total = functools.reduce(lambda a, b: CALLED["f"](a) + b, x)
        applied = functools.partial(g, x)()
        return CALLED["f"](x), g(x), list(map(g, x)), sorted([3.0, 1.0], key=g), total, applied

    x = np.array([1.0, 2.0, 3.0])
    with mp.config(native=native):
        assert shown(mp.jit(f)(x)) == shown(f(x))
        for called in CALLED.values():
            np.testing.assert_array_equal(mp.jit(called)(x), called(x))


@pytest.mark.parametrize("native", [True, False])
def test_none_or_an_array_from_a_loop(native):
    def f(a, x):
        for v in a:
            if v > x:
                return a if v == 5 else None

    odd = np.array([1, 3, 5, 7])
    with mp.config(native=native):
        translated = mp.jit(f)
        for x in (0, 4, 9):
            assert shown(translated(odd, x)) == shown(f(odd, x))
