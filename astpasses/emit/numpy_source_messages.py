"""Statements with a message: checks, which raise an exception, and prints.

In: the emitter and a Let. Out: lines such as `if i >= n: raise IndexError(f"index {i} ...")`.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from metaphrase.core.ir import Atom, Let, Literal, Var
from metaphrase.core.types import Array
from metaphrase.exceptions import ListFull, Part, exception_class, exception_name, fields
from metaphrase.late import module

from .numpy_source_blocks import Emitter
from .numpy_source_effects import negated
from .numpy_source_expressions import ATOM, Expr, Storage, strong
from .numpy_source_expressions import name as named
from .numpy_source_spellings import STATEMENTS

string: Any = module("string")


def format_text(template: str, values: Sequence[Expr]) -> str:
    """`template.format(*values)` as an f-string, or as the call where an f-string can't say it."""
    pieces, counter = [], 0
    try:
        for text, field, spec, conversion in string.Formatter().parse(template):
            pieces.append(text.replace("{", "{{").replace("}", "}}"))
            if field is None:
                continue
            key, counter = (field, counter) if field else (str(counter), counter + 1)
            value = values[int(key)].text
            if any(c in value for c in "\"'\\{}") or spec and "{" in spec or ":" in value and "[" not in value:
                raise ValueError
            pieces.append(f"{{{value}{'!' + conversion if conversion else ''}{':' + spec if spec else ''}}}")
    except (ValueError, IndexError):
        return f"{template!r}.format({', '.join(v.text for v in values)})"
    body = repr("".join(pieces))
    if not values:
        return repr(template.format()) if "{" in template or "}" in template else quoted(template)
    return "f" + (f'"{body[1:-1]}"' if body[0] == "'" and '"' not in body else body)


def quoted(text: str) -> str:
    body = repr(text)
    return f'"{body[1:-1]}"' if body[0] == "'" and '"' not in body else body


def _exception(emitter: Emitter, wanted: str) -> str:
    """What the text calls an exception class; a user's is imported at its top, or defined like it."""
    if wanted == "LinAlgError":
        return "np.linalg.LinAlgError"
    if ":" not in wanted:
        return wanted if hasattr(builtins, wanted) else "RuntimeError"
    if wanted not in emitter.exceptions:
        emitter.exceptions[wanted] = emitter.names.fresh(re.split(r"[:.#]", wanted.split("#")[0])[-1])
    return emitter.exceptions[wanted]


def exception_text(wanted: str, name: str) -> str:
    """The lines that make a user's exception class known to a module."""
    module, _, path = wanted.partition(":")
    base = next(c.__name__ for c in exception_class(wanted).__mro__ if getattr(builtins, c.__name__, 0) is c)
    definition = f'class {name}({base}):  # raised as {wanted}\n    """Of the program this was made from."""'
    if not path.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        return definition
    renamed = "" if path == name else f" as {name}"
    body = definition.replace("\n", "\n    ")
    return f"try:\n    from {module} import {path}{renamed}\nexcept ImportError:\n\n    {body}"


FULL = exception_name(ListFull)
ROOM = '''def {again}(function):
    """`function`, run again with more room where a list has outgrown it."""

    @functools.wraps(function)
    def run(*args, **keywords):
        while True:
            try:
                return function(*args, **keywords)
            except {full} as full:
                globals()[str(full)] *= 4

    return run'''


def _check(emitter: Emitter, let: Let) -> None:
    if let.attributes["exception"] in ("LinAlgError", "MemoryError"):
        return  # NumPy raises it itself
    ok, *values = (emitter.expr(a) for a in let.args)
    if let.args[0].type.dims:
        kept = [_value_at(emitter, a) for a in let.args[1:]]
        if kept:
            ok = emitter.named(let.args[0])
        emitter.line(f"if not np.all({ok.text}):", let)
        if kept:
            where = emitter.names.fresh("first")
            emitter.block.names.add(where)
            emitter.line(f"    {where} = np.argmin({ok.text})")
            values = [at(where) for at in kept]
    elif isinstance(let.args[0], Literal):
        if not bool(let.args[0].value):
            emitter.line(_raise(emitter, let, values), let)
        return
    else:
        emitter.line(f"if {negated(ok).text}:", let)
    emitter.line("    " + _raise(emitter, let, values))


