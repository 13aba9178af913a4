"""How values of two paths become one: shared by branches and loops.

In: Python and staged values. Out: the type of a joined number, whether two Python values are the same, and
a short description of a value for messages.
"""

from __future__ import annotations

import abc
import enum
import functools
import types
from typing import Any

import numpy as np

from metaphrase import tree_util
from metaphrase.core.types import Array
from metaphrase.exceptions import exception_of
from metaphrase.late import log

from ..operators.arithmetic import WEAK, is_number, weak_type
from ..rewrite.plain import Undefined
from ..values.staged_values import Maybe, Number, OneOf, Poison, StagedArray, Unsettled

_RANK = [bool, int, float, complex]
_HEAP = 1 << 9  # the flag of classes written in Python


def joined_number(values: list[Any]) -> tuple[np.dtype, type | None]:
    """The dtype, and the Python type if all are Python numbers, that all these numbers fit."""
    weak: list[Any] = [weak_type(v) for v in values]
    if all(w is not None for w in weak):
        kind = _RANK[max(map(_RANK.index, weak))]
        return WEAK[kind], kind
    parts = [v.dtype if w is None else np.dtype(bool) if w is bool else w(0) for v, w in zip(values, weak)]
    made = np.result_type(*parts)
    if any(weak):
        log.debug("a Python number and a NumPy number in one variable are one np.%s", made.name)
    return made, None


def number_of(dtype: np.dtype, python: type | None) -> Number:
    """A stand-in for a number of this type, for `joined_number`."""
    return Number(None, _Typed(Array(np.dtype(dtype))), python)  # type: ignore[arg-type]


class _Typed:
    def __init__(self, type_: Array):
        self.type = type_


def same_static(a: Any, b: Any) -> bool:
    """Whether two Python values mean the same: one object, or equal values of one immutable type."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, (Number, StagedArray, Unsettled, Undefined)):
        return False
    if isinstance(a, (bool, int, str, bytes, np.dtype, type(None), type(Ellipsis), range)):
        return a == b
    if isinstance(a, BaseException):
        return not vars(a) and not vars(b) and len(a.args) == len(b.args) and all(map(same_static, a.args, b.args))
    if isinstance(a, (float, complex)):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return False


def container(value: Any) -> tuple[tree_util.Kind, list, Any] | None:
    """A pytree node taken apart one level: its kind, children and metadata. None for leaves."""
    if value is None or is_number(value) or isinstance(value, (StagedArray, Unsettled, Undefined)):
        return None
    kind = tree_util.kind_of(value)
    if kind is None:
        return None
    children, metadata = kind.flatten(value)
    return kind, _known(value, kind, list(children)), metadata


def _known(value: Any, kind: tree_util.Kind, children: list) -> list:
    """What was there before the call is taken apart as the stager gives it out."""
    from ..staging.captured import known_children
    from ..staging.session import current_session

    here = current_session()
    return children if here is None else known_children(here, value, kind, children)


@functools.cache
def _object_kind(cls: type) -> tree_util.Kind:
    """Objects of a user's class come apart into their attributes."""

    def flatten(value: Any) -> tuple[list, tuple]:
        names = tree_util.sorted_keys(attributes_of(value))  # of two paths they agree, whatever their order
        return [getattr(value, n) for n in names], names

    def unflatten(names: tuple, children: Any) -> Any:
        made: Any = object.__new__(cls)
        for name, child in tree_util.dict_of(names, children).items():
            object.__setattr__(made, name, child)
        return made

    def keys(value: Any, names: tuple) -> list:
        return [tree_util.GetAttrKey(n) for n in names]

    return tree_util.Kind(cls, flatten, unflatten, keys)


def attributes_of(value: Any) -> tuple[str, ...]:
    """The names of what an object itself holds, in its order."""
    slots = (n for n in _slots(type(value)) if hasattr(value, n))
    return tuple(dict.fromkeys([*slots, *getattr(value, "__dict__", ())]))


def _slots(cls: type) -> list[str]:
    found = [getattr(base, "__slots__", ()) for base in cls.__mro__]
    return [n for names in found for n in ([names] if isinstance(names, str) else names) if n[:2] != "__"]


def parts(value: Any) -> tuple[tree_util.Kind, list, Any] | None:
    """Like `container`, and takes an object of a plain user's class apart into its attributes."""
    found = container(value)
    cls = type(value)
    if found is not None or value is None or is_number(value) or cls.__module__ == "numpy":
        return found
    if isinstance(value, (StagedArray, Unsettled, Undefined, type, types.FunctionType, enum.Enum)):
        return None
    if isinstance(value, BaseException):
        return _exception_parts(value)
    if cls.__new__ is not object.__new__ or type(cls) not in (type, abc.ABCMeta) or not cls.__flags__ & _HEAP:
        return None
    kind = _object_kind(cls)  # type: ignore[arg-type]
    children, names = kind.flatten(value)
    return kind, _known(value, kind, children), names


def _exception_parts(value: BaseException) -> tuple[tree_util.Kind, list, Any] | None:
    """An exception that the call made, taken apart into its arguments and attributes."""
    from ..staging.session import current_session

    here = current_session()
    if here is None or id(value) in here.roots or id(value) in here.given:
        return None
    names = tree_util.sorted_keys(vars(value))
    kind = _exception_kind(type(value))  # type: ignore[arg-type]
    return kind, [*value.args, *(vars(value)[n] for n in names)], names


@functools.cache
def _exception_kind(cls: type) -> tree_util.Kind:
    def unflatten(names: tuple, children: Any) -> Any:
        count = len(children) - len(names)
        named = tree_util.dict_of(names, children[count:])
        return exception_of(cls, count, list(named), *children[:count], *named.values())

    def keys(value: Any, names: tuple) -> list:
        arguments = [tree_util.SequenceKey(k) for k in range(len(value.args))]
        return [*arguments, *map(tree_util.GetAttrKey, names)]

    return tree_util.Kind(cls, lambda value: _exception_parts(value)[1:], unflatten, keys)  # type: ignore[index]


def instance_parts(value: Any) -> tuple[tree_util.Kind, list, Any] | None:
    """The same for an instance of any class written in Python, whatever makes its instances: in a result."""
    cls: Any = type(value)
    written = all(base.__flags__ & _HEAP for base in cls.__mro__[:-1])
    if isinstance(value, (type, enum.Enum)) or not written or cls is object:
        return None
    try:
        object.__new__(cls)
    except TypeError:  # a class in C
        return None
    kind = _object_kind(cls)
    children, names = kind.flatten(value)
    return kind, _known(value, kind, children), names


def describe(value: Any) -> str:
    """A value in a few words, for messages."""
    if isinstance(value, Undefined):
        return "not bound"
    if value is None:
        return "None"
    if isinstance(value, Number):
        return f"a Python {value.python.__name__}" if value.python else f"a {value.dtype} scalar"
    if isinstance(value, StagedArray):
        return f"an array {value.type}"
    if isinstance(value, Maybe):
        return f"{describe(value.value)} on some paths"
    if isinstance(value, Poison):
        return "of no one type"
    if type(value).__name__ == "Text":
        return "a text with values of the run"
    if isinstance(value, OneOf):
        return f"one of {', '.join(map(repr, value.values))}"
    if is_number(value) or isinstance(value, str):
        return f"{type(value).__name__} {value!r}"
    return f"a {type(value).__name__}"
