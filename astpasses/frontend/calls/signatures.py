"""The arguments of a NumPy call as the library of `ops` takes them.

In: a NumPy function, the rule that answers it, positional and keyword arguments as the user wrote them. Out:
the same, by the rule's parameters, and `out=` apart. What the rule has no parameter for is refused, unless it
is NumPy's own default.

    np.sum(x, 0, None, None, True)   ->   sum_(x, 0, None, keepdims=True), out None
    np.flip(m=x)                     ->   flip(x=x)
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.types import dtype_name
from metaphrase.source import SourceError

from ..staging.demand import need_concrete
from ..staging.session import session
from ..values.staged_values import Staged

_BOTH = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@functools.cache
def _parameters(function: Callable) -> dict[str, inspect.Parameter] | None:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # written in C, without a text signature
        return None


def settled_arguments(function: Any, rule: Callable, args: tuple, keywords: dict) -> tuple[tuple, dict, Any]:
    keywords = {k: v for k, v in keywords.items() if v is not np._NoValue}  # what NumPy's own defaults say
    theirs, ours = _parameters(function), _parameters(rule)
    if isinstance(function, np.ufunc) or theirs is None or ours is None:
        return args, keywords, keywords.pop("out", None)
    names = [n for n, p in theirs.items() if p.kind in _BOTH]
    if "out" in names and len(args) > names.index("out"):
        first = names.index("out")
        keywords = {**dict(zip(names[first:], args[first:])), **keywords}
        args = args[:first]
    out = keywords.pop("out", None)
    names = [n for n in names if n != "out"]
    places = [n for n, p in ours.items() if p.kind in _BOTH]
    for name, place in zip(names, places):  # the rule's own words for the operands
        if name in keywords and name not in ours:
            keywords[place] = keywords.pop(name)
    if not any(p.kind is p.VAR_KEYWORD for p in ours.values()):
        for name in [k for k in keywords if k not in ours]:
            if keywords.pop(name) is not (theirs[name].default if name in theirs else inspect.Parameter.empty):
                shown = getattr(function, "__name__", "this function")
                if name not in theirs and not any(p.kind is p.VAR_KEYWORD for p in theirs.values()):
                    raise TypeError(f"{shown}() got an unexpected keyword argument {name!r}")
                raise lacks_argument(shown, name)
    return args, keywords, out


def lacks_argument(function: str, name: str) -> SourceError:
    said = f"numpy.{function} with {name}= has no translation"
    return session().unsupported(said, "leave it out, or compute it in steps", code="numpy-function")


@functools.cache
def _named_values(rule: Callable) -> tuple[tuple[int | None, str, bool], ...]:
    """(position, name, whether it is an integer) of the parameters that are Python values: integers and dtypes."""
    found = []
    for k, (name, parameter) in enumerate((_parameters(rule) or {}).items()):
        if name == "dtype" or parameter.annotation in (int, "int"):
            found.append((k if parameter.kind in _BOTH else None, name, name != "dtype"))
    return tuple(found)


def python_values(function: Any, rule: Callable, args: tuple, keywords: dict) -> tuple[tuple, dict]:
    """The arguments, those known that must be: a staged integer is asked for, other staged values are refused."""
    made: dict[Any, Any] = {**dict(enumerate(args)), **keywords}
    for position, name, integer in _named_values(rule):
        place: Any = position if position is not None and position < len(args) else name
        value = made.get(place)
        if isinstance(value, Staged):
            shown = f"{name}= of numpy.{getattr(function, '__name__', 'this function')}"
            if not integer:
                raise not_a_dtype(shown)
            if value.dtype.kind not in "iub":
                raise session().dtype_error(
                    f"{shown} must be an integer, not a staged {dtype_name(value.dtype)}",
                    remedy="write int(...) around it",
                )
            made[place] = need_concrete(value, shown, int)
        elif integer and isinstance(value, float):
            operator.index(value)  # type: ignore[arg-type]  # NumPy's TypeError
    return tuple(made[k] for k in range(len(args))), {k: made[k] for k in keywords}


def not_a_dtype(what: str) -> SourceError:
    return session().dtype_error(
        f"{what} is a staged value, and no dtype", remedy="name a dtype, as np.float64, or take x.dtype"
    )
