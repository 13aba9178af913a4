"""A whole random program: helpers, a function of typed parameters, and several sets of arguments.

In: hypothesis' choices. Out: a `Case`, whose `text` is a module that a user could have written. Example:

    @given(programs())
    def test(case): ...
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import assume, reject
from hypothesis import strategies as st

from metaphrase import tree_util

from .arguments import ALL, PARAMETERS, argument_sets
from .choices import Choices
from .containers import Containers
from .dtypes import HELPERS as DTYPE_HELPERS
from .dtypes import Dtypes
from .failures import HELPERS as FAILURE_HELPERS
from .failures import Failures
from .grids import Grids
from .helpers import HELPERS
from .idioms import Idioms
from .lengths import Lengths
from .objects import Objects
from .precision import Precision
from .scope import ARRAYS, BOOL, FLOAT, INT, LIST, RECORD, Kind, Scope
from .statements import indent
from .stores import LARGEST, Stores, arguments
from .transformed import IMPORT, Transformed

PLANS = (
    "plain",
    "vmap",
    "grad",
    "sizes",
    "stores",
    "containers",
    "objects",
    "dtypes",
    "failures",
    "lengths",
    "precision",
    "transformed",
)
HEADER = "import math\n\nimport numpy as np\nfrom numpy import array, inf, nan\n"


@dataclass(frozen=True)
class Case:
    """A module's text with `program` and `ARGUMENTS`, and how it is to be checked."""

    text: str
    exact: bool
    plan: str = "plain"

    @property
    def program(self) -> str:
        """The text without the arguments."""
        return self.text.partition("ARGUMENTS =")[0]

    def __repr__(self) -> str:
        return f"<{self.plan}, {'exact' if self.exact else 'smooth'}>\n{self.text}"


class Grammar(Idioms):
    """The state of one program as it is written."""

    def __init__(self, choose: Choices, exact: bool):
        self.choose, self.exact = choose, exact
        self.helpers: set[str] = set()
        self.count = 0
        self.owned = set()
        self.result = "0.0"

    def number(self) -> int:
        self.count += 1
        return self.count

    def program(self, plan: str) -> str:
        derivative = plan == "grad"
        names = self.parameters(derivative)
        head: list[str] = []
        if any("n" in kind[1] for kind in names.values()):
            first = next(n for n, k in names.items() if "n" in k[1])
            head.append(f"n = len({first})")
        scope = Scope(dict(names))
        writes = plan in ("plain", "sizes") and self.choose.chance(2)
        for name, (_, dims) in names.items():
            if dims and not writes:
                head.append(f"{name} = {name}.copy()")
        locals_: list[tuple[str, Kind, str]] = [("z", FLOAT, "0.5"), ("j", INT, "2")]
        locals_.append(("a", ("f", ("3",)), "np.array([0.5, -1.0, 2.0])"))
        if self.choose.chance(2):
            locals_.append(("M", ("f", ("3", "3")), "np.arange(9.0).reshape(3, 3)"))
        for name, kind, text in locals_:
            head.append(f"{name} = {text}")
            scope.names[name] = kind
        self.owned = {n for n, k in scope.names.items() if k == FLOAT}
        returned = list(scope.names)
        self.result = "z" if derivative else ", ".join(returned)
        if not derivative and self.choose.chance(5):
            self.result = "{" + ", ".join(f'"{n}": {n}' for n in returned) + "}"
        body = self.block(scope, self.choose.item((1, 1, 2)), 4)
        late = [n for n in scope.of(FLOAT) if n not in returned and n not in self.owned][:1]
        if late and not derivative:
            body.append(f"z = z + {late[0]}")
        tail = [f"return {self.total(scope) if derivative else self.result}"]
        lines = [f"def program({', '.join(names)}):", *indent([*head, *body, *tail])]
        return "\n".join(lines) + "\n"

    def total(self, scope: Scope) -> str:
        """A scalar that depends on all that is there."""
        parts = ["z"]
        for name, (base, dims) in scope.names.items():
            if base == "f" and dims:
                parts.append(f"np.sum(np.tanh({name}))")
            elif base == "f" and name != "z":
                parts.append(f"np.tanh({name})")
        parts += [f"{n}['a']" for n in scope.of(RECORD)] + [f"{n}[0]" for n in scope.of(LIST)]
        parts += [f"np.sum({n}[1])" for n in scope.of(ARRAYS)]
        return " + ".join(parts)

    def parameters(self, derivative: bool) -> dict[str, Kind]:
        names: dict[str, Kind] = {"x": FLOAT}
        for name, kind in PARAMETERS.items():
            if self.choose.chance(2) and not (derivative and kind == BOOL):
                names[name] = kind
        return names


