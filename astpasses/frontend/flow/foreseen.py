"""What the body of a loop will change, read from its code: many bodies are then staged once.

In: the body of a loop, as the converter made it. Out: the arrays and attributes from before the loop that it stores
into, in the order of the program, and its variables that become other arrays. Functions that it calls are read, too:

    while going:
        step(state)         # stores into state.u, if step(s) says `s.u[i] = v`
        x = x - 0.1 * g     # is another array in each iteration

A pass that begins with less finds the same, and is made again with it. So only that is taken which such a pass would
find whatever it is told before: elements of arrays, be they stored under a condition or not, as no array becomes
another kind of thing by it; attributes and variables where each iteration stores them, without any condition, such as
`total`, a Python float before `total += x[i]` makes it NumPy's. What a pass does not write to then is forgotten, and
the body staged again.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.late import dataclass, field
from metaphrase.source import Span, is_library

from ..operators.arithmetic import WEAK, is_number
from ..rewrite.convert import is_converted
from ..rewrite.steps import Bind, Code, Constant, Give, Items, Name, Use, code_of
from ..staging.journal import AttributeLocation, BoxLocation, Location
from ..staging.session import Session
from ..values.staged_values import Number, StagedArray

DEPTH = 6  # of calls inside of calls
_STORES = {"store_item": 1, "update_item": 0, "inplace": 1}  # which argument is stored into
WIDE = set(WEAK.values()) - {np.dtype(bool)}
_SAME = {"use": 0, "captured": 0, "fresh": 0, "unpack": 0}  # the argument that an operation gives back


@dataclass
class Foreseen:
    """What a body is expected to change."""

    places: dict[Any, Location] = field(default_factory=dict)  # by their keys
    bound: set[str] = field(default_factory=set)  # variables that become other arrays
    numbers: dict[str, np.dtype] = field(default_factory=dict)  # those that become numbers of NumPy's
    taken: set[str] = field(default_factory=set)  # of which the body was staged with that
    first: set[str] = field(default_factory=set)  # those that each iteration binds before it reads them
    used: bool = False  # whether the body was staged otherwise than it would have been without

    def wrong(self, written: set) -> bool:
        """Forget the places that a pass did not write to."""
        gone = self.places.keys() - written
        for key in gone:
            del self.places[key]
        return bool(gone)


@dataclass
class Made:
    """Stands for an array that the body makes; for a number of NumPy's if there is a dtype."""

    dtype: np.dtype | None = None


NEW = Made()


class Names:
    """What the names of a function are: its own, those of its cells, those of its module."""

    def __init__(self, function: types.FunctionType, own: dict[Any, Any]):
        self.own, self.globals = own, function.__globals__
        self.cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))

    def get(self, name: str) -> Any:
        return self.own[name] if name in self.own else self.outer(name)

    def outer(self, name: str) -> Any:
        """What a name is before the function runs."""
        try:
            return self.cells[name].cell_contents if name in self.cells else self.globals.get(name)
        except ValueError:  # nothing yet
            return None