def _value_at(emitter: Emitter, atom: Atom) -> Callable[[str], Expr]:
    """The value at a place of an array; of one number everywhere and of the places themselves no array is made."""
    let = emitter.block.makers.get(atom) if isinstance(atom, Var) else None
    if let is not None and let.primitive.name == "iota":
        return lambda where: Expr(where, ATOM, Array(let.out.type.dtype))
    if let is not None and let.primitive.name == "broadcast" and not let.args[0].type.dims:
        value = emitter.expr(let.args[0])
        return lambda where: value
    value = emitter.named(atom)
    return lambda where: replace(value, text=f"{value.at(14)}.ravel()[{where}]", level=14)


def _raise(emitter: Emitter, let: Let, values: Sequence[Expr]) -> str:
    name = let.attributes["exception"]
    exception = _exception(emitter, name)
    if not (holds := let.attributes.get("holds")):
        message = let.attributes["message"]
        return f"raise {exception}({format_text(message, values)})" if message else f"raise {exception}"
    left = iter(values)
    args = [_part(part, left) for part in holds[0]]
    attributes = [f"{key}={_part(part, left)}" for key, part in holds[1]]
    if ":" not in name and not attributes:
        return f"raise {exception}({', '.join(args)})"
    emitter.helpers.add("exception_of")
    return f"raise exception_of({', '.join([exception, *args, *attributes])})"


def _part(part: Part, values: Iterator[Expr]) -> str:
    """What an exception holds, as text."""
    kind, given = part
    if kind == "number":
        value = next(values)
        known = ("int", "float") if value.weak is not None else (f"np.{value.type.dtype.name}",)
        return value.text if given in known else f"{given}({value.text})"
    if kind == "text":
        return format_text(given, [next(values) for _ in range(fields(given))])
    if kind == "value":
        return quoted(given) if isinstance(given, str) else repr(given)
    inner = ", ".join(_part(p, values) for p in given)
    return f"[{inner}]" if kind == "list" else f"({inner}{',' if len(given) == 1 else ''})"


def _print(emitter: Emitter, let: Let) -> None:
    values = [emitter.expr(a) for a in let.args]
    values = [strong(v) if v.type.dtype.kind in "fc" and v.weak is not None else v for v in values]
    options = {key: repr(value) for key, value in let.attributes.items() if key in ("end", "flush")}
    if let.attributes.get("stream", "stdout") != "stdout":
        options["file"] = "sys." + let.attributes["stream"]
    shown = format_text(let.attributes["template"], values)
    emitter.line(f"print({', '.join([shown, *(f'{k}={v}' for k, v in options.items())])})", let)


def _warn(emitter: Emitter, let: Let) -> None:
    shown = format_text(let.attributes["template"], [emitter.expr(a) for a in let.args])
    category = _exception(emitter, let.attributes["category"])
    level = f", stacklevel={above + 1}" if (above := let.attributes.get("above", 0)) else ""
    emitter.line(f"warnings.warn({shown}, {category}{level})", let)


def _callback(emitter: Emitter, let: Let) -> None:
    """`y, = called_back("name", [("float64", (n, 3))], x)`."""
    emitter.helpers.add("called_back")
    shapes = [", ".join(emitter.dim(d) for d in out.type.dims) + "," * (out.type.ndim == 1) for out in let.outs]
    types = ", ".join(f"({quoted(str(out.type.dtype))}, ({s}))" for out, s in zip(let.outs, shapes))
    given = "".join(f", {emitter.expr(a).text}" for a in let.args)
    targets = [emitter.define(v, let) if v in emitter.block.uses else "_" for v in let.outs]
    into = "".join(f"{target}, " for target in targets)
    call = f"called_back({quoted(let.attributes['name'])}, [{types}]{given})"
    emitter.line(f"{into.rstrip()} = {call}" if into else call, let)
    for var, target in zip(let.outs, targets):
        if target != "_":
            emitter.hold(var, named(target, var.type, storages=(Storage(False),)), target)


STATEMENTS["check"] = _check
STATEMENTS.update(dict.fromkeys(("debug_callback", "io_callback", "pure_callback"), _callback))
STATEMENTS["print_"] = _print
STATEMENTS["warn_"] = _warn

__all__ = ["FULL", "ROOM", "exception_text", "format_text", "quoted"]
