"""What a matched call gives: values passed, arrays made, outputs built, arguments written, errors raised."""

from __future__ import annotations

import collections
import gc
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest

from metaphrase.core.dims import Sym
from metaphrase.runtime import entry as E
from metaphrase.runtime.dispatch import Dispatcher

n = Sym("n")


def dispatcher(address, trees, **more):
    """A dispatcher of one entry whose positional arguments are these trees."""
    roots = tuple(E.Root(E.Position(index), tree) for index, tree in enumerate(trees))
    call = Dispatcher(None, tuple(f"a{index}" for index in range(len(trees))))
    call.add(E.Entry(address, (*more.pop("roots", ()), *roots), **more))
    return call


@pytest.fixture
def sum_of(add):
    x, y = E.ArrayLeaf("f8", (n,)), E.ArrayLeaf("f8", (n,))
    return dispatcher(
        add.address,
        (x, y),
        parameters=(x, y),
        symbols=("n",),
        results=(E.Fresh("f8", (n,)),),
        output=E.Result(0),
        minimum={"n": 0},
    )


@pytest.mark.parametrize("size", [0, 1, 3, 1000])
def test_any_size(sum_of, size):
    x = np.random.default_rng(size).normal(size=size)
    out = sum_of(x, x)
    assert np.array_equal(out, x + x) and out.flags.owndata and out.flags.writeable and type(out) is np.ndarray


def test_layouts_are_copied_for_the_call(sum_of):
    x = np.arange(20.0)
    for view in (x[::2], x[::-2], np.arange(20.0).reshape(10, 2)[:, 1]):
        assert np.array_equal(sum_of(view, view), 2 * view)
    packed = np.zeros(10, dtype=[("a", "i1"), ("b", "f8")])
    packed["b"] = np.arange(10)
    assert not packed["b"].flags.aligned and np.array_equal(sum_of(packed["b"], packed["b"]), 2 * packed["b"])
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    assert np.array_equal(sum_of(frozen, frozen), 2 * frozen)


def test_scalars_go_in_and_come_out(program):
    library = program("""
        cdef double* x = <double*>buffers[0]
        cdef double* z = <double*>buffers[3]
        (<double*>buffers[5])[0] = x[0] + (<int64_t*>buffers[1])[0] + (<char*>buffers[2])[0]
        (<double*>buffers[6])[0] = z[0]
        (<double*>buffers[6])[1] = -z[1]
        (<float*>buffers[7])[0] = 2 * (<float*>buffers[4])[0]
        (<char*>buffers[8])[0] = 1
        (<int64_t*>buffers[9])[0] = -7
        return 0
    """)
    leaves = (E.NumberLeaf(float), E.NumberLeaf(int), E.NumberLeaf(bool), E.NumberLeaf(complex), E.ScalarLeaf("f4"))
    call = dispatcher(
        library.address,
        leaves,
        parameters=leaves,
        results=(
            E.Fresh("f8"),
            E.Fresh("c16", (), "python"),
            E.Fresh("f4", (), "array"),
            E.Fresh("bool"),
            E.Fresh("i8", (), "python"),
        ),
        output=E.Sequence(tuple, tuple(E.Result(index) for index in range(5))),
    )
    out = call(1.5, 2, True, 1 + 2j, np.float32(4))
    assert out == (4.5, 1 - 2j, 8.0, True, -7)
    assert [type(value) for value in out] == [np.float64, complex, np.ndarray, np.bool_, int]
    assert out[2].shape == () and out[2].dtype == np.float32


def test_bfloat16_scalars(program):
    leaf = E.ScalarLeaf(ml_dtypes.bfloat16)
    library = program("(<short*>buffers[1])[0] = (<short*>buffers[0])[0]\nreturn 0")
    call = dispatcher(
        library.address, (leaf,), parameters=(leaf,), results=(E.Fresh(ml_dtypes.bfloat16),), output=E.Result(0)
    )
    out = call(ml_dtypes.bfloat16(1.5))
    assert out == 1.5 and type(out) is ml_dtypes.bfloat16


def test_a_size_is_passed_twice_over(program):
    library = program("(<int64_t*>buffers[1])[0] = 10 * (<int64_t*>buffers[0])[0] + sizes[0]\nreturn 0")
    leaf = E.SizeLeaf(n)
    call = dispatcher(
        library.address, (leaf,), parameters=(leaf,), symbols=("n",), results=(E.Fresh("i8"),), output=E.Result(0)
    )
    assert call(7) == 77


