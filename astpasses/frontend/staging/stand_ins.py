"""Python's own code that takes numbers, and none that are staged.

In: a function or class of the standard library, and arguments that hold staged values. Out: what it makes of
them, or the exception that it raises of numbers too; else a refusal, which no `except` of the user's takes.
Other code is never called with numbers that the user did not give: whatever it does, it would do.

    Decimal(x)      # refused: it takes any int or float
    Decimal([x])    # Python's ValueError: it takes no list of numbers
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.source import SourceError, UnsupportedError

from ..values.staged_values import Number, Staged, Unsettled
from .python_names import python_class
from .session import Session
from .signals import StagerSignal

_CALLED = (types.FunctionType, types.MethodType)
REMEDY = "compute with ints, floats and arrays, or outside of the translated function"


def stand_in(value: Any) -> Any:
    """A value of Python's or NumPy's own in the place of a staged one."""
    if isinstance(value, Number):
        return python_class(value)(1)
    if isinstance(value, Staged):
        return np.ones((1,) * value.ndim, value.dtype)
    if type(value) in (list, tuple, set):
        return type(value)(map(stand_in, value))
    return {k: stand_in(v) for k, v in value.items()} if type(value) is dict else value


def takes_numbers(function: Callable, args: tuple, keywords: dict) -> bool:
    """Whether a function would take values of the run in the place of the staged ones."""
    given = [*args, *keywords.values()]
    if any(isinstance(value, (Unsettled, *_CALLED)) for value in given):
        return False
    try:
        function(*map(stand_in, args), **{k: stand_in(v) for k, v in keywords.items()})
    except Exception:
        return False
    return True


def by_python(here: Session, name: str, function: Callable, args: tuple, keywords: dict) -> Any:
    """What Python's own function makes of staged values."""
    try:
        return function(*args, **keywords)
    except (SourceError, StagerSignal):
        raise
    except Exception as error:
        ours = _of_python(function)
        if not (takes_numbers(function, args, keywords) if ours else isinstance(error, TypeError)):
            raise
    raise no_numbers_of_the_run(here, f"`{name}` takes no values that are only known when the program runs")


def _of_python(function: Any) -> bool:
    """Whether a function, or the class of what it is a method of, is in the standard library."""
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or type(owner).__module__
    return str(module).split(".")[0] in sys.stdlib_module_names


def no_numbers_of_the_run(here: Session, message: str) -> UnsupportedError:
    return UnsupportedError(message, here.span(), code="no-translation", remedy=REMEDY)
