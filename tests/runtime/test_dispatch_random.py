"""Random structures through the dispatcher: what is described comes back, what is changed does not match."""

from __future__ import annotations

import collections
import gc
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaphrase.runtime import abi, cython_build
from metaphrase.runtime import entry as E
from metaphrase.runtime.dispatch import Dispatcher

Pair = collections.namedtuple("Pair", "left right")


class Box:
    """A registered container."""

    def __init__(self, items, label):
        self.items, self.label = items, label

    def __eq__(self, other):
        return type(other) is Box and same(self.items, other.items) and self.label == other.label


leaf_values = st.one_of(
    st.floats(),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.complex_numbers(),
    st.sampled_from(["f8", "f4", "i4", "?", "c16"]).flatmap(
        lambda dtype: st.lists(st.integers(0, 3), max_size=3).map(lambda dims: np.ones(dims, dtype))
    ),
    st.sampled_from([np.float64(1.5), np.float32(2), np.int8(-3), np.bool_(True), np.complex64(1j)]),
    st.sampled_from([None, "text", ("static", 1), b"bytes"]).map(lambda value: Static(value)),
)


class Static:
    """Marks a value that becomes a StaticLeaf."""

    def __init__(self, value):
        self.value = value


trees = st.recursive(
    leaf_values,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=4),
        st.tuples(inner, inner).map(lambda both: Pair(*both)),
        st.lists(inner, max_size=2).map(lambda items: Box(items, "label")),
    ),
    max_leaves=12,
)


def described(value, parameters):
    """(value without marks, its description, the output that gives it back); fills `parameters`."""
    if isinstance(value, Static):
        leaf = E.StaticLeaf(value.value)
        return value.value, leaf, E.Argument(leaf)
    if isinstance(value, np.ndarray):
        leaf = E.ArrayLeaf(value.dtype, value.shape)
    elif isinstance(value, np.generic):
        leaf = E.ScalarLeaf(value.dtype)
    elif isinstance(value, (bool, int, float, complex)):
        leaf = E.NumberLeaf(type(value))
    else:
        if isinstance(value, dict):
            plain, inner, outer = zip(*(described(v, parameters) for v in value.values())) if value else ((), (), ())
            keys = tuple(value)
            return dict(zip(keys, plain)), E.Dictionary(keys, inner), E.Dictionary(keys, outer)
        items = value.items if isinstance(value, Box) else value
        plain, inner, outer = zip(*(described(v, parameters) for v in items)) if items else ((), (), ())
        if isinstance(value, Pair):
            return Pair(*plain), E.Record(Pair, inner), E.Record(Pair, outer)
        if isinstance(value, Box):

            def node(children):
                return E.Node(
                    Box, lambda box: (box.items, box.label), lambda label, c: Box(list(c), label), "label", children
                )

            return Box(list(plain), "label"), node(inner), node(outer)
        kind = type(value)
        return kind(plain), E.Sequence(kind, inner), E.Sequence(kind, outer)
    parameters.append(leaf)
    return value, leaf, E.Argument(leaf)


def same(a, b):
    """The same structure of the same objects, containers aside."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b if isinstance(a, Box) else a is b


@pytest.fixture(scope="module")
def nothing():
    text = abi.DECLARATIONS + (
        "cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:\n    return 0\n"
    )
    library = cython_build.build(text, name="nothing")
    yield library.address


@settings(max_examples=150, deadline=None)
@given(trees)
def test_structures_match_and_come_back(nothing, value):
    parameters = []
    plain, tree, output = described(value, parameters)
    call = Dispatcher(None, ("x",), miss=lambda args: "missed")
    root = E.Root(E.Position(0), tree)
    call.add(E.Entry(nothing, (root,), tuple(parameters), output=output))
    assert same(call(plain), plain) and call.misses == 0
    for other in ((plain, plain), [plain], {"x": plain}, object()):
        assert call(other) == "missed"


def test_memory_stays_where_it_is(nothing):
    """A thousand calls of each kind leave no memory behind."""
    value = {"a": [np.zeros(3), 1.5], "b": Pair(np.float32(1), Box([2], "label")), "c": (Static("s"), True)}
    parameters = []
    plain, tree, output = described(value, parameters)
    call = Dispatcher(None, ("x", "y"), miss=lambda args: None, defaults=(None, 3))
    fresh = (E.Fresh("f8", (3,)), E.Fresh("f8"), E.Fresh("c16", (), "python"))
    output = E.Sequence(list, (output, E.Result(0), E.Result(1), E.Result(2)))
    roots = (E.Root(E.Position(0), tree), E.Root(E.Position(1), E.AnyLeaf()))
    call.add(E.Entry(nothing, roots, tuple(parameters), results=fresh, output=output))

    def many():
        for _ in range(1000):
            call(plain)
            call(plain, y=1)
            call({**plain, "a": 1})
            call(y=plain, x=plain)

    many()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        many()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert call.hits == 6000 and call.misses == 2000
    assert after - before < 20_000
