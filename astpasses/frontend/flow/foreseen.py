"""What the body of a loop will change, read from its code: most bodies are then staged once.

In: the body of a loop, as the converter made it. Out: the arrays and attributes from before the loop that it stores
into, in the order of the program, and what it makes of its variables. Functions that it calls are read, too:

    total, count = 0.0, 0
    while count < n:                # stores into state.u, if step(s) says `s.u[i] = v`;
        step(state)                 # `total` is a Python float before the loop, and NumPy's after an iteration
        total += state.u[0]

It is a guess: values are followed through plain assignments, and code that won't run is read like any other. The pass
over the body shows whether it was right (`Foreseen.wrong`).
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from metaphrase.core.ir import Let
from metaphrase.late import dataclass, field
from metaphrase.source import Span, is_library

from ..operators.arithmetic import WEAK, is_number, weak_type
from ..rewrite.convert import is_converted
from ..rewrite.steps import Bind, Code, Constant, Give, Items, Name, Place, Use, code_of
from ..staging.journal import AttributeLocation, BoxLocation, Location
from ..staging.session import LIBRARY, Session
from ..values.staged_values import Number, StagedArray
from .foreseen_values import Made, attribute, calculated, dtype_of, item, one_of, result_of, total

DEPTH = 6  # of calls inside of calls
_STORES = {"store_item": 1, "update_item": 0, "inplace": 1}  # which argument is stored into
_SAME = {"use": 0, "captured": 0, "fresh": 0, "unary": 1, "unpack": 0}  # the argument that an operation gives back
_WIDE = set(WEAK.values())


@dataclass
class Foreseen:
    """What a body is expected to change."""

    places: dict[Any, Location] = field(default_factory=dict)  # by their keys
    numbers: dict[Any, np.dtype] = field(default_factory=dict)  # variables and places that become NumPy's numbers
    made_at: dict[Any, set[Place]] = field(default_factory=dict)  # and where these are made
    bound: set[str] = field(default_factory=set)  # variables that become other objects
    objects: dict[str, type] = field(default_factory=dict)  # those of them that are of a class again
    always: set[str] = field(default_factory=set)  # those that each iteration binds before it reads them
    used: bool = False  # whether the body was staged otherwise than it would have been without

    def name_of(self, path: tuple) -> Any:
        """What a variable or a place of a plan is called here."""
        if path[0] != "heap" or len(path) != 2:
            return path[0] if len(path) == 1 else None
        return next(itertools.islice(self.places, path[1], None), None)

    def wrong(self, written: set, others: Iterable[Any], lets: Iterable[Let]) -> bool:
        """Forget what a pass has shown to be otherwise: places that it did not write to, numbers that are `others`,
        or whose code did not run. Beside narrow numbers what is NumPy's has another dtype than what is Python's."""
        unsure, gone = [], self.places.keys() - written
        if self.numbers:
            ran, narrow = _ran(lets)
            unsure = [k for k in self.numbers if narrow or k in others or not _is_made(self.made_at[k], ran)]
        for known, keys in ((self.places, gone), (self.numbers, unsure)):
            for key in keys:
                del known[key]  # type: ignore[attr-defined]
        return bool(gone or unsure)


def _is_made(places: set[Place], ran: set[tuple[str, int, int]]) -> bool:
    """Whether something was made by the code at one of these places."""
    return any(file == f and begin <= (line, column) <= end for f, begin, end in places for file, line, column in ran)


def _ran(lets: Iterable[Let]) -> tuple[set[tuple[str, int, int]], bool]:
    """Where the values of a program are made, and whether numbers of 64 bits meet narrow ones."""
    ran, narrow, waiting = set[tuple[str, int, int]](), False, [*lets]
    while waiting:
        let = waiting.pop()
        if let.span is not None:
            ran.add((let.span.file, let.span.line, let.span.column))
        kinds = {x.type.dtype.kind for x in (*let.args, *let.outs) if x.type.dtype not in _WIDE}
        users = let.span is None or not let.span.file.startswith(LIBRARY)
        narrow = narrow or bool(kinds & {"f", "c"} or kinds and users and let.primitive.name == "convert")
        waiting += [inner for region in let.regions() for inner in region.lets]
    return ran, narrow


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
    """Goes through the steps of a function, with what its names are, and on through those that it calls."""

    def __init__(self, here: Session, found: Foreseen, called: set[tuple], names: Names, depth: int):
        self.here, self.found, self.called, self.names, self.depth = here, found, called, names, depth
        self.results: dict[int, Any] = {}  # of calls

    def run(self, code: Code) -> Any:
        """What the function returns, where that is followed."""
        result = None
        for step in code.steps:
            if isinstance(step, Bind):
                inplace = isinstance(step.value, Use) and step.value.operation == "inplace"
                self.bind(step.target, self.value(step.value), inplace)
            elif isinstance(step, Give):
                result = self.value(step.value)
            elif step.operation in _STORES:
                self.store(self.value(step.args[_STORES[step.operation]]))
            elif step.operation in ("call", "method"):
                self.results[id(step)] = self.call(step)
            else:
                self.store_attribute(step)
        return result

    def value(self, of: Any) -> Any:
        """What an expression is, see `foreseen_values`."""
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
            return item(of.place, self.value(args[0]), args[1], self.value(args[1]))
        if operation in ("operate", "inplace"):
            left = self.value(args[1])
            same = operation == "inplace" and isinstance(left, StagedArray)
            return left if same else calculated(of.place, args[0].value, left, self.value(args[2]))
        if operation == "choose":
            return one_of(of.place, *map(self.value, args[1:]))
        return slice(None) if operation == "slice" else None

    def bind(self, target: Any, value: Any, inplace: bool) -> None:
        if isinstance(target, Items):
            known = isinstance(value, tuple) and len(value) == len(target.parts)
            for k, part in enumerate(target.parts):
                self.bind(part, value[k] if known else None, False)
        elif isinstance(target, Name):
            if not self.depth:
                before = self.names.outer(target.id)
                self.number(target.id, value, before)
                if not inplace:
                    self.found.bound.add(target.id)
                if isinstance(value, Made) and value.cls is not None and type(before) is value.cls:
                    self.found.objects[target.id] = value.cls
            before = self.names.own.get(target.id)
            kept = isinstance(before, Made) and before.dtype is not None and dtype_of(value) is None
            self.names.own[target.id] = before if kept else value

    def number(self, name: Any, value: Any, before: Any) -> None:
        """Note that a variable or an attribute becomes a number of NumPy's, if it is one of Python's before."""
        if not isinstance(value, Made) or value.cls or not is_number(before) or weak_type(before) is None:
            return
        dtype = value.dtype or np.result_type(WEAK[weak_type(before)], np.int64)  # type: ignore[index]
        dtype = np.result_type(dtype, self.found.numbers.get(name, dtype))
        if dtype in _WIDE:
            self.found.numbers[name] = dtype
            self.found.made_at.setdefault(name, set()).add(value.place)

    def store(self, array: Any) -> None:
        if isinstance(array, StagedArray) and array.box.region in self.here.regions and array.box.alive():
            location = BoxLocation(array.box)
            self.found.places.setdefault(location.key(), location)

    def store_attribute(self, step: Use) -> None:
        update = step.operation == "update_attribute"
        target, name = self.value(step.args[not update]), step.args[2 - update].value
        before = attribute(target, name)
        if update and isinstance(before, StagedArray):
            self.store(before)
        elif (
            not isinstance(target, (type(None), StagedArray, Number, Made, tuple, types.ModuleType, type))
            and hasattr(target, name)
            and type(target).__setattr__ is object.__setattr__
        ):
            location = AttributeLocation(target, name)
            location.span = Span(step.place[0], *step.place[1], *step.place[2])
            self.found.places.setdefault(location.key(), location)
            args = step.args
            value = (
                calculated(step.place, args[2].value, before, self.value(args[3])) if update else self.value(args[0])
            )
            self.number(location.key(), value, before)

    def call(self, step: Use) -> Any:
        function: Any = self.value(step.args[0])
        given = list(map(self.value, step.args[1:]))
        keywords = {name: self.value(v) for name, v in step.keywords.items()}
        if step.operation == "method":
            name = given.pop(0)
            if isinstance(function, StagedArray):
                return total(step.place, function, name, given, keywords)
            function = attribute(function, name)
        if isinstance(function, types.MethodType):
            function, given = function.__func__, [function.__self__, *given]
        elif not isinstance(function, (types.FunctionType, type)):
            method = attribute(function, "__call__")
            if isinstance(method, types.MethodType):
                function, given = method.__func__, [function, *given]
        if not isinstance(function, types.FunctionType) or is_library(function.__module__ or ""):
            return result_of(step.place, function, given, keywords)
        mark = (function, *map(id, given), *((k, id(v)) for k, v in keywords.items()))
        code = code_of(function) if self.depth < DEPTH and mark not in self.called else None
        self.called.add(mark)
        if code is None:
            return None
        names = Names(function, dict(zip(code.params, given)) | keywords)
        return Reader(self.here, self.found, self.called, names, self.depth + 1).run(code)


def foreseen(here: Session, body: Callable | None) -> Foreseen:
    """What the body of a loop is expected to change."""
    found = Foreseen()
    code = code_of(body) if isinstance(body, types.FunctionType) and is_converted(body.__code__) else None
    if code is None:
        return found
    names = Names(body, {})  # type: ignore[arg-type]
    Reader(here, found, set(), names, 0).run(code)
    found.always = code.first
    replaced = [names.outer(name) for name in found.bound]  # the body stores into what these are by then
    replaced += [value.box for value in replaced if isinstance(value, StagedArray)]
    for key in [k for k, location in found.places.items() if any(location.owner is v for v in replaced)]:
        del found.places[key]
    return found
