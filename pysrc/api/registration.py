"""The call that makes objects of a user's class come apart into their numbers.

In: an argument that a derivative is taken by. Out: the call, as text; "" for what holds no numbers.

    registration_of(Params(w, b))    # of a dataclass: "register_dataclass(Params)"
"""

from __future__ import annotations

import dataclasses
import enum
from types import BuiltinFunctionType, FunctionType
from typing import Any

_STEERS = (bool, int, str, bytes, type, enum.Enum, FunctionType, BuiltinFunctionType, type(None))


def registration_of(value: Any) -> str:
    cls = type(value)
    if isinstance(value, _STEERS) or cls.__module__ in ("builtins", "numpy"):
        return ""
    if not hasattr(value, "__dict__"):
        return ""
    held = vars(value)
    if all(isinstance(v, _STEERS) for v in held.values()):
        return ""
    if dataclasses.is_dataclass(cls):
        return f"register_dataclass({cls.__name__})"
    parts = ", ".join(f"x.{name}" for name in held) + ("," if len(held) == 1 else "")
    flatten, unflatten = f"lambda x: (({parts}), None)", f"lambda _, parts: {cls.__name__}(*parts)"
    return f"register_pytree_node({cls.__name__}, {flatten}, {unflatten})"


__all__ = ["registration_of"]