def test_dims_of_results_follow_from_sizes(program):
    x = E.ArrayLeaf("f8", (n,))
    call = dispatcher(
        program("return 0").address,
        (x,),
        parameters=(x,),
        symbols=("n",),
        results=(E.Fresh("f4", (n // 2, n % 3 + 1, 2 * n * n - 1)),),
        output=E.Result(0),
    )
    out = call(np.zeros(5))
    assert out.shape == (2, 3, 49) and out.dtype == np.float32


Point = collections.namedtuple("Point", "x y")


class Box:
    def __init__(self, value, label):
        self.value, self.label = value, label


def test_outputs_of_every_structure(program):
    library = program("(<double*>buffers[0])[0] = 1\n(<double*>buffers[1])[0] = 2\nreturn 0")
    box = E.Node(Box, None, lambda label, children: Box(children[0], label), "tag", (E.Result(1),))
    tree = E.Dictionary(
        ("b", "a"), (E.Sequence(list, (E.Result(0), E.Constant("text"))), E.Record(Point, (E.Result(1), box)))
    )
    out = dispatcher(library.address, (), results=(E.Fresh("f8"), E.Fresh("f8")), output=tree)()
    assert list(out) == ["b", "a"] and out["b"] == [1.0, "text"] and type(out["a"]) is Point
    assert out["a"].x == 2.0 and out["a"].y.label == "tag" and out["a"].x is out["a"].y.value


def test_an_argument_itself_comes_back(program):
    leaf, inner = E.ArrayLeaf("f8", (2,)), E.NumberLeaf(float)
    tree = E.Dictionary(("x", "y"), (leaf, inner))
    call = dispatcher(
        program("return 0").address,
        (tree,),
        output=E.Sequence(tuple, (E.Argument(leaf), E.Argument(tree), E.Argument(inner))),
    )
    given = {"x": np.zeros(2), "y": 1.5}
    out = call(given)
    assert out[0] is given["x"] and out[1] is given and out[2] is given["y"]


def test_run_time_results(program):
    library = program("""
        cdef int64_t dims[1], i
        dims[0] = sizes[0] // 2
        c.alloc(c, 1, dims[0] * 8)
        for i in range(dims[0]):
            (<double*>buffers[1])[i] = (<double*>buffers[0])[2 * i + 1]
        c.set_dims(c, 1, 1, dims)
        return 0
    """)
    x = E.ArrayLeaf("f8", (n,))
    call = dispatcher(
        library.address,
        (x,),
        parameters=(x,),
        symbols=("n",),
        results=(E.RunTime("f8", 1),),
        output=E.Result(0),
        minimum={"n": 0},
    )
    for size in (0, 1, 2, 9, 5000):
        x = np.arange(float(size))
        assert np.array_equal(call(x), x[1::2])


DOUBLE = """
cdef int64_t i
cdef double* x = <double*>buffers[0]
cdef double* out = <double*>buffers[1]
if sizes[0] == 3:
    return mp_fail(c, 0, 0, 0, 0, 0, 0)
for i in range(sizes[0]):
    out[i] = 2 * x[i]
return 0
"""


@pytest.mark.parametrize("in_place", [False, True])
def test_written_arguments(program, in_place):
    leaf = E.ArrayLeaf("f8", (n,))
    call = dispatcher(
        program(DOUBLE).address,
        (leaf,),
        parameters=(leaf,),
        symbols=("n",),
        results=(E.Fresh("f8", (n,)),),
        writes=(E.Write(0, leaf, in_place),),
        output=E.Argument(leaf),
    )
    x = np.arange(5.0)
    assert call(x) is x and x.tolist() == [0, 2, 4, 6, 8]
    base = np.arange(20.0).reshape(10, 2)
    column = base[::-1, 1]
    assert call(column) is column and base[:, 1].tolist() == [2 * v for v in range(1, 20, 2)]
    assert base[:, 0].tolist() == list(range(0, 20, 2))
    failing = np.arange(3.0)
    with pytest.raises(RuntimeError):
        call(failing)
    assert failing.tolist() == [0, 1, 2]  # a call that fails writes nothing


def test_written_scalars_arrays_of_rank_0(program):
    leaf = E.ArrayLeaf("f8", ())
    library = program("(<double*>buffers[1])[0] = (<double*>buffers[0])[0] + 1\nreturn 0")
    call = dispatcher(
        library.address, (leaf,), parameters=(leaf,), results=(E.Fresh("f8"),), writes=(E.Write(0, leaf),)
    )
    x = np.array(1.0)
    assert call(x) is None and x == 2.0


def test_finish_takes_over_the_output(program):
    leaf = E.ArrayLeaf("f8", (2,))
    library = program("(<double*>buffers[1])[0] = 5\nreturn 0")
    target = {}

    def finish(objects, results):
        target["object"], target["result"] = objects[0], results[0]
        return "finished"

    call = dispatcher(library.address, (leaf,), parameters=(leaf,), results=(E.Fresh("f8"),), finish=finish)
    x = np.zeros(2)
    assert call(x) == "finished" and target["object"] is x and target["result"] == 5.0


def test_errors_come_from_the_entrys_site_table(program):
    def raise_site(site, iteration, values):
        raise IndexError(f"{site} {iteration} {values[:4]}")

    call = dispatcher(program("return mp_fail(c, 2, 3, 4, 5, 6, 7)").address, (), raise_site=raise_site)
    with pytest.raises(IndexError, match=r"2 3 \(4, 5, 6, 7\)"):
        call()


def test_an_argument_that_a_callback_takes_away_stays_alive(program):
    library = program("""
        cdef int64_t i, j
        cdef double* x = <double*>buffers[0]
        if c.callback(c, 0, NULL):
            return MP_RAISED
        (<double*>buffers[1])[0] = 0
        for i in range(1000):
            (<double*>buffers[1])[0] += x[i]
        return 0
    """)
    container = []
    leaf = E.ArrayLeaf("f8", (1000,))
    site = E.CallbackSite(lambda: (container.clear(), [np.full(1000, 9.0) for _ in range(50)]), ())
    call = dispatcher(
        library.address,
        (E.Sequence(list, (leaf,)),),
        parameters=(leaf,),
        results=(E.Fresh("f8"),),
        output=E.Result(0),
        callbacks=(site,),
    )
    container.append(np.ones(1000))
    assert call(container) == 1000.0 and container == []


def counts(*objects):
    return [sys.getrefcount(value) for value in objects]


def test_no_reference_is_kept_or_lost(program):
    leaf, number = E.ArrayLeaf("f8", (2,)), E.NumberLeaf(float)
    tree = E.Dictionary(("x", "k"), (leaf, number))
    box = E.Node(
        Box,
        lambda box: ((box.value,), box.label),
        lambda label, children: Box(children[0], label),
        "tag",
        (E.AnyLeaf(),),
    )
    library = program("return 1 if (<double*>buffers[1])[0] == 0 else 0")
    call = dispatcher(
        library.address,
        (tree, box),
        parameters=(leaf, number),
        results=(E.Fresh("f8", (2,)), E.Fresh("f8"), E.Fresh("f8", (), "python")),
        output=E.Sequence(tuple, (E.Result(0), E.Argument(leaf), E.Constant(None), E.Result(1))),
    )
    call.miss = lambda args: None
    x, boxed, descr = np.zeros(2), Box(object(), "tag"), np.dtype("f8")
    strided = np.zeros((2, 2))[:, 0]
    given, other = {"x": x, "k": 1.0}, {"x": strided, "k": 1.0}
    failing, mismatch = {"x": x, "k": 0.0}, {"x": x, "k": 1}

    def all_ways():
        for _ in range(100):
            call(given, boxed)
            call(other, boxed)
            call(mismatch, boxed)
            call(given, Box(1, "other"))
            with pytest.raises(RuntimeError):
                call(failing, boxed)

    all_ways()
    gc.collect()
    before = counts(x, strided, boxed, boxed.value, descr, None if sys.version_info < (3, 12) else x)
    all_ways()
    gc.collect()
    after = counts(x, strided, boxed, boxed.value, descr, None if sys.version_info < (3, 12) else x)
    assert all(abs(a - b) < 20 for a, b in zip(before, after)), (before, after)


def test_results_are_freed(program):
    x = E.ArrayLeaf("f8", (n,))
    library = program("return 0")
    call = dispatcher(
        library.address, (x,), parameters=(x,), symbols=("n",), results=(E.Fresh("f8", (n,)),), output=E.Result(0)
    )
    array = np.zeros(1 << 20)

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    call(array).fill(1)
    before = resident()
    for _ in range(200):
        call(array).fill(1)  # 1.6 GB if they were kept
    assert resident() - before < 100 << 20


def test_an_entry_and_what_it_holds_go_with_the_dispatcher(program):
    class Thing:
        pass

    thing = Thing()
    call = Dispatcher(None, ())
    call.add(E.Entry(program("return 0").address, (E.Root(E.Held(thing), E.AnyLeaf()),), keep=thing))
    gone = weakref.ref(thing)
    assert call() is None
    del thing, call
    gc.collect()
    assert gone() is None


def test_large_frames(program):
    """Three hundred arguments do not fit the frame's place on the C stack."""
    leaves = tuple(E.NumberLeaf(float) for _ in range(300))
    library = program("""
        cdef int64_t i
        (<double*>buffers[300])[0] = 0
        for i in range(300):
            (<double*>buffers[300])[0] += (<double*>buffers[i])[0]
        return 0
    """)
    tree = E.Sequence(list, leaves)
    call = dispatcher(library.address, (tree,), parameters=leaves, results=(E.Fresh("f8"),), output=E.Result(0))
    assert call([1.0] * 300) == 300.0
    wide = dispatcher(
        library.address,
        leaves2 := tuple(E.NumberLeaf(float) for _ in range(300)),
        parameters=leaves2,
        results=(E.Fresh("f8"),),
        output=E.Result(0),
    )
    assert wide(*[2.0] * 300) == 600.0