class Reader:
    """Goes through the steps of a function, with what its names are, and on through those that it calls. `sure`: the
    function is called in each iteration."""

    def __init__(self, here: Session, found: Foreseen, called: dict[tuple, Any], names: Names, depth: int, sure: bool):
        self.here, self.found, self.called, self.names = here, found, called, names
        self.depth, self.sure = depth, sure
        self.others: set[str] = set()  # names that may be bound to what is no new array
        self.results: dict[int, Any] = {}  # of calls

    def run(self, code: Code) -> Any:
        """What the function returns, where that is followed."""
        result = None
        for step in code.steps:
            sure = self.sure and step.sure
            if isinstance(step, Bind):
                inplace = isinstance(step.value, Use) and step.value.operation == "inplace"
                self.bind(step.target, self.value(step.value), inplace, sure)
            elif isinstance(step, Give):
                result = self.value(step.value)
            elif step.operation in _STORES:
                self.store(self.value(step.args[_STORES[step.operation]]))
            elif step.operation in ("call", "method"):
                self.results[id(step)] = self.call(step, sure)
            else:
                self.store_attribute(step, sure)
        return result

    def value(self, of: Any) -> Any:
        """What an expression is: an object from before the loop, NEW, a tuple of such, None where nothing is known."""
        if isinstance(of, Name):
            return self.names.get(of.id)
        if isinstance(of, Constant):
            return of.value
        if isinstance(of, Items):
            return tuple(map(self.value, of.parts))
        if not isinstance(of, Use):
            return None
        operation, args = of.operation, of.args
        if operation in ("call", "method"):
            return self.results.get(id(of))
        if operation in _SAME:
            return self.value(args[_SAME[operation]])
        if operation == "attribute":
            return attribute(self.value(args[0]), args[1].value)
        if operation == "item":
            return item(self.value(args[0]), args[1], self.value(args[1]))
        if operation not in ("operate", "inplace", "unary"):
            return slice(None) if operation == "slice" else None
        operands = [self.value(a) for a in args[1:]]
        if operation == "inplace" and isinstance(operands[0], StagedArray):
            return operands[0]
        if any(map(is_array, operands)):
            return NEW
        dtypes = [o.dtype for o in operands if isinstance(o, Made)]
        compares = args[0].value in ("<", ">", "<=", ">=", "==", "!=", "&", "|", "^")
        return Made(np.result_type(*dtypes)) if dtypes and not compares else None

    def bind(self, target: Any, value: Any, inplace: bool, sure: bool) -> None:
        if isinstance(target, Items):
            known = isinstance(value, tuple) and len(value) == len(target.parts)
            for k, part in enumerate(target.parts):
                self.bind(part, value[k] if known else NEW if value is NEW else None, False, sure)
        elif isinstance(target, Name):
            if self.depth or inplace and isinstance(value, StagedArray):
                pass
            elif not sure or not isinstance(value, Made):
                self.others.add(target.id)
            elif value.dtype is None:
                self.found.bound.add(target.id)
            else:
                before = self.found.numbers.get(target.id, value.dtype)
                self.found.numbers[target.id] = np.result_type(before, value.dtype)
            number = isinstance(value, Made) and value.dtype is not None
            self.names.own[target.id] = value if sure or not number else None

    def store(self, array: Any) -> None:
        if isinstance(array, StagedArray) and array.box.region in self.here.regions and array.box.alive():
            location = BoxLocation(array.box)
            self.found.places.setdefault(location.key(), location)

    def store_attribute(self, step: Use, sure: bool) -> None:
        update = step.operation == "update_attribute"
        target, name = self.value(step.args[not update]), step.args[2 - update].value
        if update and isinstance(attribute(target, name), StagedArray):
            self.store(attribute(target, name))
        elif sure and holds(target, name) and type(target).__setattr__ is object.__setattr__:
            if isinstance(target, (StagedArray, Number, Made, types.ModuleType, type)):
                return
            location = AttributeLocation(target, name)
            location.span = Span(step.place[0], *step.place[1], *step.place[2])
            self.found.places.setdefault(location.key(), location)

    def call(self, step: Use, sure: bool) -> Any:
        function: Any = self.value(step.args[0])
        given = list(map(self.value, step.args[1:]))
        keywords = {name: self.value(v) for name, v in step.keywords.items()}
        if step.operation == "method":
            name = given.pop(0)
            if is_array(function):
                return NEW if name in ("copy", "astype") or given else None
            function = attribute(function, name)
        if isinstance(function, types.MethodType):
            function, given = function.__func__, [function.__self__, *given]
        elif not isinstance(function, (types.FunctionType, type)):
            method = attribute(function, "__call__")
            if isinstance(method, types.MethodType):
                function, given = method.__func__, [function, *given]
        if not isinstance(function, types.FunctionType) or is_library(function.__module__ or ""):
            return NEW if isinstance(function, np.ufunc) and any(map(is_array, given)) else None
        mark = (function, sure, *map(id, given), *((k, id(v)) for k, v in keywords.items()))
        code = code_of(function) if self.depth < DEPTH and mark not in self.called else None
        self.called[mark] = given, keywords  # kept, so that their ids are no others'
        if code is None:
            return None
        names = Names(function, dict(zip(code.params, given)) | keywords)
        return Reader(self.here, self.found, self.called, names, self.depth + 1, sure).run(code)


def is_array(value: Any) -> bool:
    return value is NEW or isinstance(value, StagedArray) and value.ndim > 0  # NEW alone has no dtype


def attribute(target: Any, name: str) -> Any:
    """An attribute that can be read without running code of the user's."""
    if isinstance(target, StagedArray):
        return target if name == "T" else None
    if isinstance(target, (types.ModuleType, type)) or holds(target, name):
        return getattr(target, name, None)
    if isinstance(target, tuple) and name in getattr(target, "_fields", ()):
        return getattr(target, name)
    described = getattr(type(target), name, None)
    return types.MethodType(described, target) if isinstance(described, types.FunctionType) else None


def holds(target: Any, name: str) -> bool:
    """Whether an object itself has an attribute, and no code of the user's is asked for it."""
    described = getattr(type(target), name, None)
    if isinstance(described, types.MemberDescriptorType):
        return hasattr(target, name)
    return name in getattr(target, "__dict__", ()) and not hasattr(type(described), "__set__")


def item(of: Any, expression: Any, index: Any) -> Any:
    """`of[index]`: a number; or a part of an array, which lies where that does unless an array gives the places."""
    if isinstance(of, tuple) and isinstance(index, int):
        return of[index] if -len(of) <= index < len(of) else None
    if not is_array(of):
        return None
    known = list(zip(expression.parts, index)) if isinstance(expression, Items) else [(expression, index)]
    if of is NEW or any(is_array(i) for _, i in known):
        return NEW
    numbers = [is_number(i) or i is None and isinstance(e, (Name, Use)) for e, i in known]
    if not all(numbers) or len(numbers) != of.ndim:
        return of
    return Made(of.dtype) if of.dtype in WIDE else None


def foreseen(here: Session, body: Callable | None, tested: bool) -> Foreseen:
    """What the body of a loop is expected to change. `tested`: a test before each iteration may be known to fail for as
    long as the numbers that it asks for are known."""
    found = Foreseen()
    code = code_of(body) if isinstance(body, types.FunctionType) and is_converted(body.__code__) else None
    if code is None:
        return found
    names = Names(body, {})  # type: ignore[arg-type]
    reader = Reader(here, found, {}, names, 0, True)
    reader.run(code)
    found.first = code.first
    replaced = [
        names.outer(name) for name in found.bound | reader.others
    ]  # the body stores into what these are by then
    replaced += [value.box for value in replaced if isinstance(value, StagedArray)]
    for key, location in [*found.places.items()]:
        known = tested and isinstance(location, AttributeLocation) and not isinstance(location.read(), StagedArray)
        if known or any(location.owner is v for v in replaced):
            del found.places[key]
    found.bound -= reader.others | found.numbers.keys()
    plain = found.numbers.keys() - reader.others - code.asked
    found.numbers = {name: found.numbers[name] for name in plain}
    return found
