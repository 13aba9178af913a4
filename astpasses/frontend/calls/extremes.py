"""Python's `max` and `min` of numbers and of arrays: which of them compares as larger.

In: the arguments of `max` and `min`. Out: what Python returns: the first of equal ones, and NaN, which
compares as neither, only where it comes first.

    max(x, y)   ->   y if y > x else x
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.dims import Sym, dim_max, dim_min, fresh_symbol

from ..flow.gathering import all_known, is_gathered
from ..flow.joins import nonnegative
from ..flow.lazy import choose
from ..operators.arithmetic import dim_of
from ..operators.kinds import is_wide
from ..operators.protocols import operate
from ..staging.literals import elements
from ..staging.session import session
from ..values.staged_values import Number, StagedArray
from ..values.views import Pick, view
from .call import call_value, handles, has_staged
from .gathered_calls import extreme


def _extreme(python: Callable, larger: bool) -> Callable:
    def handler(*args: Any, key: Any = None, **keywords: Any) -> Any:
        here = session()
        array = args[0] if len(args) == 1 and isinstance(args[0], StagedArray) and key is None else None
        if array is not None and array.ndim == 1 and array.dtype.kind in "biuf":
            if "default" not in keywords or here.facts.less(0, array.type.dims[0]):
                return _extreme_element(array, larger)
        one = len(args) == 1 and is_gathered(args[0])
        if one and (key is None or not all_known(args[0])):
            default = (keywords["default"],) if "default" in keywords else ()
            return extreme(here, args[0], python, lambda a: _extreme_element(a, larger), key, default)
        items = list(elements(here, args[0])) if len(args) == 1 else list(args)
        if key is None and not has_staged(items):
            return python(items, **keywords)
        if not items:
            return python(items, **keywords)
        best = items[0]
        for item in items[1:]:
            best = _pick(best, item, key, larger)
        return best

    return handler


def _extreme_element(array: StagedArray, larger: bool) -> Any:
    """Python's `max` or `min` of an array: the first of equal ones, and NaN only where it comes first."""
    if array.dtype.kind != "f":
        return array.max() if larger else array.min()
    missing = call_value(np.isnan, (array,), {})
    known = call_value(np.where, (missing, -np.inf if larger else np.inf, array), {})
    best = call_value(np.argmax if larger else np.argmin, (known,), {})
    return choose(_element(missing, 0), lambda: _element(array, 0), lambda: _element(array, best))


def _element(array: StagedArray, place: Any) -> Any:
    """An element whose place is known to be in bounds."""
    here = session()
    return here.wrap(view(array, Pick((here.atom(place),), (0,))).read())


def _pick(best: Any, item: Any, key: Any, larger: bool) -> Any:
    a, b = (best, item) if key is None else (call_value(key, (best,), {}), call_value(key, (item,), {}))
    x, y = (None if is_wide(v) else dim_of(v) for v in (best, item))
    here = session()
    if key is None and x is not None and y is not None and here.is_bound(x) and here.is_bound(y):
        return here.size((dim_max if larger else dim_min)(x, y))
    made = choose(operate(">" if larger else "<", b, a), lambda: item, lambda: best)
    known = [d for d in (x, y) if d is not None]
    chosen = made is not best and made is not item  # by the run
    if key is not None or not known or not chosen or not isinstance(made, Number) or made.python is not int:
        return made
    name, bound = fresh_symbol("one#"), next((d for d in known if isinstance(d, int)), known[0])
    low = bound if larger else 0 if nonnegative(here, best) and nonnegative(here, item) else None
    here.facts.learn(name, low, None if larger else bound)
    return here.wrap(made.atom, int, Sym(name), made.among)


maximum = _extreme(builtins.max, True)
minimum = _extreme(builtins.min, False)
handles(builtins.max)(maximum)
handles(builtins.min)(minimum)
