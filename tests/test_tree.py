"""Pytrees: the meaning of jax.tree and jax.tree_util, with errors that show both structures and the path."""

from __future__ import annotations

import dataclasses
import pickle
from collections import OrderedDict, defaultdict, namedtuple
from typing import NamedTuple

import pytest

from metaphrase import tree, tree_util
from metaphrase.tree_util import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    SequenceKey,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys_class,
    register_static,
)


class Point(NamedTuple):
    x: object
    y: object


@register_pytree_node_class
class Interval:
    def __init__(self, low, high, unit="m"):
        self.low, self.high, self.unit = low, high, unit

    def tree_flatten(self):
        return (self.low, self.high), self.unit

    @classmethod
    def tree_unflatten(cls, unit, children):
        return cls(*children, unit=unit)


@register_dataclass
@dataclasses.dataclass
class Layer:
    weights: object
    bias: object
    activation: str = tree.static(default="relu")


@register_static
@dataclasses.dataclass(frozen=True)
class Mode:
    name: str


EXAMPLES = [
    5,
    None,
    (),
    [],
    {},
    (1, 2),
    [1, [2, (3,)]],
    {"b": 1, "a": 2},
    {"b": (1, None), "a": [2, 3]},
    OrderedDict(z=1, y=2),
    defaultdict(int, {"q": 1, "p": 2}),
    Point(1, Point(2, None)),
    {1: "x", 0: "y"},
]


@pytest.mark.parametrize("example", EXAMPLES, ids=repr)
def test_flatten_and_unflatten_are_inverse(example):
    leaves, structure = tree.flatten(example)
    back = tree.unflatten(structure, leaves)
    assert back == example and type(back) is type(example)
    assert tree.structure(back) == structure and hash(tree.structure(back)) == hash(structure)
    assert structure.num_leaves == len(leaves) == len(tree.leaves(example))


@pytest.mark.parametrize("example", EXAMPLES, ids=repr)
def test_paths_lead_to_the_leaves(example):
    pairs, structure = tree.flatten_with_path(example)
    assert [leaf for _, leaf in pairs] == tree.leaves(example) and structure == tree.structure(example)
    for path, leaf in pairs:
        assert eval(f"value{keystr(path)}", {"value": example}) is leaf


def test_structures_print_as_in_jax():
    value = {
        "b": 1,
        "a": (2, [3, None]),
        "o": OrderedDict(z=1, y=2),
        "d": defaultdict(int, {"q": 1}),
        "p": namedtuple("P", "a b")(1, 2),
    }
    assert repr(tree.structure(value)) == (
        "PyTreeDef({'a': (*, [*, None]), 'b': *, 'd': CustomNode(defaultdict[(<class 'int'>, ('q',))], [*]), "
        "'o': CustomNode(OrderedDict[('z', 'y')], [*, *]), 'p': CustomNode(namedtuple[P], [*, *])})"
    )
    assert repr(tree.structure((1,))) == "PyTreeDef((*,))" and repr(tree.structure(3)) == "PyTreeDef(*)"


def test_dicts_are_sorted_and_ordered_dicts_are_not():
    assert tree.leaves({"b": 1, "a": 2}) == [2, 1]
    assert tree.leaves(OrderedDict([("b", 1), ("a", 2)])) == [1, 2]
    assert tree.structure({"a": 1, "b": 2}) == tree.structure({"b": 1, "a": 2})
    assert tree.structure(OrderedDict(a=1, b=2)) != tree.structure(OrderedDict(b=1, a=2))
    with pytest.raises(ValueError, match="put in order, and these have none: 1, 'a'"):
        tree.leaves({1: 2, "a": 3})


def test_different_structures_are_unequal():
    structures = [tree.structure(example) for example in EXAMPLES]
    for i, a in enumerate(structures):
        for j, b in enumerate(structures):
            assert (a == b) is (i == j)


