"""What expressions of a loop's body are, as far as its code and what is there before the loop tell.

A value is an object from before the loop; a tuple of values; `Made`, which stands for what the body makes; an example
of a Python number; None where nothing is known.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from metaphrase.late import dataclass

from ..operators.arithmetic import is_number, weak_type
from ..rewrite.steps import Items, Name, Place, Use
from ..values.staged_values import Number, StagedArray

_ARRAYS = ("numpy", "scipy", "metaphrase")  # packages whose functions give what is NumPy's
_TOTALS = {"sum", "mean", "max", "min", "prod", "dot", "std", "var"}
_COMPARISONS = {"<", ">", "<=", ">=", "==", "!="}


@dataclass
class Made:
    """What is made at a place of the body: a number of NumPy's if there is a dtype, an object of a class if there is
    one, else mostly an array."""

    place: Place
    dtype: np.dtype | None = None
    cls: type | None = None


def is_array(value: Any) -> bool:
    return isinstance(value, StagedArray) or isinstance(value, Made) and value.dtype is None


def dtype_of(value: Any) -> np.dtype | None:
    """The dtype of a number of NumPy's."""
    return value.dtype if isinstance(value, Made) or isinstance(value, Number) and weak_type(value) is None else None


def attribute(target: Any, name: str) -> Any:
    """An attribute that can be read without running code of the user's."""
    if isinstance(target, StagedArray):
        return target if name == "T" else None
    if isinstance(target, (types.ModuleType, type)):
        return getattr(target, name, None)
    own = getattr(target, "__dict__", {})
    if name in own:
        return own[name]
    described = getattr(type(target), name, None)
    if isinstance(described, types.FunctionType):
        return types.MethodType(described, target)
    fields = isinstance(described, types.MemberDescriptorType) or isinstance(target, tuple)
    return getattr(target, name, None) if fields else None


def item(place: Place, of: Any, expression: Any, index: Any) -> Any:
    """`of[index]`: a number, or a part of an array, which lies where that does."""
    if isinstance(of, tuple) and isinstance(index, int):
        return of[index] if -len(of) <= index < len(of) else None
    if not isinstance(of, StagedArray):
        return Made(place) if isinstance(of, Made) else None
    known = list(zip(expression.parts, index)) if isinstance(expression, Items) else [(expression, index)]
    if any(is_array(i) for _, i in known):
        return Made(place)
    numbers = [is_number(i) or i is None and isinstance(e, (Name, Use)) for e, i in known]
    return Made(place, of.dtype) if all(numbers) and len(numbers) == of.ndim else of


def calculated(place: Place, symbol: str, *operands: Any) -> Any:
    """What an operator makes of numbers: one of NumPy's, or an example of Python's."""
    if symbol == "@" and all(isinstance(o, StagedArray) and o.ndim == 1 for o in operands):
        return Made(place, np.result_type(*(o.dtype for o in operands)))
    if symbol in _COMPARISONS:
        return None
    if any(map(is_array, operands)):
        return Made(place)
    dtypes = [d for d in map(dtype_of, operands) if d is not None]
    kinds = [k for k in (weak_type(o) for o in operands if is_number(o)) if k is not None]
    if not dtypes and len(kinds) < len(operands):
        return None
    made = np.result_type(*dtypes, *(k(1) for k in kinds))
    made = np.dtype(float) if symbol == "/" and made.kind in "iub" else made
    return Made(place, made) if dtypes else made.type(1).item()


def one_of(place: Place, *values: Any) -> Any:
    """A number of which each may be the value."""
    dtypes = [dtype_of(v) for v in values]
    return None if None in dtypes else Made(place, np.result_type(*dtypes))  # type: ignore[arg-type]


def total(place: Place, array: StagedArray, name: str, given: list, keywords: dict) -> Made:
    """What a method of an array gives."""
    if name not in _TOTALS or keywords or given and not (name == "dot" and array.ndim == 1):
        return Made(place)
    floats = name in ("mean", "std", "var") and array.dtype.kind in "iub"
    return Made(place, np.dtype(float) if floats else array.dtype)


def result_of(place: Place, function: Any, given: list, keywords: dict) -> Any:
    """What a function of a library gives."""
    if function in (min, max, abs):
        return one_of(place, *given) if given and not keywords else None
    if isinstance(function, type) and not issubclass(function, np.generic):
        return Made(place, cls=function)
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    if not isinstance(function, np.ufunc) and package not in _ARRAYS:
        return Made(place, cls=type(given[0])) if given and package == "dataclasses" else None
    name = getattr(function, "__name__", "")
    if given and isinstance(given[0], StagedArray) and getattr(np, name, None) is function:
        return total(place, given[0], name, given[1:], keywords)
    made = calculated(place, "+", *given) if given and isinstance(function, np.ufunc) and function.nout == 1 else None
    return Made(place, np.result_type(type(made), float)) if is_number(made) else made or Made(place)
