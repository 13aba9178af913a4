"""Which classes are containers, how they come apart and go together, and how users add their own.

In: classes, and functions that flatten and unflatten their instances. Out: `kind_of(node)`, the row of the
registry for a container; None for a leaf.

>>> kind_of((1, 2)).type, kind_of(3)
(<class 'tuple'>, None)
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._tree_keys import DictKey, FlattenedIndexKey, GetAttrKey, KeyEntry, SequenceKey
from .source import SourceError, caller_span


class Kind:
    """How one container type comes apart and goes together: its row in the registry.

    `flatten(node) -> (children, metadata)`, `unflatten(metadata, children) -> node`,
    `keys(node, metadata) -> one KeyEntry a child`.
    """

    __slots__ = ("type", "flatten", "unflatten", "keys")

    def __init__(self, type: type, flatten: Callable, unflatten: Callable, keys: Callable):
        self.type, self.flatten, self.unflatten, self.keys = type, flatten, unflatten, keys


class Skeleton:
    """A user's container whose leaves are no values that its class could take: types, numbers of leaves."""

    __slots__ = ("kind", "metadata", "children")

    def __init__(self, kind: Kind, metadata: Any, children: Sequence[Any]):
        self.kind, self.metadata, self.children = kind, metadata, children

    def row(self) -> Kind:
        """It comes apart by itself, and goes together as an instance of its class."""
        return Kind(self.kind.type, lambda n: (n.children, n.metadata), self.kind.unflatten, _skeleton_keys)


def _skeleton_keys(node: Any, metadata: Any) -> Sequence[KeyEntry]:
    """The keys of an instance, if one can be made of numbers."""
    if isinstance(node, Skeleton):
        kind, numbers = node.kind, range(len(node.children))
        try:
            return kind.keys(kind.unflatten(metadata, numbers), metadata)
        except Exception:  # its class takes no numbers; the keys are for messages only
            return [FlattenedIndexKey(i) for i in numbers]
    kind = REGISTRY[type(node)]
    return kind.keys(node, metadata)


class Keys(tuple):
    """The sorted keys of a dict that has them in another `order`, which does not count for equality."""

    order: tuple


class UnsortableKeys(SourceError, ValueError):
    """A dict whose keys can't be compared with one another."""


def dict_of(keys: tuple, children: Iterable[Any]) -> dict:
    """The dict of these sorted keys, in the order that it had."""
    made = dict(zip(keys, children))
    return {key: made[key] for key in keys.order} if isinstance(keys, Keys) else made


def sorted_keys(node: Iterable[Any]) -> tuple:
    """The keys of a dict in sorted order, which know the order that they had."""
    try:
        keys = tuple(sorted(node))
        if keys == (order := tuple(node)):
            return keys
        keys = Keys(keys)
        keys.order = order
        return keys
    except TypeError as error:
        raise UnsortableKeys(
            f"the keys of a dict are put in order, and these have none: {', '.join(map(repr, node))}",
            caller_span(),
            code="keys",
            remedy="use keys of one type, such as texts: {str(key): value for key, value in table.items()}",
        ) from error


def number_keys(node: Any, metadata: Any, start: Callable[[int], KeyEntry] = SequenceKey) -> list[KeyEntry]:
    return [start(i) for i in range(len(node))]


def _flatten_dict(node: dict) -> tuple[list, tuple]:
    keys = sorted_keys(node)
    return [node[k] for k in keys], keys


def _flatten_defaultdict(node: collections.defaultdict) -> tuple[list, tuple]:
    keys = sorted_keys(node)
    return [node[k] for k in keys], (node.default_factory, keys)


REGISTRY: dict[type, Kind] = {
    kind.type: kind
    for kind in (
        Kind(tuple, lambda n: (n, None), lambda m, c: tuple(c), number_keys),
        Kind(list, lambda n: (n, None), lambda m, c: list(c), number_keys),
        Kind(dict, _flatten_dict, dict_of, lambda n, m: [DictKey(k) for k in m]),
        Kind(type(None), lambda n: ((), None), lambda m, c: None, lambda n, m: []),
        Kind(
            collections.OrderedDict,
            lambda n: (list(n.values()), tuple(n)),
            lambda m, c: collections.OrderedDict(zip(m, c)),
            lambda n, m: [DictKey(k) for k in m],
        ),
        Kind(
            collections.defaultdict,
            _flatten_defaultdict,
            lambda m, c: collections.defaultdict(m[0], dict_of(m[1], c)),
            lambda n, m: [DictKey(k) for k in m[1]],
        ),
    )
}


_BUILTIN = frozenset(REGISTRY)


@functools.cache
def _namedtuple_kind(cls: Any) -> Kind:
    return Kind(cls, lambda n: (n, None), lambda m, c: cls._make(c), lambda n, m: [GetAttrKey(f) for f in cls._fields])


