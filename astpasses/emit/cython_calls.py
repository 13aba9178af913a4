"""Many calls of one function in a row, as a loop: the layers of a network, say.

In: the writer of a program's entry. Out: the calls that one loop can make, and that loop, with a table of where the
arrays of each call lie: an argument or result of the program has its number, a temporary its offset. Example:

    static const int mp_calls_1[] = {
        0, 1, 2, -1,
        -1, 3, 4, -18,
        ...

    for mp_call in range(64):
        mp_locate(buffers, mp_memory, mp_calls_1 + 4*mp_call, 4, mp_places)
        layer(<f64_p>mp_places[0], <f64_p>mp_places[1], <f64_p>mp_places[2], <f64_p>mp_places[3])
"""

from __future__ import annotations

from typing import Any

from metaphrase.astpasses.schedule.nest import Buf, CallFn, Stmt
from metaphrase.core.dims import product
from metaphrase.late import dataclass

FEW = 8  # calls that are written one by one
LINE = 64  # bytes that offsets are multiples of
LOCATE = """static inline void mp_locate(void** buffers, char* memory, const int* codes, int count, void** places) {
    for (int k = 0; k < count; k++) places[k] = codes[k] >= 0 ? buffers[codes[k]] : memory + 64*(i64)~codes[k];
}"""
LOCATE_HEAD = "void mp_locate(void** buffers, char* memory, const int* codes, int count, void** places)"


@dataclass(frozen=True)
class Calls:
    """Calls of one function. `by_name`: the arrays and numbers that all of them are given in one place."""

    stmts: tuple[CallFn, ...]
    by_name: frozenset[Buf]

    @property
    def by_place(self) -> set[Buf]:
        return {buf for stmt in self.stmts for buf in stmt.bufs} - self.by_name


def rolled_calls(writer: Any) -> dict[Stmt, Calls]:
    """The calls that loops make, by each of them."""
    found: dict[Stmt, Calls] = {}
    if not writer.is_entry or sum(isinstance(s, CallFn) for s in writer.fn.body) < FEW:
        return found
    charges = writer.work.behind(writer.fn.body)
    row: list[CallFn] = []
    for k, stmt in enumerate((*writer.fn.body, None)):
        alike = isinstance(stmt, CallFn) and stmt.result is None and k not in charges
        if not alike or row and (row[0].fn, row[0].sizes) != (stmt.fn, stmt.sizes):
            calls = _calls(writer, row) if len(row) >= FEW else None
            found |= dict.fromkeys(row, calls) if calls is not None else {}
            row = []
        if alike:
            row.append(stmt)
    return found


def _calls(writer: Any, row: list[CallFn]) -> Calls | None:
    """Those calls, if what they are given lies where a table can say it."""
    by_name = frozenset(column[0] for column in zip(*(s.bufs for s in row)) if len(set(column)) == 1)
    calls = Calls(tuple(row), by_name)
    return calls if all(_is_placed(writer, buf) for buf in calls.by_place) else None


def _is_placed(writer: Any, buf: Buf) -> bool:
    if not buf.dims or buf.dynamic or buf in writer.swapped:
        return False
    if buf in writer.program.params or buf in writer.program.results:
        return True
    return buf in writer.fn.temps and buf.space in ("arena", "frame") and isinstance(product(buf.dims), int)


def _code(writer: Any, buf: Buf) -> int:
    """Where an array lies: the number of a buffer, or an offset."""
    known = (*writer.program.params, *writer.program.results)
    return known.index(buf) if buf in known else ~(writer.offsets[buf] // LINE)


def calls_in_turn(writer: Any, depth: int, calls: Calls) -> None:
    """The loop, where the first of the calls stands."""
    first = calls.stmts[0]
    varied = [k for k, buf in enumerate(first.bufs) if buf not in calls.by_name]
    table = f"mp_calls_{sum(name.startswith('mp_calls_') for name in writer.routines) + 1}"
    rows = [", ".join(str(_code(writer, stmt.bufs[k])) for k in varied) for stmt in calls.stmts]
    text = "".join(f"\n    {row}," for row in rows)
    writer.routines["mp_locate"] = (LOCATE, LOCATE_HEAD)
    writer.routines[table] = (f"static const int {table}[] = {{{text}\n}};", f"const int* {table}")
    index, memory, count = writer.variable("i64", "mp_call"), "mp_memory" if writer.offsets else "NULL", len(varied)
    writer.places_of_calls = max(count, writer.places_of_calls)
    given = [
        buf.name if buf in calls.by_name else f"<{writer.pointer(buf)}>mp_places[{varied.index(k)}]"
        for k, buf in enumerate(first.bufs)
    ]
    writer.line(depth, f"for {index} in range({len(rows)}):")
    writer.line(depth + 1, f"mp_locate(buffers, {memory}, {table} + {count}*{index}, {count}, mp_places)")
    writer.call(depth + 1, first, given)


__all__ = ["Calls", "calls_in_turn", "rolled_calls"]
