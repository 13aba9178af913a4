"""Pytrees by their short names, as in `jax.tree`.

In: nested containers. Out: their leaves, their structure, mapped copies. The functions live in
`metaphrase.tree_util`.

>>> map(lambda x, y: x + y, {"w": 1, "b": 2}, {"w": 10, "b": 20})
{'w': 11, 'b': 22}
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .tree_util import (  # noqa: F401
    LEAF,
    NOT_GIVEN,
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    Partial,
    PyTreeDef,
    SequenceKey,
    all_leaves,
    broadcast_prefix,
    flatten_one_level,
    is_tree_node,
    keystr,
    kind_of,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)
from .tree_util import tree_all as all
from .tree_util import tree_broadcast as broadcast
from .tree_util import tree_flatten as flatten
from .tree_util import tree_flatten_with_path as flatten_with_path
from .tree_util import tree_leaves as leaves
from .tree_util import tree_leaves_with_path as leaves_with_path
from .tree_util import tree_map as map
from .tree_util import tree_map_with_path as map_with_path
from .tree_util import tree_reduce as reduce
from .tree_util import tree_reduce_associative as reduce_associative
from .tree_util import tree_structure as structure
from .tree_util import tree_transpose as transpose
from .tree_util import tree_unflatten as unflatten

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]


def static(**keywords: Any) -> Any:
    """A dataclass field that `register_dataclass` takes for metadata: `dataclasses.field` with a mark."""
    metadata = {**(keywords.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **keywords)
