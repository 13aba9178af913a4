"""Where converted code stands in the user's text.

In: a frame of converted code. Out: the span of what it is doing, and the name that it assigns, if any.

    place_of(frame)    # of `y = f(x)`: (Span("model.py", 3, 8, ...), "y")
"""

from __future__ import annotations

import types

from metaphrase.source import Span

from ..rewrite.convert import hints_of

_known_positions: dict[int, list] = {}
known_places: dict[tuple[int, int], tuple[Span, str | None]] = {}


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
