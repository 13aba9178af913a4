"""Guards of users' functions and classes, and of what Python reads that runs some of them by itself.

In: a function that is staged, or a class that is met. Out: guards: the program holds while its code is what it was. The
methods of a class that Python calls unasked (`__str__`, `__eq__`, `__iter__`, the default factory of a field, those of
a metaclass) run while the function is translated: so the globals, closure cells and names of modules that they read,
and the functions that they call, are guarded, too. What staging itself runs has its guards from there.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from metaphrase.source import is_installed, is_library

from ..values.definitions import ClassState, FunctionState, written_bases
from ..values.sources import AttributeSource, CellSource, GlobalSource, ItemSource, ObjectSource, Source, structure
from .session import Session

_IMMUTABLE = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)


def guard_class(here: Session, kind: type) -> None:
    """The program holds while a class has the methods, properties and descriptors that it has now, and while what
    Python runs of these reads what it does."""
    if kind in here.guarded or kind.__module__ == "builtins":
        return
    here.guarded.add(kind)
    if written_bases(kind):
        here.rely_on(ObjectSource(kind, kind.__qualname__), "class", ClassState(kind))
        for function in methods_of(kind):
            guard_what_it_reads(here, function)
        for part in (type(kind), *map(type, vars(kind).values())):  # its metaclass, its descriptors
            guard_class(here, part)


def guard_function(here: Session, function: types.FunctionType) -> None:
    """The program holds while a function has its code and default values."""
    if function in here.guarded:
        return
    here.guarded.add(function)
    here.rely_on(ObjectSource(function, function.__qualname__), "function", FunctionState(function))


def methods_of(kind: type) -> Iterator[types.FunctionType]:
    """The functions of a class and its bases that Python calls without being told to."""
    for base in written_bases(kind):
        own = issubclass(base, type)  # of a metaclass even what has a name of the user's answers for the class
        for name, value in list(base.__dict__.items()):
            made = [getattr(value, "fget", None)] if own else []
            if name == "__dataclass_fields__":
                made += [field.default_factory for field in value.values()]
            if own or name[0] == name[-1] == "_":
                made.append(getattr(value, "__func__", value))
            yield from (f for f in made if isinstance(f, types.FunctionType) and f.__code__.co_filename != "<string>")


def guard_what_it_reads(here: Session, function: types.FunctionType) -> None:
    """Guards of the names that a function reads from outside, and those that it calls, as far as users wrote them."""
    if ("read", function) in here.guarded or is_installed(function.__code__.co_filename):
        return
    if is_library(str(function.__globals__.get("__name__"))):
        return
    here.guarded.add(("read", function))
    names = set(_names(function.__code__))
    for name in sorted(names & function.__globals__.keys()):
        _guard(here, GlobalSource(function.__globals__, name), function.__globals__[name], names)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            _guard(here, CellSource(cell, name), cell.cell_contents, names)
        except ValueError:  # it is empty
            continue


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


def _guard(here: Session, source: Source, value: Any, names: set[str]) -> None:
    """The program holds while a place holds this; `names`: that are read of modules, too."""
    if isinstance(value, types.ModuleType):
        for name in [] if is_library(value.__name__) else sorted(names & vars(value).keys()):
            _guard(here, AttributeSource(ObjectSource(value, value.__name__), name), vars(value)[name], set())
    elif isinstance(value, _IMMUTABLE):
        here.rely_on(source, "value", value)
    elif isinstance(value, (list, tuple, dict)):
        here.rely_on(source, "structure", structure(value))
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            _guard(here, ItemSource(source, key), item, names)
    elif isinstance(value, (types.FunctionType, type)) and not is_library(value.__module__ or ""):
        here.rely_on(source, "object", value)
        if isinstance(value, type):
            guard_class(here, value)
        else:
            guard_function(here, value)
            guard_what_it_reads(here, value)


__all__ = ["guard_class", "guard_function"]
