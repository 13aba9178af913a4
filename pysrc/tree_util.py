"""Pytrees: nested containers with values at the leaves, and `PyTreeDef`, what is left when the leaves are taken out.

In: any nesting of tuple, list, dict (keys sorted), OrderedDict, defaultdict, NamedTuple, None (an empty container) and
registered classes. Out: a list of leaves and a `PyTreeDef`, and back again. Everything else is a leaf. The names and
their meaning are those of `jax.tree_util`; `metaphrase.tree` has the same functions by their short names.

>>> tree_flatten({"b": 1, "a": (2, None)})
([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
"""
from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ._tree_keys import DictKey, FlattenedIndexKey, GetAttrKey, KeyEntry, KeyPath, SequenceKey, keystr

IsLeaf = Callable[[Any], bool] | None
NOT_GIVEN = object()


class Kind:
    """How one container type comes apart and goes together: its row in the registry.

    `flatten(node) -> (children, metadata)`, `unflatten(metadata, children) -> node`,
    `keys(node, metadata) -> one KeyEntry a child`.
    """

    __slots__ = ("type", "flatten", "unflatten", "keys")

    def __init__(self, type: type, flatten: Callable, unflatten: Callable, keys: Callable):
        self.type, self.flatten, self.unflatten, self.keys = type, flatten, unflatten, keys


def _sorted_keys(node: dict) -> tuple:
    try:
        return tuple(sorted(node))
    except TypeError as error:
        names = ", ".join(map(repr, node))
        raise ValueError(f"the keys of a dict in a pytree must be sortable, and these are not: {names}") from error


def _number(node: Any, metadata: Any, start: Callable[[int], KeyEntry] = SequenceKey) -> list[KeyEntry]:
    return [start(i) for i in range(len(node))]


def _flatten_dict(node: dict) -> tuple[list, tuple]:
    keys = _sorted_keys(node)
    return [node[k] for k in keys], keys


def _flatten_defaultdict(node: collections.defaultdict) -> tuple[list, tuple]:
    keys = _sorted_keys(node)
    return [node[k] for k in keys], (node.default_factory, keys)


_REGISTRY: dict[type, Kind] = {kind.type: kind for kind in (
    Kind(tuple, lambda n: (n, None), lambda m, c: tuple(c), _number),
    Kind(list, lambda n: (n, None), lambda m, c: list(c), _number),
    Kind(dict, _flatten_dict, lambda m, c: dict(zip(m, c)), lambda n, m: [DictKey(k) for k in m]),
    Kind(type(None), lambda n: ((), None), lambda m, c: None, lambda n, m: []),
    Kind(collections.OrderedDict, lambda n: (list(n.values()), tuple(n)),
         lambda m, c: collections.OrderedDict(zip(m, c)), lambda n, m: [DictKey(k) for k in m]),
    Kind(collections.defaultdict, _flatten_defaultdict, lambda m, c: collections.defaultdict(m[0], zip(m[1], c)),
         lambda n, m: [DictKey(k) for k in m[1]]),
)}


@functools.cache
def _namedtuple_kind(cls: type) -> Kind:
    return Kind(cls, lambda n: (n, None), lambda m, c: cls._make(c), lambda n, m: [GetAttrKey(f) for f in cls._fields])


def kind_of(node: Any) -> Kind | None:
    """The registry's row for a container; None for a leaf."""
    cls = type(node)
    kind = _REGISTRY.get(cls)
    if kind is None and issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _namedtuple_kind(cls)
    return kind


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
        return (mine is theirs and self.num_nodes == other.num_nodes and self._children == other._children
                and bool(self.metadata == other.metadata))

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
        return (f"the structures differ at {where}: {against} has {_describe(self.expected)}, "
                f"{name} has {_describe(found, self.found)}\n"
                f"  {against}: {structure}\n  {name}: {tree_structure(tree)}")


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
    return kind.keys(node, metadata) if kind.type is not tuple and kind.type is not list else _number(children, None)


# ---------------------------------------------------------------------------------------------- taking apart, together


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


def tree_flatten_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                           is_leaf_takes_path: bool = False) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
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


def tree_leaves_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                          is_leaf_takes_path: bool = False) -> list[tuple[KeyPath, Any]]:
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


# ------------------------------------------------------------------------------------------------------------- mapping


