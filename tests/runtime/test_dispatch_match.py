"""Which calls match an entry: structure, leaves, sizes, guards, hidden arguments, memory."""

from __future__ import annotations

import collections
import types

import ml_dtypes
import numpy as np
import pytest

from metaphrase.core.dims import Sym, dim_max
from metaphrase.runtime import entry as E
from metaphrase.runtime.dispatch import Dispatcher

n, m = Sym("n"), Sym("m")
MISSED = object()


@pytest.fixture
def nothing(program):
    return program("return 0").address


@pytest.fixture
def serves(nothing):
    """serves(trees, **more) -> the predicate: does a call with these arguments match?"""

    def make(*trees, **more):
        roots = tuple(E.Root(E.Position(index), tree) for index, tree in enumerate(trees))
        call = Dispatcher(None, tuple(f"a{index}" for index in range(len(trees))), miss=lambda args: MISSED)
        call.add(E.Entry(nothing, (*more.pop("roots", ()), *roots), **more))
        return lambda *args: call(*args) is not MISSED

    return make


def test_dtype_rank_and_dims(serves):
    matches = serves(E.ArrayLeaf("float64", (3, 2)))
    assert matches(np.zeros((3, 2)))
    assert not matches(np.zeros((3, 3))) and not matches(np.zeros((3, 2, 1))) and not matches(np.zeros(6))
    assert not matches(np.zeros((3, 2), np.float32)) and not matches(np.zeros((3, 2), ">f8"))
    assert not matches([[0.0, 0.0]] * 3) and not matches(None)


def test_equal_dtypes_of_other_names_match(serves):
    matches = serves(E.ArrayLeaf("int64", (2,)))
    assert matches(np.zeros(2, np.longlong)) and matches(np.zeros(2, np.int_))
    assert not matches(np.zeros(2, np.uint64))
    assert not matches(np.zeros(2, "M8[s]"))


def test_subclasses_of_ndarray_do_not_match(serves):
    matches = serves(E.ArrayLeaf("float64", (2, 2)))
    assert not matches(np.ma.zeros((2, 2))) and not matches(np.zeros((2, 2)).view(np.recarray))


def test_every_layout_matches(serves):
    leaf = E.ArrayLeaf("float64", (3, 2))
    matches = serves(leaf, parameters=(leaf,))
    assert matches(np.zeros((2, 3)).T) and matches(np.zeros((6, 4))[::2, ::2]) and matches(np.zeros((3, 2))[::-1])


def test_a_symbol_is_one_size(serves):
    x, y = E.ArrayLeaf("float64", (n, m)), E.ArrayLeaf("float64", (m,))
    matches = serves(x, y, symbols=("n", "m"))
    assert matches(np.zeros((3, 4)), np.zeros(4)) and matches(np.zeros((4, 4)), np.zeros(4))
    assert not matches(np.zeros((3, 4)), np.zeros(3))


def test_sizes_0_and_1_are_special_unless_said(serves):
    matches = serves(E.ArrayLeaf("float64", (n,)), symbols=("n",))
    assert not matches(np.zeros(0)) and not matches(np.zeros(1)) and matches(np.zeros(2))
    matches = serves(E.ArrayLeaf("float64", (n,)), symbols=("n",), minimum={"n": 0})
    assert matches(np.zeros(0)) and matches(np.zeros(1))


def test_a_dim_that_is_an_expression_is_compared(serves):
    matches = serves(E.ArrayLeaf("float64", (n * 2 + 1,)), E.ArrayLeaf("float64", (n,)), symbols=("n",))
    assert matches(np.zeros(9), np.zeros(4)) and not matches(np.zeros(8), np.zeros(4))


def test_conditions_on_sizes(serves):
    conditions = (E.Compare("<", n, m), E.Compare("!=", n % 3, 0), E.Compare(">=", dim_max(n, m), 5))
    matches = serves(E.ArrayLeaf("f8", (n,)), E.ArrayLeaf("f8", (m,)), symbols=("n", "m"), comparisons=conditions)
    assert matches(np.zeros(4), np.zeros(5))
    assert not matches(np.zeros(5), np.zeros(5)) and not matches(np.zeros(3), np.zeros(5))
    assert not matches(np.zeros(2), np.zeros(4))


