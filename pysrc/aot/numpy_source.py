"""Packages of NumPy source: what `mp.source(f, ..., stage="numpy")` prints, behind functions with the user's names.

In: a module and its exported functions. Out: files in a folder: `source/*.py`, one for each text, `_metaphrase.py`,
which finds the text that a call is for, and `__init__.py`. Example, of the last:

    _period = _Signatures("period", ("e", "M"), {"f64, f64": _source.period.period})

    def period(e, M):
        return _period(e, M)
"""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import types
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..api.arguments import Spec, refuse_unknown_sizes
from ..api.compile import Compiled
from ..api.entry import size_names
from ..api.plans.modules import refused, written_defaults
from ..api.program import Program
from ..api.text import documentation, numpy_module
from ..astpasses.emit.numpy_source_names import usable
from ..pipeline import finished
from ..runtime import accepted
from ..runtime import entry as abi
from ..runtime.cython_build import Library
from ..runtime.module import signature_text
from .exported import Made, Progress, Signature, free_name, head, literal, names_text, quoted, signatures
from .own_exceptions import exceptions, exceptions_text

LONG = 2000  # characters of an array that nobody reads
_ARRAY = re.compile(r"^(\w+) = (np\.array\(.*\))$", re.MULTILINE)
_CALLBACK = re.compile(r"^from metaphrase\.effects import called_back$", re.MULTILINE)
Sources = dict[str, tuple[str, str]]  # of one function, by types: the source, and where it gives Python's numbers
_SCIPY = re.compile(r"^\s*(import|from) scipy\b", re.MULTILINE)


def write(module: types.ModuleType, functions: dict[str, Any], folder: Path, progress: Progress) -> Made:
    """The package, without its types for editors."""
    made, texts = Made(), _Texts(set(functions))
    rows = [signature for public, function in functions.items() for signature in signatures(public, function)]
    taken: dict[str, Sources] = {public: {} for public in functions}
    for number, signature in enumerate(rows):
        progress(f"{signature.public}{signature.title}", number, len(rows))
        entry, text = _source(signature, functions[signature.public])
        made.rows.setdefault(signature.public, []).append((signature.title, entry))
        made.needs_scipy |= bool(_SCIPY.search(text))
        made.needs_ml_dtypes |= "bfloat16" in text or "bf16" in signature.title
        count = 2 if functions[signature.public].parameters is None else len(functions[signature.public].parameters)
        types_taken = signature_text(entry, count) + _conditions(entry)
        row = texts.place(signature.public, text), _numbers(entry.output, entry)
        taken[signature.public].setdefault(types_taken, row)
    (folder / "source").mkdir()
    for name, text in texts.files.items():
        (folder / "source" / f"{name}.py").write_text(_with_arrays_beside(text, folder / "source" / f"{name}.npz"))
    (folder / "source" / "__init__.py").write_text(_source_text(texts.files))
    shutil.copyfile(accepted.__file__, folder / "_metaphrase.py")
    (folder / "__init__.py").write_text(_init_text(module, functions, taken))
    return made


class _Texts:
    """The modules of a package: functions of the same text are one."""

    def __init__(self, publics: set[str]):
        self.publics = publics
        self.files: dict[str, str] = {}

    def place(self, public: str, text: str) -> str:
        """`module.function`: where the function of a text stands."""
        function = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)][-1].name
        name, count = public, 1
        while self.files.get(name, text) != text or name != public and name in self.publics:
            count += 1
            name = f"{public}_{count}"
        self.files[name] = text
        return f"{name}.{function}"


def _source(signature: Signature, function: Any) -> tuple[abi.Entry, str]:
    """What the calls of a signature are, and the text that serves them."""

    def text_of(program: Program, specs: Sequence[Spec], name: str, least: dict[str, int]) -> Compiled:
        program = program.with_function(finished(program.function))
        text = numpy_module(function, program)
        names = tuple(size_names(program.function))
        nowhere = Library(name, 0, Path(), text, False, "numpy")
        return Compiled(program, program.function, nowhere, (), names, list(specs), name, False, {}, least)

    refuse_unknown_sizes(signature.public, signature.call.dims, signature.jitted.span)
    compiled = signature.program(text_of)
    if _CALLBACK.search(compiled.library.text):
        why = "a package would have to name a Python function that is called back"
        raise refused(signature.public, function.jitted.span, why)
    entry, _ = signature.plan(compiled, [])
    return entry, compiled.library.text


def _with_arrays_beside(text: str, file: Path) -> str:
    """The text, its long arrays in a file of the same name."""
    arrays: dict[str, np.ndarray] = {}

    def beside(row: re.Match) -> str:
        if len(row[0]) < LONG or "bfloat16" in row[0]:
            return row[0]
        arrays[row[1]] = eval(row[2], {"__builtins__": {}, "np": np})
        return f'{row[1]} = np.load(__file__.removesuffix(".py") + ".npz")["{row[1]}"]'

    text = _ARRAY.sub(beside, text)
    if arrays:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    return text


