"""Places in the user's source, text that knows which place each of its lines comes from, and errors that point at
them.

In: a file, a line, a column. Out: `Span`; `SourceText`; and `SourceError`, whose text shows the line, a caret, one
cause, one remedy.

>>> print(SourceError("the branches leave different types", Span("<none>", 3, 4), remedy="make both f64"))
<none>:3:5: the branches leave different types
  remedy: make both f64
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .late import dataclass

_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source. `line` counts from 1, `column` from 0, in characters.

    `role` says what the code made from it computes: primal, tangent, adjoint, recomputed. Under vmap the first
    `lanes` axes of its results are lanes, or, where `by_lane`, the iterations of the loop it made are. `turns`: the
    iterations, from 0, of the loops around it that were unrolled.
    """

    file: str
    line: int
    column: int = 0
    end_line: int | None = None
    end_column: int | None = None
    role: str = "primal"
    function: str = ""
    lanes: int = 0
    by_lane: bool = False
    turns: tuple[int, ...] = ()

    def with_role(self, role: str) -> Span:
        return replace(self, role=role)

    def text(self) -> str:
        """The source line, without its newline; empty if it can't be read."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Row(str):
    """A line of text and the place in the user's source that it comes from, and others that have a part in it."""

    span: Span | None = None
    also: tuple[Span, ...] = ()


class SourceText(str):
    """Text made of rows. `places`: its line numbers, from 1, to places in the user's source; `also`: to others
    that have a part in a line."""

    places: Mapping[int, Span] = {}
    also: Mapping[int, tuple[Span, ...]] = {}

    def __reduce__(self) -> tuple:
        return str, (str(self),)  # elsewhere it is text


def rows_at(lines: Iterable[str], span: Span | None = None, *also: Span) -> list[str]:
    """The lines, each with its place."""
    made: list[str] = []
    for line in lines:
        row = Row(line)
        row.span, row.also = span, also
        made.append(row)
    return made


def with_places(text: str, body: Sequence[str]) -> SourceText:
    """`text`, which ends with the rows of `body`."""
    made, number = SourceText(text), text.rstrip("\n").count("\n") + 1
    places, others = {}, {}
    for row in reversed(body):
        span, also = getattr(row, "span", None), getattr(row, "also", ())
        for _ in range(row.count("\n") + 1):
            if span is not None:
                places[number] = span
            if also:
                others[number] = also
            number -= 1
    made.places, made.also = places, others
    return made


def close_name(name: str, names: Iterable[str]) -> str | None:
    """The name that was meant, if one is much like it."""
    import difflib

    return next(iter(difflib.get_close_matches(name, names, 1)), None)


def is_library(module: str) -> bool:
    """Whether a module is Python's, NumPy's or ours, and no user's."""
    top = module.partition(".")[0]
    return top in ("numpy", "scipy", "metaphrase") or top in sys.stdlib_module_names and top != "__main__"


def is_installed(file: str) -> bool:
    """Whether a file belongs to an installed package, which stays what it is while a process runs."""
    return any(f"{os.sep}{folder}{os.sep}" in file for folder in ("site-packages", "dist-packages"))


def caller_span() -> Span | None:
    """Where the user's code called into this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        if frame.f_back is None:
            return None
        frame = frame.f_back
    positions = list(frame.f_code.co_positions())
    line, end_line, column, end_column = positions[frame.f_lasti // 2]
    if line is None:
        return Span(frame.f_code.co_filename, frame.f_lineno)
    return Span(frame.f_code.co_filename, line, column or 0, end_line, end_column, function=frame.f_code.co_name)


def excerpt(span: Span) -> str:
    """The line and a caret under the span, indented by two; empty if the source can't be read."""
    text = span.text()
    if not text.strip():
        return ""
    body = text.lstrip()
    cut = len(text) - len(body)
    start = max(span.column - cut, 0)
    one_line = span.end_line in (None, span.line)
    end = span.end_column - cut if one_line and span.end_column is not None else len(body)
    return f"  {body}\n  {' ' * start}{'^' * max(1, min(end, len(body)) - start)}"


class SourceError(Exception):
    """An error in the user's program. One cause (`message`), one `remedy`, a stable `code`.

    `notes` are further (text, span) pairs, shown after the first place.
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        remedy: str = "",
        code: str = "",
        notes: tuple[tuple[str, Span | None], ...] = (),
    ):
        super().__init__(message)
        self.message, self.span, self.remedy, self.code, self.notes = message, span, remedy, code, notes

    def __str__(self) -> str:
        place = f"{self.span.file}:{self.span.line}:{self.span.column + 1}: " if self.span else ""
        rows = [f"{place}{self.message}" + (f" [{self.code}]" if self.code else "")]
        if self.span and (shown := excerpt(self.span)):
            rows.append(shown)
        for text, span in self.notes:
            rows.append(f"{span.file}:{span.line}: {text}" if span else text)
            if span and (shown := excerpt(span)):
                rows.append(shown)
        if self.remedy:
            rows.append(f"  remedy: {self.remedy}")
        return "\n".join(rows)


class ShapeError(SourceError, ValueError):
    """Shapes that do not fit."""


class OutOfBounds(SourceError, IndexError):
    """An index known to be out of range."""


class DTypeError(SourceError, TypeError):
    """A dtype, or a kind of value, where another is needed."""


class UnsupportedError(SourceError, TypeError):
    """A construct that metaphrase refuses; the text says why and what to write instead."""


class UnboundAxisError(SourceError, NameError):
    """The name of an axis that nothing around is mapped over."""


class Errors(SourceError):
    """Several refusals, reported together."""

    def __init__(self, errors: list[SourceError]):
        first = errors[0]
        super().__init__(first.message, first.span, remedy=first.remedy, code=first.code)
        self.errors = errors

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.errors))
