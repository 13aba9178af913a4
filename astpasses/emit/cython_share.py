"""Loops that threads share, as Cython: what a part needs is packed as an entry's arguments are.

In: a `For` whose iterations are parts (schedule/share.py). Out: the lines in its place, and a function that unpacks.

    cdef int share_0_of_entry(mp_ctx* c, void** buffers, const i64* sizes, i64 i) noexcept nogil:
        cdef i64 n = sizes[0]
        return part_0(c, <f64_p>buffers[0], <f64_p>buffers[1], 4096*i, min(4096, n - 4096*i))
    ...
        mp_buffers[0] = <void*>x
        mp_buffers[1] = <void*>y
        mp_sizes[0] = n
        mp_status = mp_share(c, share_0_of_entry, mp_buffers, mp_sizes, (n + 4095)//4096)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metaphrase.astpasses.schedule.nest import Buf, CallFn, For, walk
from metaphrase.core.dims import symbols_of

from .spell import CALL

if TYPE_CHECKING:
    from .cython_function import FunctionWriter


def share(writer: FunctionWriter, depth: int, loop: For) -> None:
    """Write the lines in the place of the loop; the function that they name goes into `writer.parts`."""
    (call,) = loop.body
    assert isinstance(call, CallFn)
    names = sorted(symbols_of(call.sizes) - {loop.index})
    shared = [s for s in walk(writer.fn.body) if isinstance(s, For) and s.part is not None]
    buffers = max(len(s.body[0].bufs) for s in shared)  # type: ignore[attr-defined]
    sizes = max(len(symbols_of(s.body[0].extents) - {s.index}) for s in shared)
    writer.use("mp_share")
    if buffers:
        writer.variable("void*", f"mp_buffers[{buffers}]")
    if sizes:
        writer.variable("i64", f"mp_sizes[{sizes}]")
    for k, buf in enumerate(call.bufs):
        writer.line(depth, f"mp_buffers[{k}] = <void*>{_address(writer, depth, buf)}")
    for k, name in enumerate(names):
        writer.line(depth, f"mp_sizes[{k}] = {name}")
    packed = f"{'mp_buffers' if buffers else 'NULL'}, {'mp_sizes' if sizes else 'NULL'}"
    function = f"share_{len(writer.parts)}_of_{'entry' if writer.is_entry else writer.fn.name}"
    writer.passed_on(depth, f"mp_share(c, {function}, {packed}, {writer.printer.dim(loop.extent)})")
    writer.parts.append(_unpacking(writer, loop, call, function, names))


def _address(writer: FunctionWriter, depth: int, buf: Buf) -> str:
    """Where an array begins, or a copy of a number: the number itself stays in a register."""
    if buf.dims:
        return buf.name
    copy = writer.variable(writer.type(buf.dtype), f"mp_{buf.name}")
    writer.line(depth, f"{copy} = {buf.name}")
    return f"&{copy}"


def _unpacking(writer: FunctionWriter, loop: For, call: CallFn, function: str, names: list[str]) -> str:
    rows = [f"cdef int {function}(mp_ctx* c, void** buffers, const i64* sizes, i64 {loop.index}) noexcept nogil:"]
    rows += [f"    cdef i64 {name} = sizes[{k}]" for k, name in enumerate(names)]
    given = []
    for k, buf in enumerate(call.bufs):
        pointer = f"<{writer.type(buf.dtype)}_p>buffers[{k}]"
        given.append(pointer if buf.dims else f"({pointer})[0]")
    given += [writer.printer.dim(size, CALL) for size in call.sizes]
    rows.append(f"    return {call.fn}({', '.join(['c', *given])})")
    return "\n".join(rows) + "\n"


__all__ = ["share"]
