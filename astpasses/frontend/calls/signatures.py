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
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.source import UnsupportedError

from ..staging.session import session

_BOTH = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@functools.cache
def _parameters(function: Callable) -> dict[str, inspect.Parameter] | None:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # written in C, without a text signature
        return None


def settled_arguments(function: Any, rule: Callable, args: tuple, keywords: dict) -> tuple[tuple, dict, Any]:
    keywords = dict(keywords)
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
            value = keywords.pop(name)
            default = theirs[name].default if name in theirs else inspect.Parameter.empty
            if value is not default and value is not np._NoValue:
                shown = getattr(function, "__name__", "this function")
                if name not in theirs and not any(p.kind is p.VAR_KEYWORD for p in theirs.values()):
                    raise TypeError(f"{shown}() got an unexpected keyword argument {name!r}")
                raise UnsupportedError(f"numpy.{shown} with {name}= has no translation", session().span(),
                                       code="numpy-function", remedy="leave it out, or compute it in steps")
    return args, keywords, out


__all__ = ["settled_arguments"]