def kind_of(node: Any) -> Kind | None:
    """The registry's row for a container; None for a leaf."""
    cls = type(node)
    kind = REGISTRY.get(cls)
    if kind is None and issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _namedtuple_kind(cls)
    return node.row() if cls is Skeleton else kind


def is_builtin(kind: Kind) -> bool:
    """Whether a kind of container takes any values: it runs no code of a user's."""
    return kind.type in _BUILTIN or issubclass(kind.type, tuple)


# While a function is staged its containers are made by code of the user's that may need to be staged too.
making: Callable[[Callable, tuple, dict], Any] = lambda function, args, keywords: function(*args, **keywords)


def make_by(function: Callable[[Callable, tuple, dict], Any]) -> None:
    """Say how users' functions that make containers are called."""
    global making
    making = function


# ---- registration ----------------------------------------------------------------------------------------


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[KeyEntry, Any]], Any]] | None = None,
) -> None:
    """Make a class a container. `flatten_func(x) -> (children, metadata)`; the metadata is hashable and
    comparable."""
    if nodetype in REGISTRY:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {nodetype}.")

    def keys(node: Any, metadata: Any) -> list[KeyEntry]:
        if flatten_with_keys_func is not None:
            return [key for key, _ in flatten_with_keys_func(node)[0]]
        return [FlattenedIndexKey(i) for i, _ in enumerate(flatten_func(node)[0])]

    def unflatten(metadata: Any, children: Iterable[Any]) -> Any:
        return making(unflatten_func, (metadata, tuple(children)), {})

    REGISTRY[nodetype] = Kind(nodetype, flatten_func, unflatten, keys)


def register_pytree_with_keys(
    nodetype: type, flatten_with_keys: Callable, unflatten_func: Callable, flatten_func: Callable | None = None
) -> None:
    """Like `register_pytree_node`; `flatten_with_keys(x) -> ([(key, child), ...], metadata)`."""

    def flatten(node: Any) -> tuple[list, Any]:
        pairs, metadata = flatten_with_keys(node)
        return [child for _, child in pairs], metadata

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Any) -> Any:
    """Class decorator: the class has `tree_flatten(self)` and a classmethod `tree_unflatten(cls, metadata,
    children)`."""
    register_pytree_node(cls, lambda node: node.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: Any) -> Any:
    """Class decorator: as `register_pytree_node_class`, with `tree_flatten_with_keys(self)` too."""
    register_pytree_with_keys(
        cls,
        lambda node: node.tree_flatten_with_keys(),
        cls.tree_unflatten,
        (lambda node: node.tree_flatten()) if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def register_dataclass(
    nodetype: Any = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Any:
    """Make a dataclass a container: `data_fields` are children, `meta_fields` metadata. Also a class
    decorator.

    Without lists, fields declared by `tree.static()` are metadata and the others children.
    """
    if nodetype is None:
        return functools.partial(
            register_dataclass, data_fields=data_fields, meta_fields=meta_fields, drop_fields=drop_fields
        )
    if (data_fields is None) != (meta_fields is None):
        raise TypeError("register_dataclass: give both data_fields and meta_fields, or neither")
    if data_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(
                f"register_dataclass: {nodetype.__name__} is not a dataclass; give data_fields, meta_fields"
            )
        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        data_fields = [f.name for f in fields if not f.metadata.get("static")]
        meta_fields = [f.name for f in fields if f.metadata.get("static")]
    assert meta_fields is not None
    data, meta = tuple(data_fields), tuple(meta_fields)
    if dataclasses.is_dataclass(nodetype):
        _all_fields_named(nodetype, {*data, *meta, *drop_fields})

    def flatten(node: Any) -> tuple[tuple, tuple]:
        return tuple(getattr(node, f) for f in data), tuple(getattr(node, f) for f in meta)

    def unflatten(metadata: tuple, children: Iterable[Any]) -> Any:
        return making(nodetype, (), {**dict(zip(meta, metadata)), **dict(zip(data, children))})

    register_pytree_node(
        nodetype, flatten, unflatten, lambda node: ([(GetAttrKey(f), getattr(node, f)) for f in data], None)
    )
    return nodetype


def _all_fields_named(cls: Any, named: set[str]) -> None:
    declared = {f.name for f in dataclasses.fields(cls) if f.init}
    if declared != named:
        raise ValueError(
            f"register_dataclass: the fields of {cls.__name__} are {sorted(declared)}, "
            f"and those given are {sorted(named)}"
        )


def register_static(cls: type) -> type:
    """Class decorator: an instance is a container without children, all metadata (so it must hash and
    compare)."""
    register_pytree_node(cls, lambda node: ((), node), lambda metadata, children: metadata)
    return cls


class Partial(functools.partial):
    """`functools.partial` that is a container: its function is metadata, its arguments are children."""


register_pytree_node(Partial, lambda p: ((p.args, p.keywords), p.func), lambda f, c: Partial(f, *c[0], **c[1]))
