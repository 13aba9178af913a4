"""What stands above a kernel: the user's lines that it does.

In: its body. Out: lines of CUDA C. Example:

    // orbits.py:12  a = -x / r**3
    // orbits.py:13  v = v + dt * a
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator

from metaphrase.astpasses.schedule.nest import Op, Stmt, Store, subexpressions, walk
from metaphrase.source import Span

MOST_LINES = 8


def comment(body: tuple[Stmt, ...]) -> list[str]:
    """The lines, of which there may be none: what stores results only is marked so."""
    places = [span for stmt in walk(body) for span in _spans(stmt)]
    spans = dict.fromkeys((span.file, span.line, span.role) for span in places)
    rows = []
    for file, line, role in sorted(spans, key=lambda place: place[:2]):
        text = linecache.getline(file, line).strip()
        told = "" if role == "primal" else f" ({role})"
        rows.append(f"// {file.rpartition('/')[2]}:{line}{told}  {text}".rstrip())
    arrays = {stmt.buf.space for stmt in walk(body) if isinstance(stmt, Store) and stmt.buf.dims}
    if not rows and arrays == {"out"}:
        rows = ["// what is returned"]
    return rows if len(rows) <= MOST_LINES else [*rows[: MOST_LINES - 1], f"// and {len(rows) - MOST_LINES + 1} more"]


def _spans(stmt: Stmt) -> Iterator[Span]:
    """Where a statement comes from, and the operations that end in it."""
    operations = (x for e in stmt.expressions for x in subexpressions(e) if isinstance(x, Op))
    yield from (span for span in (stmt.span, *(x.span for x in operations)) if span is not None)


__all__ = ["comment"]
