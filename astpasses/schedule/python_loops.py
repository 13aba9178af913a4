"""The loops stage as a program: Python loops over NumPy buffers, exact in every dtype, run by the tests.

In: a `Program`. Out: its text, and `run(program, *arrays)`. Example of the text:

    def sin_sum(x, n):
        s = f64(0.0)
        for i in range(n):
            s = s + np.sin(x[i])
        return s
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase.core.dims import Dim, DimLike
from metaphrase.core.scalars import MONOIDS
from metaphrase.core.types import dtype_name
from metaphrase.effects import callback
from metaphrase.late import module
from metaphrase.source import Span, rows_at, with_places

from .expressions import ATOM, CHOICE, COMPARE, UNARY, ExpressionPrinter, Text
from .nest import (
    Bind,
    Buf,
    CallFn,
    Check,
    Combine,
    Const,
    Effect,
    Fn,
    For,
    Grow,
    If,
    LibraryCall,
    Load,
    Nest,
    Op,
    Program,
    SetDims,
    Stmt,
    Store,
    Swap,
    View,
    While,
    never,
    places,
)

python_scalars = module("metaphrase.astpasses.schedule.python_scalars")

NOT = CHOICE + 5  # `not x` binds less tightly than a comparison


class Failed(Exception):
    """A check failed: `site` and the values of its message."""

    def __init__(self, site: int, *values: Any):
        super().__init__(site, *values)
        self.site, self.values = site, values


class PythonPrinter(ExpressionPrinter):
    """Spells expressions as Python on NumPy scalars."""

    def constant(self, e: Const) -> Text:
        name = dtype_name(e.value.dtype)
        if name == "bool":
            return str(bool(e.value)), ATOM
        if e.value.dtype.kind == "c":
            return f"{name}(complex({e.value.real!r}, {e.value.imag!r}))".replace("np.float64", "").replace(
                "np.float32", ""
            ), ATOM
        value = int(e.value) if e.value.dtype.kind in "iu" else float(e.value)
        return f"{name}({value!r})", ATOM

    def place(self, e: Load) -> Text:
        if not e.buf.dims:
            return e.buf.name, ATOM
        return f"{e.buf.name}[{', '.join(map(self.index_entry, e.index))}]", ATOM

    def index_value(self, dim: DimLike) -> Text:
        return f"i64({self.dim(dim)})", ATOM

    def is_infix(self, e: Op) -> bool:
        # A bool may be Python's own here, whose `+` and `*` are those of integers.
        return e.dtype.kind not in {"div": "iu", "add": "b", "mul": "b"}.get(e.name, "")

    def function(self, e: Op) -> Text:
        if e.name == "neg":
            return f"-{self.text(e.args[0], UNARY)}", UNARY
        if e.name == "not" and e.dtype.kind == "b":
            return f"not {self.text(e.args[0], NOT)}", NOT
        if e.name == "not":
            return f"~{self.text(e.args[0], UNARY)}", UNARY
        if e.name == "select":
            c, a, b = e.args
            return (f"{self.text(a, CHOICE + 1)} if {self.text(c, CHOICE + 1)} else {self.text(b, CHOICE + 1)}"), CHOICE
        args = ", ".join(self.text(a, COMPARE - 5) for a in e.args)
        if e.name in ("convert", "bitcast"):
            return f"{e.name}({args}, {dtype_name(e.dtype)})", ATOM
        return f"{e.name}({args})", ATOM

    def dim_function(self, kind: str, operands: tuple[str, ...]) -> str:
        a, b = operands
        if kind in ("max", "min"):
            return f"{kind}({a}, {b})"
        return f"(({a}) {'//' if kind == 'floordiv' else '%'} ({b}))"


class LoopsText:
    """The text of a program; `whole()` gives it."""

    def __init__(self, program: Program):
        self.program, self.printer = program, PythonPrinter()
        self.lines: list[str] = []
        self.places: tuple[Span, ...] = ()  # where the statement that is written comes from

    def line(self, depth: int, text: str) -> None:
        self.lines += rows_at(["    " * depth + text], *self.places)

    def whole(self) -> str:
        for fn in self.program.fns:
            self.function(fn, False)
            self.line(0, "")
        self.function(self.program.entry, True)
        return with_places("\n".join(self.lines) + "\n", self.lines)

    def function(self, fn: Fn, entry: bool) -> None:
        program = self.program
        if entry:
            names = [b.name for b in program.params] + [b.name for b in program.constants] + list(program.sizes)
            self.line(0, f"def {program.name if program.name.isidentifier() else 'program'}({', '.join(names)}):")
            for buf in program.results:
                if buf.dims and not buf.dynamic and buf.space == "out":
                    self.allocate(1, buf)
        else:
            self.line(0, f"def {fn.name}({', '.join([b.name for b in fn.bufs] + list(fn.sizes))}):")
        for buf in fn.temps:
            if not buf.dims:
                continue
            if not buf.dynamic:
                self.allocate(1, buf)
            else:
                self.line(1, f"{buf.name} = None")
        self.block(1, fn.body)
        if fn.result is not None:
            self.line(1, f"return {fn.result.name}")
        if entry:
            self.line(1, f"return ({', '.join(b.name for b in program.results)},)" if program.results else "return ()")

    def allocate(self, depth: int, buf: Buf) -> None:
        dims = ", ".join(self.printer.dim(d) for d in buf.dims)
        self.line(depth, f"{buf.name} = empty(({dims},), {dtype_name(buf.dtype)})")

    def block(self, depth: int, block: tuple[Stmt, ...]) -> None:
        if not block:
            self.line(depth, "pass")
        outer = self.places
        for stmt in block:
            self.places = places(stmt) or outer
            getattr(self, "stmt_" + type(stmt).__name__)(depth, stmt)
        self.places = outer

    def target(self, buf: Buf, index: tuple) -> str:
        return self.printer.place(Load(buf, index))[0]

    def stmt_Store(self, depth: int, stmt: Store) -> None:
        self.line(depth, f"{self.target(stmt.buf, stmt.index)} = {self.printer.text(stmt.result)}")

    def stmt_Bind(self, depth: int, stmt: Bind) -> None:
        self.line(depth, f"{stmt.name} = {self.printer.text(stmt.value)}")

    def stmt_For(self, depth: int, stmt: For) -> None:
        self.line(depth, f"for {stmt.index} in range({self.printer.dim(stmt.extent)}):")
        self.block(depth + 1, stmt.body)

    def stmt_Nest(self, depth: int, stmt: Nest) -> None:
        for axis in stmt.axes:
            self.line(depth, f"for {axis.name} in range({self.printer.dim(axis.extent)}):")
            depth += 1
        self.block(depth, stmt.body)

    def stmt_While(self, depth: int, stmt: While) -> None:
        self.line(depth, f"{stmt.counter} = 0")
        bound = f"{stmt.counter} < {self.printer.dim(stmt.limit)} and " if stmt.limit is not None else ""
        condition = self.printer.text(stmt.condition, COMPARE if bound else 0)
        if stmt.before:
            self.line(depth, f"while {bound[:-5] or 'True'}:")
            self.block(depth + 1, stmt.before)
            self.line(depth + 1, f"if not ({self.printer.text(stmt.condition)}):")
            self.line(depth + 2, "break")
        else:
            self.line(depth, f"while {bound}{condition}:")
        if stmt.body:
            self.block(depth + 1, stmt.body)
        self.line(depth + 1, f"{stmt.counter} += 1")

    def stmt_If(self, depth: int, stmt: If) -> None:
        self.line(depth, f"if {self.printer.text(stmt.condition)}:")
        self.block(depth + 1, stmt.then)
        if stmt.orelse:
            self.line(depth, "else:")
            self.block(depth + 1, stmt.orelse)

    def stmt_Check(self, depth: int, stmt: Check) -> None:
        if not never(stmt.ok):
            self.line(depth, f"if not ({self.printer.text(stmt.ok)}):")
            depth += 1
        values = "".join(", " + self.printer.text(v) for v in stmt.values)
        self.line(depth, f"raise Failed({stmt.site}{values})")

    def stmt_Effect(self, depth: int, stmt: Effect) -> None:
        call = f"effect({', '.join([str(stmt.site)] + [b.name for b in stmt.reads])})"
        into = "".join(f"{b.name}{'[...]' if b.dims else ''}, " for b in stmt.writes)
        self.line(depth, f"{into.rstrip()} = {call}" if into else call)

    def stmt_Swap(self, depth: int, stmt: Swap) -> None:
        self.line(depth, f"{stmt.a.name}, {stmt.b.name} = {stmt.b.name}, {stmt.a.name}")

    def stmt_Grow(self, depth: int, stmt: Grow) -> None:
        for buf in stmt.bufs:
            dims = ", ".join(self.printer.dim(d) for d in (stmt.length, *buf.dims[1:]))
            self.line(depth, f"{buf.name} = grow({buf.name}, ({dims},), {dtype_name(buf.dtype)})")

    def stmt_SetDims(self, depth: int, stmt: SetDims) -> None:
        self.allocate(depth, stmt.buf)

    def stmt_LibraryCall(self, depth: int, stmt: LibraryCall) -> None:
        reads, writes = (f"({', '.join(map(self.view, views))},)" for views in (stmt.reads, stmt.writes))
        values = ((k, self.printer.dim(v) if isinstance(v, Dim) else repr(v)) for k, v in stmt.attributes)
        attributes = "".join(f", {name}={text}" for name, text in values)
        self.line(depth, f"library({stmt.operation!r}, {reads}, {writes}{attributes})")

    def view(self, view: View) -> str:
        start = ", ".join(map(self.printer.index_entry, view.index))
        sizes = (", ".join(map(self.printer.dim, dims)) for dims in (view.extents, view.strides))
        return f"view({view.buf.name}, ({start},), {', '.join(f'({text},)' if text else '()' for text in sizes)})"

    def stmt_Combine(self, depth: int, stmt: Combine) -> None:
        name = MONOIDS[stmt.monoid].combine
        self.line(depth, f"{stmt.buf.name} = {name}({stmt.buf.name}, halves({name}, {stmt.partials.name}))")

    def stmt_CallFn(self, depth: int, stmt: CallFn) -> None:
        args = [b.name for b in stmt.bufs] + [self.printer.dim(d) for d in stmt.sizes]
        given = f"{stmt.result.name} = " if stmt.result is not None else ""
        self.line(depth, f"{given}{stmt.fn}({', '.join(args)})")


def python_loops(program: Program) -> str:
    """The program as Python source; the last function is the whole."""
    return LoopsText(program).whole()


text = python_loops


def function_text(fn: Fn) -> str:
    """One outlined function."""
    made = LoopsText(Program("", (), (), (), (), fn))
    made.function(fn, False)
    return "\n".join(made.lines)


def run(program: Program, *arrays: Any, effect: Any = None, text: str | None = None, **names: Any) -> tuple:
    """Run the loops stage on arrays (parameters in order). Raises `Failed` at a failing site; without `effect` it
    prints nothing. `text`: another text of the program than `python_loops` gives, which may use `names`."""
    from metaphrase.core.evaluate import bind_argument
    from metaphrase.core.types import Array

    def called(site: int, *values: Any) -> Any:
        found = program.sites[site]
        return callback(found.exception)(*values) if found.kind == "callback" else None

    functions = {"Failed": Failed, "effect": effect or called, **names}
    namespace: dict[str, Any] = {**python_scalars.NAMESPACE, **functions}
    namespace.update((b.name, b.data) for b in program.constants)  # nests that stand apart read them, too
    exec(compile(text or python_loops(program), f"<loops of {program.name}>", "exec"), namespace)
    function = namespace[program.name if program.name.isidentifier() else "program"]
    sizes: dict[str, int] = {}
    values = [bind_argument(Array(b.dtype, b.dims), a, sizes) for b, a in zip(program.params, arrays, strict=True)]
    values = [np.array(v) if np.ndim(v) else np.asarray(v)[()] for v in values]
    constants = [b.data for b in program.constants]
    with np.errstate(all="ignore"):
        results = function(*values, *constants, *(sizes[s] for s in program.sizes))
    return tuple(np.asarray(r, b.dtype)[()] if not b.dims else r for r, b in zip(results, program.results))
