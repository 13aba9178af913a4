"""A list in a result whose length only the run knows: the program gives arrays, the caller gets a list.

In: for each leaf of an item one array with a row an item. Out: the list; in a staging around, a list that is
gathered.

    the kind Listed, metadata (structure of an item, Python types), children (f64[n],)   ->   [x0, x1, ...]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase._tree_registry import REGISTRY, Kind, number_keys
from metaphrase.tree_util import PyTreeDef

from .staged_values import StagedArray


class Listed:
    """Such a list as its arrays, where it is given to what asks for them: the cotangent of a result."""

    def __init__(self, columns: list, tree: PyTreeDef, python: tuple):
        self.columns, self.tree, self.python = columns, tree, python


def _list_of(metadata: tuple, children: Any) -> list:
    tree, python = metadata
    if any(isinstance(child, StagedArray) for child in children):
        from ..flow.gathering import Rows
        from ..staging.session import session

        session().gathers = True
        return session().born([Rows(tree, list(children), list(python))])
    if not all(isinstance(child, np.ndarray) for child in children):
        return [tree.unflatten(children)]  # what stands for the arrays, in the place of an item
    columns = [c.tolist() if kind is not None and c.ndim == 1 else _rows(c) for c, kind in zip(children, python)]
    return [tree.unflatten(item) for item in zip(*columns)]


def _rows(array: Any) -> list:
    return [row.copy() if isinstance(row, np.ndarray) else row for row in array]


LISTED = Kind(
    Listed,
    lambda value: (value.columns, (value.tree, value.python)),
    _list_of,
    lambda _, metadata: number_keys([None] * metadata[0].num_leaves, metadata),
)
REGISTRY[Listed] = LISTED


def listed(tree: PyTreeDef, python: list) -> PyTreeDef:
    """The structure of a list of items of this structure: a leaf for each of theirs."""
    leaf = PyTreeDef(None)
    return PyTreeDef(LISTED, (tree, tuple(python)), (leaf,) * tree.num_leaves)


def has_lists(tree: PyTreeDef) -> bool:
    """Whether some part of a result is a list whose length only the run knows."""
    return tree.kind is LISTED or any(map(has_lists, tree.children()))


def list_text(metadata: tuple, parts: list[str], item: Any) -> str:
    """The list as Python text. `item(names)`: the text of an item of these leaves."""
    python = metadata[1]
    columns = [f"{p}.tolist()" if kind is not None else f"list({p})" for p, kind in zip(parts, python)]
    if metadata[0].is_leaf():
        return columns[0]
    names = [f"v{k}" for k in range(len(parts))]
    each = ", ".join(names) + ("," if len(names) == 1 else "")
    return f"[{item(names)} for {each} in zip({', '.join(columns)})]"
