"""One function of a Program as Cython text.

In: a `Fn`. Out: its lines, and what they need from the prelude (types, helpers, ABI members, library
routines).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from metaphrase.astpasses.schedule.expressions import COMPARE, TIMES, address
from metaphrase.astpasses.schedule.nest import (
    Bind,
    Buf,
    CallFn,
    Check,
    Combine,
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
    Store,
    Swap,
    View,
    While,
    never,
    places,
    walk,
)
from metaphrase.astpasses.schedule.work import Work
from metaphrase.core.dims import Dim, DimLike, Monomial, product
from metaphrase.core.scalars import MONOIDS, facts
from metaphrase.core.types import i64
from metaphrase.source import SourceText, Span, rows_at, with_places

from .cython_calls import Calls, calls_in_turn, rolled_calls
from .cython_library import combination, library_call
from .cython_share import share
from .cython_simd import before_loop
from .cython_storage import MOST_BYTES, storage
from .polls import ask_each_round, charge
from .spell import CALL, Printer, c_name


def _is_single(monomial: Monomial) -> bool:
    return sum(power for _, power in monomial) <= 1


def _parts(e: E) -> tuple[E, ...]:
    """The real numbers that a number is made of."""
    if e.dtype.kind != "c":
        return (e,)
    real = np.dtype("float64" if e.dtype.itemsize == 16 else "float32")
    return Op("real", (e,), real), Op("imag", (e,), real)


class FunctionWriter:
    """Writes one function; `write()` gives its text."""

    one_piece = True  # scratch of known sizes is taken together; `make sanitize` looks at the end of each

    def __init__(self, program: Program, fn: Fn, is_entry: bool):
        self.program, self.fn, self.is_entry = program, fn, is_entry
        self.printer = Printer()
        self.abi: set[str] = set()
        self.routines: dict[str, tuple[str, str]] = {}
        self.lines: list[str] = []
        self.places: tuple[Span, ...] = ()  # where the statement that is written comes from
        self.variables: dict[str, dict[str, None]] = {}  # C type -> names
        self.swapped = {b for s in walk(fn.body) if isinstance(s, Swap) for b in (s.a, s.b)}
        self.swapped |= {b for s in walk(fn.body) if isinstance(s, Grow) for b in s.bufs}
        self.swapped |= {s.buf for s in walk(fn.body) if isinstance(s, SetDims)}
        self.loops: list[str] = []
        self.simd: set[str] = set()  # combinations of loops that are taken apart
        self.work = Work(program)
        self.rolled: dict[Stmt, Calls] = {}  # by each of them: calls that a loop makes
        self.places_of_calls = 0  # arrays that one of them is given
        self.offsets: dict[Buf, int] = {}  # in the piece of memory that those of known size share
        self.parts: list[str] = []  # functions before this one, for the threads that share its loops

    # --- pieces of text ---------------------------------------------------------------------------

    def line(self, depth: int, text: str) -> None:
        self.lines += rows_at(["    " * depth + text], *self.places)

    def variable(self, kind: str, name: str) -> str:
        self.variables.setdefault(kind, {}).setdefault(name)
        return name

    def type(self, dtype: np.dtype) -> str:
        return c_name(dtype)

    def pointer(self, buf: Buf) -> str:
        """The type of a pointer to `buf`: restrict, unless it changes places with another."""
        return self.type(buf.dtype) + ("*" if buf in self.swapped else "_p")

    def use(self, *names: str) -> None:
        self.abi |= set(names)

    def count(self, dims: tuple[DimLike, ...]) -> str:
        return self.printer.dim(product(dims), TIMES) if dims else "1"

    def nbytes(self, buf: Buf, dims: Sequence[DimLike] | None = None) -> str:
        total = product(buf.dims if dims is None else dims)
        size = buf.dtype.itemsize
        if isinstance(total, int):
            return self.printer.whole_number(min(total * size, MOST_BYTES))
        dims = [d for d in (buf.dims if dims is None else dims) if d != 1]
        factors = [f for d in dims for f in self.factors(d)]
        if all(map(self.fn.facts.nonnegative, dims)):
            return self.times([*factors, str(size)])
        self.use("mp_bytes")
        return f"mp_bytes({self.times(factors)}, {size})"

    def factors(self, dim: DimLike) -> list[str]:
        """What a size is the product of; the products of a sum are such as `times` makes."""
        if not isinstance(dim, Dim) or all(not m or abs(c) == 1 and _is_single(m) for m, c in dim.terms):
            return [self.printer.dim(dim)]
        parts = [
            [self.printer.whole_number(abs(c))] * (abs(c) != 1 or not m)
            + [self.printer.dim(Dim(((((atom, 1),), 1),))) for atom, power in m for _ in range(power)]
            for m, c in dim.terms
        ]
        if len(parts) == 1 and dim.terms[0][1] > 0:
            return parts[0]
        signs = ["-" if c < 0 else "+" for _, c in dim.terms]
        text = "".join(f" {sign} {self.times(part)}" for sign, part in zip(signs, parts))
        return [text.removeprefix(" + ")]

    def times(self, factors: list[str]) -> str:
        """The product of sizes, which stays a size that no memory has where 64 bits do not hold it."""
        if len(factors) > 1:
            self.use("mp_times")
        return functools.reduce(lambda a, b: f"mp_times({a}, {b})", factors)

    # --- the function -----------------------------------------------------------------------------

    def write(self) -> SourceText:
        body_start = 1
        self.rolled = rolled_calls(self) if self.one_piece else {}
        storage(self)
        self.block(body_start, self.fn.body)
        fails = self.is_entry or self.fn.fails
        if self.places_of_calls:
            self.variable("void*", f"mp_places[{self.places_of_calls}]")
        if self.fn.fails and not self.abi.isdisjoint(("mp_scratch", "mp_room")) or self.fn.fails and self.routines:
            self.use("mark", "release")
            self.variable("char*", "mp_mark")
            self.lines.insert(0, "    mp_mark = c.mark(c)")
            self.line(1, "c.release(c, mp_mark)")
        if fails:
            self.line(1, "return 0")
        elif self.fn.result is not None:
            self.line(1, f"return {self.fn.result.name}")
        return self.text(fails)

    def text(self, fails: bool) -> SourceText:
        """The head, the variables and the lines."""
        head = self.head(fails)
        declarations = []
        for kind, names in sorted(self.variables.items()):
            star = "*" if kind.endswith("*") else ""  # a star belongs to one name, not to the line
            plain = [star + n for n in names if "[" not in n]
            arrays = [star + n for n in names if "[" in n]
            for group in (plain, arrays):
                for first in range(0, len(group), 12):
                    declarations.append(f"    cdef {kind.rstrip('*')} {', '.join(group[first : first + 12])}")
        return with_places("\n".join([*head, *declarations, *self.lines]) + "\n", self.lines)

    def head(self, fails: bool) -> list[str]:
        if self.is_entry:
            rows = ["cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:"]
            for k, name in enumerate(self.program.sizes):
                if name in self.used_names():
                    rows.append(f"    cdef i64 {name} = sizes[{k}]")
            for k, buf in enumerate((*self.program.params, *self.program.results)):
                if k >= len(self.program.params) and buf.space == "arg":
                    continue  # made in the argument's place
                if buf.dims:
                    if (buf.name in self.used_names() or buf in self.swapped) and not (
                        buf.dynamic and buf.space == "out"
                    ):
                        rows.append(f"    cdef {self.pointer(buf)} {buf.name} = <{self.pointer(buf)}>buffers[{k}]")
                elif buf.space == "arg" and buf.name in self.used_names():
                    name = self.type(buf.dtype)
                    rows.append(f"    cdef {name} {buf.name} = (<{name}_p>buffers[{k}])[0]")
            return rows
        params = ["mp_ctx* c"] if self.fn.fails else []
        params += [f"{self.pointer(b)} {b.name}" if b.dims else f"{self.type(b.dtype)} {b.name}" for b in self.fn.bufs]
        params += [f"i64 {n}" for n in self.fn.sizes]
        given = self.fn.result
        kind = "int" if fails else self.type(given.dtype) if given is not None else "void"
        return [f"cdef {kind} {self.fn.name}({', '.join(params)}) noexcept nogil:"]

    def used_names(self) -> set[str]:
        if not hasattr(self, "_used"):
            import re

            self._used = set(re.findall(r"[A-Za-z_]\w*", "\n".join(self.lines)))
        return self._used

    def no_memory(self, depth: int, name: str) -> None:
        self.use("mp_scratch", "MP_NO_MEMORY")
        self.line(depth, f"if {name} == NULL:")
        self.line(depth + 1, "return MP_NO_MEMORY")

    def block(self, depth: int, block: tuple[Stmt, ...]) -> None:
        before, outer = len(self.lines), self.places
        charges = self.work.behind(block)
        for k, stmt in enumerate(block):
            self.places = places(stmt) or outer
            if stmt in self.rolled:
                if stmt is self.rolled[stmt].stmts[0]:
                    calls_in_turn(self, depth, self.rolled[stmt])
                continue
            getattr(self, "stmt_" + type(stmt).__name__)(depth, stmt)
            if k in charges:
                charge(self, depth, charges[k])
        self.places = outer
        if len(self.lines) == before:
            self.line(depth, "pass")

    # --- statements -------------------------------------------------------------------------------

    def expression(self, e: E, strength: int = 0) -> str:
        return self.printer.text(e, strength)

    def stmt_Store(self, depth: int, stmt: Store) -> None:
        target = self.printer.place(Load(stmt.buf, stmt.index))[0]
        if not stmt.buf.dims and stmt.buf.space == "out":
            place = len(self.program.params) + self.program.results.index(stmt.buf)
            target = f"(<{self.type(stmt.buf.dtype)}_p>buffers[{place}])[0]"
        if stmt.buf.is_scalar and stmt.buf not in self.fn.bufs:
            self.variable(self.type(stmt.buf.dtype), stmt.buf.name)
        self.type(stmt.buf.dtype)
        if stmt.monoid is None:
            value = stmt.value
            if self.updates_itself(stmt):
                assert isinstance(value, Op)
                self.line(depth, f"{target} {facts(value.name).sign}= {self.expression(value.args[1])}")
            else:
                self.line(depth, f"{target} = {self.expression(value)}")
            return
        dtype = stmt.buf.dtype
        monoid = MONOIDS[stmt.monoid]
        if monoid.assigns and dtype.kind in "fiu" and c_name(dtype) not in ("f16", "bf16"):
            value = stmt.value
            if monoid.combine == "add" and isinstance(value, Op) and value.name == "neg":
                self.line(depth, f"{target} -= {self.expression(value.args[0])}")
            else:
                self.line(depth, f"{target} {monoid.assigns} {self.expression(value)}")
            return
        self.line(depth, f"{target} = {self.expression(stmt.result)}")

    def updates_itself(self, stmt: Store) -> bool:
        """`x = x - y`, to be written `x -= y`."""
        value = stmt.value
        return (
            isinstance(value, Op)
            and value.name in ("add", "sub", "mul", "div")
            and self.printer.is_infix(value)
            and value.args[0] == Load(stmt.buf, stmt.index)
            and stmt.buf.dtype.itemsize >= 4
            and stmt.buf.dtype.kind in "fiu"
        )

    def stmt_Bind(self, depth: int, stmt: Bind) -> None:
        self.variable("i64", stmt.name)
        self.line(depth, f"{stmt.name} = {self.expression(stmt.value)}")

    def stmt_For(self, depth: int, stmt: For) -> None:
        if stmt.parts is not None:
            share(self, depth, stmt)
            return
        self.variable("i64", stmt.index)
        for operation, name in before_loop(stmt, bool(self.loops)):
            self.simd.add(operation)
            if "_" in operation:
                self.printer.helpers.add(operation)
            self.line(depth, f"mp_simd_{operation}({name})")
        self.line(depth, f"for {stmt.index} in range({self.printer.dim(stmt.extent)}):")
        ask_each_round(self, depth + 1, stmt)
        self.loops.append(stmt.index)
        self.printer.in_lanes = stmt.kind == "par" and all(isinstance(s, (Store, Bind)) for s in stmt.body)
        self.block(depth + 1, stmt.body)
        self.printer.in_lanes = False
        self.loops.pop()

    def amount(self, work: DimLike) -> str:
        """So much work as text; a product of sizes may be more than 64 bits hold."""
        if isinstance(work, Dim) and not all(_is_single(monomial) for monomial, _ in work.terms):
            return self.times(self.factors(work))
        return self.printer.dim(work)

    def poll(self, depth: int, work: str) -> None:
        if not (self.is_entry or self.fn.fails):
            return
        self.use("mp_poll", "MP_INTERRUPTED")
        self.line(depth, f"if mp_poll(c, {work}):")
        self.line(depth + 1, "return MP_INTERRUPTED")

    def stmt_While(self, depth: int, stmt: While) -> None:
        self.variable("i64", stmt.counter)
        self.line(depth, f"{stmt.counter} = 0")
        bound = f"({stmt.counter} < {self.printer.dim(stmt.limit)})" if stmt.limit is not None else ""
        if stmt.before:
            self.line(depth, f"while {bound or '1'}:")
            self.block(depth + 1, stmt.before)
            self.line(depth + 1, f"if not ({self.expression(stmt.condition)}):")
            self.line(depth + 2, "break")
        else:
            test = self.expression(stmt.condition)
            # The bound guards what the condition reads: C's short circuit, in a form Cython leaves alone.
            self.line(depth, f"while {bound} and ({test}):" if bound else f"while {test}:")
        inside = self.work.before((*stmt.before, *stmt.body)) + 8
        self.poll(depth + 1, self.amount(inside))
        self.loops.append(stmt.counter)
        if stmt.body:
            self.block(depth + 1, stmt.body)
        self.loops.pop()
        self.line(depth + 1, f"{stmt.counter} += 1")

    def stmt_If(self, depth: int, stmt: If) -> None:
        if not stmt.then and stmt.orelse:
            self.line(depth, f"if not ({self.expression(stmt.condition)}):")
            self.block(depth + 1, stmt.orelse)
            return
        self.line(depth, f"if {self.expression(stmt.condition)}:")
        self.block(depth + 1, stmt.then)
        if stmt.orelse:
            self.line(depth, "else:")
            self.block(depth + 1, stmt.orelse)

    def stmt_Check(self, depth: int, stmt: Check) -> None:
        self.use("mp_fail")
        values = [self.as_i64(part) for v in stmt.values for part in _parts(v)]
        values += ["0"] * (4 - len(values))
        iteration = self.loops[-1] if self.loops else "0"
        if not never(stmt.ok):
            self.line(depth, f"if not ({self.expression(stmt.ok)}):")
            depth += 1
        if values[4:]:
            self.use("error_values")
        for k, value in enumerate(values[4:], 4):
            self.line(depth, f"c.error_values[{k}] = {value}")
        self.line(depth, f"return mp_fail(c, {stmt.site}, {iteration}, {', '.join(values[:4])})")

    def as_i64(self, e: E) -> str:
        """A value for an error message: integers as they are, floats by their bits as f64."""
        if e.dtype.kind in "iub":
            return self.expression(Op("convert", (e,), i64) if e.dtype != i64 else e, CALL)
        e = e if e.dtype == np.float64 else Op("convert", (e,), np.dtype("float64"))
        return self.printer.call("i64_bits_of_f64", self.expression(e, CALL))[0]

    def stmt_Effect(self, depth: int, stmt: Effect) -> None:
        self.use("callback", "MP_RAISED")
        effects = [e for e in walk(self.fn.body) if isinstance(e, Effect)]
        self.variable("void*", f"mp_args[{max(1, max(2 * len(e.accesses) for e in effects))}]")
        if room := max(sum(len(a.buf.dims) for a in e.accesses) for e in effects):
            self.variable("i64", f"mp_dims[{room}]")
        at = 0
        for k, buf in enumerate((*stmt.reads, *stmt.writes)):
            self.line(depth, f"mp_args[{2 * k}] = <void*>{buf.name if buf.dims else '&' + buf.name}")
            self.line(depth, f"mp_args[{2 * k + 1}] = {f'<void*>(mp_dims + {at})' if buf.dims else 'NULL'}")
            for dim in buf.dims:
                self.line(depth, f"mp_dims[{at}] = {self.printer.dim(dim)}")
                at += 1
        self.line(depth, f"if c.callback(c, {stmt.site}, mp_args):")
        self.line(depth + 1, "return MP_RAISED")

    def stmt_Swap(self, depth: int, stmt: Swap) -> None:
        kind = self.type(stmt.a.dtype) + "*"
        a, b = stmt.a.name, stmt.b.name
        spare = self.variable(kind, f"mp_spare_{c_name(stmt.a.dtype)}")
        self.line(depth, f"{spare} = {a}")
        self.line(depth, f"{a} = {b}")
        self.line(depth, f"{b} = {spare}")
        if stmt.a.dynamic:
            spare = self.variable("i64", "mp_spare_room")
            self.line(depth, f"{spare} = mp_{a}_room")
            self.line(depth, f"mp_{a}_room = mp_{b}_room")
            self.line(depth, f"mp_{b}_room = {spare}")

    def stmt_Grow(self, depth: int, stmt: Grow) -> None:
        first = stmt.bufs[0]
        if first.space == "stack":  # all stacks of a loop grow together, when the rows there are have been used up
            rows = f"mp_{first.name}_rows"
            self.variables.setdefault("i64", {})[f"{rows} = 0"] = None
            self.line(depth, f"if {rows} < {self.printer.dim(stmt.length, COMPARE + 1)}:")
            self.line(depth + 1, f"{rows} = 2*({self.printer.dim(stmt.length)}) + 14")
            self.use("mp_grow")
            for buf in stmt.bufs:
                size = self.nbytes(buf, buf.dims[1:])
                self.line(
                    depth + 1,
                    f"{buf.name} = <{self.type(buf.dtype)}*>mp_grow(c, {buf.name}, "
                    f"&mp_{buf.name}_room, {self.times([rows, size])})",
                )
                self.no_memory(depth + 1, buf.name)
            return
        self.use("mp_room")
        for buf in stmt.bufs:
            needed = self.nbytes(buf, (stmt.length, *buf.dims[1:]))
            room = f"mp_room(c, {buf.name}, &mp_{buf.name}_room, {needed})"
            self.line(depth, f"{buf.name} = <{self.type(buf.dtype)}*>{room}")
            self.no_memory(depth, buf.name)

    def stmt_SetDims(self, depth: int, stmt: SetDims) -> None:
        self.use("alloc", "set_dims")
        buf = stmt.buf
        position = len(self.program.params) + next(k for k, b in enumerate(self.program.results) if b is buf)
        dims = self.variable("i64", f"mp_{buf.name}_dims[{len(buf.dims)}]").split("[")[0]
        for k, dim in enumerate(buf.dims):
            self.line(depth, f"{dims}[{k}] = {self.printer.dim(dim)}")
        self.line(depth, f"c.set_dims(c, {position}, {len(buf.dims)}, {dims})")
        self.line(depth, f"{buf.name} = <{self.type(buf.dtype)}*>c.alloc(c, {position}, {self.nbytes(buf)})")
        self.no_memory(depth, buf.name)

    def address(self, view: View) -> str:
        """A pointer to the first element of a view."""
        self.type(view.buf.dtype)
        offset = address(view.index, view.buf.dims, self.printer)
        return view.buf.name if offset == "0" else f"{view.buf.name} + {offset}"

    def stmt_LibraryCall(self, depth: int, stmt: LibraryCall) -> None:
        call, offer = library_call(self, stmt), self.program.target.offer(stmt.operation)
        if offer is not None and offer.left_anywhere:
            self.passed_on(depth, call)
        else:
            self.use("mp_begin", "mp_end", "MP_INTERRUPTED")
            self.line(depth, "mp_begin(c)")
            self.passed_on(depth, call, "mp_end(c)")

    def stmt_Combine(self, depth: int, stmt: Combine) -> None:
        self.line(depth, combination(self, stmt))

    def passed_on(self, depth: int, call: str, behind: str = "") -> None:
        """A call whose status, unless it is 0, is what this function returns too; and one behind it in any
        case."""
        status = self.variable("int", "mp_status")
        self.line(depth, f"{status} = {call}")
        if behind:
            self.line(depth, f"if {behind}:")
            self.line(depth + 1, "return MP_INTERRUPTED")
        self.line(depth, f"if {status}:")
        self.line(depth + 1, f"return {status}")

    def stmt_CallFn(self, depth: int, stmt: CallFn) -> None:
        self.call(depth, stmt, [b.name for b in stmt.bufs])

    def call(self, depth: int, stmt: CallFn, given: list[str]) -> None:
        fn = next(f for f in self.program.fns if f.name == stmt.fn)
        args = (["c"] if fn.fails else []) + given + [self.printer.dim(d) for d in stmt.sizes]
        call = f"{stmt.fn}({', '.join(args)})"
        if not stmt.fails:
            self.line(depth, f"{stmt.result.name} = {call}" if stmt.result is not None else call)
            return
        self.passed_on(depth, call)


__all__ = ["FunctionWriter"]
