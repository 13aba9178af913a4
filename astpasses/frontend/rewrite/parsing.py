"""From a function object to its gast node, found by place in the whole parsed file.

In: a Python function or lambda. Out: `Source(node, file, class_name)`; `NoSource` when there is none or it
is ambiguous.

The file is parsed as it stands, never dedented, so lines and columns are the user's. Text comes through
`linecache`, which also knows notebook cells and the REPL.
"""

from __future__ import annotations

import ast
import linecache
import types
from typing import Any, TypeAlias

import gast

from metaphrase.late import dataclass

Definition: TypeAlias = gast.FunctionDef | gast.Lambda


class NoSource(Exception):
    """A function whose source can't be had, or not without doubt."""


@dataclass(frozen=True)
class Source:
    """`class_name`: the class whose body the function stands in, for private names."""

    node: Definition
    file: str
    class_name: str | None


class _File:
    """One parsed file: its functions and lambdas by first line."""

    def __init__(self, lines: list[str]):
        self.lines = lines
        self.tree = ast.parse("".join(lines))
        if not __debug__:
            self.tree = _WithoutAsserts().visit(self.tree)
        _characters(self.tree, lines)
        self._by_line: dict[int, list[tuple[Definition, str | None]]] = {}

    def at(self, line: int) -> list[tuple[Definition, str | None]]:
        """The functions and lambdas that begin in a line, each with the class around it."""
        if line not in self._by_line:
            found = self._by_line[line] = []
            self._collect(self.tree, None, line, found)
        return self._by_line[line]

    def _collect(self, node: ast.AST, class_name: str | None, line: int, found: list) -> None:
        if hasattr(node, "lineno"):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            if not first <= line <= node.end_lineno:  # type: ignore[attr-defined]
                return
            if first == line and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                found.append((gast.ast_to_gast(node), class_name))
        if isinstance(node, ast.ClassDef):
            class_name = node.name
        for child in ast.iter_child_nodes(node):
            self._collect(child, class_name, line, found)


class _WithoutAsserts(ast.NodeTransformer):
    """Leaves out what `python -O` leaves out."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)


def _characters(tree: ast.AST, lines: list[str]) -> None:
    """Columns count characters, not bytes (they differ on lines that are not ASCII)."""
    if all(line.isascii() for line in lines):
        return
    for node in ast.walk(tree):
        for line, column in (("lineno", "col_offset"), ("end_lineno", "end_col_offset")):
            if getattr(node, line, None) is not None:
                text = lines[getattr(node, line) - 1].encode()[: getattr(node, column)]
                setattr(node, column, len(text.decode(errors="replace")))


_files: dict[str, _File] = {}


def parsed_file(path: str) -> _File:
    """Parse a file, once for each of its contents."""
    linecache.checkcache(path)
    lines = linecache.getlines(path)
    if not lines:
        raise NoSource(f"the source of {path} can't be read")
    known = _files.get(path)
    if known is None or known.lines != lines:
        try:
            known = _files[path] = _File(lines)
        except SyntaxError as error:
            raise NoSource(f"{path} does not parse: {error}") from None
    return known


def find_source(function: types.FunctionType) -> Source:
    """The definition of `function`, matched by position, name and arguments."""
    code = function.__code__
    file = parsed_file(code.co_filename)
    found = [(node, owner) for node, owner in file.at(code.co_firstlineno) if _fits(node, code)]
    if len(found) > 1:
        found = [pair for pair in found if _same_place(pair[0], code)]
    if len(found) != 1:
        why = "it may have been edited since it was imported" if not found else "several functions fit"
        raise NoSource(f"{code.co_name} was not found at {code.co_filename}:{code.co_firstlineno}; {why}")
    node, owner = found[0]
    return Source(node, code.co_filename, owner)


def _fits(node: Definition, code: types.CodeType) -> bool:
    return getattr(node, "name", "<lambda>") == code.co_name and argument_names(node.args) == unmangled(code, node)


def unmangled(code: types.CodeType, node: Definition) -> list[str]:
    """Argument names as the source spells them (private names are mangled in the code object)."""
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    names = list(code.co_varnames[:count])
    spelled = argument_names(node.args)
    return [s if n.endswith(s) and s.startswith("__") else n for n, s in zip(names, spelled)] + names[len(spelled) :]


def argument_names(args: gast.arguments) -> list[str]:
    """All parameter names in the order of `co_varnames`."""
    names = [a.id for a in [*args.posonlyargs, *args.args, *args.kwonlyargs]]
    return names + [a.id for a in (args.vararg, args.kwarg) if a is not None]


def _same_place(node: Definition, code: types.CodeType) -> bool:
    """Whether the instructions of `code` lie within `node`'s body, and reach both of its ends."""
    body = node.body if isinstance(node, gast.Lambda) else node.body[-1]
    begin, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    known: list[Any] = [p for p in code.co_positions() if None not in p]
    places = [((p[0], p[2]), (p[1], p[3])) for p in known if p[0] > 0 and p[2] >= 0]
    inside = [(first, last) for first, last in places if first >= begin and last <= end]
    return any(last == end for _, last in inside) and min(first for first, _ in inside) == begin
