"""What an object is, as far as a program depends on it, in words that mean the same in every process.

In: a value that a guard watches, a function that was run through, a class whose methods were called. Out: its
fingerprint, equal in two processes only if a program made for one serves the other. Example:

    fingerprint(np)               'module numpy'
    fingerprint(2.5)              '2.5'
    fingerprint(helper)           'function models.helper 5f0c1e...'     # its code; default values stand apart
    fingerprint(Model)            'class models.Model 9a41b7...'         # its methods, properties, descriptors
    fingerprint(Model())          'a class models.Model 9a41b7...'       # what is read of it has guards of its own

Raises `NotPortable` for what can't be told so: a generator of random numbers, a compiled regular expression.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import inspect
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...astpasses.frontend import written_bases
from ...core.array_classes import is_plain
from ...core.attached import rule_of
from ...digests import sha256
from ...late import module
from ...runtime.dispatch import Dispatcher
from ...tree_util import PyTreeDef
from ..statics import is_frozen
from ..transforms import Transformed, jitted_of

primitive = module("metaphrase.core.primitive")

LARGEST = 1 << 20  # bytes of an array that is compared by its elements
MOST_OBJECTS = 10_000  # in an argument

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), slice, range)
_BUILTIN = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)
_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_MISSING = object()


class NotPortable(Exception):
    """Something that a plan would have to name, and that has no name in another process."""


def fingerprint(value: Any, around: tuple[int, ...] = ()) -> str:
    """See the head of this file. `around`: the objects that the value is in."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, np.dtype):
        return repr(value)
    if isinstance(value, np.generic):
        return f"{value.dtype.str} {value.tobytes().hex()}"
    if isinstance(value, enum.Enum):
        return f"{class_name(kind)}.{value.name} = {fingerprint(value.value)}"
    if id(value) in around:
        return f"... {len(around) - around.index(id(value))}"
    inner = (*around, id(value))
    if kind in (tuple, list):
        return f"{kind.__name__}({', '.join(fingerprint(item, inner) for item in value)})"
    if kind in (set, frozenset):
        if not all(isinstance(item, (int, float)) for item in value):
            raise NotPortable("a set, whose order is another one in each process")
        return f"{kind.__name__}({', '.join(map(fingerprint, value))})"
    if kind is dict:
        items = (f"{fingerprint(key, inner)}: {fingerprint(item, inner)}" for key, item in value.items())
        return f"dict({', '.join(items)})"
    if kind is types.ModuleType:
        return f"module {value.__name__}"
    if isinstance(value, type):
        return f"class {class_name(value)} {class_digest(value)}"
    if kind is types.FunctionType:
        held = "".join(f", {_held(cell, inner)}" for cell in value.__closure__ or ())
        return f"function {value.__module__}.{value.__qualname__} {function_state(value, inner)}{held}"
    if kind in _BUILTIN:
        return f"builtin {builtin_name(value)}"
    if isinstance(value, np.ufunc):
        return _ufunc(value)
    if isinstance(value, primitive.Primitive):
        return f"primitive {value.name}"
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, (Dispatcher, Transformed, functools.partial, types.MethodType)):
        return callable_fingerprint(value, inner)
    if is_frozen(kind):
        fields = ", ".join(fingerprint(getattr(value, field.name)) for field in dataclasses.fields(kind))
        return f"{fingerprint(kind)}({fields})"
    if kind.__module__ in ("dataclasses", "_collections") and not written_bases(kind):  # of what makes classes
        return class_name(kind)
    if kind is types.SimpleNamespace or _is_written(kind):
        return f"a {fingerprint(kind)}({_contents(value, inner)})"
    if kind.__module__.split(".")[0] == "numpy" and callable(value):  # what NumPy wrote in C, or wrapped
        name = getattr(value, "__name__", "")
        if getattr(_module(value), name, None) is value:
            return f"{value.__module__}.{name}"
    raise NotPortable(f"a {class_name(kind)}")


def is_value(value: Any) -> bool:
    """Whether a value is what it holds, whichever object it is: numbers, text, tuples of them, members of enums, frozen
    dataclasses; functions, classes and modules stand for themselves."""
    kind = type(value)
    if kind in (tuple, list):
        return all(map(is_value, value))
    if kind is dict:
        return all(is_value(key) and is_value(item) for key, item in value.items())
    if is_frozen(kind):
        return all(is_value(getattr(value, field.name)) for field in dataclasses.fields(kind))
    named = (type, types.FunctionType, types.ModuleType, np.ufunc, Dispatcher, Transformed)
    return kind in _PLAIN or kind in _BUILTIN or isinstance(value, (*named, np.generic, np.dtype, enum.Enum))


def outline(value: Any, depth: int = 8) -> str:
    """What a container holds beside numbers and arrays, which are read by what has guards of its own."""
    kind = type(value)
    if kind in (str, bytes, bool, type(None)):
        return repr(value)
    if depth and kind in (tuple, list):
        return f"{kind.__name__}({', '.join(outline(item, depth - 1) for item in value)})"
    if depth and kind is dict:
        return f"dict({', '.join(f'{outline(k, depth - 1)}: {outline(v, depth - 1)}' for k, v in value.items())})"
    return class_name(kind)


