"""A function staged for certain arguments: its program, and how arguments and output fit around it.

In: a user's function (or a transformed one) and arguments of which only types are looked at. Out: `Program`.
The transformations of `api.transformations` take Programs to Programs. Example, `f(x, {"a": y}) = x * y, "done"`:

    Program(function=f(x, y) -> z,  structure of ((x, {"a": y}), {}),  leaves=(0, 1),
            out=structure of (z, "done"),  slots=(Slot(0), Fixed("done")))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..astpasses.frontend import current_session
from ..core.types import has_tangent
from ..late import dataclass, field, module
from ..source import SourceError, Span, caller_span
from ..tree_util import PyTreeDef, keystr, tree_flatten_with_path
from .arguments import Spec

if TYPE_CHECKING:
    from ..core.ir import Atom, Function

ir = module("metaphrase.core.ir")


@dataclass(frozen=True)
class Fixed:
    """A Python value that staging used as it is; `reason`: why, and where, if it is a number that could have
    been left open."""

    value: Any
    reason: tuple[str, Span | None, str] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Slot:
    """In an output: the index-th result of the program."""

    index: int


@dataclass(frozen=True)
class Program:
    """`function.params`: the captures, then the dynamic leaves. `function.results`: those that `slots` name,
    then the new values of what the function writes to.

    `leaves`: for each leaf of `structure` (of (args, kwargs)) the index of its parameter, or the `Fixed`
    value that staging used. `slots`: for each leaf of `out` its result, a `Fixed` value, or the index of the
    leaf (`Same`) that is returned as it is. `forms`: for each result "scalar", "array" or "python", what rank
    0 looks like to the user.
    """

    function: Function
    captures: tuple[Any, ...]
    structure: PyTreeDef
    leaves: tuple[int | Fixed, ...]
    out: PyTreeDef
    slots: tuple[Any, ...]
    forms: tuple[str, ...]
    guards: tuple[Any, ...] = ()
    writes: tuple[Any, ...] = ()
    name: str = "function"
    origin: Any = None  # the front end's Staged, for programs that write
    place: Span | None = None  # where the user's function is defined
    ordered: tuple[int, ...] = ()  # leaves that have to lie in memory row after row
    raises: bool = False  # every path raises: the result, None, is never there

    @property
    def title(self) -> str:
        """What messages call the function."""
        return "the function" if self.name == "function" else self.name

    @property
    def new_values(self) -> dict[int, int]:
        """{result: parameter} for the arguments that the function stores into."""
        found: dict[int, int] = {}
        for write in self.writes:
            parameter = self.leaves[write.target] if write.kind == "argument" else None
            if isinstance(parameter, int):
                found[write.index] = parameter
        return found

    def with_function(self, function: Function, **changes: Any) -> Program:
        return replace(self, function=function, **changes)

    def params_of(self, position: int) -> list[int | Fixed]:
        """The leaves of a positional argument."""
        arguments = self.structure.children()[0].children()
        start = sum(a.num_leaves for a in arguments[:position])
        return list(self.leaves[start : start + arguments[position].num_leaves])

    def argument_structure(self, position: int) -> PyTreeDef:
        return self.structure.children()[0].children()[position]

    def result_span(self, index: int) -> Span | None:
        """The user's place that made a result."""
        result = self.function.results[index]
        for let in self.function.lets:
            if result in let.outs:
                return let.span
        return None


@dataclass(frozen=True)
class Same:
    """In an output: the very argument at this leaf."""

    leaf: int


class Captured:
    """In an output: the very object that a capture reads."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        self.index = index


def marks(count: int, chosen: Sequence[int]) -> list[bool]:
    """True at the chosen places."""
    wanted = set(chosen)
    return [k in wanted for k in range(count)]


def with_results(function: Function, results: Sequence[Atom]) -> Function:
    return ir.Function(function.name, function.params, function.lets, tuple(results))


# ---- the user's places -------------------------------------------------------------------------------------


def under_way() -> bool:
    """Whether a staging is going on in this thread."""
    return current_session() is not None


def user_span() -> Span | None:
    """Where the user's program is that is being staged, or where they called us."""
    here = current_session()
    return here.users_span() if here is not None and here.span() is not None else caller_span()


def definition_span(function: Callable[..., Any]) -> Span | None:
    """Where a function is defined."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    return None if code is None else Span(code.co_filename, code.co_firstlineno, function=code.co_name)


def name_of(function: Callable[..., Any]) -> str:
    """A name that can stand in a program."""
    name = getattr(function, "__name__", None) or type(function).__name__
    return name if name.isidentifier() else "function"


# ---- what arguments are called --------------------------------------------------------------------------


def leaf_labels(structure: PyTreeDef, names: Sequence[str] = ()) -> list[str]:
    """What to call each leaf of (args, kwargs) in a message: `params['w']`, or `args[0]['w']`."""
    labels = [""] * structure.num_leaves
    for path, k in tree_flatten_with_path(structure.skeleton(range(structure.num_leaves)))[0]:
        group, which, *rest = path
        if group.idx == 0:
            head = names[which.idx] if which.idx < len(names) else f"args[{which.idx}]"
        else:
            head = str(which.key)
        labels[k] = head + keystr(tuple(rest))
    return labels


__all__ = [
    "Program",
    "Same",
    "Captured",
    "Fixed",
    "Slot",
    "Spec",
    "SourceError",
    "has_tangent",
    "marks",
    "with_results",
    "caller_span",
    "under_way",
    "user_span",
    "definition_span",
    "name_of",
    "leaf_labels",
]
