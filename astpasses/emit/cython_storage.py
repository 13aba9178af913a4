"""Where the temporaries of a function lie, as Cython: on its stack, in one piece of memory taken on entry, or in
memory that is taken when their sizes are known.

In: the writer of a function. Out: its variables, and the lines that take memory. Example:

    mp_memory = <char*>mp_scratch(c, 2176)
    h = <f64_p>mp_memory
    mean = <f64_p>(mp_memory + 1088)
"""

from __future__ import annotations

from typing import Any

from metaphrase.astpasses.schedule.nest import Buf, used_inside
from metaphrase.core.dims import product

MOST_BYTES = 2**60  # what runtime/abi.h's mp_times stops at


def storage(writer: Any) -> None:
    """Memory of known size is taken from the arena on entry."""
    offset = 0
    by_place: set[Buf] = set().union(*(calls.by_place for calls in writer.rolled.values()))
    for buf in writer.fn.temps:
        name = writer.type(buf.dtype)
        if not buf.dims:
            if buf.name not in writer.variables.get("i64", {}):
                writer.variable(name, buf.name)
            continue
        if buf.space in ("room", "stack"):
            writer.variables.setdefault(f"{name}*", {})[f"{buf.name} = NULL"] = None
            writer.variables.setdefault("i64", {})[f"mp_{buf.name}_room = 0"] = None
            continue
        total = product(buf.dims)
        if buf.space == "frame" and buf not in by_place:
            assert isinstance(total, int)
            writer.variable(name, f"{buf.name}[{max(total, 1)}]")
            continue
        if isinstance(total, int) and writer.one_piece:
            writer.offsets[buf] = offset
            offset += (total * buf.dtype.itemsize + 127) // 64 * 64  # never two with the same low address bits
            continue
        writer.variable(writer.pointer(buf), buf.name)
        writer.line(1, f"{buf.name} = <{writer.pointer(buf)}>mp_scratch(c, {writer.nbytes(buf)})")
        writer.no_memory(1, buf.name)
    if writer.offsets:
        _one_piece(writer, offset)
    for buf in writer.program.results if writer.is_entry else ():
        if buf.dims and buf.dynamic:
            writer.variable(f"{writer.type(buf.dtype)}*", buf.name)


def _one_piece(writer: Any, total: int) -> None:
    """What lies in one piece of memory; with names, but for what only calls in a loop are given."""
    writer.variable("char*", "mp_memory")
    writer.line(1, f"mp_memory = <char*>mp_scratch(c, {writer.printer.whole_number(min(total, MOST_BYTES))})")
    writer.no_memory(1, "mp_memory")
    named: set[Buf] = set()
    if writer.rolled:
        by_name = [buf for calls in writer.rolled.values() for buf in calls.by_name]
        named = set().union(by_name, *(used_inside(s) for s in writer.fn.body if s not in writer.rolled))
    for buf, start in writer.offsets.items():
        if writer.rolled and buf not in named:
            continue
        place = writer.printer.whole_number(min(start, MOST_BYTES))
        memory = f"(mp_memory + {place})" if start else "mp_memory"
        writer.variable(writer.pointer(buf), buf.name)
        writer.line(1, f"{buf.name} = <{writer.pointer(buf)}>{memory}")


__all__ = ["MOST_BYTES", "storage"]
