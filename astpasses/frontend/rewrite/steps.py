"""Converted code as the few steps that say what it changes.

In: a function of converted code. Out: what it stores, calls, binds and returns, in the order in which that happens.

    while going:                     Use("store_item", (..., Name("u"), ...)), for what `u[0] = f(t)` became
        u[0] = f(t); t += 1          Bind((Name("t"),), Use("inplace", ("+", Name("t"), 1)))
"""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Iterator
from typing import Any

import gast

from metaphrase.late import dataclass
from metaphrase.source import SourceError

from .convert import control_of, converted_code
from .scopes import children, walk

Place = tuple[str, tuple, tuple]  # a file; line and column of the begin, and of the end
_STEPS = {"store_item", "update_item", "store_attribute", "update_attribute", "inplace", "call", "method"}


@dataclass
class Name:
    id: str


@dataclass
class Constant:
    value: Any


@dataclass
class Items:
    """A tuple, or what is unpacked into one."""

    parts: tuple


@dataclass
class Use:
    """An operation of the stager; `attribute` of what is read without it, too."""

    operation: str
    args: tuple
    keywords: dict[str, Any]
    place: Place
    sure: bool = True  # as a step: whether it is done whenever the function is called


@dataclass
class Bind:
    target: Any
    value: Any
    sure: bool


@dataclass
class Give:
    value: Any
    sure: bool = True


@dataclass
class Code:
    """A function: its parameters, its steps, the names that it binds, whatever happens, before it reads them, and those
    that it reads for more than to calculate with them."""

    params: list[str]
    steps: list[Any]
    first: set[str]
    asked: set[str]


def code_of(function: types.FunctionType) -> Code | None:
    """The steps of a function, which is converted if it is a user's; None where it can't be."""
    control = control_of(function.__code__)
    if control is not None:
        node = control.definitions.get(function.__name__)
    else:
        try:
            control = converted_code(function).control
        except (SourceError, TypeError, OSError):
            return None
        node = control.node
    if node is None:
        return None
    if node.name not in control.codes:
        reader = _Steps(control.stager, function.__code__.co_filename)
        steps = [step for statement in node.body for step in reader.steps(statement)]
        params = [p.id for p in (*node.args.posonlyargs, *node.args.args)]
        control.codes[node.name] = Code(params, steps, _bound_first(node), _asked(node))
    return control.codes[node.name]


class _Steps:
    def __init__(self, stager: str, file: str):
        self.stager, self.file = stager, file
        self.known: dict[int, Any] = {}  # of nodes: what a step does is found by its object

    def steps(self, node: gast.AST, sure: bool = True) -> Iterator[Any]:
        """Those of the functions in it, which are mostly the parts of its statements, stand where these do."""
        if isinstance(node, gast.FunctionDef):  # what it returns is not what the function around it does
            for child in [] if _sets_state(node) else node.body:
                yield from (step for step in self.steps(child, False) if not isinstance(step, Give))
            return
        for child in children(node):
            yield from self.steps(child, sure and not isinstance(node, gast.Lambda))
        if isinstance(node, gast.Call):
            step = self.expression(node)
            if isinstance(step, Use) and step.operation in _STEPS:
                step.sure = sure
                yield step
        elif isinstance(node, gast.Assign):
            yield Bind(self.expression(node.targets[0]), self.expression(node.value), sure)
        elif isinstance(node, gast.Return) and node.value is not None:
            yield Give(self.expression(node.value))

    def expression(self, node: gast.AST) -> Any:
        """None for what says nothing."""
        if id(node) not in self.known:
            self.known[id(node)] = self._expression(node)
        return self.known[id(node)]

    def _expression(self, node: Any) -> Any:
        kind = type(node)
        if kind is gast.Name:
            return Name(node.id)
        if kind is gast.Constant:
            return Constant(node.value)
        if kind in (gast.Tuple, gast.List):
            return Items(tuple(map(self.expression, node.elts)))
        if kind is gast.Lambda:
            return self.expression(node.body)
        if kind not in (gast.Attribute, gast.Call):
            return None
        place = self.file, (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        if kind is gast.Attribute:
            return Use("attribute", (self.expression(node.value), Constant(node.attr)), {}, place)
        function = node.func
        if type(function) is not gast.Attribute or getattr(function.value, "id", "") != self.stager:
            return None
        keywords = {k.arg: self.expression(k.value) for k in node.keywords if k.arg}
        return Use(function.attr, tuple(map(self.expression, node.args)), keywords, place)


def _sets_state(node: gast.FunctionDef) -> bool:
    """Whether a function is one by which the stager puts the state of a statement back."""
    last = node.body[-1]
    given = [a.id for a in node.args.args]
    return isinstance(last, gast.Assign) and isinstance(last.value, gast.Name) and [last.value.id] == given


def _bound_first(node: gast.FunctionDef) -> set[str]:
    found, read = set[str](), set[str]()
    for statement in node.body:
        names = [n for n in walk(statement) if isinstance(n, gast.Name)]
        read.update(n.id for n in names if isinstance(n.ctx, gast.Load))
        if isinstance(statement, gast.Assign):
            found.update(n.id for n in names if isinstance(n.ctx, gast.Store) and n.id not in read)
    return found


def _asked(node: gast.FunctionDef) -> set[str]:
    read: Counter[str] = Counter()
    for part in (part for statement in node.body for part in walk(statement)):
        if isinstance(part, gast.Name) and isinstance(part.ctx, gast.Load):
            read[part.id] += 1
        elif isinstance(part, gast.Call) and getattr(part.func, "attr", "") in ("operate", "inplace"):
            read.subtract(a.id for a in part.args if isinstance(a, gast.Name))
    return {name for name, count in read.items() if count > 0}