def test_none_is_an_empty_container_unless_said_otherwise():
    assert tree.leaves([1, None, 2]) == [1, 2]
    assert tree.leaves([1, None, 2], is_leaf=lambda x: x is None) == [1, None, 2]
    assert tree.map(lambda x: x + 1, (1, None)) == (2, None)
    assert tree.structure(None) != tree.structure(0)
    assert tree.structure(0).is_leaf() and not tree.structure(None).is_leaf()


def test_registered_classes():
    leaves, structure = tree.flatten({"i": Interval(1, 2, "km")})
    assert leaves == [1, 2]
    back = tree.unflatten(structure, [3, 4])["i"]
    assert (back.low, back.high, back.unit) == (3, 4, "km")
    assert tree.structure(Interval(0, 0, "m")) != tree.structure(Interval(0, 0, "km"))
    assert tree.leaves_with_path(Interval(1, 2))[1][0] == (FlattenedIndexKey(1),)
    with pytest.raises(ValueError, match="Duplicate"):
        register_pytree_node(Interval, lambda x: ((), None), lambda m, c: None)


def test_registered_dataclasses():
    layer = Layer(1, (2, 3), "tanh")
    assert tree.leaves(layer) == [1, 2, 3]
    assert tree.map(lambda x: 10 * x, layer) == Layer(10, (20, 30), "tanh")
    assert [keystr(path) for path, _ in tree.leaves_with_path([layer])] == ["[0].weights", "[0].bias[0]", "[0].bias[1]"]
    with pytest.raises(ValueError, match="structures differ at the root"):
        tree.map(lambda x, y: x, layer, Layer(1, (2, 3), "relu"))

    @dataclasses.dataclass
    class Pair:
        a: object
        b: object

    with pytest.raises(ValueError, match="fields of Pair"):
        register_dataclass(Pair, data_fields=["a"], meta_fields=[])
    register_dataclass(Pair, data_fields=["a"], meta_fields=["b"])
    assert tree.leaves(Pair(1, 2)) == [1]


def test_static_classes_have_no_leaves():
    assert tree.leaves([Mode("train"), 1]) == [1]
    assert tree.structure(Mode("train")) == tree.structure(Mode("train")) != tree.structure(Mode("test"))


def test_classes_with_keys():
    @register_pytree_with_keys_class
    class Named:
        def __init__(self, value):
            self.value = value

        def tree_flatten_with_keys(self):
            return ((GetAttrKey("value"), self.value),), None

        @classmethod
        def tree_unflatten(cls, metadata, children):
            return cls(*children)

    assert tree.leaves_with_path({"n": Named([7])}) == [((DictKey("n"), GetAttrKey("value"), SequenceKey(0)), 7)]
    assert tree.map(lambda x: -x, Named(2)).value == -2