def identities(values: Iterable[Any]) -> list[int]:
    """Which objects and arrays values hold, in an order that is the same for values of one fingerprint: where one
    stands twice, it is one object in two places."""
    ids: list[int] = []
    inside = [*values][::-1]
    seen = set()
    while inside:
        value = inside.pop()
        kind = type(value)
        if is_value(value):
            continue
        ids.append(id(value))
        if len(ids) > MOST_OBJECTS:
            raise NotPortable("which of so many places hold one object")
        if id(value) in seen or isinstance(value, np.ndarray):
            continue
        seen.add(id(value))
        if kind in (tuple, list):
            held = [*value]
        elif kind is dict:
            held = [part for item in value.items() for part in item]
        elif isinstance(value, types.MethodType):
            held = [value.__self__]
        elif type(value) is functools.partial:
            held = [value.func, value.args, value.keywords]
        else:
            held = [part for _, part in _held_by(value)]
        inside += reversed(held)
    return ids


def _held_by(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object itself, by name."""
    names = [*getattr(value, "__dict__", ())]
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else [name for name in slots if name != "__dict__"]
    for name in names:
        part = inspect.getattr_static(value, name, _MISSING)
        yield name, object.__getattribute__(value, name) if type(part) in _SLOTS else part


def _contents(value: Any, around: tuple[int, ...]) -> str:
    """What an object holds: arrays by their types, for they are read at each call."""
    return ", ".join(f"{name}={_part(part, around)}" for name, part in _held_by(value))


def _part(value: Any, around: tuple[int, ...]) -> str:
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.shape}"
    return fingerprint(value, around)


def _held(cell: types.CellType, around: tuple[int, ...]) -> str:
    """What a variable of an outer function holds."""
    try:
        value = cell.cell_contents
    except ValueError:
        return "nothing yet"
    return _part(value, around)


def _ufunc(value: np.ufunc) -> str:
    for library in ("numpy", "scipy.special"):
        if getattr(sys.modules.get(library), value.__name__, None) is value:
            return f"{library}.{value.__name__}"
    raise NotPortable(f"the ufunc {value.__name__}")


def callable_fingerprint(function: Any, around: tuple[int, ...] = ()) -> str:
    """Of a function that is transformed: its code and default values, the transformations around it, and its own
    derivative rules, which may hold the function itself: `around` are the objects that it is in."""
    if isinstance(function, Dispatcher):
        jitted = jitted_of(function)
        if jitted is None:
            raise NotPortable("a dispatcher")
        return f"jit({callable_fingerprint(jitted.fun, around)}, {jitted.static!r})"
    if isinstance(function, Transformed):
        try:
            inner, *options = function._again()
        except TypeError as error:
            raise NotPortable(str(error)) from None
        told = [fingerprint(option, (*around, id(function))) for option in options]
        return f"{type(function).__name__}({callable_fingerprint(inner, around)}, {', '.join(told)})"
    if type(function) is functools.partial:
        parts = (fingerprint(part, around) for part in (function.args, function.keywords))
        return f"partial({callable_fingerprint(function.func, around)}, {', '.join(parts)})"
    if isinstance(function, types.MethodType):
        return f"{callable_fingerprint(function.__func__, around)} of {fingerprint(function.__self__, around)}"
    if type(function) is types.FunctionType:
        return f"{fingerprint(function, around)} {function_state(function, around)}"
    return fingerprint(function, around)


def function_state(function: types.FunctionType, around: tuple[int, ...] = ()) -> str:
    """What a function runs: its code and default values, and the rule that `derivative_of` gave it."""
    state = function.__defaults__, function.__kwdefaults__
    rule = rule_of(function)
    with_rule = "" if rule is None else f" {_rule_fingerprint(rule, around)}"
    return f"{code_digest(function.__code__)} {fingerprint(state)}{with_rule}"


def _rule_fingerprint(rule: Any, around: tuple[int, ...]) -> str:
    """Of a rule of `derivative_of`, apart from the function that it is of, which it may hold."""
    parts = [callable_fingerprint(one, around) for one in (rule.forward, rule.backward) if one is not None]
    return f"rule({', '.join(parts)}, {rule.argnums})"


def structure_fingerprint(structure: PyTreeDef) -> str:
    """Of the structure of a pytree: classes, keys, metadata."""
    if structure.kind is None:
        return "*"
    children = ", ".join(map(structure_fingerprint, structure.children()))
    cls, metadata = structure.kind.type, structure.metadata
    if cls in (tuple, list, type(None)):
        return f"{cls.__name__}({children})"
    order = getattr(metadata, "order", None)
    return f"{fingerprint(cls)}[{fingerprint(tuple(metadata) if order else metadata)}, {order}]({children})"


# ---- code and classes ------------------------------------------------------------------------------------------


def code_digest(code: types.CodeType) -> str:
    """Of what a function's code does and where its lines stand, whatever the file is called."""
    if _goes_through_sets(code):
        raise NotPortable(f"{code.co_name}, which makes a set: its order is another one in each process")
    return sha256(repr(_code_parts(code)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _code_parts(code: types.CodeType) -> tuple:
    return (
        code.co_name,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
        code.co_code,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_firstlineno,
        code.co_linetable,
        tuple(map(_constant, code.co_consts)),
    )


def _goes_through_sets(code: types.CodeType) -> bool:
    """Whether code has sets that it does more with than to look whether something is in them."""
    if {"set", "frozenset"} & {*code.co_names}:
        return True
    if frozenset in map(type, code.co_consts) or not _SET_OPCODES.isdisjoint(code.co_code[::2]):
        steps = [*dis.get_instructions(code)]
        for step, after in zip(steps, steps[1:]):
            if step.opname in ("BUILD_SET", "SET_ADD"):
                return True
            if step.opname == "LOAD_CONST" and type(step.argval) is frozenset and after.opname != "CONTAINS_OP":
                return True
    return any(_goes_through_sets(inner) for inner in code.co_consts if isinstance(inner, types.CodeType))


_SET_OPCODES = {dis.opmap["BUILD_SET"], dis.opmap["SET_ADD"]}


def _constant(value: Any) -> Any:
    if isinstance(value, types.CodeType):
        return _code_parts(value)
    if isinstance(value, (tuple, frozenset)):  # a set has another order in each process
        parts = [repr(_constant(part)) for part in value]
        return type(value).__name__, sorted(parts) if isinstance(value, frozenset) else parts
    return type(value).__name__, repr(value)


def class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def class_digest(kind: type) -> str:
    """Of what users wrote in a class and its bases, data apart: what is read of that has guards of its own."""
    if not written_bases(kind):
        return ""
    rows = [class_name(type(kind)), *map(class_name, kind.__mro__)]
    rows += [class_name(base) + ": " + ", ".join(sorted(_members(base))) for base in written_bases(kind)]
    if issubclass(kind, enum.Enum):
        rows += [f"{name} = {fingerprint(member.value)}" for name, member in kind.__members__.items()]
    return sha256("\n".join(rows).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _members(base: type) -> Iterator[str]:
    for name, member in base.__dict__.items():
        text = _member(member)
        if text:
            yield f"{name} = {text}"


def _member(member: Any) -> str:
    kind = type(member)
    if kind in (staticmethod, classmethod):
        return f"{kind.__name__} {_member(member.__func__)}"
    if kind is property:
        return f"property({', '.join(map(_member, (member.fget, member.fset, member.fdel)))})"
    if kind is functools.cached_property:
        return f"cached_property {_member(member.func)}"
    if kind is types.FunctionType:
        return function_state(member)
    if kind in _SLOTS or kind.__module__ in ("_abc", "typing", "types"):
        return kind.__name__
    if isinstance(member, type):
        return f"class {class_name(member)}"
    if isinstance(member, (Dispatcher, Transformed, functools.partial)):
        return callable_fingerprint(member)
    if isinstance(member, (list, dict, set, np.ndarray)) or kind in _PLAIN or kind is tuple:
        return ""
    if isinstance(member, (np.generic, enum.Enum)):
        return ""
    return fingerprint(member)


def _is_written(kind: type) -> bool:
    """Whether users wrote all of a class: nothing of its instances is out of Python's sight."""
    return type(kind) is type and len(written_bases(kind)) == len(kind.__mro__) - 1


def builtin_name(value: Any) -> str:
    """`math.sin`, `builtins.len`, `str.upper`."""
    owner = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(owner, type):
        return f"{class_name(owner)}.{value.__name__}"
    raise NotPortable(f"a method of a {class_name(type(owner))}")


def _module(value: Any) -> Any:
    return sys.modules.get(getattr(value, "__module__", None) or "")


def _array(value: np.ndarray) -> str:
    if value.dtype.hasobject or value.nbytes > LARGEST or not is_plain(type(value)):  # type: ignore[arg-type]
        raise NotPortable("an array that is compared by its elements")
    digest = sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:32]
    return f"array {value.dtype.str} {value.shape} {digest}"


def _handed(function: Any) -> Any:
    """What a user handed to transformations, inside of partials."""
    function = jitted_of(function) or function
    if isinstance(function, Transformed):
        return _handed(function.fun)
    return _handed(function.func) if isinstance(function, functools.partial) else function


def own_functions(function: Any) -> list[types.FunctionType]:
    """The function that a user handed to transformations, if it is one of Python's."""
    function = inspect.unwrap(_handed(function))
    function = getattr(function, "__func__", function)
    return [function] if isinstance(function, types.FunctionType) else []


def bound_objects(function: Any) -> list[Any]:
    """What a method that a user handed to transformations is bound to, if that is no class."""
    function = _handed(function)
    bound = isinstance(function, types.MethodType) and not isinstance(function.__self__, type)
    return [function.__self__] if bound else []


__all__ = [
    "NotPortable",
    "bound_objects",
    "callable_fingerprint",
    "class_name",
    "code_digest",
    "fingerprint",
    "function_state",
    "identities",
    "is_value",
    "outline",
    "own_functions",
    "structure_fingerprint",
]
