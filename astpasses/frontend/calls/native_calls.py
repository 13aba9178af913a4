"""Calls of what is not written in Python: functions and methods in C, and objects with `__call__`.

In: a callable that no handler of the table answers to, and its arguments. Out: its result, by Python, where
that is made of the arguments alone and none of them is staged; else an error.
"""

from __future__ import annotations

import functools
import operator
import types
from typing import Any

import numpy as np

from metaphrase.astpasses.library.arrays import update_at

from ..staging.journal import noticed
from ..staging.python_names import python_class, python_name
from ..staging.session import Session
from ..staging.signals import TrialOver
from ..staging.stand_ins import by_python
from ..values.staged_values import Staged
from .call import CHANGES, call_method, call_value, has_staged, hosted
from .operator_calls import call_getter
from .outside import module_of, refuse_given, refuse_outside, refuse_unsteady
from .ufunc_methods import ufunc_method

# Their functions may be called in branches and loops, too: nothing has to be undone.
_OF_CLASSES = (types.MethodDescriptorType, types.WrapperDescriptorType)
_DISPATCHED: Any = type(np.sum)  # a user's function that NumPy's `array_function_dispatch` has decorated, too
_PURE = frozenset("math cmath operator _operator itertools functools _functools numpy builtins".split())


def call_other(here: Session, function: Any, args: tuple, keywords: dict) -> Any:
    """Callables written in C, and objects with `__call__`."""
    if isinstance(function, functools._lru_cache_wrapper) and (has_staged(args) or has_staged(keywords)):
        return call_value(function.__wrapped__, args, keywords)
    if isinstance(function, _DISPATCHED) and str(function.__module__).split(".")[0] not in ("numpy", "scipy"):
        if not any(map(_dispatches, (*args, *keywords.values()))):
            return call_value(function._implementation, args, keywords)
    method = getattr(type(function), "__call__", None)  # noqa: B004
    if isinstance(method, types.FunctionType):
        return call_value(method, (function, *args), keywords)
    if isinstance(function, (operator.itemgetter, operator.attrgetter, operator.methodcaller)):
        return call_getter(function, *args)
    name = getattr(function, "__name__", None) or type(function).__name__
    if isinstance(function, _OF_CLASSES) and args and isinstance(args[0], Staged):  # `float.is_integer(x)`
        given = args[0]
        if issubclass(python_class(given), function.__objclass__):
            return call_method(given, name, args[1:], keywords)
        said = f"descriptor {name!r} for {function.__objclass__.__name__!r} objects"
        raise TypeError(f"{said} doesn't apply to a {python_name(given)!r} object")
    module = getattr(function, "__module__", None) or getattr(getattr(function, "__self__", None), "__name__", "")
    owner = getattr(function, "__self__", None)
    bound = owner is not None and not isinstance(owner, types.ModuleType)
    if bound and isinstance(function, (types.BuiltinMethodType, types.MethodWrapperType)):
        return _call_bound(here, function, owner, name, args, keywords)
    if not callable(function):
        return function(*args, **keywords)  # Python's own words for it
    top = str(module).split(".")[0]
    refuse_unsteady(here, str(module), name, owner)
    refuse_given(here, args, keywords, name)
    if has_staged(args) or has_staged(keywords):
        if top in ("numpy", "scipy", "math", "cmath"):
            raise here.unsupported(
                f"{module}.{name} has no translation yet" if module else f"{name} has no translation yet",
                "use functions that have one, compute it outside, or make arguments static (static_argnames)",
            )
        if top not in _PURE and here.in_region():
            raise here.unsupported(
                f"{name} is not Python, and can't be translated", "compute it outside of the staged function"
            )
    elif here.in_region() and top not in _PURE:
        raise TrialOver(f"{name} may have effects that can't be undone", here.span())
    positional, named = hosted(args, keywords)
    with noticed(here.journal, args):
        if top not in _PURE and has_staged((positional, named)):
            return by_python(here, name, function, positional, named)
        return function(*positional, **named)


def _dispatches(value: Any) -> bool:
    """Whether it is of a user's class that answers NumPy's functions itself."""
    return not isinstance(value, (Staged, np.ndarray)) and hasattr(type(value), "__array_function__")


def _call_bound(here: Session, function: Any, owner: Any, name: str, args: tuple, keywords: dict) -> Any:
    """A method written in C, held apart from its object."""
    if isinstance(owner, np.ufunc) and name != "at":
        return ufunc_method(owner, name, args, keywords)
    if isinstance(owner, (*CHANGES, np.ndarray)):
        return call_method(owner, name, args, keywords)
    if name == "__setattr__" and function.__objclass__ is object:
        return call_value(object.__setattr__, (owner, *args), keywords)
    kind = type(owner)
    if kind is np.ufunc and name == "at" and args and isinstance(args[0], (Staged, np.ndarray)):
        target = here.lift(args[0]) if isinstance(args[0], np.ndarray) else args[0]
        return call_value(update_at, (owner, target, *args[1:]), keywords)
    if isinstance(owner, BaseException) and name in ("__init__", "add_note"):
        if here.is_fresh(owner, len(here.regions) - 1):
            return function(*args, **keywords)  # keeps what it is given
    refuse_unsteady(here, module_of(kind), name, owner)
    refuse_outside(here, owner, f"`{name}`")
    steady = (str, bytes, int, float, complex, tuple, frozenset, range, np.generic, type)
    if not isinstance(owner, steady) and here.in_region():
        raise TrialOver(f"{name} of a {kind.__name__} may have effects that can't be undone", here.span())
    args, keywords = hosted(args, keywords)
    known = not has_staged((args, keywords)) or kind.__module__ == "builtins" and kind is not type
    made = function(*args, **keywords) if known else by_python(here, name, function, args, keywords)
    return here.born(made) if type(made) in (list, dict) else made  # `dict.fromkeys`, `str.split`