@st.composite
def programs(draw, plans: tuple[str, ...] = PLANS) -> Case:
    choose = Choices(draw)
    plan = choose.item(plans)
    if plan in ("stores", "containers", "objects"):
        return about_storage(choose, plan)
    if plan == "dtypes":
        return about_types(choose)
    if plan == "failures":
        grammar = Failures(choose)
        program, sets = grammar.program(), grammar.arguments()
        return Case(f"{HEADER}{FAILURE_HELPERS}{program}\n\nARGUMENTS = [\n{sets}]\n", True, plan)
    if plan in ("lengths", "precision"):
        numbers = Lengths(choose) if plan == "lengths" else Precision(choose)
        program, sets = numbers.program(), numbers.arguments()
        return Case(f"{HEADER}\n\n{program}\n\nARGUMENTS = [\n{sets}]\n", True, plan)
    if plan == "transformed":
        closing = Transformed(choose)
        program, sets = closing.program(), closing.arguments()
        return Case(f"{HEADER}{IMPORT}\n\n{program}\n\nARGUMENTS = [\n{sets}]\n", False, plan)
    exact = plan != "grad" and not choose.chance(5)
    grammar = Grammar(choose, exact)
    body = grammar.program(plan)
    try:
        compile(body, "<program>", "exec")
    except SyntaxError:  # `:=` where Python has none
        reject()
    needed = [text for name, text in HELPERS.items() if name in grammar.helpers]
    names = body[body.index("(") + 1 : body.index(")")].split(", ")
    sets = argument_sets(choose, names, plan, grammar.exact)
    axes = ""
    if plan == "vmap":
        chosen = ["0"] + [choose.item(("0", "None", "0" if len(ALL[n][1]) < 1 else "1")) for n in names[1:]]
        axes = f"AXES = ({', '.join(chosen)},)\n"
    text = "\n\n".join([HEADER, *needed, body, f"ARGUMENTS = [\n{sets}]\n{axes}"])
    return Case(text, exact, plan)


def about_storage(choose: Choices, plan: str) -> Case:
    """A program of one of the grammars of storage; it does not fail, and its numbers stay small."""
    derivative = choose.chance(3)
    kinds = {"stores": (Stores, Grids), "containers": (Containers,), "objects": (Objects,)}
    grammar = choose.item(kinds[plan])
    program, sets = grammar(choose, derivative).program(), arguments(choose, derivative)
    text = f"{HEADER}\n\n{program}\n\nARGUMENTS = [\n{sets}]\n"
    names: dict[str, Any] = {}
    exec(text, names)
    with np.errstate(all="ignore"):
        results = [names["program"](*copy.deepcopy(args)) for args in names["ARGUMENTS"]]
    assume(all(np.all(np.abs(part) < LARGEST) for part in tree_util.tree_leaves(results)))
    return Case(text, not derivative, "grad" if derivative else plan)


def about_types(choose: Choices) -> Case:
    """A program of the grammar of dtypes that does not fail."""
    grammar = Dtypes(choose)
    program, sets = grammar.program(), grammar.arguments()
    text = f"{HEADER}\n\n{DTYPE_HELPERS}{program}\n\nARGUMENTS = [\n{sets}]\n"
    names: dict[str, Any] = {}
    exec(text, names)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args in names["ARGUMENTS"]:
            try:
                names["program"](*copy.deepcopy(args))
            except (TypeError, ValueError, OverflowError, IndexError, ZeroDivisionError, AttributeError):
                reject()
    return Case(text, True, "dtypes")
