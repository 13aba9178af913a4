"""The user's functions that lines of a program come from, whole.

In: files and lines. Out: `Block`s, the function that is explained first. Example:

    blocks([("orbit.py", 4), ("orbit.py", 5)], period)     # [Block("orbit.py", "period", 3, ["def period(e, M):", ...
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterable
from typing import Any

from ..late import dataclass


@dataclass(frozen=True)
class Block:
    """A function, or a statement outside of functions: its rows, of which the first is the line `first`."""

    file: str
    name: str
    first: int
    rows: list[str]

    @property
    def lines(self) -> range:
        return range(self.first, self.first + len(self.rows))


def blocks(found: Iterable[tuple[str, int]], user: Any) -> list[Block]:
    """See the head of this file. `user`: the function that a person wrote, which is there though no line of it is."""
    lines: dict[str, set[int]] = {}
    code = getattr(inspect.unwrap(user), "__code__", None)
    own = None if code is None else (code.co_filename, code.co_firstlineno)
    for file, line in [*found, *([own] if own else [])]:
        lines.setdefault(file, set()).add(line)
    made = [block for file, numbers in lines.items() for block in _of_file(file, numbers)]
    return sorted(made, key=lambda b: (own is None or b.file != own[0] or own[1] not in b.lines, b.file, b.first))


def _of_file(file: str, numbers: set[int]) -> list[Block]:
    rows = [row.rstrip("\n") for row in linecache.getlines(file)]
    made: list[Block] = []
    for name, first, last in _stretches("\n".join(rows)):
        if numbers & set(range(first, last + 1)):
            numbers = numbers - set(range(first, last + 1))
            made.append(Block(file, name, first, rows[first - 1 : last]))
    made += [Block(file, "", line, [rows[line - 1] if line <= len(rows) else ""]) for line in sorted(numbers)]
    return made


def _stretches(text: str) -> list[tuple[str, int, int]]:
    """Name, first and last line of each function and method, and of each statement outside of functions."""
    try:
        pending = [("", node) for node in ast.parse(text).body]
    except (SyntaxError, ValueError):  # a notebook's cell with commands of its own, or no file at all
        return []
    found = []
    while pending:
        prefix, node = pending.pop()
        if isinstance(node, ast.ClassDef):
            pending += [(f"{prefix}{node.name}.", inner) for inner in node.body]
            continue
        name = prefix + node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        found.append((name, first, node.end_lineno or node.lineno))
    return sorted(found, key=lambda one: one[1:])


__all__ = ["Block", "blocks"]
