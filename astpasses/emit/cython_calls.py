"""Library calls as Cython lines.

In: a `Call` and the function it stands in. Out: lines; C helpers of the routine go into the writer's `routines`.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from metaphrase.astpasses.schedule.nest import Call, View

if TYPE_CHECKING:
    from .cython_function import FunctionWriter


def routine_text(writer: "FunctionWriter", stmt: Call) -> list[str]:
    """The lines of one call."""
    return ROUTINES[stmt.routine](writer, stmt)


def address_of(writer: "FunctionWriter", view: View) -> str:
    """A pointer to the first element of a view."""
    from metaphrase.astpasses.schedule.expressions import address
    offset = address(view.index, view.buf.dims, writer.printer)
    writer.type(view.buf.dtype)
    return view.buf.name if offset == "0" else f"{view.buf.name} + {offset}"


ROUTINES: dict = {}