def _match(structure: PyTreeDef, trees: Sequence[Any], who: str) -> list[list[Any]]:
    """Each of `trees` cut where the first tree has its leaves; an error that shows both structures and the path."""
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


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[..., bool] | None = None,
                       is_leaf_takes_path: bool = False) -> Any:
    """Like `tree_map`; `f` gets the path of the leaf first."""
    pairs, structure = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    rows = [[path for path, _ in pairs], [leaf for _, leaf in pairs], *_match(structure, rest, "tree.map_with_path")]
    return structure.unflatten([f(*xs) for xs in zip(*rows)])


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = NOT_GIVEN,
                is_leaf: IsLeaf = None) -> Any:
    """`functools.reduce` over the leaves."""
    leaves = tree_leaves(tree, is_leaf)
    if initializer is NOT_GIVEN:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = NOT_GIVEN,
                            is_leaf: IsLeaf = None) -> Any:
    """The leaves reduced in a balanced tree of pairs; `operation` must be associative."""
    row = tree_leaves(tree, is_leaf)
    if not row:
        if identity is NOT_GIVEN:
            raise TypeError("tree.reduce_associative of a tree without leaves needs an identity")
        return identity
    while len(row) > 1:
        paired = [operation(a, b) for a, b in zip(row[0::2], row[1::2])]
        row = paired + row[len(row) - len(row) % 2:]
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
        raise TypeError(f"tree.transpose: the tree has the structure {found}\n  and should have "
                        f"{outer_treedef.compose(inner)}")
    width = inner.num_leaves
    return inner.unflatten([outer_treedef.unflatten(leaves[i::width]) for i in range(width)])


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """One leaf of `prefix_tree` for each leaf of `full_tree`: a leaf of the prefix stands for a whole subtree.

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
    return PyTreeDef(_REGISTRY[tuple], None, tuple(treedefs))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    return treedef.num_nodes == 1


# --------------------------------------------------------------------------------------------------------- registration


def register_pytree_node(nodetype: type, flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
                         unflatten_func: Callable[[Any, Any], Any],
                         flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[KeyEntry, Any]], Any]]
                         | None = None) -> None:
    """Make a class a container. `flatten_func(x) -> (children, metadata)`; the metadata is hashable and comparable."""
    if nodetype in _REGISTRY:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {nodetype}.")

    def keys(node: Any, metadata: Any) -> list[KeyEntry]:
        if flatten_with_keys_func is not None:
            return [key for key, _ in flatten_with_keys_func(node)[0]]
        return [FlattenedIndexKey(i) for i, _ in enumerate(flatten_func(node)[0])]

    _REGISTRY[nodetype] = Kind(nodetype, flatten_func, lambda m, c: unflatten_func(m, tuple(c)), keys)


def register_pytree_with_keys(nodetype: type, flatten_with_keys: Callable, unflatten_func: Callable,
                              flatten_func: Callable | None = None) -> None:
    """Like `register_pytree_node`; `flatten_with_keys(x) -> ([(key, child), ...], metadata)`."""
    def flatten(node: Any) -> tuple[list, Any]:
        pairs, metadata = flatten_with_keys(node)
        return [child for _, child in pairs], metadata

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: type) -> type:
    """Class decorator: the class has `tree_flatten(self)` and a classmethod `tree_unflatten(cls, metadata, children)`."""
    register_pytree_node(cls, lambda node: node.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: type) -> type:
    """Class decorator: as `register_pytree_node_class`, with `tree_flatten_with_keys(self)` too."""
    register_pytree_with_keys(cls, lambda node: node.tree_flatten_with_keys(), cls.tree_unflatten,
                              (lambda node: node.tree_flatten()) if hasattr(cls, "tree_flatten") else None)
    return cls


def register_dataclass(nodetype: Any = None, data_fields: Sequence[str] | None = None,
                       meta_fields: Sequence[str] | None = None, drop_fields: Sequence[str] = ()) -> Any:
    """Make a dataclass a container: `data_fields` are children, `meta_fields` metadata. Also a class decorator.

    Without lists, fields declared by `tree.static()` are metadata and the others children.
    """
    if nodetype is None:
        return functools.partial(register_dataclass, data_fields=data_fields, meta_fields=meta_fields,
                                 drop_fields=drop_fields)
    if (data_fields is None) != (meta_fields is None):
        raise TypeError("register_dataclass: give both data_fields and meta_fields, or neither")
    if data_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(f"register_dataclass: {nodetype.__name__} is not a dataclass; give data_fields, meta_fields")
        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        data_fields = [f.name for f in fields if not f.metadata.get("static")]
        meta_fields = [f.name for f in fields if f.metadata.get("static")]
    data, meta = tuple(data_fields), tuple(meta_fields)
    if dataclasses.is_dataclass(nodetype):
        _all_fields_named(nodetype, {*data, *meta, *drop_fields})

    def flatten(node: Any) -> tuple[tuple, tuple]:
        return tuple(getattr(node, f) for f in data), tuple(getattr(node, f) for f in meta)

    def unflatten(metadata: tuple, children: Iterable[Any]) -> Any:
        return nodetype(**dict(zip(meta, metadata)), **dict(zip(data, children)))

    register_pytree_node(nodetype, flatten, unflatten,
                         lambda node: ([(GetAttrKey(f), getattr(node, f)) for f in data], None))
    return nodetype


def _all_fields_named(cls: type, named: set[str]) -> None:
    declared = {f.name for f in dataclasses.fields(cls) if f.init}
    if declared != named:
        raise ValueError(f"register_dataclass: the fields of {cls.__name__} are {sorted(declared)}, "
                         f"and those given are {sorted(named)}")


def register_static(cls: type) -> type:
    """Class decorator: an instance is a container without children, all metadata (so it must hash and compare)."""
    register_pytree_node(cls, lambda node: ((), node), lambda metadata, children: metadata)
    return cls


class Partial(functools.partial):
    """`functools.partial` that is a container: its function is metadata, its arguments are children."""


register_pytree_node(Partial, lambda p: ((p.args, p.keywords), p.func), lambda f, c: Partial(f, *c[0], **c[1]))
