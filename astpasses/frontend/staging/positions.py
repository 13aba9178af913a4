"""Where converted code stands in the user's text.

In: a frame of converted code. Out: the span of what it is doing, and the name that it assigns, if any.

    place_of(frame)    # of `y = f(x)`: (Span("model.py", 3, 8, ...), "y")
"""

from __future__ import annotations

import sys
import types

from metaphrase.source import Span

from ..rewrite.convert import hints_of, in_users_files, invented_in, is_converted

_known_positions: dict[int, list] = {}
known_places: dict[tuple[int, int], tuple[Span, str | None]] = {}


def place_of_error(error: BaseException) -> Span | None:
    """The innermost line of converted code that an exception left."""
    found, trace = None, error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if id(frame.f_code) in in_users_files:
            found = frame
        trace = trace.tb_next
    return None if found is None else place_of(found)[0]


def place_of(frame: types.FrameType) -> tuple[Span, str | None]:
    """Where converted code stands, in the user's text."""
    code = frame.f_code
    positions = _known_positions.get(id(code))
    if positions is None:
        positions = _known_positions[id(code)] = list(code.co_positions())
    line, end_line, column, end_column = positions[frame.f_lasti // 2]
    hints, function = hints_of(code)
    if line is None:
        return Span(code.co_filename, frame.f_lineno, function=function), None
    span = Span(code.co_filename, line, column or 0, end_line, end_column, function=function)
    return span, hints.get((line, column, end_line, end_column))


def said(name: str) -> str:
    """A variable as messages name it: normal form keeps what a function returns in a name of its own."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and not is_converted(frame.f_code):
        frame = frame.f_back
    ours = frame is not None and name in invented_in(frame.f_code)
    return "the function's result" if ours and name.startswith(("result", "part")) else f"'{name}'"
