"""Errors as values, with JAX's names: `metaphrase.experimental.checkify`. `metaphrase.checked` is the same.

In: a function. Out: one that returns an `Error` beside the result. Example:

>>> import numpy as np
>>> def inverse(x):
...     check(x != 0, "x is {x}", x=x)
...     return 1 / x
>>> error, y = checkify(inverse)(0.0)
>>> error.get()
'metaphrase.experimental.checkify.FailedCheckError: x is 0.0'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .._jax_names import missing
from ..api.errors import Error, Errors, check_error, checked

P = ParamSpec("P")
R = TypeVar("R")

user_checks = Errors.USER
index_checks = Errors.INDEX
nan_checks = Errors.NAN
div_checks = Errors.DIV
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class FailedCheckError(ValueError):
    """What `check` raises."""


def checkify(f: Callable[P, R], errors: Errors = user_checks) -> Callable[P, tuple[Error, R]]:
    """`metaphrase.checked`, by default of `user_checks` alone, as in JAX: an index out of range is raised by the call
    then, where JAX would clamp it. (JAX's `checkify.checkify`.)"""
    return checked(f, errors=errors)


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Raise FailedCheckError with `msg.format(*fmt_args, **fmt_kwargs)` unless `pred` holds, of an array all its
    elements; under `checked` it is a value. `debug=True`: the check is left out where it is not under `checked` in JAX;
    here it is made all the same. (JAX's `checkify.check`.)"""
    if not np.all(pred):
        raise FailedCheckError(msg.format(*fmt_args, **fmt_kwargs))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """The same as `check`. (JAX's `checkify.debug_check`.)"""
    check(pred, msg, *fmt_args, **fmt_kwargs)


__all__ = [
    "Error",
    "FailedCheckError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "nan_checks",
    "user_checks",
]


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
