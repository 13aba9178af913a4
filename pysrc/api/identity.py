"""What a transformed function is to Python: the same object when it is made again, pickled as functions are.

In: a function and the options of a transformation. Out: the transformed function. Example: `grad(f)(x)` in a
loop asks for `grad(f)` in each iteration; it gets the one whose programs are there already.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from ..config import config
from ..runtime.dispatch import Dispatcher
from ..tree_util import tree_flatten, tree_unflatten

_ATTRIBUTE = "__metaphrase_transformed__"


class _Transformed:
    """What was made of one function, kept in that function's own `__dict__`: they go together."""

    def __init__(self, function: Any):
        self.owner = weakref.ref(function)
        self.made: dict[tuple, Any] = {}

    def __reduce__(self) -> tuple:
        return _Nothing, ()  # pickled with its function by value: what was made of it is made again


class _Nothing:
    """Stands in a copied function's `__dict__` for what had been made of the original."""

    @staticmethod
    def owner() -> None:
        return None


def shared(cls: type, function: Any, *options: Any) -> Any:
    """`cls(function, *options)`, or the one that was made before of the same function, with equal options and
    under the same settings.

    Functions that can't hold it (methods, callable objects) have new ones each time.
    """
    table = _table_of(function)
    if table is None:
        return cls(function, *options)
    leaves, structure = tree_flatten(options)
    code = getattr(function, "__code__", None)  # an editor's reload changes it in place
    key = (cls, code, structure, tuple(leaves), tuple(map(type, leaves)), config.snapshot())
    try:
        found = table.get(key)
    except TypeError:  # an option that has no hash
        return cls(function, *options)
    if found is None:
        found = table[key] = cls(function, *tree_unflatten(structure, leaves))
    return found


def _table_of(function: Any) -> dict[tuple, Any] | None:
    if not isinstance(function, (types.FunctionType, Dispatcher)) and not hasattr(function, "_memo"):
        return None
    notes = function.__dict__
    kept = notes.get(_ATTRIBUTE)
    if kept is None or kept.owner() is not function:  # `functools.wraps` copies a function's `__dict__`
        kept = notes[_ATTRIBUTE] = _Transformed(function)
    return kept.made


def reduced(function: Any, remake: Callable[..., Any], *parts: Any) -> str | tuple:
    """For `__reduce__`: by name where a module has the function under its name, else how to make it again."""
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(function, "__qualname__", "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is function else (remake, parts)


__all__ = ["shared", "reduced"]
