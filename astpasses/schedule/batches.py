"""Calls of a library on many lines at once, as loops that threads can share, and back.

In: a call whose views have a dim of lines beside the one that it works along; a loop around a call on one line. Out:
the other one of the two. Example:

    library('fft', (view(x, (0, 0), (n, m), (m, 1)),), ..., axis=1)

    for i in range(n):
        library('fft', (view(x, (i, 0), (m,), (1,)),), ..., axis=0)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from metaphrase.core.dims import DimLike, Sym, substitute, symbols_of

from .nest import E, Fn, For, LibraryCall, Program, Stmt, View, walk
from .target import LINES, Target
from .views import row_strides, view_part


def apart(program: Program) -> Program:
    """The program with loops around calls on one line each, where threads may share them."""
    return _mapped(program, lambda stmt, fn: _loop(stmt, fn, program.target))


def together(program: Program) -> Program:
    """The program with one call where a loop is nothing but calls on one line after the other."""
    return _mapped(program, lambda stmt, fn: _in_one_call(stmt, program.target))


def _mapped(program: Program, rule: Callable[[Stmt, Fn], Stmt]) -> Program:
    def block(stmts: tuple[Stmt, ...], fn: Fn) -> tuple[Stmt, ...]:
        rows = (rule(s.with_blocks(tuple(block(b, fn) for b in s.blocks)) if s.blocks else s, fn) for s in stmts)
        return tuple(rows)

    if not any(isinstance(s, LibraryCall) for fn in (program.entry, *program.fns) for s in walk(fn.body)):
        return program
    entry, *fns = (replace(fn, body=block(fn.body, fn)) for fn in (program.entry, *program.fns))
    return replace(program, entry=entry, fns=tuple(fns))


def _loop(call: Stmt, fn: Fn, target: Target) -> Stmt:
    if not isinstance(call, LibraryCall):
        return call
    offer = target.offer(call.operation)
    if offer is None or not offer.side_by_side or offer.layout != LINES or len(call.reads[0].extents) != 2:
        return call
    index, lines = fn.names.fresh("i"), 1 - dict(call.attributes)["axis"]

    def line(view: View) -> View:
        return view_part(view, (lines,), (Sym(index),))

    reads, writes = tuple(map(line, call.reads)), tuple(map(line, call.writes))
    body = replace(call, reads=reads, writes=writes, attributes=_along(call, 0))
    return For(index, call.reads[0].extents[lines], (body,), "par", call.span)


def _in_one_call(stmt: Stmt, target: Target) -> Stmt:
    if not isinstance(stmt, For) or stmt.kind != "par" or len(stmt.body) != 1:
        return stmt
    call = stmt.body[0]
    offer = target.offer(call.operation) if isinstance(call, LibraryCall) else None
    if (
        not isinstance(call, LibraryCall)
        or offer is None
        or offer.layout != LINES
        or not offer.together
        or len(call.reads[0].extents) != 1
    ):
        return stmt
    made = [_lines(view, stmt) for view in (*call.reads, *call.writes)]
    views = tuple(view for view in made if view is not None)
    if len(views) < len(made):
        return stmt
    reads, writes = views[: len(call.reads)], views[len(call.reads) :]
    return replace(call, reads=reads, writes=writes, attributes=_along(call, 1))


def _along(call: LibraryCall, axis: int) -> tuple:
    return tuple(sorted((dict(call.attributes) | {"axis": axis}).items()))


def _lines(view: View, loop: For) -> View | None:
    """What the view is over all iterations; None where they do not lie at equal distances."""
    stride: DimLike = 0
    first: list[DimLike] = []
    for entry, step in zip(view.index, row_strides(view.buf.dims)):
        if isinstance(entry, E):
            return None
        first.append(substitute(entry, {loop.index: 0}))
        stride = stride + (substitute(entry, {loop.index: Sym(loop.index) + 1}) - entry) * step
    if loop.index in symbols_of((stride, *view.extents, *view.strides)):
        return None
    return View(view.buf, tuple(first), (loop.extent, *view.extents), (stride, *view.strides))


__all__ = ["apart", "together"]
