"""Pytrees: nested containers with values at the leaves, and `PyTreeDef`, what is left when the leaves are
taken out.

In: any nesting of tuple, list, dict (by sorted key), OrderedDict, defaultdict, NamedTuple, None (an empty
container) and registered classes. Out: a list of leaves and a `PyTreeDef`, and back again. Everything else is
a leaf. The names and their meaning are those of `jax.tree_util`; `metaphrase.tree` has the same functions by
their short names.

>>> tree_flatten({"b": 1, "a": (2, None)})
([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ._tree_keys import DictKey, FlattenedIndexKey, GetAttrKey, KeyEntry, KeyPath, SequenceKey, keystr  # noqa: F401
from ._tree_registry import (  # noqa: F401
    REGISTRY,
    Keys,
    Kind,
    Partial,
    Skeleton,
    dict_of,
    is_builtin,
    kind_of,
    number_keys,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    sorted_keys,
)

IsLeaf = Callable[[Any], bool] | None
NOT_GIVEN = object()


class PyTreeDef:
    """A tree without its leaves. Immutable; equal and hashed by structure; printed with `*` for a leaf."""

    __slots__ = ("kind", "metadata", "_children", "num_leaves", "num_nodes", "_hash")

    def __init__(self, kind: Kind | None, metadata: Any = None, children: tuple[PyTreeDef, ...] = ()):
        self.kind, self.metadata, self._children = kind, metadata, children
        self.num_leaves: int = sum(c.num_leaves for c in children) if kind else 1
        self.num_nodes: int = 1 + sum(c.num_nodes for c in children)
        self._hash: int | None = None

    def is_leaf(self) -> bool:
        """True for the structure of a single leaf (not for None, which is an empty container)."""
        return self.kind is None

    def children(self) -> list[PyTreeDef]:
        return list(self._children)

    def node_data(self) -> tuple[type, Any] | None:
        """(type, metadata) of the outermost container; None for a leaf."""
        return (self.kind.type, self.metadata) if self.kind else None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            few = "few" if len(leaves) < self.num_leaves else "many"
            raise ValueError(f"Too {few} leaves for PyTreeDef; expected {self.num_leaves}, got {len(leaves)}: {self}")
        return self._take(iter(leaves))

    def _take(self, leaves: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(leaves)
        return self.kind.unflatten(self.metadata, [child._take(leaves) for child in self._children])

    def skeleton(self, leaves: Iterable[Any]) -> Any:
        """Like `unflatten`, for leaves that a user's class would not take: it is left out of it."""
        return self._stand_in(iter(leaves))

    def _stand_in(self, leaves: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(leaves)
        children = [child._stand_in(leaves) for child in self._children]
        if is_builtin(self.kind):
            return self.kind.unflatten(self.metadata, children)
        return Skeleton(self.kind, self.metadata, children)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` that stand where this structure has its leaves."""
        out: list[Any] = []
        try:
            self._take_apart(tree, out, ())
        except _Mismatch as found:
            raise ValueError(found.message("the tree", tree, "the structure", self)) from None
        return out

    def _take_apart(self, tree: Any, out: list[Any], path: KeyPath) -> None:
        if self.kind is None:
            out.append(tree)
            return
        kind = kind_of(tree)
        if kind is None or kind.type is not self.kind.type:
            raise _Mismatch(path, self, tree)
        children, metadata = kind.flatten(tree)
        children = tuple(children)
        if len(children) != len(self._children) or metadata != self.metadata:
            raise _Mismatch(path, self, tree)
        if not children:
            return
        for key, node, child in zip(_keys(kind, tree, metadata, children), self._children, children):
            node._take_apart(child, out, (*path, key))

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with `inner` in the place of every leaf."""
        if self.kind is None:
            return inner
        return PyTreeDef(self.kind, self.metadata, tuple(c.compose(inner) for c in self._children))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        mine, theirs = self.kind and self.kind.type, other.kind and other.kind.type
        return (
            mine is theirs
            and self.num_nodes == other.num_nodes
            and self._children == other._children
            and bool(self.metadata == other.metadata)
        )

    def __hash__(self) -> int:
        if self._hash is None:
            kind = self.kind and self.kind.type
            metadata = self.metadata
            if kind is collections.defaultdict or kind is dict or kind is collections.OrderedDict:
                metadata = str(metadata)
            self._hash = hash((kind, metadata, self._children))
        return self._hash

    def __repr__(self) -> str:
        return f"PyTreeDef({self._text()})"

    def __reduce__(self) -> tuple:
        return tree_structure, (self.unflatten([0] * self.num_leaves),)

    def _text(self) -> str:
        if self.kind is None:
            return "*"
        cls, inner = self.kind.type, [child._text() for child in self._children]
        listed = ", ".join(inner)
        if cls is type(None):
            return "None"
        if cls is tuple:
            return f"({listed},)" if len(inner) == 1 else f"({listed})"
        if cls is list:
            return f"[{listed}]"
        if cls is dict:
            return "{" + ", ".join(f"{key!r}: {child}" for key, child in zip(self.metadata, inner)) + "}"
        if issubclass(cls, tuple):
            return f"CustomNode(namedtuple[{cls.__name__}], [{listed}])"
        return f"CustomNode({cls.__name__}[{self.metadata}], [{listed}])"


LEAF = PyTreeDef(None)


class _Mismatch(Exception):
    """Two trees differ at `path`: `expected` is the structure there, `found` the tree there."""

    def __init__(self, path: KeyPath, expected: PyTreeDef, found: Any):
        self.path, self.expected, self.found = path, expected, found

    def message(self, name: str, tree: Any, against: str, structure: PyTreeDef) -> str:
        found = tree_structure(self.found)
        where = keystr(self.path) or "the root"
        return (
            f"the structures differ at {where}: {against} has {_describe(self.expected)}, "
            f"{name} has {_describe(found, self.found)}\n"
            f"  {against}: {structure}\n  {name}: {tree_structure(tree)}"
        )


def _describe(structure: PyTreeDef, node: Any = NOT_GIVEN) -> str:
    if structure.kind is None:
        return "a leaf" if node is NOT_GIVEN else f"a leaf of type {type(node).__name__}"
    name, size = structure.kind.type.__name__, len(structure._children)
    if structure.kind.type is type(None):
        return "None"
    if structure.kind.type is dict:
        return f"a dict with the keys {', '.join(map(repr, structure.metadata)) or '(none)'}"
    return f"a {name} of {size}" + ("" if structure.metadata is None else f" with {structure.metadata!r}")


def _keys(kind: Kind, node: Any, metadata: Any, children: Sequence) -> Sequence[KeyEntry]:
    return (
        kind.keys(node, metadata) if kind.type is not tuple and kind.type is not list else number_keys(children, None)
    )


# ---- taking apart ----------------------------------------------------------------------------------------


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves from left to right, and the structure without them."""
    leaves: list[Any] = []
    return leaves, _flatten_into(tree, leaves, is_leaf)


def _flatten_into(node: Any, leaves: list[Any], is_leaf: IsLeaf) -> PyTreeDef:
    kind = None if is_leaf is not None and is_leaf(node) else kind_of(node)
    if kind is None:
        leaves.append(node)
        return LEAF
    children, metadata = kind.flatten(node)
    return PyTreeDef(kind, metadata, tuple([_flatten_into(child, leaves, is_leaf) for child in children]))


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    return tree_flatten(tree, is_leaf)[1]


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """[(path, leaf), ...] and the structure; a path is a tuple of key entries, printed by `keystr`."""
    pairs: list[tuple[KeyPath, Any]] = []

    def walk(node: Any, path: KeyPath) -> PyTreeDef:
        stop = is_leaf is not None and (is_leaf(path, node) if is_leaf_takes_path else is_leaf(node))
        kind = None if stop else kind_of(node)
        if kind is None:
            pairs.append((path, node))
            return LEAF
        children, metadata = kind.flatten(node)
        children = tuple(children)
        keys = _keys(kind, node, metadata, children)
        return PyTreeDef(kind, metadata, tuple(walk(child, (*path, key)) for key, child in zip(keys, children)))

    structure = walk(tree, ())
    return pairs, structure


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


# ---- mapping ---------------------------------------------------------------------------------------------


def _match(structure: PyTreeDef, trees: Sequence[Any], who: str) -> list[list[Any]]:
    """Each of `trees` cut where the first tree has its leaves; an error that shows both structures and the
    path."""
    rows = []
    for position, tree in enumerate(trees, start=2):
        out: list[Any] = []
        try:
            structure._take_apart(tree, out, ())
        except _Mismatch as found:
            text = found.message(f"tree {position}", tree, "tree 1", structure)
            raise ValueError(f"{who}: {text}") from None
        rows.append(out)
    return rows


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """`f` of each leaf, and of what stands at its place in `rest`, in a tree of the same structure."""
    leaves, structure = tree_flatten(tree, is_leaf)
    rows = [leaves, *_match(structure, rest, "tree.map")]
    return structure.unflatten([f(*xs) for xs in zip(*rows)])


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Like `tree_map`; `f` gets the path of the leaf first."""
    pairs, structure = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    rows = [[path for path, _ in pairs], [leaf for _, leaf in pairs], *_match(structure, rest, "tree.map_with_path")]
    return structure.unflatten([f(*xs) for xs in zip(*rows)])


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = NOT_GIVEN, is_leaf: IsLeaf = None
) -> Any:
    """`functools.reduce` over the leaves."""
    leaves = tree_leaves(tree, is_leaf)
    if initializer is NOT_GIVEN:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = NOT_GIVEN, is_leaf: IsLeaf = None
) -> Any:
    """The leaves reduced in a balanced tree of pairs; `operation` must be associative."""
    row = tree_leaves(tree, is_leaf)
    if not row:
        if identity is NOT_GIVEN:
            raise TypeError("tree.reduce_associative of a tree without leaves needs an identity")
        return identity
    while len(row) > 1:
        paired = [operation(a, b) for a, b in zip(row[0::2], row[1::2])]
        row = paired + row[len(row) - len(row) % 2 :]
    return row[0]


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """True if every leaf is true."""
    return all(tree_leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """True if every item is a leaf itself."""
    return all(kind_of(x) is None or (is_leaf is not None and is_leaf(x)) for x in iterable)


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of `outer` structure holding trees of `inner` structure, turned inside out."""
    subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
    inner = tree_structure(subtrees[0]) if inner_treedef is None else inner_treedef
    leaves, found = tree_flatten(pytree_to_transpose)
    if found.num_leaves != outer_treedef.num_leaves * inner.num_leaves:
        raise TypeError(
            f"tree.transpose: the tree has the structure {found}\n  and should have {outer_treedef.compose(inner)}"
        )
    width = inner.num_leaves
    return inner.unflatten([outer_treedef.unflatten(leaves[i::width]) for i in range(width)])


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """One leaf of `prefix_tree` for each leaf of `full_tree`: a leaf of the prefix stands for a whole
    subtree.

    >>> broadcast_prefix((0, None), ((5, 6), 7), is_leaf=lambda x: x is None)
    [0, 0, None]
    """
    leaves, structure = tree_flatten(prefix_tree, is_leaf)
    out: list[Any] = []
    for leaf, subtree in zip(leaves, structure.flatten_up_to(full_tree)):
        out += [leaf] * tree_structure(subtree, is_leaf).num_leaves
    return out


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of the structure of `full_tree` with the leaves of `prefix_tree`."""
    return tree_structure(full_tree, is_leaf).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def is_tree_node(tree: Any) -> bool:
    return kind_of(tree) is not None


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """The children and the metadata of one container."""
    kind = kind_of(tree)
    if kind is None:
        raise ValueError(f"a {type(tree).__name__} is a leaf, not a container known to the pytree registry")
    return kind.flatten(tree)


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    return PyTreeDef(REGISTRY[tuple], None, tuple(treedefs))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    return treedef.num_nodes == 1
