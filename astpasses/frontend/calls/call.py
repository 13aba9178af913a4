"""Calls in staged code, matched by the identity of what is called.

In: a callable and its arguments, staged or not. Out: its result: by a handler of the table (NumPy, math,
builtins), by a primitive that answers to it, by staging it (user functions, methods, partials, classes), or
by Python.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.astpasses.library.lists import number_of, place_of
from metaphrase.core.array_classes import refuse_foreign
from metaphrase.core.attached import rule_of
from metaphrase.core.foreign import PROGRAMS, Filed
from metaphrase.core.primitive import Primitive
from metaphrase.late import module
from metaphrase.source import SourceError, Span, UnsupportedError

from ..flow.gathering import expand_inside, is_gathered, make_plain, refuse_read
from ..flow.generators import READ_AS_LISTS, handed
from ..flow.stack_calls import METHODS as STACK_METHODS
from ..flow.stacks import NeedStack, become_stack, is_stack, older_loop
from ..operators.arithmetic import SPELLED
from ..operators.indexing import range_as_array
from ..operators.protocols import ASKED, is_ordering, written
from ..rewrite.convert import Outer, converted, converted_code, is_converted
from ..rewrite.parsing import NoSource
from ..staging.captured import guard_structure, is_own_method, known, make_attributes_known
from ..staging.demand import roots_of
from ..staging.journal import StructureLocation
from ..staging.knowledge import narrowed_inside
from ..staging.literals import elements, lift_defaults, load_attribute, load_item, source_of
from ..staging.session import LIBRARY, Session, session
from ..staging.settling import settled
from ..staging.signals import NeedConcrete, Refusal
from ..staging.stand_ins import by_python
from ..staging.under_way import current_session
from ..staging.users_code import guard_function
from ..values.objects import is_one_of
from ..values.sources import CellSource, GlobalSource
from ..values.staged_values import Maybe, Poison, Staged, Unsettled
from .outside import known_items, refuse_given, refuse_outside, refuse_unsteady
from .text import formatted

construct: Any = module("metaphrase.astpasses.frontend.calls.construct")
native_calls: Any = module("metaphrase.astpasses.frontend.calls.native_calls")
nested: Any = module("metaphrase.astpasses.frontend.calls.nested")
printing: Any = module("metaphrase.astpasses.frontend.calls.printing")
TABLE = Filed()  # handlers by the functions that they answer
# Modules that most programs don't import, and the files that answer their functions.
_HOMES = {"statistics": "python_statistics", "scipy.linalg": "scipy_calls", "cmath": "complex_math"}
_NATIVE = tuple(
    f"metaphrase.{name}" for name in "core ops astpasses runtime tree _tree api source pipeline config".split()
)
CHANGES = {
    list: {"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"},
    dict: {"update", "setdefault", "pop", "popitem", "clear", "move_to_end", "subtract"},
    set: {
        *("add", "discard", "remove", "pop", "clear", "update"),
        *("difference_update", "intersection_update", "symmetric_difference_update"),
    },
}
_EXACT = ("decimal", "_pydecimal", "fractions", "datetime", "json")  # what makes no floats of numbers
DEEPEST = 64
HALVINGS = 8  # a recursion that tests sizes at each level needs the sizes themselves: see it early
MOST_CALLS = 500  # of one that calls itself twice, under as many tests
_VALUES = (str, bytes, tuple, frozenset, int, float, complex, range)
_WRITTEN = (types.FunctionType, types.MethodType)
_context_manager = contextlib.contextmanager(lambda: iter(()))


def handles(*functions: Any) -> Callable:
    """Register a handler: called with the arguments of the call, in place of these callables."""

    def register(handler: Callable) -> Callable:
        for function in functions:
            TABLE[function] = handler
        return handler

    return register


def has_staged(value: Any, depth: int = 6) -> bool:
    """Whether a value is, or in a container holds, something staged."""
    if isinstance(value, (Staged, Unsettled)):
        return True
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    parts = value.values() if isinstance(value, dict) else value
    return depth > 0 and isinstance(value, (list, tuple, set, dict)) and any(has_staged(v, depth - 1) for v in parts)


def answers(*functions: Any) -> Callable:
    """`handles`, for calls that hold something staged; of other values the function itself is called."""

    def register(rule: Callable) -> Callable:
        for function in functions:

            @functools.wraps(rule)
            def handler(*args: Any, function: Any = function, **keywords: Any) -> Any:
                if not has_staged((args, keywords)):
                    return function(*args, **keywords)
                return rule(*args, **keywords)

            handles(function)(handler)
        return rule

    return register


def call_value(function: Any, args: tuple, keywords: dict) -> Any:
    """`function(*args, **keywords)`. An iterator that it gives is known to be made here."""
    here = session()
    made = _call_value(here, function, args, keywords)
    return here.born(made) if hasattr(type(made), "__next__") else made


def _call_value(here: Session, function: Any, args: tuple, keywords: dict) -> Any:
    if not _takes_anything(function):
        args = tuple(narrowed_inside(here, a) for a in handed(here, function, args))
        module = str(getattr(function, "__module__", ""))
        if isinstance(function, np.ufunc) or module.split(".")[0] == "numpy":
            args = tuple(a if type(a) is range else range_as_array(a) for a in args)
    if any(isinstance(a, (Maybe, Poison)) for a in args):
        args = tuple(map(settled, args))
    handler = _handler(function)
    if (
        here.roots
        and not is_one_of(function, READ_AS_LISTS)
        and (handler is not None or not isinstance(function, (*_WRITTEN, functools.partial, type)))
    ):
        args = tuple(known_items(here, function, a) for a in args)
        args, keywords = as_known(here, args, keywords)
    if handler is not None:
        method = answering(function, args[0]) if args and not keywords else None
        return handler(*args, **keywords) if method is None else call_value(method, args, {})
    if hasattr(type(function), "__metaphrase_stage__"):
        return nested.call_transformed(here, function, args, keywords)
    if isinstance(function, Primitive):
        return _bind(here, function, args, keywords)
    if isinstance(function, functools.partial):
        return call_value(function.func, (*function.args, *args), {**function.keywords, **keywords})
    if isinstance(function, types.MethodType):
        if isinstance(function.__self__, Staged):
            return function(*args, **keywords)
        return call_value(function.__func__, (function.__self__, *args), keywords)
    if isinstance(function, types.FunctionType):
        return call_function(here, function, args, keywords)
    if isinstance(function, type):
        return construct.construct(here, function, args, keywords)
    return native_calls.call_other(here, function, args, keywords)


def _handler(function: Any) -> Callable | None:
    if isinstance(type(function).__hash__, types.FunctionType):  # a user's object: its hash reads fields
        return None
    try:
        found = TABLE.get(function)
    except TypeError:
        return None
    if found is not None:
        return found
    module = getattr(function, "__module__", None) or ""
    for home, file in _HOMES.items():
        if module.startswith(home):
            importlib.import_module(f"{__package__}.{file}")
            return TABLE.get(function)
    if (program := PROGRAMS.get(function)) is not None:  # what a library of ours has under its own name
        return lambda *args, **keywords: call_value(program.function(), args, keywords)
    if isinstance(function, np.ufunc):
        from .numpy_calls import ufunc_handler

        return ufunc_handler(function)
    if function in SPELLED and getattr(function, "__module__", "") == "math":
        from .math_calls import math_handler

        return math_handler(function)
    from .library_calls import library_handler

    return library_handler(function)


def _bind(here: Session, primitive: Primitive, args: tuple, keywords: dict) -> Any:
    """A primitive called by library code on staged values."""
    if not has_staged(args) and args:
        return primitive(*args, **keywords)
    outs = here.emit(primitive, *(here.atom(a) for a in args), **keywords)
    if primitive.multiple:
        return tuple(here.wrap(o) for o in outs)
    python = args[0].python if len(args) == 1 and hasattr(args[0], "python") else None
    return here.wrap(outs, python if python is not None and outs.type.dtype == args[0].dtype else None)


# --- Python functions ---


def call_function(here: Session, function: types.FunctionType, args: tuple, keywords: dict) -> Any:
    if function.__code__ is _HOSTED:  # handed out, and come back
        return call_value(function.__closure__[0].cell_contents, args, keywords)  # type: ignore[index]
    if (rule := rule_of(function)) is not None and rule.is_asked():
        return nested.call_transformed(here, rule, args, keywords)
    module = function.__module__ or ""
    if is_converted(function.__code__):
        return _enter(here, function, function, args, keywords)
    if module.startswith("metaphrase.api"):  # transformations stage the functions that they are given
        return function(*args, **keywords)
    if function.__code__.co_flags & 0x280 and not here.path:
        converted_code(function)  # a coroutine as the function that is staged: refused there
    if function.__code__.co_flags & 0x20 and not here.path:
        raise UnsupportedError(
            "a generator can't be the function that is translated",
            Span(function.__code__.co_filename, function.__code__.co_firstlineno),
            remedy="return a list or an array of the values",
            code="generator",
        )
    if function.__code__ is _context_manager.__code__:
        return contextlib._GeneratorContextManager(hosted_value(function.__wrapped__), args, keywords)  # type: ignore
    if (
        is_native(module)
        and not is_ordering(function)
        or function.__code__.co_flags & 0x280
        or function.__code__.co_filename == "<string>"
        and function.__name__[:2] == "__"  # a class's own
    ):
        owner = args[0] if args and "." in function.__qualname__ else None
        refuse_unsteady(here, module, function.__name__, owner)
        refuse_outside(here, owner, f"`{function.__name__}`")
        args, keywords = as_known(here, args, keywords)
        refuse_given(here, args, keywords, function.__name__)
        if module in ("copy", "dataclasses"):
            for arg in args:
                make_attributes_known(here, arg)
        expand_inside(here, [*args, *keywords.values()])
        if here.in_region() and module.split(".")[0] in ("logging", "warnings"):
            raise here.unsupported(
                f"{function.__name__} of {module} would be told once, while translating, whatever the branch",
                "print, or say it outside of the translated function",
            )
        given = hosted(args, keywords)
        if module.split(".")[0] in _EXACT and has_staged(given):
            return by_python(here, function.__qualname__, function, *given)
        made = function(*given[0], **given[1])
        return here.born(made) if module in ("copy", "dataclasses") else made
    if module.split(".")[0] in ("numpy", "scipy") and not module.startswith("metaphrase"):
        return native_calls.call_other(here, function, args, keywords)
    if args and "." in function.__qualname__:
        refuse_foreign(args[0], here.span(), "a value")
    try:
        entry = converted_code(function)
    except NoSource:
        from .traced import traced

        guard_function(here, function)
        return traced(here, function, args, keywords)
    outer = Outer(function)
    if not is_own_method(here, function):
        here.outer_cells += outer.cells.values()
    if function not in here.guarded:
        guard_function(here, function)
        for name, plain, _ in entry.outer:
            if plain:
                cell = outer.cells.get(name)
                source = GlobalSource(outer.globals, name) if cell is None else CellSource(cell, name)
                here.rely_on(source, "object", outer.value(name))
    from ..staging.operations import StagedStager

    def run() -> Any:
        made = lift_defaults(here, function, converted(function, StagedStager(outer)))
        return _enter(here, function, made, args, keywords)

    if module.startswith("metaphrase") or not here.path:
        return run()
    return nested.call_again(here, function, run, args, keywords)


def _enter(here: Session, function: types.FunctionType, made: types.FunctionType, args: tuple, keywords: dict) -> Any:
    """Run converted code, noting the call path; endless recursion on a staged test ends here."""
    depth = sum(1 for entry in here.path if entry[0] is function.__code__)
    here.again[function.__code__] += len(here.tests) >= HALVINGS <= depth
    endless = depth > DEEPEST or here.again[function.__code__] > MOST_CALLS
    if here.tests and (endless or depth == HALVINGS <= 2 * len(here.tests)):
        roots = set().union(*(roots_of(here, test) for test in here.tests))
        if roots <= {("size",)} or endless:
            raise NeedConcrete(  # of what it may depend on, numbers that are given can be pinned
                {root for root in roots if root[0] == "argument"} or roots,
                f"the depth to which '{function.__name__}' calls itself",
                here.span(),
                "write the recursion as a loop",
            )
    here.path.append((function.__code__, here.span()))
    try:
        return made(*args, **keywords)
    except (SourceError, Refusal) as caught:
        place_with_user(caught.error if isinstance(caught, Refusal) else caught, here.path[-1][1])
        raise
    finally:
        here.path.pop()


def place_with_user(error: BaseException, call: Span | None) -> None:
    """Let an error in a library of ours (`nn`, `lax`, `random`) point at the user's call of it instead."""
    if isinstance(error, SourceError) and call is not None:
        if error.span is not None and error.span.file.startswith(LIBRARY):
            error.span = call
        error.notes = tuple((t, s) for t, s in error.notes if s is None or not s.file.startswith(LIBRARY))


