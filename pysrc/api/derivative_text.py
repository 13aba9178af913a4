"""The NumPy source of a function's derivative in reverse mode, for a person to edit: a forward and a backward part.

In: a function of the user's and arguments, or stand-ins for their types. Out: `DerivativeText`: the text of the two
functions, and what is to be said of them. Example, of `energy(x, k)`:

    def energy_forward(x, k):
        r = np.sqrt(1.0 + x * x)
        return k * np.sum(r * r), (r, x, k)


    def energy_backward(residuals, energy_bar):
        r, x, k = residuals
        ...
        return x_bar, k_bar

What the function reads of its module is read there (`models.scale`), and so are the user's classes; all else is NumPy.
"""

from __future__ import annotations

import ast
import dataclasses
import os
import re
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

from ..astpasses.emit.numpy_source_names import usable
from ..astpasses.frontend import (
    AttributeSource,
    GlobalSource,
    ItemSource,
    NumberSource,
    Source,
    is_number,
    numbers_change,
    sizes_at_least,
)
from ..core.build import replayed
from ..core.dims import symbols
from ..core.ir import Function
from ..core.types import type_symbols
from ..late import dataclass
from ..pipeline import finished
from ..source import DTypeError, Span, UnsupportedError, is_library
from ..tree_util import PyTreeDef, keystr, tree_flatten_with_path, tree_structure, treedef_tuple
from .arguments import Call
from .derivatives import check_argnums, refuse_writes
from .linear import Rule, linear_program
from .orders import taking_derivatives, without_rule
from .own_rules import by_position
from .program import Fixed, Program, Slot, with_results
from .rule_checks import differentiable
from .source import Argument, python_source
from .text import numpy_module
from .transforms import parameter_names, program_of

_LEAF = tree_structure(0)
_WIDTH = 100


@dataclass(frozen=True)
class DerivativeText:
    """`imports`: lines; `functions`: the text below them, whose last two functions are `forward` and `backward`.
    `argnums`: of the arguments whose cotangents `backward` gives."""

    imports: list[str]
    functions: str
    forward: str
    backward: str
    argnums: tuple[int, ...]


def derivative_text(fun: types.FunctionType, call: Call, argnums: Any, span: Span | None) -> DerivativeText:
    """See the head of this file. `argnums`: None for all arguments that have cotangents."""
    called = by_position(fun)
    names = parameter_names(called)
    program = _program(fun, call)
    refuse_writes(program, "derivative", names)
    arguments = program.structure.children()[0].children()
    every = tuple(range(len(arguments)))
    positions = every if argnums is None else check_argnums(argnums, len(arguments), "derivative", span)[0]
    smooth = differentiable(program)
    chosen = [p for p in positions if p in smooth]
    if not chosen:
        raise DTypeError(
            f"derivative of {program.title} with respect to arguments that are no floats",
            span,
            code="grad-dtype",
            remedy="pass floats (2.0, not 2), or text of their types; choose arguments by argnums",
        )
    made = linear_program(program, span, what="vjp", has_aux=False, argnums=chosen)
    out, linear = made.out.children()
    rule: Rule = linear.node_data()[1]  # type: ignore[index]
    known = {s for p in made.function.params for s in type_symbols(p.type)}
    results = [made.function.results[s.index].type for s in made.slots[: out.num_leaves] if isinstance(s, Slot)]
    if not all(type_symbols(type_) <= known for type_ in results):
        raise UnsupportedError(
            f"derivative of {program.title}, whose result has a size that only its run knows: no rule can have that",
            program.place,
            code="own-rule",
            remedy="make the result as long as an argument, or reduce it",
        )
    name = usable(fun.__name__) if fun.__name__.isidentifier() else "function"
    forward, backward, bar = f"{name}_forward", f"{name}_backward", f"{name}_bar"
    kept = list(range(rule.residuals))
    while True:  # of residuals that the text of the backward part does not read the forward part gives none
        ahead = _with_residuals(made, out, kept)
        first = _Module(numpy_module(called, ahead, forward, _read, class_import))
        residuals = _residual_names(rule, dict(zip(kept, first.returned_residuals())), bar)
        bars = {p: arguments[p] if p in chosen else None for p in positions}
        back = _Module(_backward_text(rule, residuals, out, bars, backward, bar, fun))
        words = set(re.findall(r"\w+", back.function.partition("\n")[2]))
        read = [k for k in kept if residuals[k] in words]
        if read == kept:
            break
        kept = read
    doc = f"{name}({', '.join(names[: len(arguments)])}), and the residuals: what the backward part needs of it."
    first.insert([f'    """{doc}"""', *_fixed_rows(ahead, names)])
    of, rest = _listed([names[p] for p in chosen]), "; others have none" * (len(chosen) < len(positions))
    doc = f"The cotangent{'s' * (len(chosen) > 1)} of {of}, from that of the result{rest}."
    rows = [f'    """{doc}"""', *_unpacked([residuals[k] for k in kept])]
    back.insert(rows, header=f"def {backward}(residuals, {bar}):")
    chunks = list(first.others)
    chunks += [chunk for chunk in back.renamed_apart(first.others) if chunk not in chunks]
    imports = list(dict.fromkeys([*first.imports, *_modules_read(first.text), *back.imports]))
    functions = "\n\n\n".join([*chunks, first.function, back.function])
    return DerivativeText(imports, functions, forward, backward, positions)


