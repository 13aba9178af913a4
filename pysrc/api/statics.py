"""Which values that are no arrays and no numbers of a program are interchangeable: by value, or by identity.

In: a static argument. Out: a key that is equal for those that one program serves. Values that can't change
(strings, tuples, dtypes, enum members, frozen dataclasses) go by their type and value, floats by their bits;
all others, whatever their `==` says, are themselves, since what a program reads of an object, or stores into
it, it reads and stores in that one. Example:

    static_key(Config(3)) == static_key(Config(3))    # where Config is a frozen dataclass
    static_key([3]) != static_key([3])
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..astpasses.frontend.values.definitions import written_bases

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
    if is_frozen(kind):
        return kind, tuple(static_key(getattr(value, field.name)) for field in dataclasses.fields(kind))
    if kind.__eq__ is object.__eq__ or not written_bases(kind):
        try:
            hash(value)
        except TypeError:
            return "itself", id(value)
        return kind, value
    return "itself", id(value)


def is_frozen(kind: type) -> bool:
    """Whether a class is a dataclass whose instances are what their fields are, and stay so."""
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen or not parameters.eq:
        return False
    return (
        getattr(kind.__eq__, "__code__", None) is not None and kind.__eq__.__code__.co_filename == "<string>"
    )


def comparison(value: Any) -> Callable[[Any], bool] | None:
    """Whether another object of the same class can stand for `value`; None where the dispatcher knows."""
    if _is_plain(value):
        return None
    key = static_key(value)
    return lambda other: static_key(other) == key


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return kind in _EXACT or kind is float or kind is complex or kind is tuple and all(map(_is_plain, value))


__all__ = ["static_key", "is_frozen", "comparison"]
