"""Python objects that the call made and that a result holds: what they are made of, and what can't leave.

In: a leaf of a result that is no number or array: a range, a slice, a lambda. Out: how it is made of its
parts (`Recipe`); or an error, where it holds what exists only while the program is translated.

    return range(n)       (Recipe("range"), [0, n, 1])
    return lambda: n      refused: n is not there when the call has ended
"""

from __future__ import annotations

import collections
import functools
import gc
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from metaphrase.exceptions import builtin_base
from metaphrase.source import Span, UnsupportedError

from ..flow.generators import Lazy
from ..flow.iterators import Ranged
from ..flow.joins import attributes_of
from ..rewrite.convert import is_converted
from ..rewrite.plain import PlainStager
from ..values.recipes import Recipe
from ..values.staged_values import Staged
from .session import Session
from .under_way import sessions

_CONSTANTS = (int, float, complex, str, bytes, bool, type(None), np.generic, np.ndarray, np.dtype)
_VIEWS = {
    type(getattr(kind(), name)()): name
    for kind in (dict, collections.OrderedDict)
    for name in ("keys", "values", "items")
}
_OURS = "metaphrase.astpasses."
_DEEPEST = 12


def recipe_of(here: Session, value: Any) -> tuple[Recipe, list] | None:
    """How an object of Python's own is made, and of what; None where it was there before the call, or nothing
    is known of its class."""
    cls: Any = type(value)
    if cls is Ranged and value.bounds:
        return Recipe("range"), list(value.bounds)
    if cls is slice:
        bounds = [value.start, value.stop, value.step]
        return (Recipe("slice"), bounds) if any(isinstance(bound, Staged) for bound in bounds) else None
    if cls in _VIEWS:
        return Recipe("view", _VIEWS[cls]), [here.born(value.mapping.copy())]
    if cls is types.MethodType and here.is_fresh(value.__self__, 0):
        return Recipe("method", value.__func__), [value.__self__]
    if not here.is_fresh(value, 0) or is_ours(cls):
        return None
    if cls is types.SimpleNamespace:
        return Recipe("namespace", tuple(vars(value))), list(vars(value).values())
    if cls is functools.partial:
        return Recipe("partial", tuple(value.keywords)), [value.func, *value.args, *value.keywords.values()]
    return _of_instance(value)


def _of_instance(value: Any) -> tuple[Recipe, list] | None:
    """An exception, or an instance of a user's class derived from `list`, `tuple` or `dict`."""
    cls: Any = type(value)
    base = builtin_base(cls)
    inherits = [c for c in cls.__mro__ if c.__module__ == "builtins"]
    names = attributes_of(value) if hasattr(value, "__dict__") else ()
    attributes = [getattr(value, name) for name in names]
    if isinstance(value, BaseException):
        return Recipe("exception", (cls, len(value.args), names)), [*value.args, *attributes]
    if base not in (list, tuple, dict) or cls is base or inherits != [base, object]:
        return None
    if base is dict:
        keys, items = tuple(dict.keys(value)), list(dict.values(value))
    else:
        keys, items = (), list(base.__iter__(value))
    return Recipe("instance", (cls, keys, len(items), names)), [*items, *attributes]


def refuse_held(here: Session, value: Any, span: Span | None) -> None:
    """What a call made and a result holds as it is must not hold staged values: they end with the call."""
    if isinstance(value, _CONSTANTS) or not _holds(here, value, set(), 0):
        return
    name = _name(value)
    if name == "iterator":
        raise holds_iterator(here, span)
    verb, article = "returns" if span is None else "keeps", "an" if name[0] in "aeiouAEIOU" else "a"
    raise UnsupportedError(
        f"the function {verb} {article} {name}, which holds values that are gone when the call has ended",
        span or here.span(),
        code="result",
        remedy="return the numbers and arrays that it is made of",
    )


def holds_iterator(here: Session, span: Span | None) -> UnsupportedError:
    return UnsupportedError(
        f"the function {'returns' if span is None else 'keeps'} an iterator, whose items would be made after the call "
        "has ended",
        span or here.span(),
        code="generator",
        remedy="return a list of its items: list(values)",
    )


def _name(value: Any) -> str:
    """What a user calls it."""
    if isinstance(value, tuple):
        return _name(value[-1])
    if isinstance(value, functools.partial):
        return _name(value.func) if is_ours(value.func) else "partial"
    if isinstance(value, types.FunctionType):
        return "bound method" if is_ours(value) else "function"
    if isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        return "bound method"
    if isinstance(value, type):
        return f"class {value.__name__}"
    if isinstance(value, (Ranged, Lazy)):
        return "iterator"
    kind = type(value)
    return f"{kind.__name__.strip('_').lower()} object" if is_ours(kind) else kind.__name__


def is_ours(function: Any) -> bool:
    """Whether a function or class belongs to staging itself."""
    return str(getattr(function, "__module__", "")).startswith(_OURS)


def _holds(here: Session, value: Any, seen: set[int], depth: int) -> bool:
    """Whether a value is something of this staging, or leads to it."""
    if isinstance(value, _CONSTANTS) or id(value) in seen or depth > _DEEPEST:
        return False
    seen.add(id(value))
    if isinstance(value, Staged):
        return value.session is here
    if isinstance(value, (types.ModuleType, PlainStager)) or _was_there(here, value):
        return False
    if len(sessions()) == 1 and is_ours(type(value)):
        return True
    return any(_holds(here, child, seen, depth + 1) for child in _children(value))


def _was_there(here: Session, value: Any) -> bool:
    """Whether it was there before the call."""
    if isinstance(value, type) and _is_local(value):
        return False
    return (id(value) in here.roots or id(value) in here.given) and not here.is_fresh(value, 0)


def _is_local(cls: type) -> bool:
    """Whether a call may have made a class."""
    return "<locals>" in cls.__qualname__ or is_ours(cls)


def _children(value: Any) -> Iterable[Any]:
    """What a value leads to, of what the call may have made."""
    if isinstance(value, types.FunctionType):
        return _kept_by(value) if is_converted(value.__code__) or is_ours(value) else ()
    if isinstance(value, type):
        if not _is_local(value):
            return ()
        inside = list(vars(value).values())
        return [*inside, *(kept for f in inside if isinstance(f, types.FunctionType) for kept in _kept_by(f))]
    return gc.get_referents(value)


def _kept_by(function: types.FunctionType) -> list:
    """What a function keeps from where it was made."""
    cells = [c.cell_contents for c in function.__closure__ or () if c != types.CellType()]
    return [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
