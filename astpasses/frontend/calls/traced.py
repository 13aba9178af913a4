"""Functions whose source was not found (typed at the prompt, in `exec`) run as they are, on staged values.

In: such a function and its arguments. Out: what it returns. The names that it takes from outside are read as
those of translated functions are: numbers are watched, arrays are read at each call, functions are translated
if they can be. What a plain run would get wrong in silence is refused: stores that outlive the call,
containers and objects from outside, whose items nothing watches.

    G = 9.81                                  # at the prompt
    fall = jit(lambda t: 0.5 * G * t**2)      # another G is another program
"""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from metaphrase import tree_util
from metaphrase.source import UnsupportedError

from ..rewrite.convert import Outer
from ..staging.literals import lift_outer
from ..staging.session import Session
from ..values.staged_values import Maybe, Poison, Staged
from .call import called_back, hosted_value

_STORES = {
    "STORE_ATTR": "stores into an attribute",
    "DELETE_ATTR": "deletes an attribute",
    "STORE_GLOBAL": "assigns a global variable",
    "DELETE_GLOBAL": "deletes a global variable",
}
_SIMPLE = (bool, int, float, complex, str, bytes, type(None), type(...), slice, range, np.generic, np.dtype)
_CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type, np.ufunc)
_TRANSLATED = ("metaphrase", "scipy")  # NumPy's functions ask the values that they are given
_WHERE = "define the function in a file or a notebook cell"


def traced(here: Session, function: types.FunctionType, args: tuple, keywords: dict) -> Any:
    """The result of a function without source."""
    for code in _codes(function.__code__):
        here.unsourced.add(code)
        for instruction in dis.get_instructions(code):
            free = instruction.opname == "STORE_DEREF" and instruction.argval in function.__code__.co_freevars
            if free or instruction.opname in _STORES:
                what = "assigns a variable around it" if free else _STORES[instruction.opname]
                raise _refusal(here, function, what, _WHERE)
    for leaf in tree_util.tree_leaves((args, keywords)):
        if not isinstance(leaf, (Staged, Maybe, Poison, np.ndarray, *_SIMPLE, *_CODE)):
            raise _refusal(here, function, f"is given a {type(leaf).__name__}", _WHERE)
    outer = Outer(function)
    used = {name for code in _codes(function.__code__) for name in code.co_names} & outer.globals.keys()
    around = {**outer.globals, **{name: _outside(here, function, outer, name) for name in sorted(used)}}
    if "print" not in used:
        around["print"] = called_back(print)
    cells = {name: types.CellType(_outside(here, function, outer, name)) for name in outer.cells}
    run = types.FunctionType(
        function.__code__, around, function.__name__, function.__defaults__, tuple(cells.values()) or None
    )
    run.__kwdefaults__ = function.__kwdefaults__
    given = [*args, *keywords.values()]
    before = _contents(given)
    made = run(*args, **keywords)
    if [kept for kept, _ in before] != [kept for kept, _ in _contents(given)]:
        raise _refusal(here, function, "changes a list or a dict that it is given", _WHERE)
    return made


def _refusal(here: Session, function: types.FunctionType, what: str, remedy: str) -> UnsupportedError:
    name = "a lambda" if function.__name__ == "<lambda>" else f"'{function.__name__}'"
    return here.unsupported(f"{name}, whose source was not found, {what}", remedy, code="outer-write")


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of what is defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _outside(here: Session, function: types.FunctionType, outer: Outer, name: str) -> Any:
    """What a name from outside means in the run."""
    try:
        value = outer.value(name)
    except KeyError:
        return None
    if isinstance(value, types.ModuleType):
        if outer.is_module(name) or not hasattr(value, "__file__"):
            return _of_ours(value)
    elif isinstance(value, types.FunctionType) and not outer.is_module(name):
        made = lift_outer(here, outer, value, name)
        return called_back(made) if getattr(value, "__module__", None) == function.__module__ else _of_ours(made)
    elif isinstance(value, (*_SIMPLE, np.ndarray, Staged, _Ours)) or outer.plain(name) or value is builtins:
        return lift_outer(here, outer, value, name)
    what = f"reads '{name}', a {type(value).__name__} from outside"
    raise _refusal(here, function, what, f"pass it as an argument, or {_WHERE}")


class _Ours:
    """A module of ours, or of SciPy's, whose functions are translated."""

    def __init__(self, module: types.ModuleType):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _of_ours(getattr(self._module, name))


def _of_ours(value: Any) -> Any:
    if isinstance(value, types.ModuleType):
        return _Ours(value) if value.__name__.partition(".")[0] in _TRANSLATED else value
    return hosted_value(value) if str(getattr(value, "__module__", "")).partition(".")[0] in _TRANSLATED else value


def _contents(value: Any) -> list[tuple]:
    """The lists and dicts in a value, with what they hold, by identity; the values too, so that they stay."""
    found, todo = [], [value]
    while todo:
        container = todo.pop()
        if isinstance(container, (dict, list, tuple)):
            keys, held = (container, container.values()) if isinstance(container, dict) else ((), container)
            found.append(((id(container), *keys, *map(id, held)), list(held)))
            todo += held
    return found
