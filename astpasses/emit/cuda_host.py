"""What the host does of a program for a GPU, as Python: memory, launches, libraries, and control flow around them.

In: a scheduled Program with kernels. Out: the lines of its functions; `c` is a run of the program (runtime/cuda.py),
which also reads the arrays of one element that variables lie in. Example:

    def softmax(c, x, n):
        out = c.empty((n, 200), "f64")
        c.rows("softmax_0", n, 256, x, out, n)
        return (out,)
"""

from __future__ import annotations

from metaphrase.astpasses.schedule.expressions import ATOM, COMPARE, UNARY, ExpressionPrinter, Text, address
from metaphrase.astpasses.schedule.nest import (
    Bind,
    Buf,
    CallFn,
    Const,
    E,
    Effect,
    Fn,
    For,
    Grow,
    If,
    LibraryCall,
    Load,
    Op,
    Program,
    SetDims,
    Stmt,
    Swap,
    View,
    While,
    loaded,
    mentions,
    used_inside,
    walk,
)
from metaphrase.core.dims import DimLike, substitute
from metaphrase.core.types import dtype_name

_WORDS = {"and": "and", "or": "or", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


class HostPrinter(ExpressionPrinter):
    """Spells what the host works out: integers, conditions on them, and elements that it reads."""

    def constant(self, e: Const) -> Text:
        return repr(e.value.item()), ATOM

    def place(self, e: Load) -> Text:
        return f"c.read({e.buf.name})", ATOM

    def index_value(self, dim: DimLike) -> Text:
        return self.spell_dim(dim)

    def is_infix(self, e: Op) -> bool:
        return e.name in ("add", "sub", "mul")

    def function(self, e: Op) -> Text:
        if e.name in _WORDS:
            a, b = (self.text(x, COMPARE + 1) for x in e.args)
            return f"{a} {_WORDS[e.name]} {b}", COMPARE
        if e.name == "not":
            return f"not {self.text(e.args[0], UNARY)}", COMPARE
        return f"{e.name}({', '.join(map(self.text, e.args))})", ATOM

    def dim_function(self, kind: str, operands: tuple[str, ...]) -> str:
        a, b = operands
        if kind in ("max", "min"):
            return f"{kind}({a}, {b})"
        if b.isdigit() and b != "0":
            return f"(({a}) {'//' if kind == 'floordiv' else '%'} {b})"
        return f"c.{kind}({a}, {b})"  # a size may be 0


def _kind(buf: Buf) -> str:
    return repr(dtype_name(buf.dtype))


class HostWriter:
    """Writes the functions of the host; `whole()` gives the lines."""

    def __init__(self, program: Program, name: str):
        self.program, self.name, self.printer = program, name, HostPrinter()
        self.kernels = {fn.name: fn for fn in program.fns if fn.kernel}
        self.may_fail = any(fn.fails for fn in self.kernels.values())
        self.lines: list[str] = []
        self.functions = 0  # that are rounds of loops
        self.body: tuple[Stmt, ...] = ()  # of the function that is being written

    @property
    def same_each_run(self) -> bool:
        """Whether the host launches kernels and calls libraries, and does nothing else: it waits for no number, calls
        no Python, and no kernel has to run again for want of memory."""
        if any(isinstance(s, Grow) for fn in self.program.fns for s in walk(fn.body)):
            return False
        host = [s for fn in (self.program.entry, *self.program.fns) if fn.kernel is None for s in walk(fn.body)]
        return not any(isinstance(s, (Effect, Grow)) or any(loaded(s)) for s in host)

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def whole(self) -> str:
        for fn in self.program.fns:
            if fn.kernel is None:
                self.function(fn)
                self.lines += ["", ""]
        self.entry()
        return "\n".join(self.lines) + "\n"

    def function(self, fn: Fn) -> None:
        self.line(0, f"def {fn.name}({', '.join(['c', *(b.name for b in fn.bufs), *fn.sizes])}):")
        self.temporaries(fn)
        self.body = fn.body
        self.block(1, fn.body)

    def entry(self) -> None:
        program, fn = self.program, self.program.entry
        names = ["c", *(b.name for b in program.params), *program.sizes]
        self.line(0, f"def {self.name}({', '.join(names)}):")
        passed = {buf for s in walk(fn.body) for buf in used_inside(s)}
        for k, buf in enumerate(program.constants):
            if buf in passed:
                self.line(1, f"{buf.name} = c.constant({k})")
        for buf in program.results:
            if buf.space == "out" and not buf.dynamic:
                self.allocate(1, buf)
        self.temporaries(fn)
        self.body = fn.body
        self.block(1, fn.body)
        self.line(1, f"return ({', '.join(b.name for b in program.results)},)" if program.results else "return ()")

    def temporaries(self, fn: Fn) -> None:
        used = {b for s in walk(fn.body) for a in s.accesses for b in [a.buf]}
        used |= {load.buf for s in walk(fn.body) for load in loaded(s)}
        for buf in fn.temps:
            if buf.dynamic or buf.space in ("room", "stack"):
                self.line(1, f"{buf.name} = None")
            elif buf.dims and buf in used:
                self.allocate(1, buf)

    def allocate(self, depth: int, buf: Buf) -> None:
        self.line(depth, f"{buf.name} = c.empty({self.dims(buf.dims)}, {_kind(buf)})")

    def dims(self, dims: tuple[DimLike, ...]) -> str:
        texts = [self.printer.dim(d) for d in dims]
        return f"({', '.join(texts)}{',' * (len(texts) == 1)})"

    # --- statements -------------------------------------------------------------------------------

    def block(self, depth: int, block: tuple[Stmt, ...]) -> None:
        for stmt in block:
            getattr(self, "stmt_" + type(stmt).__name__)(depth, stmt)
        if not block:
            self.line(depth, "pass")

    def expression(self, e: E) -> str:
        return self.printer.text(e)

    def stmt_Bind(self, depth: int, stmt: Bind) -> None:
        self.line(depth, f"{stmt.name} = {self.expression(stmt.value)}")

    def stmt_For(self, depth: int, stmt: For) -> None:
        self.line(depth, f"for {stmt.index} in range({self.printer.dim(stmt.extent)}):")
        self.block(depth + 1, stmt.body)

    def is_ahead(self, stmt: While) -> bool:
        """Whether a kernel ends a loop: the host may start rounds before it knows whether they are wanted."""
        kernels = [self.kernels[s.fn].kernel for s in stmt.body if isinstance(s, CallFn) and s.fn in self.kernels]
        return any(kernel is not None and kernel.ends is not None for kernel in kernels)

    def rounds(self, depth: int, stmt: While) -> None:
        """The rounds of such a loop as a function of what the host changes in one."""
        counted = [stmt.counter] if mentions(self.body, stmt.counter) else []
        swapped = dict.fromkeys(name for s in stmt.body if isinstance(s, Swap) for name in (s.a.name, s.b.name))
        names, self.functions = [*swapped, *counted], self.functions + 1
        given = ", ".join(names) + "," * (len(names) == 1)
        for name in counted:
            self.line(depth, f"{name} = 0")
        self.line(depth, f"def round_{self.functions}({', '.join(names)}):")
        self.block(depth + 1, stmt.body)
        self.line(
            depth + 1, f"return ({', '.join([*swapped, *(f'{name} + 1' for name in counted)])}{',' * bool(names)})"
        )
        result = f"{given} = " if names else ""
        answer = stmt.condition.buf.name  # type: ignore[attr-defined]
        self.line(depth, f"{result}c.rounds(round_{self.functions}, {answer}, ({given}))")

    def stmt_While(self, depth: int, stmt: While) -> None:
        if self.is_ahead(stmt):
            self.rounds(depth, stmt)
            return
        if stmt.limit is None and not stmt.before and not mentions(self.body, stmt.counter):
            self.line(depth, f"while {self.expression(stmt.condition)}:")
            self.block(depth + 1, stmt.body)
            return
        limit = f"{stmt.counter} < {self.printer.dim(stmt.limit)}" if stmt.limit is not None else "True"
        self.line(depth, f"{stmt.counter} = 0")
        self.line(depth, f"while {limit}:")
        if stmt.before:
            self.block(depth + 1, stmt.before)
        self.line(depth + 1, f"if not {self.printer.text(stmt.condition, UNARY)}:")
        self.line(depth + 2, "break")
        if stmt.body:
            self.block(depth + 1, stmt.body)
        self.line(depth + 1, f"{stmt.counter} += 1")

    def stmt_If(self, depth: int, stmt: If) -> None:
        self.line(depth, f"if {self.expression(stmt.condition)}:")
        self.block(depth + 1, stmt.then)
        if stmt.orelse:
            self.line(depth, "else:")
            self.block(depth + 1, stmt.orelse)

    def stmt_CallFn(self, depth: int, stmt: CallFn) -> None:
        args = [*(b.name for b in stmt.bufs), *(self.printer.dim(d) for d in stmt.sizes)]
        fn = self.kernels.get(stmt.fn)
        if fn is None or fn.kernel is None:
            self.line(depth, f"{stmt.fn}({', '.join(['c', *args])})")
            return
        kernel = fn.kernel
        how = "one" if kernel.count is None else "rows" if kernel.together else "each"
        given = dict(zip(fn.sizes, stmt.sizes))
        count = [] if kernel.count is None else [self.printer.dim(substitute(kernel.count, given))]
        args = [repr(fn.name), *count, str(kernel.threads), *args]
        if self.may_fail:
            how = f"{how}_checked"
        if any(isinstance(s, Grow) for s in walk(fn.body)):
            how, kept = f"{how.partition('_')[0]}_growing", self.overwritten(fn, stmt)
            args.insert(1, f"({', '.join(kept)}{',' * (len(kept) == 1)})")
        self.line(depth, f"c.{how}({', '.join(args)})")

    def overwritten(self, fn: Fn, call: CallFn) -> list[str]:
        """The arrays that a kernel both reads and stores into: to run it once more takes what they held."""
        read = {load.buf for s in walk(fn.body) for load in loaded(s)}
        read |= {a.buf for s in walk(fn.body) for a in s.accesses if not a.write}
        return [given.name for buf, given in zip(fn.bufs, call.bufs) if given in call.writes and buf in read]

    def stmt_Effect(self, depth: int, stmt: Effect) -> None:
        into = [f"into=({', '.join(b.name for b in stmt.writes)},)"] if stmt.writes else []
        self.line(depth, f"c.effect({', '.join([str(stmt.site), *(b.name for b in stmt.reads), *into])})")

    def stmt_Swap(self, depth: int, stmt: Swap) -> None:
        self.line(depth, f"{stmt.a.name}, {stmt.b.name} = {stmt.b.name}, {stmt.a.name}")

    def stmt_Grow(self, depth: int, stmt: Grow) -> None:
        for buf in stmt.bufs:
            dims = self.dims((stmt.length, *buf.dims[1:]))
            if buf.space == "stack":
                self.line(depth, f"{buf.name} = c.grow({buf.name}, {dims}, {_kind(buf)})")
            else:
                self.line(depth, f"{buf.name} = c.empty({dims}, {_kind(buf)})")

    def stmt_SetDims(self, depth: int, stmt: SetDims) -> None:
        self.allocate(depth, stmt.buf)

    def stmt_LibraryCall(self, depth: int, stmt: LibraryCall) -> None:
        reads, writes = (f"({', '.join(map(self.view, views))},)" for views in (stmt.reads, stmt.writes))
        attributes = "".join(f", {name}={value!r}" for name, value in stmt.attributes)
        self.line(depth, f"c.library({stmt.site}, {stmt.operation!r}, {reads}, {writes}{attributes})")

    def view(self, view: View) -> str:
        """A part of an array; the whole one by its name."""
        natural: list[DimLike] = []
        stride: DimLike = 1
        for extent in reversed(view.buf.dims):
            natural.insert(0, stride)
            stride = stride * extent
        offset = address(view.index, view.buf.dims, self.printer)
        if (
            offset == "0"
            and view.buf.space != "stack"
            and view.extents == view.buf.dims
            and list(view.strides) == natural
        ):
            return view.buf.name
        return f"c.view({view.buf.name}, {offset}, {self.dims(view.extents)}, {self.dims(view.strides)})"


__all__ = ["HostWriter"]
