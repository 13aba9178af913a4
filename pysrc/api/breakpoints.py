"""debug.breakpoint: pdb at the user's line, with the values that the user's variables have there in that run.

In: a call of it, of Python's `breakpoint()` or of `pdb.set_trace()` in translated code. Out: a callback with the
variables that are values of the run; those that are known while translating come along. The frame that pdb shows is
made of the user's file, line and variables: they can be looked at, and storing into them changes nothing in the
program. Example:

    @jit
    def f(x):
        y = np.sin(x)
        debug.breakpoint()        # (Pdb) p y
        return y * 2
"""

from __future__ import annotations

import bdb
import linecache
import os
import pdb
import re
import sys
import types
from typing import Any

import numpy as np

from ..astpasses.frontend import Number, StagedArray, call_value
from ..source import Span
from ..tree_util import tree_leaves
from .callbacks import debug_callback
from .program import user_span

_VALUES = (Number, StagedArray, np.ndarray, np.generic, int, float, complex, str, bytes, type(None))


class Breakpoint:
    """What `debug.breakpoint` is; in translated code `breakpoint` and `pdb.set_trace` are it, too (core/foreign.py)."""

    def __call__(self, **pdb_options: Any) -> None:
        """Stop in pdb at this line, in every run that comes here; under vmap for each lane. `pdb_options` go to
        `pdb.Pdb` (`stdin`, `stdout`). What continues goes on to the next such line, `quit` raises `bdb.BdbQuit`. (JAX's
        `debug.breakpoint`.) PYTHONBREAKPOINT=0 switches it off, as it does Python's own."""
        if os.environ.get("PYTHONBREAKPOINT") != "0":
            pdb.Pdb(**pdb_options).set_trace(sys._getframe(1))

    def __metaphrase_stage__(self, args: tuple, kwargs: dict) -> None:
        """The callback is recorded now, and the call that is written out is that of a function that does nothing."""
        span = user_span()
        if span is not None and os.environ.get("PYTHONBREAKPOINT") != "0":
            options = {name: value for name, value in kwargs.items() if name not in ("header", "commands")}
            call_value(debug_callback, (_Stop(span, options),), _variables(span))

    @staticmethod
    def py_func(**pdb_options: Any) -> None:
        pass

    def __repr__(self) -> str:
        return "<breakpoint>"

    def __reduce__(self) -> str:
        return "breakpoint"


def _variables(span: Span) -> dict[str, Any]:
    """The user's variables at a place that is being translated, in the function and the bodies around it, that are
    values or containers of values."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != span.file:
        frame = frame.f_back
    written = set(re.findall(r"\w+", "".join(linecache.getlines(span.file))))
    found: dict[str, Any] = {}
    innermost = "" if frame is None else frame.f_code.co_qualname
    while frame is not None:
        around = frame.f_code.co_qualname
        if frame.f_code.co_filename == span.file and f"{innermost}.".startswith(f"{around}."):
            found = {**frame.f_locals, **found}
            if "<locals>" not in around:
                break
        frame = frame.f_back
    return {k: v for k, v in found.items() if k in written and all(isinstance(x, _VALUES) for x in tree_leaves(v))}


class _Stop:
    """Stops in pdb, in a frame that has the place and the values of the user's variables."""

    def __init__(self, span: Span, pdb_options: dict[str, Any]):
        self.span, self.pdb_options = span, pdb_options

    def __call__(self, **values: Any) -> None:
        span = self.span
        modules = (vars(m) for m in list(sys.modules.values()) if getattr(m, "__file__", None) == span.file)
        code = compile("\n" * (span.line - 1) + "_stop_()", span.file, "exec")
        exec(code.replace(co_name=span.function or "function"), {**next(modules, {}), "_stop_": self._stop}, values)

    def _stop(self) -> None:
        debugger = pdb.Pdb(**self.pdb_options)
        debugger.reset()
        debugger.interaction(sys._getframe(1), None)
        if debugger.quitting:
            raise bdb.BdbQuit


breakpoint = set_trace = Breakpoint()

__all__ = ["breakpoint", "set_trace"]
