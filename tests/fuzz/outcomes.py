"""What a call gives, and whether two calls give the same.

In: a function and arguments. Out: an `Outcome`: the result or the exception's type, and the arguments after
the call. Example:

    outcome(f, args) == outcome(jit(f), args)       # by `difference`, which says where they differ
"""

from __future__ import annotations

import contextlib
import copy
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from metaphrase.source import SourceError

UNSTRETCHED = re.compile(r"could not be broadcast together: sizes (1 and|\d+ and 1$)")
TOLD = "told"  # in the messages that a program itself writes
FAULTS = (
    ArithmeticError,
    ValueError,
    LookupError,
    AssertionError,
    StopIteration,
    RuntimeError,
    UnboundLocalError,
    TypeError,
)


@dataclass
class Outcome:
    """`error`: the name of the exception's type, or "" where there is a result."""

    result: Any
    arguments: tuple
    error: str = ""
    message: str = ""
    printed: str = ""

    def __repr__(self) -> str:
        return f"{self.error}: {self.message}" if self.error else f"{self.result!r} <- {self.arguments!r}"


def outcome(function: Callable, args: tuple) -> Outcome:
    """Call with copies of the arguments. Refusals (SourceError) are not outcomes: they go through."""
    args = tuple(map(copied, args))
    told = io.StringIO()
    with np.errstate(all="ignore"), warnings.catch_warnings(), contextlib.redirect_stdout(told):
        warnings.simplefilter("ignore")
        try:
            return Outcome(function(*args), args, printed=told.getvalue())
        except SourceError:
            raise
        except FAULTS as error:
            return Outcome(None, args, type(error).__name__, str(error), told.getvalue())


def copied(value: Any) -> Any:
    """A copy that lies in memory as the original does, in a copy of what that is a part of."""
    if not isinstance(value, np.ndarray) or not isinstance(value.base, np.ndarray):
        return copy.deepcopy(value)
    offset = value.__array_interface__["data"][0] - value.base.__array_interface__["data"][0]
    return np.ndarray(value.shape, value.dtype, value.base.copy(), offset, value.strides)


def difference(want: Any, got: Any, tolerance: float = 0.0, at: str = "result") -> str:
    """Where two values differ, or "". With tolerance 0 floats are compared to the bit (NaN is NaN)."""
    if isinstance(want, Outcome):
        if got.error == "OverflowError" and ("64 bits" in got.message or "out of bounds for" in got.message):
            return ""  # Python's whole numbers have no end, those of a translated program have
        if not want.error and UNSTRETCHED.search(got.message):
            return ""  # a size of the run that is 1 is not broadcast (docs/limitations.md)
        if want.error == "ValueError" and "read-only" in want.message and got.error == "IndexError":
            return ""  # both are wrong with the store, and which is said first is free (docs/limitations.md)
        if want.printed != got.printed:
            return f"printed {want.printed!r} is not {got.printed!r}"
        if want.error or got.error:
            told = TOLD in want.message and want.message != got.message
            return "" if want.error == got.error and not told else f"{want!r} is not {got!r}"
        return difference(want.result, got.result, tolerance) or difference(
            want.arguments, got.arguments, tolerance, "arguments"
        )
    if want is None or got is None or isinstance(want, str):
        return "" if type(want) is type(got) and want == got else f"{at}: {want!r} is not {got!r}"
    if isinstance(want, dict):
        if not isinstance(got, dict) or want.keys() != got.keys():
            return f"{at}: {want!r} is not {got!r}"
        return next(filter(None, (difference(want[k], got[k], tolerance, f"{at}[{k!r}]") for k in want)), "")
    if isinstance(want, (list, tuple)):
        if type(want) is not type(got) or len(want) != len(got):
            return f"{at}: {want!r} is not {got!r}"
        parts = (difference(w, g, tolerance, f"{at}[{k}]") for k, (w, g) in enumerate(zip(want, got)))
        return next(filter(None, parts), "")
    w, g = np.asarray(want), np.asarray(got)
    if w.dtype != g.dtype or w.shape != g.shape:
        return f"{at}: {w.dtype}{list(w.shape)} {want!r} is not {g.dtype}{list(g.shape)} {got!r}"
    return "" if _equal(w, g, tolerance) else f"{at}: {want!r} is not {got!r}"


def _equal(w: np.ndarray, g: np.ndarray, tolerance: float) -> bool:
    if w.dtype.kind == "c":
        lost = np.isnan(w) & np.isnan(g)  # BLAS and C leave Inf or NaN in the other part as they please
        w, g = np.where(lost, 0, w), np.where(lost, 0, g)
        return _equal(w.real, g.real, tolerance) and _equal(w.imag, g.imag, tolerance)
    if w.dtype.kind != "f":
        return bool(np.array_equal(w, g))
    if tolerance:
        with np.errstate(all="ignore"):
            return bool(np.allclose(w, g, tolerance, tolerance, equal_nan=True))
    with np.errstate(all="ignore"):
        same = (w == g) & (np.signbit(w) == np.signbit(g)) | np.isnan(w) & np.isnan(g)
    return bool(np.all(same))
