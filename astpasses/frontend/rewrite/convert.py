"""Function -> the same function at the control stage, compiled with the user's file and lines.

In: a Python function. Out: a function over the same globals and the same closure cells, whose `stager` is
the one given. Conversion is remembered by code object.

    converted(period, stager)(0.3, 1.0) == period(0.3, 1.0)      # with plain.stager
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import os
import sys
import types
from typing import Any

import gast
import numpy as np

from metaphrase.late import dataclass
from metaphrase.locks import lock
from metaphrase.source import SourceError, is_library

from .control import Control, Place
from .normal import Normal, normal
from .regions import control
from .scopes import bound_names, walk
from .stores import Change
from .templates import as_ast, constant, copy_of, statements

_PLAIN = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, np.ufunc)


@dataclass(frozen=True)
class Converted:
    """A code object at the control stage. `outer` names the module-level and closure names it reads as they are."""

    code: types.CodeType
    control: Control
    outer: tuple[tuple[str, bool, bool], ...]
    swallowing: tuple[tuple[tuple[str, ...], bool], ...]
    name: str


class Outer:
    """The names a function takes from outside: its closure cells, then globals, then builtins."""

    def __init__(self, function: types.FunctionType):
        self.globals = function.__globals__
        self.cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))

    def value(self, name: str) -> Any:
        """What the name means now; KeyError if nothing."""
        cell = self.cells.get(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:
                raise KeyError(name) from None
        if name in self.globals:
            return self.globals[name]
        return builtins.__dict__[name]

    def value_or_none(self, name: str) -> Any:
        """The same; None if nothing."""
        try:
            return self.value(name)
        except KeyError:
            return None

    def is_module(self, name: str) -> bool:
        """Whether it is a library's module, whose attributes never change. Those of users' modules may, and
        those of `sys` and `os`."""
        value = self.value_or_none(name)
        known = isinstance(value, types.ModuleType) and value not in (sys, os)
        return known and is_library(value.__name__)

    def plain(self, name: str) -> bool:
        """Functions, classes and modules are read as they are; data is captured."""
        value = self.value_or_none(name)
        return isinstance(value, _PLAIN) or hasattr(type(value), "__metaphrase_stage__")

    def swallows(self, path: tuple[str, ...]) -> bool:
        """Whether `with a.b(...)` may end an exception: `contextlib.suppress`, or a user's class."""
        try:
            value = self.value(path[0]) if path else None
            for attribute in path[1:]:
                value = vars(value)[attribute] if isinstance(value, types.ModuleType) else None
        except KeyError:
            return False
        return may_swallow(value if isinstance(value, type) else type(value))


def may_swallow(kind: type) -> bool:
    """Whether a context manager's `__exit__` may return something true."""
    if issubclass(kind, contextlib.suppress):
        return True
    leave = getattr(kind, "__exit__", None)
    if not isinstance(leave, types.FunctionType) or is_library(leave.__module__ or ""):
        return False
    try:
        returns = [n.value for n in walk(normal(leave).node) if isinstance(n, gast.Return)]
    except SourceError:
        return True
    return any(v is not None and not (isinstance(v, gast.Constant) and not v.value) for v in returns)


_lock = lock()
_by_code: dict[tuple[str, bytes, types.CodeType], list[Converted]] = {}  # equal code may stand elsewhere
# By identity, with the code itself to keep it: a code object's hash goes through all its constants.
_made: dict[int, tuple[Control, str, types.CodeType]] = {}
OURS = os.path.abspath(os.path.join(__file__, "..", "..", ".."))  # no place in what stands here is a user's
in_users_files: set[int] = set()  # the identities of converted code that stands elsewhere


def converted_code(function: types.FunctionType) -> Converted:
    """The control stage of `function`'s code, for what its outer names mean now."""
    outer, code = Outer(function), function.__code__
    with _lock:
        known = _by_code.setdefault((code.co_filename, code.co_linetable, code), [])
        for entry in known:
            if all(outer.plain(n) == p and outer.is_module(n) == m for n, p, m in entry.outer) and all(
                outer.swallows(path) == found for path, found in entry.swallowing
            ):
                return entry
        entry = _convert(normal(function), function, outer)
        known.append(entry)
        return entry


def control_stage(function: types.FunctionType) -> Control:
    """The control stage as a tree that prints."""
    return converted_code(function).control