def answering(function: Any, value: Any) -> types.FunctionType | None:
    """The method of a user's class that `float`, `round` and the like ask for."""
    names = ASKED.get(function) if isinstance(function, (type, types.BuiltinFunctionType)) else None
    return next((m for name in names if (m := written(value, name)) is not None), None) if names else None


def is_native(module: str) -> bool:
    """Whether a module's functions run as they are; the functions of NumPy that we wrote are staged."""
    if module.startswith(("metaphrase.astpasses.library", "metaphrase.astpasses.frontend.calls.written")):
        return False
    return module.startswith(_NATIVE) or module.split(".")[0] in sys.stdlib_module_names - {"__main__"}


def hosted_value(value: Any) -> Any:
    """A function handed to code that is not converted: called back, it is."""
    if not isinstance(value, (*_WRITTEN, functools.partial)) or is_converted(getattr(value, "__code__", None)):
        return value
    return value if is_native(getattr(value, "__module__", "") or "") else called_back(value)


def hosted(args: tuple, keywords: dict) -> tuple[tuple, dict]:
    """The arguments for code that is not converted."""
    return tuple(map(hosted_value, args)), {k: hosted_value(v) for k, v in keywords.items()}


def called_back(value: Any) -> Any:
    def calls_back(*args: Any, **keywords: Any) -> Any:
        return value(*args, **keywords) if current_session() is None else call_value(value, args, keywords)

    return functools.update_wrapper(calls_back, value) if hasattr(value, "__name__") else calls_back