def _with_residuals(made: Program, out: PyTreeDef, kept: Sequence[int]) -> Program:
    """The program of the forward part, with these residuals in a tuple."""
    slots = [*made.slots[: out.num_leaves], *(made.slots[out.num_leaves + k] for k in kept)]
    used = sorted({s.index for s in slots if isinstance(s, Slot)})
    place = {old: new for new, old in enumerate(used)}
    return made.with_function(
        finished(with_results(made.function, [made.function.results[k] for k in used])),
        out=treedef_tuple([out, treedef_tuple([_LEAF] * len(kept))]),
        slots=tuple(Slot(place[s.index]) if isinstance(s, Slot) else s for s in slots),
        forms=tuple(made.forms[k] for k in used),
    )


def _program(fun: types.FunctionType, call: Call) -> Program:
    """The program of a call, without a rule of the function's. It reads the module's numbers, where it can."""
    names = sorted({n for spec in call.specs for d in spec.dims for n in symbols(d)})
    with taking_derivatives(1), without_rule(fun), sizes_at_least(dict.fromkeys(names, 2)):
        program = program_of(by_position(fun), call.structure, call.specs)
        read = {
            guard.source.key()
            for guard in program.guards
            if guard.kind == "value" and is_number(guard.expected) and _module_of(guard.source) is not None
        }
        if not read:
            return program
        try:
            with numbers_change(read):
                return program_of(by_position(fun), call.structure, call.specs)
        except Exception:  # one of them has to be known: it is a constant
            return program


# ---- what is read of modules --------------------------------------------------------------------------------


def module_name(module: str | None, file: str | None) -> str | None:
    """The name that another module imports this one by."""
    if module != "__main__":
        return module
    stem = os.path.splitext(os.path.basename(file or ""))[0]
    return stem if stem.isidentifier() else None


def _module_of(source: Source) -> str | None:
    """The module whose name a captured value is read by, if it is a user's."""
    if isinstance(source, NumberSource):
        source = source.place
    while isinstance(source, (AttributeSource, ItemSource)):
        source = source.parent
    if not isinstance(source, GlobalSource) or source.name not in source.globals:
        return None
    name = source.globals.get("__name__")
    if not isinstance(name, str) or is_library(name):
        return None
    return module_name(name, source.globals.get("__file__"))


def _read(source: Source) -> str | None:
    """What reads a captured value of a module."""
    module = _module_of(source)
    return None if module is None else f"{module}.{source}"


def _modules_read(text: str) -> list[str]:
    """The imports of modules whose names are read."""
    known = {name for name in sys.modules if not is_library(name)} | {module_name("__main__", _main_file())}
    found = set(re.findall(r"(?<![\w.])((?:\w+\.)+)\w", text))
    return [f"import {name}" for name in sorted(n for n in known if n and f"{n}." in found)]


def _main_file() -> str | None:
    return getattr(sys.modules.get("__main__"), "__file__", None)


def class_import(cls: type) -> str | None:
    """The import of a class whose objects are arguments or results."""
    fields = getattr(cls, "_fields", None)
    if fields is None and not dataclasses.is_dataclass(cls) or is_library(cls.__module__):
        return None
    module = module_name(cls.__module__, getattr(sys.modules.get(cls.__module__), "__file__", None))
    return None if module is None or "." in cls.__qualname__ else f"from {module} import {cls.__name__}"


# ---- the backward part -------------------------------------------------------------------------------------------


def _residual_names(rule: Rule, told: dict[int, str | None], bar: str) -> list[str]:
    """What the forward part calls the residuals, where it has names for them."""
    found: list[str] = []
    for k, param in enumerate(rule.function.params[: rule.residuals]):
        name = wanted = told.get(k) or usable(param.name)
        count = 0
        while name in found or name == bar:
            count += 1
            name = f"{wanted}_{count}"
        found.append(name)
    return found