def test_a_python_int_that_is_a_size(serves):
    matches = serves(E.SizeLeaf(n), E.ArrayLeaf("f8", (n,)), symbols=("n",))
    assert matches(3, np.zeros(3)) and not matches(4, np.zeros(3)) and not matches(1, np.zeros(1))
    assert not matches(np.int64(3), np.zeros(3)) and not matches(True, np.zeros(2))


def test_numbers_by_exact_type(serves):
    values = {float: 1.5, int: 3, bool: True, complex: 1j}
    for kind in values:
        matches = serves(E.NumberLeaf(kind))
        assert [matches(value) for value in values.values()] == [kind is other for other in values]
        assert not matches(np.float64(1.5)) and not matches(np.array(1.5))
    assert not serves(E.NumberLeaf(int))(1 << 63) and serves(E.NumberLeaf(int))(-(1 << 63))


def test_numpy_scalars_by_dtype(serves):
    matches = serves(E.ScalarLeaf("float32"))
    assert matches(np.float32(1)) and not matches(np.float64(1)) and not matches(1.0)
    assert not matches(np.zeros((), np.float32))
    assert serves(E.ScalarLeaf(ml_dtypes.bfloat16))(ml_dtypes.bfloat16(2))


def test_static_values_by_identity_then_equality(serves):
    assert serves(E.StaticLeaf("relu"))("".join(["re", "lu"])) and not serves(E.StaticLeaf("relu"))("tanh")
    assert serves(E.StaticLeaf(None))(None) and not serves(E.StaticLeaf(None))(0)
    assert not serves(E.StaticLeaf(1))(True) and not serves(E.StaticLeaf(1))(1.0)
    assert not serves(E.StaticLeaf(0.0))(-0.0) and serves(E.StaticLeaf(float("nan")))(float("nan"))
    assert serves(E.StaticLeaf((1, "a")))((1, "a")) and not serves(E.StaticLeaf((1,)))((True,))
    # An == without a truth value is no match, and no error.
    assert not serves(E.StaticLeaf(np.zeros(2)))(np.zeros(2))


def test_any_value(serves):
    matches = serves(E.AnyLeaf())
    assert matches(None) and matches(object()) and matches(np.zeros(3))


def test_tuples_and_lists_are_exact(serves):
    matches = serves(E.Sequence(tuple, (E.NumberLeaf(int), E.Sequence(list, (E.NumberLeaf(float),)))))
    assert matches((1, [2.0]))
    for other in ([1, [2.0]], (1, (2.0,)), (1,), (1, [2.0], 3), (1, [2.0, 3.0]), (1.0, [2.0])):
        assert not matches(other)


def test_dictionaries_in_any_order(serves):
    matches = serves(E.Dictionary(("w", "b"), (E.ArrayLeaf("f8", (2, 2)), E.ArrayLeaf("f8", (2,)))))
    w, b = np.zeros((2, 2)), np.zeros(2)
    assert matches({"w": w, "b": b}) and matches({"b": b, "w": w})
    assert not matches({"w": w}) and not matches({"w": w, "c": b}) and not matches({"w": w, "b": b, "c": b})
    assert not matches({"w": b, "b": w}) and not matches(collections.OrderedDict(w=w, b=b))


Point = collections.namedtuple("Point", "x y")
Other = collections.namedtuple("Other", "x y")


def test_named_tuples_by_type(serves):
    matches = serves(E.Record(Point, (E.NumberLeaf(float), E.NumberLeaf(float))))
    assert matches(Point(1.0, 2.0)) and not matches((1.0, 2.0)) and not matches(Other(1.0, 2.0))


class Box:
    def __init__(self, value, label):
        self.value, self.label = value, label


BOX = E.Node(
    Box,
    lambda box: ([box.value], box.label),
    lambda label, children: Box(children[0], label),
    "a",
    (E.NumberLeaf(float),),
)


def test_registered_containers_through_their_functions(serves):
    matches = serves(BOX)
    assert matches(Box(1.0, "a")) and not matches(Box(1.0, "b")) and not matches(Box(1, "a")) and not matches(1.0)


def test_an_error_in_flatten_comes_out(serves):
    def broken(box):
        raise ZeroDivisionError("in flatten")

    with pytest.raises(ZeroDivisionError, match="in flatten"):
        serves(E.Node(Box, broken, None, None, ()))(Box(1, 2))


def cell_of(value):
    return types.CellType(value)