_HOSTED = called_back(None).__code__


def _takes_anything(function: Any) -> bool:
    """Whether a call stages what users wrote, or only keeps the arguments: these stay as they are."""
    if isinstance(function, (*_WRITTEN, functools.partial)):
        return True
    if isinstance(function, type):
        from .dataclass_calls import is_generated

        return construct.has_staged_init(function) or construct.keeps(function) or is_generated(function)
    call = getattr(type(function), "__call__", None)  # noqa: B004
    return isinstance(call, types.FunctionType) and not is_native(call.__module__ or "")


def as_known(here: Session, args: tuple, keywords: dict) -> tuple[tuple, dict]:
    """Arguments for code that is not converted: it sees no captured value that is not made known."""
    return tuple(known(here, a) for a in args), {k: known(here, v) for k, v in keywords.items()}


# --- methods ---


def call_method(target: Any, name: str, args: tuple, keywords: dict) -> Any:
    """`target.name(*args, **keywords)`."""
    here = session()
    if isinstance(target, np.ndarray):
        target = here.lift(target)
    if isinstance(target, Staged):
        from .methods import users_attribute

        return users_attribute(target, name)(*(narrowed_inside(here, a) for a in args), **keywords)
    if name in ("write", "flush") and (target is sys.stdout or target is sys.stderr):
        return printing.write(target, name, *args)
    for kind, changing in CHANGES.items():
        if isinstance(target, kind):
            if name in ("extend", "update", "extendleft"):
                args = handed(here, list, args)
            if id(target) in here.deques:
                from .deques import bounded_method, list_method

                if id(target) in here.bounds and bounded_method(here, target, name, args):
                    return None

                name, args = list_method(here, target, name, args)
            if kind is list and is_stack(target) and name in STACK_METHODS:
                return STACK_METHODS[name](here, target, *map(settled, args), **keywords)
            if kind is list and name not in ("append", "extend"):
                refuse_read(here, target)
                if is_gathered(target) and name in STACK_METHODS:
                    become_stack(here, target, None, "items are taken from a list in a loop")
                    return call_method(target, name, args, keywords)
                if is_gathered(target):
                    make_plain(here, target)
                elif name in STACK_METHODS and older_loop(here, target):
                    raise NeedStack(target, None, "items are taken from a list in a loop", here.span())
            if name in changing:
                here.journal.note(StructureLocation(target))
                if kind is list and name == "sort":
                    from .sorting import ordered

                    target[:] = ordered(here, list(target), **keywords)
                    return None
                return getattr(target, name)(*map(hosted_value, args), **keywords)
            return _container_method(here, target, name, args, keywords)
    if isinstance(target, tuple) and getattr(type(target), name, None) in (tuple.index, tuple.count):
        return _container_method(here, target, name, args, keywords)
    if isinstance(target, _VALUES) and type(target).__module__ == "builtins":
        if isinstance(target, str) and name == "format":
            return formatted(target, args, keywords)
        if isinstance(target, str) and name == "join":
            return printing.joined_by(target, elements(here, args[0]))
        return getattr(known(here, target), name)(*args, **keywords)
    if type(target).__module__ == "numpy" and isinstance(target, np.generic):
        return getattr(target, name)(*args, **keywords)
    return call_value(load_attribute(here, target, name), args, keywords)


def _container_method(here: Session, target: Any, name: str, args: tuple, keywords: dict) -> Any:
    """Reading methods of containers: what they give out is made known."""
    source = source_of(here, target) if id(target) in here.roots else None
    if source is not None and name in ("items", "values", "keys", "get", "copy"):
        guard_structure(here, target)
        if name == "items":
            return [(k, load_item(here, target, k)) for k in target]
        if name == "values":
            return [load_item(here, target, k) for k in target]
        if name == "get" and args[0] in target:
            return load_item(here, target, args[0])
        if name == "copy" and isinstance(target, dict):
            return here.born({k: load_item(here, target, k) for k in target})
        if name == "copy" and isinstance(target, list):
            return here.born([load_item(here, target, k) for k in range(len(target))])
    if isinstance(target, (list, tuple)) and name in ("index", "count") and has_staged((target, args)):
        return call_value(place_of if name == "index" else number_of, (target, *args), keywords)
    made = getattr(known(here, target), name)(*args, **keywords)
    return here.born(made) if name == "copy" else made
