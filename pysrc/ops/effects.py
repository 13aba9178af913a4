"""Effects: checks that fail with the user's exception, and printing.

In: a bool array and the values its message shows. Out: nothing; effects keep program order.
"""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..core.native import EffectCall
from ..core.primitive import NotLinear, Primitive
from ..core.types import Array
from ..exceptions import Holds, raised
from .families import expand_batch, require


def _check_type(ok: Array, *values: Array, exception: str, message: str, holds: Holds | tuple = ()) -> tuple:
    require(ok.dtype == bool and all(v.dims == ok.dims for v in values),
            lambda: f"check: condition {ok} and values {values} must have one shape")
    return ()


def _check_numpy(ok: Any, *values: Any, exception: str, message: str, holds: Holds | tuple = ()) -> tuple:
    ok = np.asarray(ok)
    if not ok.all():
        first = int(np.argmin(ok.ravel()))
        shown = [printed(np.asarray(v).ravel()[first]) for v in values]
        raise raised(exception, message, holds, shown)
    return ()


def _check_batch(size: Any, args: Any, batched: Any, **attributes: Any) -> tuple:
    check(*(expand_batch(size, a, b) for a, b in zip(args, batched)), **attributes)
    return (), ()


check = Primitive(
    "check", type=_check_type, numpy=_check_numpy, jvp=None, transpose=NotLinear, batch=_check_batch,
    native=EffectCall("check"), effect="failing", multiple=True,
    doc="Raise `exception` with `message`, formatted with the values of the first failure, unless ok. "
        "`holds`: of what its arguments and attributes are made, if it holds more.")


def printed(value: Any) -> Any:
    """A value as `print` shows it: float64, int64, bool and complex128 scalars are Python's."""
    value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    plain = isinstance(value, np.generic) and value.dtype.name in ("float64", "int64", "bool", "complex128")
    return value.item() if plain else value


def _print_numpy(*values: Any, template: str, end: str = "\n", stream: str = "stdout",
                 flush: bool = False) -> tuple:
    print(template.format(*map(printed, values)), end=end, file=getattr(sys, stream), flush=flush)
    return ()


def _print_batch(size: Any, args: Any, batched: Any, **attributes: Any) -> tuple:
    raise AssertionError("an ordered effect on batched values goes into a lane loop before its rule is asked")


print_ = Primitive(
    "print_", type=lambda *values, template, end="\n", stream="stdout", flush=False: (), numpy=_print_numpy,
    jvp=None, transpose=NotLinear, batch=_print_batch, native=EffectCall("print"), effect="ordered",
    multiple=True,
    doc="Print `template`, formatted with the values, at run time.")
