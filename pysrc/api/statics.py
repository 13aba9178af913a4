"""Which values that are no arrays and no numbers of a program are interchangeable: by value, or by identity.

In: a static argument. Out: a key that is equal for those that one program serves. Values that can't change
(strings, tuples, dtypes, enum members, frozen dataclasses) go by their type and value, floats by their bits;
so do lists, dicts and arrays that were said to be static. All others, whatever their `==` says, are
themselves: what a program reads of an object, or stores into it, it reads and stores in that one. Example:

    static_key(Config(3)) == static_key(Config(3))    # where Config is a frozen dataclass
    static_key(Model()) != static_key(Model())
"""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from .._tree_registry import Keys
from ..astpasses.frontend import written_bases
from ..tree_util import PyTreeDef

_EXACT = {bool, int, str, bytes, type(None), type(Ellipsis)}


def static_key(value: Any) -> Hashable:
    """Equal for values that can stand for each other in a program."""
    kind = type(value)
    if kind in _EXACT:
        return kind, value
    if kind is float or kind is complex or isinstance(value, np.generic):
        array = np.asarray(value)
        return kind, array.dtype.str, array.tobytes()
    if kind is tuple:
        return kind, tuple(map(static_key, value))
    if kind is frozenset:
        return kind, frozenset(map(static_key, value))
    if kind is list:
        return kind, tuple(map(static_key, value))
    if kind is dict:
        return kind, tuple((static_key(key), static_key(child)) for key, child in value.items())
    if kind is np.ndarray and not value.dtype.hasobject:
        return kind, value.dtype.str, value.shape, value.tobytes()
    if is_frozen(kind):
        return kind, tuple(static_key(getattr(value, field.name)) for field in dataclasses.fields(kind))
    if kind.__eq__ is object.__eq__ or not written_bases(kind):
        try:
            hash(value)
        except TypeError:
            return "itself", id(value)
        return kind, value
    return "itself", id(value)


def distinctions(structure: PyTreeDef) -> tuple:
    """What equality of structures leaves out, and a program depends on: the order of a dict's keys, and in
    keys and metadata the types of numbers, and their bits."""
    metadata = structure.metadata
    keys = metadata[1] if structure.kind and structure.kind.type is collections.defaultdict else metadata
    own = (keys.order,) if isinstance(keys, Keys) else ()
    below = (found for child in structure.children() for found in distinctions(child))
    return (*own, *_numbers(metadata), *below)


def _numbers(metadata: Any) -> Iterator[Hashable]:
    if isinstance(metadata, (tuple, list)):
        for part in metadata:
            if type(part) is not str:
                yield from _numbers(part)
    elif isinstance(metadata, (bool, int, float, complex, np.generic)) and not isinstance(metadata, enum.Enum):
        yield static_key(metadata)


def is_frozen(kind: type) -> bool:
    """Whether a class is a dataclass whose instances are what their fields are, and stay so."""
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen or not parameters.eq:
        return False
    return getattr(kind.__eq__, "__code__", None) is not None and kind.__eq__.__code__.co_filename == "<string>"


def comparison(value: Any) -> Callable[[Any], bool] | None:
    """Whether another object of the same class can stand for `value`; None where the dispatcher knows."""
    if _is_plain(value):
        return None
    key = static_key(value)
    return lambda other: static_key(other) == key


def is_changeable(value: Any) -> bool:
    """Whether a value that goes by what it holds can hold something else at the next call."""
    if isinstance(value, (tuple, frozenset)):
        return any(map(is_changeable, value))
    return type(value) in (list, dict, np.ndarray)


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return kind in _EXACT or kind is float or kind is complex or kind is tuple and all(map(_is_plain, value))


__all__ = ["static_key", "distinctions", "is_frozen", "comparison", "is_changeable"]