def _backward_text(
    rule: Rule,
    residuals: Sequence[str],
    out: PyTreeDef,
    arguments: dict[int, PyTreeDef | None],
    name: str,
    bar: str,
    fun: types.FunctionType,
) -> str:
    """The module of the backward part, a parameter for each residual. `arguments`: the structures of those that it
    gives cotangents of, None for those that have none."""
    function = _with_names(finished(rule.function), [*residuals, *([bar] if out.is_leaf() else [])])
    count = iter(range(rule.residuals, len(function.params)))
    leaves = tuple(Fixed(None) if type_ is None else next(count) for type_ in rule.inputs)
    given = [Argument(n, _LEAF, (k,)) for k, n in enumerate(residuals)]
    given.append(Argument(bar, out, leaves))
    outputs = iter(rule.outputs)
    trees, slots = [], []
    for tree in arguments.values():
        mine = [next(outputs) for _ in range(tree.num_leaves)] if tree is not None else []
        if tree is not None:
            trees.append(tree)
            slots += [Slot(k) if isinstance(k, int) else Fixed(None) for k in mine]
        else:
            trees.append(_LEAF)
            slots.append(Fixed(None))
    return python_source(
        function, name, given, [], treedef_tuple(trees), slots, file=fun.__code__.co_filename, classes=class_import
    )


def _with_names(function: Function, names: Sequence[str]) -> Function:
    """The function, its first parameters under these names."""
    names = [*names, *(p.name for p in function.params[len(names) :])]
    params = [(name, p.type) for name, p in zip(names, function.params)]
    return replayed(function.name, params, lambda builder, given: builder.replay(function, given))


def _unpacked(names: Sequence[str]) -> list[str]:
    """The line that takes the residuals apart."""
    if not names:
        return []
    line = f"    {', '.join(names)}{',' * (len(names) == 1)} = residuals"
    if len(line) <= _WIDTH:
        return [line]
    return ["    (", *(f"        {name}," for name in names), "    ) = residuals"]


def _fixed_rows(program: Program, names: Sequence[str]) -> list[str]:
    """The lines that refuse other values than the program was made for."""
    rows: list[str] = []
    leaves = iter(program.leaves)
    for name, tree in zip(names, program.structure.children()[0].children()):
        mine = [next(leaves) for _ in range(tree.num_leaves)]
        paths = [path for path, _ in tree_flatten_with_path(tree.skeleton(range(tree.num_leaves)))[0]]
        for leaf, path in zip(mine, paths):
            value = leaf.value if isinstance(leaf, Fixed) else None
            if type(value) in (bool, int, float, str):
                text, test = f"{usable(name)}{keystr(path)}", "is not" if type(value) is bool else "!="
                rows.append(f"    if {text} {test} {value!r}:")
                rows.append(f'        raise ValueError("this derivative was written for {text} = {value}")')
    return rows


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# ---- modules of text ------------------------------------------------------------------------------------------


class _Module:
    """The text of a module, in parts: its imports, its last function, and what stands between."""

    def __init__(self, text: str):
        self.text = str(text)
        lines = self.text.split("\n")
        nodes = ast.parse(self.text).body
        self.imports: list[str] = []
        self.others: list[str] = []
        ends = 0
        for node in nodes:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            part = "\n".join(lines[ends : node.end_lineno]).strip("\n")
            ends = node.end_lineno or first
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imports.append(part)
            else:
                self.others.append(part)
        self.function = self.others.pop()
        self.node = nodes[-1]
        assert isinstance(self.node, ast.FunctionDef)

    def returned_residuals(self) -> list[str | None]:
        """The names in the second part of what the function returns."""
        last = self.node.body[-1]  # type: ignore[attr-defined]
        if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Tuple) or len(last.value.elts) != 2:
            return []
        kept = last.value.elts[1]
        return [e.id if isinstance(e, ast.Name) else None for e in kept.elts] if isinstance(kept, ast.Tuple) else []

    def insert(self, rows: Sequence[str], header: str | None = None) -> None:
        """Put rows first in the function, which may get another header."""
        lines = self.function.split("\n")
        at = next(k for k, line in enumerate(lines) if line.startswith("def "))
        self.function = "\n".join([*lines[:at], header or lines[at], *rows, *lines[at + 1 :]])

    def renamed_apart(self, others: Sequence[str]) -> list[str]:
        """What stands above the function, under names that do not stand for something else there."""
        taken = {name: text for text in others for name in _defined(text)}
        for name, text in [(n, t) for t in self.others for n in _defined(t)]:
            if taken.get(name, text) != text:
                self.others = [re.sub(rf"\b{name}\b", f"{name}_back", one) for one in self.others]
                self.function = re.sub(rf"\b{name}\b", f"{name}_back", self.function)
        return self.others


def _defined(text: str) -> Iterator[str]:
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


__all__ = ["DerivativeText", "class_import", "derivative_text", "module_name"]
