"""Small arrays that are written in a program, of which all threads read the same element at a time.

In: a program whose kernels are given such arrays. Out: the same for a target with memory for constants, where a kernel
has them itself: one read serves all threads of a warp. What threads read apart stays in the memory of all. Example:

    for i in range(n):      # on the grid              static __constant__ const f64 w[5] = {...};
        for j in range(5):                      ->     ...
            s = s + w[j]*x[i + j]                      s += w[j]*x[i + j];
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metaphrase.core.dims import symbols

from .nest import Bind, Buf, CallFn, E, Fn, For, Program, Stmt, expression_symbols, loaded, loads, walk


def with_tables(program: Program) -> Program:
    """The program whose kernels have what they can of its constants."""
    room = program.target.constant_bytes
    own: dict[str, set[Buf]] = {}
    for fn in program.fns:
        if not room or not fn.kernel:
            continue
        for buf in _read_together(fn):
            if buf.data.nbytes <= room:
                room -= buf.data.nbytes
                own.setdefault(fn.name, set()).add(buf)
    if not own:
        return program
    kept = {fn.name: [buf not in own.get(fn.name, ()) for buf in fn.bufs] for fn in program.fns}

    def call(stmt: Stmt) -> Stmt:
        if isinstance(stmt, CallFn) and stmt.fn in own:
            return replace(stmt, bufs=tuple(b for b, keep in zip(stmt.bufs, kept[stmt.fn]) if keep))
        return stmt.with_blocks(tuple(tuple(map(call, block)) for block in stmt.blocks)) if stmt.blocks else stmt

    def given(fn: Fn) -> Fn:
        bufs = tuple(b for b in fn.bufs if b not in own.get(fn.name, ()))
        return replace(fn, bufs=bufs, body=tuple(map(call, fn.body)))

    return replace(program, entry=given(program.entry), fns=tuple(map(given, program.fns)))


def _read_together(fn: Fn) -> list[Buf]:
    """The constants of a kernel whose places do not depend on which thread reads."""
    alike = _alike(fn)
    read = [load for s in walk(fn.body) for load in loaded(s)]
    apart = {load.buf for load in read if any(isinstance(i, E) or symbols(i) - alike for i in load.index)}
    given = {b for b in fn.bufs if b.space == "const" and _is_written_out(b.data)} - apart
    return [b for b in dict.fromkeys(load.buf for load in read) if b in given]


def _is_written_out(array: np.ndarray) -> bool:
    """Whether C's text has a word for each element."""
    return array.dtype.kind in "biu" or array.dtype in (np.float32, np.float64) and bool(np.isfinite(array).all())


def _alike(fn: Fn) -> set[str]:
    """The integers that are the same in all threads at a time."""
    alike = set(fn.sizes)
    for s in walk(fn.body):
        if isinstance(s, For) and not s.on and symbols(s.extent) <= alike:
            alike.add(s.index)
        elif isinstance(s, Bind) and not loads(s.value) and expression_symbols(s.value) <= alike:
            alike.add(s.name)
        elif s.binds is not None:
            alike.discard(s.binds)
    return alike


__all__ = ["with_tables"]
