"""Plain functions by theme, each with example arguments: what every pass must leave unchanged.

A theme is a module of module-level functions in plain Python and NumPy, decorated by nothing, and a list

    CASES = [(function, args), ...]        # args: a tuple; arrays in it are copied before each call

A function may stand in it several times. In: nothing. Out: `cases()`, all (name, function, args), named
`theme.function` with a number if repeated.

A new construct is one function here; a bug is a function here first. `rejected/` holds constructs that are
refused.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from metaphrase.source import SourceError

SHOWN_OTHERWISE = (ArithmeticError, IndexError, TypeError)  # Python's words for these differ from NumPy's

THEMES = (
    "branches",
    "missing",
    "whiles",
    "fors",
    "joins",
    "returns",
    "stores",
    "mutation",
    "updates",
    "views",
    "aliases",
    "taken",
    "nested",
    "sizes",
    "edges",
    "joined",
    "places",
    "closures",
    "trees",
    "scalars",
    "shapes",
    "reductions",
    "indexing",
    "kernels",
    "objects",
    "statements",
    "expressions",
    "functions",
    "failures",
    "attempts",
    "printing",
    "classes",
    "clocks",
    "found",
    "orders",
    "matching",
    "protocols",
    "lists",
    "iterators",
    "statistic",
    "heaps",
    "windows",
    "growing",
    "growing_uses",
    "deques",
    "newer",
    "ported",
    "published",
    "choices",
    "fields",
    "textbook",
    "swept",
    "control_programs",
)


def cases(*themes: str) -> Iterator[tuple[str, Callable, tuple]]:
    """Every case of the themes (of all, by default)."""
    for theme in themes or THEMES:
        module = importlib.import_module(f"{__name__}.{theme}")
        seen: dict[str, int] = {}
        for function, args in module.CASES:
            count = seen[function.__name__] = seen.get(function.__name__, 0) + 1
            yield f"{theme}.{function.__name__}" + (f"_{count}" if count > 1 else ""), function, args


def fresh(args: Any) -> Any:
    """A deep copy of arguments: functions may write to arrays."""
    return copy.deepcopy(args)


def outcome(function: Callable, args: tuple) -> tuple[Any, str]:
    """What a call gives and what becomes of its arguments, or the exception with its message; and what it
    prints."""
    args, printed = fresh(args), io.StringIO()
    with contextlib.redirect_stdout(printed), np.errstate(all="ignore"):
        try:
            found: Any = (function(*args), args)
        except SourceError:
            raise
        except Exception as error:
            text = "" if isinstance(error, SHOWN_OTHERWISE) else str(error)
            found = f"{type(error).__name__}: {text}"
    return found, printed.getvalue()


def alike(a: Any, b: Any, tolerance: float = 1e-12) -> bool:
    """Whether two results are the same: structure, kinds, dtypes, values (NaN is itself)."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(alike(a[k], b[k], tolerance) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(alike(x, y, tolerance) for x, y in zip(a, b))
    if isinstance(a, (np.ndarray, np.generic, bool, int, float, complex)):
        x, y = np.asarray(a), np.asarray(b)
        if x.dtype != y.dtype or x.shape != y.shape:
            return False
        return (
            bool(np.allclose(x, y, tolerance, tolerance, equal_nan=True))
            if x.dtype.kind in "fc"
            else bool(np.array_equal(x, y))
        )
    if hasattr(a, "__dict__"):
        return type(a) is type(b) and alike(vars(a), vars(b), tolerance)
    return bool(a == b)
