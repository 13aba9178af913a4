"""Functions and classes as they were when a program was staged: what a guard compares them with later.

In: a function, or a class, that staging ran through. Out: its state, and whether it is still that. Example:

    state = class_state(Model)       # its methods, properties and descriptors, and its bases' ones
    Model.forward = faster
    class_state(Model) == state      # False: programs that ran through Model are translated again

Data in a class (numbers, arrays, lists) is no part of its state: reading such a thing has a guard of its own.
"""

from __future__ import annotations

import operator
import types
from typing import Any

import numpy as np

from metaphrase.source import is_library

_DATA = (
    *(bool, int, float, complex, str, bytes, type(None), list, dict, set, tuple),
    *(np.generic, np.dtype, np.ndarray),
)


class FunctionState:
    """What a function runs: its code and default values, kept alive so that no identity is used again."""

    __slots__ = ("code", "defaults", "keywords")

    def __init__(self, function: types.FunctionType):
        self.code, self.defaults = function.__code__, function.__defaults__
        self.keywords = function.__kwdefaults__ and dict(function.__kwdefaults__)

    def holds(self, function: types.FunctionType) -> bool:
        now = function.__kwdefaults__
        if function.__code__ is not self.code or function.__defaults__ is not self.defaults:
            return False
        if not now or not self.keywords:
            return not now and not self.keywords
        return now.keys() == self.keywords.keys() and all(now[k] is v for k, v in self.keywords.items())


class ClassState:
    """What a class and its bases define: functions, properties, descriptors, other objects; by identity."""

    __slots__ = ("bases", "members")

    def __init__(self, kind: type):
        self.bases = written_bases(kind)
        self.members = [_members(base) for base in self.bases]

    def holds(self, kind: type) -> bool:
        bases = written_bases(kind)
        return (
            len(bases) == len(self.bases)
            and all(map(operator.is_, bases, self.bases))
            and all(
                now.keys() == then.keys() and all(now[name] is value for name, value in then.items())
                for now, then in zip(map(_members, bases), self.members)
            )
        )


def found_in(kind: type, name: str) -> Any:
    """What a class or one of its bases has under a name, as it stands there."""
    return next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)


def written_bases(kind: type) -> list[type]:
    """The classes that users wrote among those where an attribute of `kind` is looked for."""
    return [base for base in kind.__mro__ if not is_library(str(getattr(base, "__module__", "")))]


def bound_function(found: Any) -> Any:
    """The function that a method runs; what is no method is itself."""
    return found.__func__ if isinstance(found, types.MethodType) else found


def _members(base: type) -> dict[str, Any]:
    return {name: value for name, value in base.__dict__.items() if not isinstance(value, _DATA)}