def test_map():
    assert tree.map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)}) == {"a": 11, "b": (22, 33)}
    assert tree.map(lambda x, y: (x, y), (1, 2), ([5, 6], {"k": 7})) == ((1, [5, 6]), (2, {"k": 7}))
    assert tree.map_with_path(lambda path, x, y: f"{keystr(path)}={x + y}", {"a": [1]}, {"a": [2]}) == {
        "a": ["['a'][0]=3"]
    }
    assert tree.map(len, [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [2, 1]


@pytest.mark.parametrize(
    "first, second, where, expected, found",
    [
        (([1], 2), ([1, 2], 2), "[0]", "a list of 1", "a list of 2"),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, "['a']", "a dict with the keys 'b'", "a dict with the keys 'c'"),
        ({"a": (1, 2)}, {"a": 5}, "['a']", "a tuple of 2", "a leaf of type int"),
        (Point(1, (2,)), Point(1, [2]), ".y", "a tuple of 1", "a list of 1"),
        ([1, None], [1, 2], "[1]", "None", "a leaf of type int"),
    ],
)
def test_map_shows_where_structures_differ(first, second, where, expected, found):
    with pytest.raises(ValueError) as caught:
        tree.map(lambda x, y: x, first, second)
    assert str(caught.value) == (
        f"tree.map: the structures differ at {where}: tree 1 has {expected}, tree 2 has {found}\n"
        f"  tree 1: {tree.structure(first)}\n  tree 2: {tree.structure(second)}"
    )


def test_unflatten_counts_leaves():
    for leaves, word in (([1], "few"), ([1, 2, 3], "many")):
        with pytest.raises(ValueError, match=f"Too {word} leaves for PyTreeDef; expected 2, got {len(leaves)}"):
            tree.unflatten(tree.structure((0, 0)), leaves)


def test_reduce_and_all():
    assert tree.reduce(lambda a, b: a * 10 + b, {"b": 3, "a": (1, 2)}) == 123
    assert tree.reduce(lambda a, b: a + b, (), 5) == 5
    assert tree.reduce_associative(lambda a, b: a + b, ["a", "b", ["c", "d", "e"]]) == "abcde"
    assert tree.reduce_associative(max, [], identity=-1) == -1
    assert tree.all((True, [1])) and not tree.all((True, [0])) and tree.all(())


def test_transpose():
    outer, inner = tree.structure({"a": 0, "b": 0}), tree.structure((0, 0, 0))
    assert tree.transpose(outer, inner, {"a": (1, 2, 3), "b": (4, 5, 6)}) == (
        {"a": 1, "b": 4},
        {"a": 2, "b": 5},
        {"a": 3, "b": 6},
    )
    assert tree.transpose(tree.structure([0, 0]), None, [(1, 2), (3, 4)]) == ([1, 3], [2, 4])
    with pytest.raises(TypeError, match="should have"):
        tree.transpose(outer, inner, {"a": (1, 2), "b": (4, 5)})


def test_prefixes():
    assert tree.broadcast((0, 1), ({"a": 5, "b": 6}, 7)) == ({"a": 0, "b": 0}, 1)
    assert tree_util.broadcast_prefix((0, None), ((5, 6), 7), is_leaf=lambda x: x is None) == [0, 0, None]
    with pytest.raises(ValueError, match="structures differ at the root"):
        tree.broadcast((0, 1), (1, 2, 3))


def test_structures_compose_and_take_apart():
    structure = tree.structure({"a": 0, "b": (0,)})
    assert structure.flatten_up_to({"a": [1, 2], "b": (3,)}) == [[1, 2], 3]
    assert structure.compose(tree.structure((0, 0))) == tree.structure({"a": (0, 0), "b": ((0, 0),)})
    assert structure.num_nodes == 4 and structure.node_data() == (dict, ("a", "b"))
    assert structure.children() == [tree.structure(0), tree.structure((0,))]
    assert tree_util.treedef_tuple([structure, structure]) == tree.structure(({"a": 0, "b": (0,)},) * 2)
    assert tree_util.treedef_is_leaf(tree.structure(1)) and not tree_util.treedef_is_leaf(structure)
    assert pickle.loads(pickle.dumps(structure)) == structure and isinstance(structure, PyTreeDef)


def test_one_level_and_leaf_tests():
    children, metadata = tree_util.flatten_one_level({"b": [1], "a": 2})
    assert (list(children), metadata) == ([2, [1]], ("a", "b"))
    assert tree_util.all_leaves([1, "x"]) and not tree_util.all_leaves([1, ()])
    with pytest.raises(ValueError, match="is a leaf"):
        tree_util.flatten_one_level(1)


def test_path_text():
    path = tree.leaves_with_path({"a": [Point(1, 2)]})[1][0]
    assert keystr(path) == "['a'][0].y" and keystr(path, simple=True, separator="/") == "a/0/y"


def test_partial_is_a_container_of_its_arguments():
    scaled = tree_util.Partial(lambda a, b, c=0: a * b + c, 2, c=5)
    assert tree.leaves(scaled) == [2, 5]
    assert tree.map(lambda x: x + 1, scaled)(10) == 36