def is_converted(code: types.CodeType | None) -> bool:
    """Whether a code object was made here (nested functions of converted ones included)."""
    return id(code) in _made


def hints_of(code: types.CodeType) -> tuple[dict[Place, str], str]:
    """Names for the results at each place of converted code, and the function's name."""
    made, name, _ = _made[id(code)]
    return made.hints, name


def invented_in(code: types.CodeType) -> frozenset[str]:
    """The names in converted code that are none of the user's."""
    return _made[id(code)][0].invented


def changes_in(body: Any) -> tuple[Change, ...] | None:
    """What the body of a loop in converted code changes; None of other functions."""
    code: Any = getattr(body, "__code__", None)
    return _made[id(code)][0].changes.get(code.co_name) if is_converted(code) else None


def converted(function: types.FunctionType, stager: Any) -> types.FunctionType:
    """`function` at the control stage, calling `stager`; its cells and globals are the user's own."""
    entry = converted_code(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells[entry.control.stager] = types.CellType(stager)
    closure = tuple(cells[name] for name in entry.code.co_freevars)
    made = types.FunctionType(entry.code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made


def _convert(form: Normal, function: types.FunctionType, outer: Outer) -> Converted:
    asked: dict[str, tuple[bool, bool]] = {}

    def ask(name: str) -> tuple[bool, bool]:
        if name not in asked:
            asked[name] = (outer.plain(name), outer.is_module(name))
        return asked[name]

    node = copy_of(form.node)
    if form.source.class_name:
        _mangle(node, form.source.class_name)
    swallowing: dict[tuple[str, ...], bool] = {}

    def swallows(path: tuple[str, ...]) -> bool:
        if path not in swallowing:
            swallowing[path] = bool(path) and path[0] not in own and outer.swallows(path)
        return swallowing[path]

    own = {*bound_names(node.body), *function.__code__.co_varnames}
    made = control(node, form.invented, plain=lambda n: ask(n)[0], is_module=lambda n: ask(n)[1], swallows=swallows)
    compiled = _compile(made, function, form)
    known = tuple((n, p, m) for n, (p, m) in asked.items())
    paths = tuple((path, found) for path, found in swallowing.items() if path and path[0] not in own)
    return Converted(compiled, made, known, paths, function.__name__)


def _compile(made: Control, function: types.FunctionType, form: Normal) -> types.CodeType:
    inner, args = gast.FunctionDef(), gast.arguments()
    inner.__dict__.update(made.node.__dict__)
    args.__dict__.update(inner.args.__dict__)
    inner.args = args
    inner.args.defaults = [constant(None, inner) for _ in inner.args.defaults]
    inner.args.kw_defaults = [d and constant(None, inner) for d in inner.args.kw_defaults]
    params = ", ".join([made.stager, *function.__code__.co_freevars])
    own = "" if inner.name in function.__code__.co_freevars else f" global {inner.name}\n"
    hole = made.stager + "_body"  # no name of the user's: a parameter here may be called anything
    (factory,) = statements(f"def factory({params}):\n{own} {hole}", inner, **{hole: [inner]})
    module = as_ast(gast.Module([factory], []))
    code = compile(module, form.source.file, "exec")
    outermost = next(c for c in code.co_consts if isinstance(c, types.CodeType))
    result = next(c for c in outermost.co_consts if isinstance(c, types.CodeType) and c.co_name == inner.name)
    _register(result, made, function.__name__)
    return result


def _register(code: types.CodeType, made: Control, name: str) -> None:
    _made[id(code)] = (made, name, code)
    if not code.co_filename.startswith(OURS):
        in_users_files.add(id(code))
    for inner in code.co_consts:
        # The body of a class is left as it stands; its methods are converted when they are called.
        if isinstance(inner, types.CodeType) and inner.co_flags & inspect.CO_OPTIMIZED:
            _register(inner, made, name)


def _mangle(node: gast.AST, class_name: str) -> None:
    """Private names as the compiler spells them inside a class."""
    prefix = "_" + class_name.lstrip("_")

    def spelled(text: str) -> str:
        return prefix + text if text.startswith("__") and not text.endswith("__") else text

    for child in walk(node):
        if isinstance(child, gast.Attribute):
            child.attr = spelled(child.attr)
        elif isinstance(child, gast.Name):
            child.id = spelled(child.id)
