"""Loops that threads share, as Cython: what a part needs is packed as an entry's arguments are.

In: a `For` whose iterations are parts (schedule/share.py). Out: the lines in its place, and a function that unpacks.

    cdef int share_0_of_entry(mp_ctx* c, void** buffers, const i64* sizes, i64 i) noexcept nogil:
        cdef i64 n = sizes[0]
        part_0(<f64_p>buffers[0], <f64_p>buffers[1], 4096*i, min(4096, n - 4096*i))
        return 0
    ...
        if 0 < n <= 4096:
            part_0(x, y, 0, n)
        else:
            mp_buffers[0] = <void*>x
            mp_buffers[1] = <void*>y
            mp_sizes[0] = n
            mp_status = mp_share(c, share_0_of_entry, mp_buffers, mp_sizes, (n + 4095)//4096)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metaphrase.astpasses.schedule.expressions import COMPARE
from metaphrase.astpasses.schedule.nest import Buf, CallFn, For, LibraryCall, Program, walk
from metaphrase.core.dims import substitute, symbols_of

from .spell import CALL

if TYPE_CHECKING:
    from .cython_function import FunctionWriter


def share(writer: FunctionWriter, depth: int, loop: For) -> None:
    """Write the lines in the place of the loop; the function that they name goes into `writer.parts`."""
    (call,) = loop.body
    assert isinstance(call, CallFn) and loop.parts is not None
    names = sorted(symbols_of(call.sizes) - {loop.index})
    if not loop.parts.several:  # one part needs no packing
        whole, length = (
            writer.printer.dim(loop.parts.whole, COMPARE + 1),
            writer.printer.dim(loop.parts.length, COMPARE + 1),
        )
        writer.line(depth, f"if 0 < {whole} <= {length}:")
        only = {loop.index: 0}
        first = replace(call, sizes=(*(substitute(d, only) for d in call.sizes[:-1]), loop.parts.whole))
        writer.stmt_CallFn(depth + 1, first)
        writer.line(depth, "else:")
        depth += 1
    for k, buf in enumerate(call.bufs):
        writer.line(depth, f"mp_buffers[{k}] = <void*>{_address(writer, depth, buf)}")
    for k, name in enumerate(names):
        writer.line(depth, f"mp_sizes[{k}] = {name}")
    share = "mp_share_of_blas" if _calls_blas(writer.program, call) else "mp_share"
    writer.use(share)
    packed = [_room(writer, "void*", "mp_buffers", len(call.bufs)), _room(writer, "i64", "mp_sizes", len(names))]
    function = f"share_{len(writer.parts)}_of_{'entry' if writer.is_entry else writer.fn.name}"
    writer.passed_on(depth, f"{share}(c, {function}, {', '.join(packed)}, {writer.printer.dim(loop.extent)})")
    writer.parts.append(_unpacking(writer, loop, call, function, names))


def _calls_blas(program: Program, call: CallFn) -> bool:
    """Whether a function calls what takes threads or locks of its own, or what it calls does."""
    fn = next(fn for fn in program.fns if fn.name == call.fn)
    inside = list(walk(fn.body))
    offers = (program.target.offer(s.operation) for s in inside if isinstance(s, LibraryCall))
    return any(offer is not None and not offer.left_anywhere for offer in offers) or any(
        _calls_blas(program, s) for s in inside if isinstance(s, CallFn)
    )


def _room(writer: FunctionWriter, kind: str, name: str, count: int) -> str:
    """An array that all shared loops of the function use, as large as the largest needs it."""
    if not count:
        return "NULL"
    declared = writer.variables.setdefault(kind, {})
    before = next((text for text in declared if text.startswith(f"{name}[")), f"{name}[0]")
    declared.pop(before, None)
    declared[f"{name}[{max(count, int(before[len(name) + 1 : -1]))}]"] = None
    return name


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
    text = f"{call.fn}({', '.join(['c'] * call.fails + given)})"
    rows += [f"    return {text}"] if call.fails else [f"    {text}", "    return 0"]
    return "\n".join(rows) + "\n"


__all__ = ["share"]
