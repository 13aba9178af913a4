"""Core to idiomatic NumPy source: real `if`, `while`, `for`, the user's names; imports NumPy only.

In: a core Function. Out: the text of a module whose last function computes the same.

    def period(e, M):                import numpy as np
        T, E = loop(e, M, M, ...)
        return E                     def period(e, M):
                                         E = M
                                         while abs(E - e * np.sin(E) - M) > 1e-12:
                                             E -= (E - e * np.sin(E) - M) / (1.0 - e * np.cos(E))
                                         return E
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from metaphrase.core.dims import Dim, solutions, symbols, symbols_of
from metaphrase.core.ir import Function, Var
from metaphrase.core.types import SHORT
from metaphrase.late import dataclass
from metaphrase.source import SourceText, with_places

from . import (
    numpy_source_arrays,
    numpy_source_branches,
    numpy_source_effects,
    numpy_source_linear,
    numpy_source_messages,
    numpy_source_regions,
)
from .numpy_source_blocks import WIDTH, Block, Emitter
from .numpy_source_calls import Held, called, held_by
from .numpy_source_expressions import ATOM, Storage, dtype_text, strong
from .numpy_source_expressions import name as name_expr
from .numpy_source_helpers import HELPERS
from .numpy_source_names import Names, identifier, usable
from .numpy_source_spellings import STATEMENTS, array_text, foreign_functions, spell
from .source_text import compile_numpy, returned_at_once, without_unread
from .user_comments import docstring, with_comments

THEMES = (
    numpy_source_arrays,
    numpy_source_effects,
    numpy_source_linear,
    numpy_source_messages,
    numpy_source_regions,
    numpy_source_branches,
)  # they register


@dataclass(frozen=True)
class Signature:
    """How the user calls the function, where that is not one positional array a parameter.

    `parameters`: the header, defaults included. `inputs`: for each parameter of the program the Python text
    that reads it: a parameter, `params['w']`, a name in `rows`. `output`: the text to return, from those of
    the results. `imports`, `rows`: further lines at the top of the module. `keep`: parameters that `output`
    or `stores` read as well. `stores`: lines before the return, from the texts of the results, that write
    to what the caller gave. `repeated`: a result stands in several places. Where `output`, `stores` and
    `keep` name a parameter of the program they hold `of_parameter(index)`: its name is chosen here.

        Signature(("params", "x"), ("params['w']", "x"), lambda texts: f"{{'w': {texts[0]}}}")
    """

    parameters: tuple[str, ...]
    inputs: tuple[str, ...]
    output: Callable[[Sequence[str]], str]
    imports: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    stores: Callable[[Sequence[str]], Sequence[str]] | None = None
    repeated: bool = False

    @staticmethod
    def of_parameter(index: int) -> str:
        """Stands for the name of a parameter of the program."""
        return f"\0{index}\0"

    @staticmethod
    def named(text: str, params: Sequence[str]) -> str:
        """A text with the names in place."""
        return re.sub("\0(\\d+)\0", lambda found: params[int(found[1])], text)

    def needs_names(self, count: int) -> bool:
        """Whether the results must have names: what stands in two places is one value, made at one time."""
        return count > 1 or self.repeated


def numpy_source(
    function: Function, *, name: str | None = None, signature: Signature | None = None, file: str = "", doc: str = ""
) -> str:
    """The text of a module whose last top-level function is `function`. `file`: of the user's function, whose
    comments stay; `doc`: its docstring."""
    title = identifier(name or function.name)
    title = title if title in HELPERS else usable(title)
    names = Names({title})
    if signature is not None:
        names.taken |= _names_of(signature)
    emitter = Emitter(names, spell)
    emitter.statements = STATEMENTS
    emitter.foreign = {name: names.fresh(name) for name in sorted(foreign_functions(function))}
    callees = [row for callee in called(function) for row in _definition(emitter, callee, file)]
    params, header, unpacked = _header(function, names, signature)
    rows, _ = _body(emitter, function, params, signature, file)
    body = [*(docstring(doc) if doc else []), *unpacked, *rows]
    return _module(emitter, callees, _headed(emitter, title, header), body, signature)


def _body(
    emitter: Emitter, function: Function, params: list[str], signature: Signature | None, file: str
) -> tuple[list[str], list[Held]]:
    """The rows of a function, and what each result holds."""
    with emitter.inside(function) as block:
        _bind_parameters(block, function, params, emitter, signature)
        given = {s: k for k, p in enumerate(function.params) for s in block.env[p].storages}
        emitter.run(block)
        _return(emitter, function, params, signature)
        prologue = _prologue(emitter, function, params)
        held = held_by([emitter.expr(r).storages for r in function.results], given)
    written = returned_at_once(without_unread(emitter.lines, emitter.sizes_named))
    return [*prologue, *with_comments(written, file)], held


def _headed(emitter: Emitter, title: str, parameters: str) -> str:
    header = f"def {title}({parameters}):"
    return f'@np.errstate(over="ignore")  # integers wrap around\n{header}' if emitter.wrap_around else header


def _definition(outer: Emitter, function: Function, file: str) -> list[str]:
    """The rows that define a function which others call. What the module has once, it has with them."""
    names = Names(outer.names.taken)
    emitter = Emitter(names, spell)
    emitter.statements, emitter.foreign, emitter.functions = STATEMENTS, outer.foreign, outer.functions
    emitter.helpers, emitter.exceptions = outer.helpers, outer.exceptions
    emitter.constants.found = outer.constants.found
    title = names.fresh(usable(identifier(function.name)))
    params = [names.fresh(p.name) for p in function.params]
    body, held = _body(emitter, function, params, None, file)
    outer.functions[function] = title, held
    outer.names.taken |= {title, *emitter.exceptions.values(), *(n for n, _ in emitter.constants.found.values())}
    return [_headed(emitter, title, ", ".join(params)), *body, "", ""]


def _names_of(signature: Signature) -> set[str]:
    """The names that the user gave, which stay theirs."""
    parameters = {re.split(r"\W", p, maxsplit=1)[0] for p in signature.parameters}
    inputs = {t for t in signature.inputs if t.isidentifier()}
    return parameters | inputs | {row.split(" = ")[0] for row in signature.rows}


def _header(function: Function, names: Names, signature: Signature | None) -> tuple[list[str], str, list[str]]:
    """A name for each parameter of the program, the parameters in the header, and lines that unpack
    containers."""
    if signature is None:
        params = [names.fresh(p.name) for p in function.params]
        return params, ", ".join(params), []
    params, rows = [], []
    for param, text in zip(function.params, signature.inputs, strict=True):
        params.append(text if text.isidentifier() else names.leaf(param.name, text))
        if not text.isidentifier():
            rows.append((params[-1], text))
    lines: list[str] = []
    while rows:
        count = len(rows)
        while count > 1 and sum(len(a) + len(b) + 4 for a, b in rows[:count]) > WIDTH:
            count -= 1
        now, rows = rows[:count], rows[count:]
        lines.append(f"    {', '.join(a for a, _ in now)} = {', '.join(b for _, b in now)}")
    return params, ", ".join(signature.parameters), lines


def _bind_parameters(
    block: Block, function: Function, params: list[str], emitter: Emitter, signature: Signature | None
) -> None:
    fixed = set()
    if signature is not None:
        fixed = {Signature.named(text, params) for text in signature.keep}
        fixed |= {row.split(" = ")[0] for row in signature.rows}
    for param, text in zip(function.params, params):
        storages = (Storage(False),) if param.type.dims else ()
        python = not param.type.dims and param.type.dtype in (np.float64, np.int64, np.complex128)
        block.env[param] = name_expr(text, param.type, storages=storages, maybe_python=python)
        if text not in fixed:  # these are not assigned to
            block.holder[text] = param
        emitter.keep_track(text, storages)
        for storage in storages:
            storage.add(block, param)
        if not param.type.dims and not python and param.type.dtype != bool:
            emitter.to_numpy.add(text)


def _return(emitter: Emitter, function: Function, params: list[str], signature: Signature | None) -> None:
    """`return`, with results as NumPy values."""
    if signature is not None:
        for result in function.results:
            named = emitter.expr(result).is_name or not signature.needs_names(len(function.results))
            if isinstance(result, Var) and not named:
                emitter.assign(result, emitter.expr(result))
        if signature.stores is not None:
            _store(emitter, function, params, signature)
        output = signature.output([strong(emitter.expr(r)).text for r in function.results])
        emitter.line(f"return {Signature.named(output, params)}", of=function.results)
        return
    while True:
        exprs = [strong(emitter.expr(r)) for r in function.results]
        text = ", ".join(e.text for e in exprs)
        waiting = [
            r
            for r in function.results
            if isinstance(r, Var)
            and r in emitter.block.pending
            and emitter.block.pending[r].operations
            and not emitter.expr(r).is_name
        ]
        if len(text) <= WIDTH or not waiting or len(exprs) == 1:
            break
        longest = max(waiting, key=lambda r: len(emitter.expr(r).text))
        emitter.assign(longest, emitter.expr(longest))
    emitter.line(f"return {text}" if exprs else "return None", of=function.results)


def _store(emitter: Emitter, function: Function, params: list[str], signature: Signature) -> None:
    """The lines that write to arguments; results that would see these writes are copied first."""
    assert signature.stores is not None
    for result in dict.fromkeys(r for r in function.results if isinstance(r, Var)):
        expr = emitter.expr(result)
        if not signature.needs_names(len(function.results)):
            break
        if any(not storage.owned for storage in expr.storages):
            expr = replace(expr, text=f"{expr.at(ATOM)}.copy()", level=ATOM, operations=1)
            emitter.block.env[result] = expr
        if not expr.is_name:
            emitter.assign(result, expr, emitter.names.fresh(result.name))
    for line in signature.stores([strong(emitter.expr(r)).text for r in function.results]):
        emitter.line(Signature.named(line, params))


def _prologue(emitter: Emitter, function: Function, params: list[str]) -> list[str]:
    """Sizes read off the arguments, scalars made NumPy scalars, where the body needs them."""
    rows = []
    words = set(re.findall(r"\w+", "\n".join(emitter.lines)))
    left = {s: text for s, text in emitter.size_names.items() if text in words}
    solved = _solved_sizes(emitter, function, params, left)
    for param, text in zip(function.params, params):
        dims = param.type.dims
        found = [d.name if isinstance(d, Dim) and d.is_sym else None for d in dims]
        wanted = [d for d in found if d in left]
        if not wanted:
            continue
        if len(dims) > 1 and len(set(wanted)) == len(dims):
            rows.append(f"    {', '.join(left[d] for d in found if d is not None)} = {text}.shape")
        else:
            for d in dict.fromkeys(wanted):
                axis = found.index(d)
                rows.append(f"    {left[d]} = {f'len({text})' if axis == 0 else f'{text}.shape[{axis}]'}")
        for d in wanted:
            left.pop(d, None)
    for param, text in zip(function.params, params):
        value = param.type.value
        if isinstance(value, Dim) and value.is_sym and value.name in left:
            rows.append(f"    {left.pop(value.name)} = int({text})")
    rows += [f"    {left.pop(name)} = {text}" for name, text in solved]
    assert not left, f"sizes {sorted(left)} are not bare dims of a parameter"
    scalars = [(p, t) for p, t in zip(function.params, params) if t in emitter.to_numpy and not p.type.dims]
    rows += [f"    {t} = {dtype_text(p.type.dtype)}({t})" for p, t in scalars]
    return rows


def _solved_sizes(
    emitter: Emitter, function: Function, params: list[str], left: dict[str, str]
) -> list[tuple[str, str]]:
    """Of the sizes that are `left` those that no dim is alone, and their texts; what these read is left as well."""
    places = [
        (dim, f"{text}.shape[{axis}]" if axis else f"len({text})")
        for param, text in zip(function.params, params)
        for axis, dim in enumerate(param.type.dims)
    ]
    dims = [dim for dim, _ in places]
    alone = {d.name for d in (*dims, *(p.type.value for p in function.params)) if isinstance(d, Dim) and d.is_sym}
    found: list[tuple[str, str]] = []
    for symbol, k, coefficient, rest in reversed(solutions(symbols_of(dims) - alone, dims)):
        if symbol in left:
            text = f"({places[k][1]} - ({emitter.dim(rest)}))" if rest != 0 else places[k][1]
            text = text if coefficient == 1 else f"{text} // {coefficient}"
            found.insert(0, (symbol, ast.unparse(ast.parse(text, mode="eval"))))
            left.update({s: emitter.size(s) for s in symbols(rest)})
    return found


def _module(
    emitter: Emitter, callees: list[str], header: str, body: list[str], signature: Signature | None
) -> SourceText:
    constants = list(signature.rows) if signature is not None else []
    constants += [f"{n} = {array_text(v)}" for n, v in emitter.constants.found.values()]
    imports = [*(signature.imports if signature is not None else ()), "import numpy as np"]
    helpers = sorted(emitter.helpers)
    foreign = [f if f == name else f"{f} as {name}" for f, name in emitter.foreign.items()]
    if foreign:
        imports.append(f"from scipy.special import {', '.join(foreign)}")
    text = "\n".join(body)
    if "called_back" in helpers:
        imports.append("from metaphrase.effects import called_back")
    if any("bfloat16" in row for row in (*body, *constants)):
        imports.insert(0, "from ml_dtypes import bfloat16")
    standard = ["import sys"] * ("file=sys." in text) + ["import warnings"] * ("warnings.warn(" in text)
    if standard:
        imports.insert(0, "\n".join(standard) + "\n")
    pieces = ["\n".join(imports)]
    if constants:
        pieces.append("\n".join(constants))
    top = "\n\n".join(pieces)
    raised = [numpy_source_messages.exception_text(*pair) for pair in emitter.exceptions.items()]
    full = emitter.exceptions.get(numpy_source_messages.FULL)
    if signature is not None and full is not None:
        again = emitter.names.fresh("with_room")
        raised.append(numpy_source_messages.ROOM.format(again=again, full=full))
        imports.insert(0, "import functools")
        pieces[0] = "\n".join(imports)
        top = "\n\n".join(pieces)
        header = f"@{again}\n{header}"
    given = {h: HELPERS[h] for h in helpers if h in HELPERS}
    for name in given:
        if f"def {name}(" in header:  # the user's function has a helper's name
            given[name] = given[name].replace(f"def {name}(", f"def {name}_(")
            text = re.sub(rf"\b{name}\(", f"{name}_(", text)
    functions = [*raised, *given.values(), "\n".join([*callees, header, text])]
    return with_places("\n\n\n".join([top, *functions]) + "\n", [*callees, header, *body])


__all__ = ["numpy_source", "Signature", "THEMES", "compile_numpy", "SHORT"]
