"""Text of a NumPy program that knows which of the user's lines each of its lines comes from.

In: rows of a function's body, made by `rows_at`. Out: `SourceText`, a str with `places`; and `compile_numpy`,
which makes it a function that has them too, and the file name of its frames.

    text = numpy_source(f); text.places    ->    {12: Span("model.py", 4, ...), ...}
"""

from __future__ import annotations

import hashlib
import linecache
import re
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from metaphrase.exceptions import exception_class
from metaphrase.ops.effects import warn_user
from metaphrase.source import Span


class Row(str):
    """A line of text and the place in the user's source that it comes from."""

    span: Span | None = None


class SourceText(str):
    """A module's text. `places`: its line numbers, from 1, to places in the user's source."""

    places: Mapping[int, Span] = {}

    def __reduce__(self) -> tuple:
        return str, (str(self),)  # elsewhere it is text


def rows_at(lines: Iterable[str], span: Span | None) -> list[str]:
    """The lines, each with its place."""
    made: list[str] = []
    for line in lines:
        row = Row(line)
        row.span = span
        made.append(row)
    return made


def with_places(text: str, body: list[str]) -> SourceText:
    """`text`, which ends with the rows of `body`."""
    made, number, places = SourceText(text), text.rstrip("\n").count("\n") + 1, {}
    for row in reversed(body):
        span = getattr(row, "span", None)
        for _ in range(row.count("\n") + 1):
            if span is not None:
                places[number] = span
            number -= 1
    made.places = places
    return made


def compile_numpy(text: str) -> Callable[..., Any]:
    """The last function of a module's text, executed; tracebacks and pdb show its lines."""
    filename = f"<numpy source {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
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


_in_use: Counter[str] = Counter()      # texts that tracebacks may show: how many functions were made of each


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


__all__ = ["Row", "SourceText", "compile_numpy", "rows_at", "with_places"]
