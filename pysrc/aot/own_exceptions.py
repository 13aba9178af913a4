"""The exception classes that a module defines itself, in its package.

In: the module. Out: its classes, and their text. Example, of a module with `class Negative(ValueError)`:

    exceptions_text(exceptions(module))                     # ["", "", "class Negative(ValueError):", "    pass", ""]

What raises them looks for them by name, and finds them in the package: `except orbits.Negative` works.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping

from ..exceptions import builtin_base
from .exported import quoted


def exceptions(module: types.ModuleType) -> dict[str, type[Exception]]:
    """By name, those that others derive from first."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Exception)
        and (value.__module__, value.__qualname__) == (module.__name__, name)
    }


def exceptions_text(found: Mapping[str, type[Exception]]) -> list[str]:
    """Their definitions, without methods, with two empty lines above each."""
    rows: list[str] = []
    for name, value in found.items():
        known = [base.__name__ for base in value.__bases__ if base in found.values() or base.__module__ == "builtins"]
        bases = ", ".join(known) or builtin_base(value).__name__
        body = quoted(inspect.cleandoc(value.__doc__)) if value.__doc__ else "pass"
        rows += ["", "", f"class {name}({bases}):", *(f"    {line}" if line else "" for line in body.splitlines())]
    return [*rows, ""] if rows else rows


__all__ = ["exceptions", "exceptions_text"]