def test_hidden_arguments_are_read_at_every_call(serves):
    cell, module = types.CellType(1.0), {"scale": 2.0}
    holder = types.SimpleNamespace(inner={"k": [3.0]})
    seen = []

    def getter():
        seen.append(1)
        return holder.inner["missing"] if holder.inner is None else 4.0

    roots = (
        E.Root(E.Cell(cell), E.NumberLeaf(float)),
        E.Root(E.Item(module, "scale"), E.NumberLeaf(float)),
        E.Root(E.Path(E.Held(holder), (("attribute", "inner"), ("item", "k"), ("item", 0))), E.NumberLeaf(float)),
        E.Root(E.Getter(getter), E.NumberLeaf(float)),
    )
    matches = serves(roots=roots)
    assert matches() and seen == [1]
    cell.cell_contents = "text"
    assert not matches()
    del cell.cell_contents
    assert not matches()  # an empty cell
    cell.cell_contents = 5.0
    assert matches()
    del module["scale"]
    assert not matches()
    module["scale"] = 1.0
    holder.inner["k"].clear()
    assert not matches()  # IndexError on the way
    holder.inner["k"].append(1.0)
    holder.inner = None
    assert not matches()  # TypeError on the way
    holder.inner = {"k": [3.0]}
    assert matches()


def test_guards(serves):
    module = {"activation": np.tanh, "depth": 3}
    guards = (E.Guard(E.Item(module, "activation"), np.tanh), E.Guard(E.Item(module, "depth"), 3, "equal"))
    matches = serves(guards=guards)
    assert matches()
    module["depth"] = True
    assert not matches()
    module["depth"] = 3
    module["activation"] = np.sin
    assert not matches()
    del module["activation"]
    assert not matches()


def test_a_written_array_must_be_writeable_and_overlap_nothing(serves):
    x, y = E.ArrayLeaf("f8", (4,)), E.ArrayLeaf("f8", (4,))
    more = dict(parameters=(x, y), results=(E.Fresh("f8", (4,)),), writes=(E.Write(0, x),))
    matches = serves(x, y, **more)
    base = np.zeros(8)
    assert matches(base[:4], base[4:]) and matches(base[3::-1], base[4:])
    assert not matches(base[:4], base[:4]) and not matches(base[:4], base[3:7])
    assert matches(base[::2][:4], base[1::2]) is False  # address ranges decide, not elements
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    assert not matches(frozen, base[4:]) and matches(base[:4], frozen)


def test_an_entry_for_one_array_under_two_names(serves):
    x, y = E.ArrayLeaf("f8", (4,)), E.ArrayLeaf("f8", (4,))
    more = dict(parameters=(x, y), results=(E.Fresh("f8", (4,)),), writes=(E.Write(0, x),), same=((x, y),))
    matches = serves(x, y, **more)
    a, b = np.zeros(4), np.zeros(4)
    assert matches(a, a) and matches(a, a[:]) and not matches(a, b) and not matches(a, a[::-1])


def test_what_an_entry_may_not_say(nothing):
    x, y = E.ArrayLeaf("f8", (n,)), E.ArrayLeaf("f8", (2,))
    call = Dispatcher(None, ("x",))
    wrong = [
        (dict(roots=(E.Root(E.Position(0), x),)), "not among the symbols"),
        (dict(roots=(E.Root(E.Position(0), y),), symbols=("n",)), "no argument of f has the size n"),
        (dict(roots=(E.Root(E.Position(0), y),), parameters=(x,), symbols=()), "is not a leaf of its roots"),
        (dict(roots=(E.Root(E.Position(0), y), E.Root(E.Position(1), y))), "occurs twice"),
        (dict(roots=(), output=E.Result(0)), "no result 0"),
        (dict(roots=(E.Root(E.Position(0), s := E.StaticLeaf(1)),), parameters=(s,)), "can't be a parameter"),
        (dict(roots=(E.Root(E.Position(1), y),)), "takes 2 arguments, the function 1"),
    ]
    for more, message in wrong:
        with pytest.raises(ValueError, match=message):
            call.add(E.Entry(nothing, name="f", **more))
    with pytest.raises(TypeError, match="is not a source"):
        call.add(E.Entry(nothing, (E.Root("x", y),)))
    with pytest.raises(ValueError, match="no address"):
        call.add(E.Entry(0, ()))
