"""What a schedule did that its reader should know: array copies inside loops.

In: a Program. Out: one line a copy. A kernel that updates its arrays in place has none.

    copies_in_loops(program) == ["out[i*n + j] = x[i*n + j] (kernel.py:12)"]
"""

from __future__ import annotations

from collections.abc import Iterator

from .nest import CallFn, For, Load, Program, Stmt, Store, While
from .python_loops import PythonPrinter


def copies_in_loops(program: Program) -> list[str]:
    """Whole-array copies (a nest that only moves elements from one array to another) inside a sequential
    loop."""
    functions = {fn.name: fn.body for fn in program.fns}
    return list(dict.fromkeys(_copies(program.entry.body, False, functions)))


def _copies(block: tuple[Stmt, ...], repeated: bool, functions: dict[str, tuple[Stmt, ...]]) -> Iterator[str]:
    for stmt in block:
        if isinstance(stmt, CallFn):
            yield from _copies(functions[stmt.fn], repeated, functions)
        if isinstance(stmt, For) and stmt.kind == "par" and repeated and (copy := _is_copy(stmt)):
            printer = PythonPrinter()
            target = printer.place(Load(copy.buf, copy.index))[0]
            source = printer.text(copy.value)
            yield f"{target} = {source}" + (f" ({stmt.span})" if stmt.span else "")
            continue
        inside = repeated or isinstance(stmt, While) or isinstance(stmt, For) and stmt.kind == "seq"
        for inner in stmt.blocks:
            yield from _copies(inner, inside, functions)


def _is_copy(nest: For) -> Store | None:
    body = nest.body
    while len(body) == 1 and isinstance(body[0], For):
        body = body[0].body
    if len(body) == 1 and isinstance(body[0], Store):
        store = body[0]
        if store.buf.dims and not store.monoid and isinstance(store.value, Load) and store.value.buf.dims:
            return store
    return None