def _conditions(entry: abi.Entry) -> str:
    """What the sizes must be, as a further part of the text of types."""
    parts = [f"{name} >= {least}" for name, least in (entry.minimum or {}).items() if least]
    parts += [f"{one.left} {one.operator} {one.right}" for one in entry.comparisons]
    return f", Where({', '.join(parts)})" if parts else ""


def _numbers(output: Any, entry: abi.Entry) -> str:
    """Where a result has Python's numbers, as `accepted.with_numbers` reads it."""
    if isinstance(output, abi.Result):
        result = entry.results[output.index]
        form = result.form if isinstance(result, abi.Fresh) and not result.dims else "scalar"
        return {"python": type(np.dtype(result.dtype).type(0).item()).__name__, "array": "array"}.get(form, "...")
    if isinstance(output, abi.Argument) and isinstance(output.tree, (abi.NumberLeaf, abi.SizeLeaf)):
        return output.tree.kind.__name__ if isinstance(output.tree, abi.NumberLeaf) else "int"
    if not isinstance(output, (abi.Sequence, abi.Dictionary)):
        return "..."
    parts = [_numbers(child, entry) for child in output.children]
    if {*parts} <= {"..."}:
        return "..."
    if isinstance(output, abi.Dictionary):
        return f"{{{', '.join(f'{key!r}: {part}' for key, part in zip(output.keys, parts))}}}"
    inner = ", ".join(parts)
    return f"[{inner}]" if output.kind is list else f"({inner},)" if len(parts) == 1 else f"({inner})"


# ---- the package's own text --------------------------------------------------------------------------------------


def _source_text(files: dict[str, str]) -> str:
    doc = quoted("The NumPy source of the package's functions, one module for each.")
    line = f"from . import {', '.join(sorted(files))}"
    if len(line) > 120:
        line = "\n".join(["from . import (", *(f"    {name}," for name in sorted(files)), ")"])
    return "\n".join([doc, "", line, "", names_text(files), ""])


def _init_text(module: types.ModuleType, functions: dict[str, Any], taken: dict[str, Sources]) -> str:
    own = exceptions(module)
    rows = [head(module, "NumPy source, written"), *exceptions_text(own), ""]
    rows += ["# Below the exceptions, which the source looks for here."] if own else []
    hidden = {*own, *functions}
    source, maker = (free_name(name, hidden) for name in ("_source", "_Signatures"))
    rows.append(f"from . import source as {source}")
    rows.append(f"from ._metaphrase import Signatures as {maker}")
    hidden |= {source, maker}
    for public, function in functions.items():
        name = free_name(f"_{public}", hidden)
        hidden.add(name)
        table = _table(f"{name} = {maker}", source, public, function, taken[public])
        rows += ["", *table, "", "", *_function(name, public, function), ""]
    rows += ["", names_text([*own, *functions]), ""]
    return "\n".join(rows)


def _table(made: str, source: str, public: str, function: Any, taken: Sources) -> list[str]:
    """The types that a function is called with, the source for each, and where it gives Python's numbers."""
    names = ("args", "kwargs") if function.parameters is None else tuple(function.parameters)
    numbers = [f"{literal(text)}: {literal(given)}" for text, (_, given) in taken.items() if given != "..."]
    more = [f"results={{{', '.join(numbers)}}}"] if numbers else []
    if function.parameters is None:
        more.append("packed=True")
    if function.keyword_only:
        more.append(f"keywords={_tuple(map(usable, names[-function.keyword_only :]))}")
    pairs = [f"{literal(text)}: {source}.{place}" for text, (place, _) in taken.items()]
    given = [literal(public), _tuple(names), f"{{{', '.join(pairs)}}}", *more]
    line = f"{made}({', '.join(given)})"
    if len(line) <= 120:
        return [line]
    rows = [
        f"    {literal(public)},",
        f"    {_tuple(names)},",
        "    {",
        *(f"        {pair}," for pair in pairs),
        "    },",
    ]
    return [f"{made}(", *rows, *(f"    {one}," for one in more), ")"]


def _tuple(names: Iterable[str]) -> str:
    parts = [literal(name) for name in names]
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _function(name: str, public: str, function: Any) -> list[str]:
    """A function with the user's parameters and default values."""
    doc = documentation(function)
    rows = ["    " + line if line else "" for line in quoted(doc).splitlines()] if doc else []
    if function.parameters is None:
        return [f"def {public}(*args, **kwargs):", *rows, f"    return {name}(args, kwargs)"]
    defaults, (before, behind) = written_defaults(public, function), (function.positional_only, function.keyword_only)
    kinds: list[Any] = [inspect.Parameter.POSITIONAL_ONLY] * before
    kinds += [inspect.Parameter.POSITIONAL_OR_KEYWORD] * (len(function.parameters) - before - behind)
    kinds += [inspect.Parameter.KEYWORD_ONLY] * behind
    parameters = [
        inspect.Parameter(p, kind, default=defaults.get(p, inspect.Parameter.empty))
        for p, kind in zip(function.parameters, kinds)
    ]
    head_line = f"def {public}{inspect.Signature(parameters)}:"
    return [head_line, *rows, f"    return {name}({', '.join(function.parameters)})"]


__all__ = ["write"]
