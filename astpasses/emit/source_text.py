"""Rows of a NumPy program: what is taken out, how they are broken, and how the text of all becomes a function.

In: rows of a function's body that know their places (`rows_at`). Out: such rows; and `compile_numpy`, which makes a
function of a text that has the text's places, too, and the file name of its frames.

    text = numpy_source(f); text.places    ->    {12: Span("model.py", 4, ...), ...}
"""

from __future__ import annotations

import linecache
import re
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from metaphrase.core.ir import Atom, Var
from metaphrase.digests import sha256
from metaphrase.effects import warn_user
from metaphrase.exceptions import exception_class
from metaphrase.source import Span, rows_at

if TYPE_CHECKING:
    from .numpy_source_blocks import Block


def without_unread(lines: list[str], names: set[str]) -> list[str]:
    """The lines without those that give one of `names` to what no other line reads."""
    for name in sorted(names):
        word, gives = re.compile(rf"\b{name}\b"), re.compile(rf"^ *{name} = .*")
        readers = [row for row in lines if word.search(gives.sub("", row, count=1))]
        if not readers:
            lines = _without(lines, {k for k, row in enumerate(lines) if gives.fullmatch(row) and _is_whole(row)})
    return lines


def _is_whole(row: str) -> bool:
    """Whether a statement ends where its first line does."""
    return all(row.count(a) == row.count(b) for a, b in ("()", "[]", "{}"))


def _without(lines: list[str], gone: set[int]) -> list[str]:
    """The other lines; `pass` where a block has none."""
    kept: list[str] = []
    for k, row in enumerate(lines):
        if k not in gone:
            kept.append(row)
            continue
        following = next((other for j, other in enumerate(lines[k:], k) if j not in gone), "")
        if kept and kept[-1].endswith(":") and _indent(following) < _indent(row):
            kept += rows_at([" " * _indent(row) + "pass"], getattr(row, "span", None))
    return kept


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


def returned_at_once(lines: list[str]) -> list[str]:
    """A body that ends with a branch which leaves what is returned: its sides return it.

    if c:                         if c:
        y = f(x)                      return f(x)
    else:                ->       return g(x)
        y = g(x)
    return y
    """
    found = re.fullmatch(r"    return (\w+)", lines[-1]) if lines else None
    end = len(lines) - 1
    start = next(
        (k for k in range(end - 1, -1, -1) if not lines[k].startswith("        ") and lines[k] != "    else:"), end
    )
    middle = lines.index("    else:", start) if "    else:" in lines[start:end] else end
    if found is None or not lines[start].startswith("    if ") or middle == end:
        return lines
    gives = f"        {found[1]} = "
    last = [lines[middle - 1], lines[end - 1]]
    whole = all(row.startswith(gives) and not row.endswith(("(", "[", ",")) for row in last)
    broken = any(row.count("(") != row.count(")") for row in last) or any("\n" in r for r in lines[start:])
    if not whole or broken:
        return lines

    def returning(rows: list[str], indent: str) -> list[str]:
        made = []
        for row in rows:
            text = row.replace(gives, "        return ", 1) if row is rows[-1] else str(row)
            made += rows_at([indent + text[8:]], getattr(row, "span", None), *getattr(row, "also", ()))
        return made

    first = returning(lines[start + 1 : middle], " " * 8)
    return [*lines[: start + 1], *first, *returning(lines[middle + 1 : end], " " * 4)]


def folded(block: Block, atoms: Iterable[Atom]) -> tuple[Span, ...]:
    """The places of what has no name and is written out where `atoms` are read."""
    found: dict[tuple, Span] = {}
    pending = list(atoms)
    while pending:
        atom = pending.pop()
        let = block.makers.get(atom) if isinstance(atom, Var) and atom in block.env else None
        if let is None or isinstance(atom, Var) and block.env[atom].is_name:
            continue
        pending += let.args
        if let.span is not None:
            found.setdefault((let.span.file, let.span.line, let.span.role), let.span)
    return tuple(found.values())


def wrapped(row: str, limit: int = 110) -> list[str]:
    """A line as it is, or broken behind its first bracket that closes at its end, as a formatter does."""
    if len(row) <= limit or '"' in row or "#" in row:
        return [row]
    indent = row[: len(row) - len(row.lstrip())]
    for start, character in enumerate(row):
        if character not in "([{":
            continue
        end = _closing(row, start)
        if end is not None and row[end + 1 :] in ("", ":", ")", "):"):
            inside = row[start + 1 : end]
            tail = indent + row[end:]
            if len(indent) + 4 + len(inside) <= limit:
                return [row[: start + 1], f"{indent}    {inside}", tail]
            pieces = [f"{indent}    {piece}," for piece in _split(inside)]
            return [row[: start + 1], *(line for p in pieces for line in wrapped(p, limit)), tail]
    return [row]


def _closing(row: str, start: int) -> int | None:
    depth = 0
    for place in range(start, len(row)):
        depth += (row[place] in "([{") - (row[place] in ")]}")
        if depth == 0:
            return place
    return None


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no bracket."""
    pieces, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            pieces.append(text[start:place].strip())
            start = place + 1
    return [*pieces, text[start:].strip()]


def compile_numpy(text: str) -> Callable[..., Any]:
    """The last function of a module's text, executed; tracebacks and pdb show its lines."""
    filename = f"<numpy source {sha256(text.encode()).hexdigest()[:12]}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    _in_use[filename] += 1
    namespace: dict[str, Any] = {"__name__": "metaphrase_numpy_source"}
    exec(compile(text, filename, "exec"), namespace)
    for name, wanted in re.findall(r"^ *class (\w+)\(\w+\):  # raised as (\S+)$", text, re.MULTILINE):
        found = exception_class(wanted)
        namespace[name] = namespace[name] if found is RuntimeError else found
    last = [line[4 : line.index("(")] for line in text.splitlines() if line.startswith("def ")][-1]
    made = namespace[last]
    made.file, made.places = filename, getattr(text, "places", {})
    weakref.finalize(made, _let_go, filename).atexit = False
    if "warnings" in namespace:
        namespace["warnings"] = Warner(made.places)
    return made


_in_use: Counter[str] = Counter()  # texts that tracebacks may show: how many functions were made of each


def _let_go(filename: str) -> None:
    _in_use[filename] -= 1
    if not _in_use[filename]:
        del _in_use[filename]
        linecache.cache.pop(filename, None)


class Warner:
    """Stands for the module `warnings` in a text that is run here: it warns at the user's lines."""

    def __init__(self, places: Mapping[int, Span]):
        self.places = places

    def warn(self, message: str, category: type[Warning], stacklevel: int = 1) -> None:
        warn_user(category, message, self.places.get(sys._getframe(1).f_lineno), stacklevel - 1)


__all__ = ["compile_numpy", "folded", "returned_at_once", "without_unread", "wrapped"]
