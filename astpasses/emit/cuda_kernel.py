"""One kernel as CUDA C.

In: a function that a GPU runs (schedule/kernels.py). Out: its text, and the helpers that it calls. Example:

    extern "C" __global__ void __launch_bounds__(256) scaled_0(const f64* __restrict__ x, f64* __restrict__ y, i64 n) {
        for (i64 i = mp_first(); i < n; i += mp_stride()) {
            y[i] = 2.0*x[i];
        }
    }

What all threads of a block do together is text that each of them runs with equal values: an array is stored into by the
first thread, and `__syncthreads` stands where one touches what another may have stored. Where a block's warps have a
row each (`Kernel.rows`), a warp's threads do so: `__syncwarp`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from metaphrase.astpasses.schedule.expressions import TIMES
from metaphrase.astpasses.schedule.nest import (
    Bind,
    Buf,
    Check,
    Const,
    E,
    Fn,
    For,
    Grow,
    If,
    Index,
    Load,
    Op,
    Stmt,
    Store,
    Swap,
    While,
    loaded,
    never,
    touched,
    walk,
)
from metaphrase.core.dims import DimLike, product
from metaphrase.core.scalars import MONOIDS
from metaphrase.core.types import i64

from .cuda_barriers import Barriers
from .cuda_comment import comment
from .cuda_threads import BLOCK, WARP, Places, packed
from .cuda_variables import Homes
from .dialects import CUDA
from .spell import CALL, c_name

MOST_VALUES = 16  # of a message


class KernelWriter:
    """Writes one kernel; `write()` gives its text. `stops`: an earlier kernel may have failed."""

    def __init__(self, fn: Fn, stops: bool):
        assert fn.kernel is not None
        self.fn, self.kernel, self.stops = fn, fn.kernel, stops or fn.fails
        self.printer = Places(CUDA)
        self.reductions: set[tuple[str, str, str]] = set()  # groups of threads, monoids and types that these combine
        self.lines: list[str] = []
        self.uniform = self.kernel.together  # whether all threads of a block do the statement that is being written
        self.in_block_loop = False
        self.at = "0"  # the number of the iteration on the grid, and in the block
        alone = {s for loop in walk(fn.body) if isinstance(loop, For) and loop.on == "block" for s in walk(loop.body)}
        self.grown_together = {b for s in walk(fn.body) if isinstance(s, Grow) and s not in alone for b in s.bufs}
        self.homes = Homes(fn.body)
        self.neutral: set[tuple[str, str]] = set()  # variables that were just given what changes no combination
        self.earlier: Counter[str] = Counter()  # how often the value of a variable before a loop was kept
        self.swapped = {b for s in walk(fn.body) if isinstance(s, Swap) for b in (s.a, s.b)}
        self.grown = {b for s in walk(fn.body) if isinstance(s, Grow) for b in s.bufs}
        self.barriers = Barriers()
        self.exits = 0
        self.scanned: dict[Buf, str] = {}  # the variables that the loop being written carries as a scan
        self.group = WARP if self.kernel.rows > 1 else BLOCK

    # --- pieces of text ---------------------------------------------------------------------------

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def expression(self, e: E, strength: int = 0) -> str:
        return self.printer.text(e, strength)

    def dim(self, dim: DimLike, strength: int = 0) -> str:
        return self.printer.dim(dim, strength)

    @property
    def several(self) -> bool:
        """Whether a block has more than one thread."""
        return self.kernel.threads > 1

    # --- the function -----------------------------------------------------------------------------

    def write(self) -> str:
        if self.kernel.rows > 1:
            self.line(1, "const int mp_lane = threadIdx.x % 32, mp_warp = threadIdx.x/32;")
        self.storage()
        if self.stops:
            self.line(1, "if (c->launch < mp_launch) return;")
        self.block(1, self.fn.body)
        if self.kernel.ends is not None:
            answer, behind = self.kernel.ends
            own = f"{self.group.thread} == 0 && " if self.several else ""
            last = f"mp_launch + {behind}" if behind else "mp_launch"
            self.line(1, f"if ({own}!{answer}[0]) mp_end(c, {last});")
        return "\n".join([*comment(self.fn.body), self.head(), *self.lines, "}"]) + "\n"

    def head(self) -> str:
        params = ["mp_run* c", "int mp_launch"] if self.stops else []
        written = {b for s in walk(self.fn.body) for b in touched(s)}
        for buf in self.fn.bufs:
            constant = "" if buf in written else "const "
            alone = "" if buf in self.swapped else " __restrict__"
            params.append(f"{constant}{c_name(buf.dtype)}*{alone} {buf.name}")
        params += [f"i64 {name}" for name in self.fn.sizes]
        name = f"__launch_bounds__({self.kernel.threads}) {self.fn.name}"
        return f'extern "C" __global__ void {name}({", ".join(params)}) {{'

    def storage(self) -> None:
        for buf in dict.fromkeys(b for s in walk(self.fn.body) for b in self.named(s)):
            kind = c_name(buf.dtype)
            if buf in self.fn.bufs:
                continue
            if buf.space == "const":
                elements = ", ".join(self.printer.literal(element)[0] for element in buf.data.reshape(-1))
                self.line(1, f"static __constant__ const {kind} {buf.name}[{buf.data.size}] = {{{elements}}};")
            elif buf in self.grown:
                self.line(1, f"{kind}* {buf.name} = nullptr;")
                self.line(1, f"i64 mp_{buf.name}_room = 0;")
                if self.uniform and self.several and buf in self.grown_together:
                    self.line(1, f"__shared__ {kind}* mp_{buf.name};")
            elif buf.dims and buf.space in ("frame", "shared"):
                total = product(buf.dims)
                assert isinstance(total, int)
                total = max(total, 1)
                shared = buf.space == "shared" and self.several
                rows = self.kernel.rows if shared else 1
                name = f"mp_{buf.name}" if buf in self.swapped or rows > 1 else buf.name
                self.line(
                    1, f"{'__shared__ ' if shared else ''}{kind} {name}[{f'{rows}*' if rows > 1 else ''}{total}];"
                )
                if name != buf.name:
                    begin = f" + {total}*mp_warp" if rows > 1 else ""
                    constant = "" if buf in self.swapped else "const "
                    self.line(1, f"{kind}* {constant}{buf.name} = {name}{begin};")

    def named(self, stmt: Stmt) -> list[Buf]:
        return [*touched(stmt), *(load.buf for load in loaded(stmt))]

    # --- statements -------------------------------------------------------------------------------

    def block(self, depth: int, block: tuple[Stmt, ...]) -> None:
        self.neutral = set()  # a round of a loop may have changed them
        first = self.homes.first.get(id(block), {})
        for k, stmt in enumerate(block):
            for kind, name in first.get(k, ()):
                self.line(depth, f"{kind} {name};")
            if self.uniform and self.several and not isinstance(stmt, (For, While, If)):
                self.sync(depth, self.barriers.before(stmt))
            getattr(self, "stmt_" + type(stmt).__name__)(depth, stmt)
            self.neutral = self.neutral | _neutral(stmt) if isinstance(stmt, Store) else set()

    def sync(self, depth: int, needed: bool) -> None:
        if needed:
            self.line(depth, self.group.wait)

    def stmt_Store(self, depth: int, stmt: Store) -> None:
        place = self.printer.place(Load(stmt.buf, stmt.index))[0]
        if stmt.monoid is not None and self.scanned.get(stmt.buf) == stmt.monoid:
            self.up_to_here(depth, stmt, stmt.monoid)
            return
        value = self.stored(stmt, place)
        if not stmt.buf.dims:
            self.line(depth, self.begun(stmt, c_name(stmt.buf.dtype)) + value)
        elif self.uniform and self.several:
            self.line(depth, f"if ({self.group.thread} == 0) {value}")
        else:
            self.line(depth, value)

    def begun(self, stmt: Stmt, kind: str) -> str:
        """The type before a variable that its first value declares."""
        return f"{kind} " if stmt in self.homes.begins else ""

    def stored(self, stmt: Store, place: str) -> str:
        value, dtype = stmt.value, stmt.buf.dtype
        if stmt.atomic:
            return f"mp_atomic_{stmt.monoid}(&{place}, {self.expression(value)});"
        if stmt.monoid is None:
            return f"{place} = {self.expression(value)};"
        monoid = MONOIDS[stmt.monoid]
        if monoid.assigns and dtype.kind in "fiu" and c_name(dtype) not in ("f16", "bf16"):
            if monoid.combine == "add" and isinstance(value, Op) and value.name == "neg":
                return f"{place} -= {self.expression(value.args[0])};"
            return f"{place} {monoid.assigns} {self.expression(value)};"
        return f"{place} = {self.expression(stmt.result)};"

    def stmt_Bind(self, depth: int, stmt: Bind) -> None:
        self.line(depth, f"{self.begun(stmt, 'i64')}{stmt.name} = {self.expression(stmt.value)};")

    def stmt_For(self, depth: int, stmt: For) -> None:
        if stmt.on == "grid":
            self.on_grid(depth, stmt)
        elif stmt.on == "block" and self.several:
            (self.scan if stmt.is_scan else self.on_block)(depth, stmt)
        else:
            loop = f"for (i64 {stmt.index} = 0; {stmt.index} < {self.dim(stmt.extent)}; {stmt.index}++) {{"
            self.repeated(depth, loop, stmt, stmt.body)

    def repeated(self, depth: int, head: str, stmt: Stmt, body: tuple[Stmt, ...]) -> None:
        """A loop that each thread runs, or all threads of a block together."""
        together = self.uniform and self.several
        if together:
            self.sync(depth, self.barriers.enter(stmt))
        self.line(depth, head)
        self.block(depth + 1, body)
        if together:
            self.sync(depth + 1, self.barriers.behind_round(stmt))
        self.line(depth, "}")

    def nest(self, stmt: For) -> tuple[list[For], tuple[Stmt, ...]]:
        """The loops in one another that are divided together, and their body."""
        loops, on = [stmt], stmt.on
        body = stmt.body
        while len(body) == 1 and isinstance(body[0], For) and body[0].on == on:
            loops.append(body[0])
            body = body[0].body
        return loops, body

    def divided(
        self, depth: int, loops: Sequence[For], first: str, stride: str, flat: str, body: tuple[Stmt, ...]
    ) -> None:
        """A loop over all iterations of a nest, without its end; the indices that its body asks for."""
        if len(loops) == 1:
            i, extent = loops[0].index, self.dim(loops[0].extent)
            self.line(depth, f"for (i64 {i} = {first}; {i} < {extent}; {i} += {stride}) {{")
            self.block(depth + 1, body)
            return
        total = self.dim(product([loop.extent for loop in loops]))
        self.line(depth, f"for (i64 {flat} = {first}; {flat} < {total}; {flat} += {stride}) {{")
        self.numbered(depth + 1, loops, flat, "", body)

    def numbered(self, depth: int, loops: Sequence[For], flat: str, number: str, body: tuple[Stmt, ...]) -> None:
        """The body of a nest in the iteration that `flat` is the number of, and before it those of the indices that it
        asks for. `number`: the value of `flat`, where it is not there yet."""
        begin = len(self.lines)
        outer, self.printer.nest = self.printer.nest, (tuple(loops), flat)
        self.block(depth, body)
        self.printer.nest = outer
        used = set(re.findall(r"\w+", "\n".join(self.lines[begin:])))
        indices, rest = [], flat
        for k, loop in enumerate(reversed(loops)):
            extent = self.dim(loop.extent, TIMES + 1)
            value = rest if k == len(loops) - 1 else f"{rest} % {extent}"
            if loop.index in used and loop.index != flat:
                indices.append("    " * depth + f"const i64 {loop.index} = {value};")
                used.add(flat)
            rest = f"{rest}/{extent}"
        if number and flat in used:
            indices.append("    " * depth + f"const i64 {flat} = {number};")
        self.lines[begin:begin] = indices[::-1]

    def on_grid(self, depth: int, stmt: For) -> None:
        loops, body = self.nest(stmt)
        first, stride = ("blockIdx.x", "gridDim.x") if self.kernel.together else ("mp_first()", "mp_stride()")
        if (rows := self.kernel.rows) > 1:
            first, stride = f"{rows}*blockIdx.x + mp_warp", f"{rows}*gridDim.x"
        self.at = "mp_at" if len(loops) > 1 else stmt.index
        if self.kernel.together:
            self.at += " << 31"  # the numbers of iterations inside it are below
        if stmt.width > 1:
            self.at_a_time(depth, stmt.width, loops, body)
            return
        if self.uniform and self.several:
            self.sync(depth, self.barriers.enter(stmt))
        self.divided(depth, loops, first, stride, "mp_at", body)
        if self.uniform and self.several:
            self.sync(depth + 1, self.barriers.behind_round(stmt))
        self.line(depth, "}")

    def at_a_time(self, depth: int, width: int, loops: Sequence[For], body: tuple[Stmt, ...]) -> None:
        """A loop whose threads take several elements at a time (wide.py)."""
        total = self.dim(product([loop.extent for loop in loops]), TIMES)
        read, stored = packed(loops, body)
        packs = {buf: self.fn.names.fresh(f"{buf.name}_{width}") for buf in (*read, *stored)}
        self.line(depth, f"for (i64 mp_at = mp_first(); {width}*mp_at < {total}; mp_at += mp_stride()) {{")
        for buf, pack in packs.items():
            constant = "" if buf in stored else "const "
            value = f" = mp_read<{width}>({buf.name}, mp_at, {total})" if buf in read else ""
            self.line(depth + 1, f"{constant}mp_pack<{c_name(buf.dtype)}, {width}> {pack}{value};")
        self.line(depth + 1, "#pragma unroll")
        self.line(depth + 1, f"for (int mp_k = 0; mp_k < {width}; mp_k++) {{")
        element = loops[0].index if len(loops) == 1 else "mp_i"
        self.printer.packs = packs
        last = self.dim(product([loop.extent for loop in loops]) - 1)
        self.numbered(depth + 2, loops, element, f"mp_least({width}*mp_at + mp_k, {last})", body)
        self.printer.packs = {}
        self.line(depth + 1, "}")
        for buf in stored:
            self.line(depth + 1, f"mp_write<{width}>({buf.name}, mp_at, {total}, {packs[buf]});")
        self.line(depth, "}")

    def on_block(self, depth: int, stmt: For) -> None:
        """A loop that the threads of a block divide; what it combines into, each has a part of."""
        neutral = {b.name for b, monoid in stmt.partials if (b.name, monoid) in self.neutral}
        loops, body = self.nest(stmt)
        self.sync(depth, self.barriers.before_divided(stmt))
        for buf, monoid in stmt.partials:
            kind, name = c_name(buf.dtype), buf.name
            if name not in neutral:
                value = self.printer.literal(MONOIDS[monoid].identity(buf.dtype))[0]
                self.earlier[name] += 1
                self.line(depth, f"const {kind} {self.before(name)} = {name};")
                self.line(depth, f"{name} = {value};")
        leaves = any(isinstance(s, (Check, Grow)) for s in walk(body))
        if leaves:
            self.exits += 1
            self.line(depth, f"int mp_left_{self.exits} = 0;")
        self.uniform, before = False, self.at
        flat = "mp_in_block"
        inner = flat if len(loops) > 1 else stmt.index
        self.at = inner if before == "0" else f"({before}) + {inner}"
        self.divided(depth, loops, self.group.thread, self.group.threads, flat, body)
        self.uniform, self.at = True, before
        self.line(depth, "}")
        if leaves:
            self.line(depth, f"mp_end_{self.exits}: if ({self.group.any.format(f'mp_left_{self.exits}')}) return;")
            self.met()
        for buf, monoid in stmt.partials:
            kind, name = c_name(buf.dtype), buf.name
            self.reductions.add((self.group.name, monoid, kind))
            of_all = f"mp_{self.group.name}_{monoid}_{kind}({name})"
            whole = of_all if name in neutral else self.combined(monoid, buf.dtype, self.before(name), of_all)
            self.line(depth, f"{name} = {whole};")
            self.met()

    def scan(self, depth: int, stmt: For) -> None:
        """A loop that the threads of a block divide, an iteration each in a round: each goes on with what all up to its
        own have combined. `mp_t` is what a variable t was before the round."""
        i, extent, group = stmt.index, self.dim(stmt.extent), self.group
        self.sync(depth, self.barriers.before_divided(stmt))
        for buf, _ in stmt.partials:
            self.earlier[buf.name] += 1
            self.line(depth, f"{c_name(buf.dtype)} {self.before(buf.name)} = {buf.name};")
        self.line(depth, f"for (i64 mp_round = 0; mp_round < {extent}; mp_round += {group.threads}) {{")
        self.line(depth + 1, f"const bool mp_there = mp_round + {group.thread} < {extent};")
        self.line(depth + 1, f"const i64 {i} = mp_there ? mp_round + {group.thread} : {self.dim(stmt.extent - 1)};")
        self.uniform, self.scanned = False, dict(stmt.partials)
        self.block(depth + 1, stmt.body)
        self.uniform, self.scanned = True, {}
        self.line(depth, "}")
        for buf, _ in stmt.partials:
            self.line(depth, f"{buf.name} = {self.before(buf.name)};")

    def before(self, name: str) -> str:
        """What the value of a variable before a loop is called: in each loop of a kernel something else."""
        number = f"{self.earlier[name]}_" if self.earlier[name] > 1 else ""  # in front: `x_2` is a name of its own
        return f"mp_{number}{name}"

    def up_to_here(self, depth: int, stmt: Store, monoid: str) -> None:
        """What all iterations up to a thread's own have combined."""
        kind, name = c_name(stmt.buf.dtype), stmt.buf.name
        nothing = self.printer.literal(MONOIDS[monoid].before_first(stmt.buf.dtype))[0]
        self.reductions.add((f"{self.group.name}_scan", monoid, kind))
        value = f"mp_there ? {self.expression(stmt.value, CALL)} : {nothing}"
        self.line(depth, f"{name} = mp_{self.group.name}_scan_{monoid}_{kind}({value}, {self.before(name)});")

    def met(self) -> None:
        """The threads of a block have waited for one another; those of a warp only exchanged numbers, which says
        nothing of memory."""
        if self.group is BLOCK:
            self.barriers.passed()

    def combined(self, monoid: str, dtype: np.dtype, a: str, b: str) -> str:
        """Two values combined, by their texts."""
        pair = tuple(Load(Buf(text, dtype, ())) for text in (a, b))
        return self.expression(Op(MONOIDS[monoid].combine, pair, dtype))

    def stmt_While(self, depth: int, stmt: While) -> None:
        limit = f"{stmt.counter} < {self.dim(stmt.limit)}" if stmt.limit is not None else ""
        together = self.uniform and self.several
        if together:
            self.sync(depth, self.barriers.enter(stmt))
        if stmt.before or together:
            self.line(depth, f"for ({stmt.counter} = 0; {limit}; {stmt.counter}++) {{")
            self.block(depth + 1, stmt.before)
            if together:
                self.sync(depth + 1, self.barriers.before(stmt))
            self.line(depth + 1, f"if (!({self.expression(stmt.condition)})) break;")
        else:
            condition = self.expression(stmt.condition)
            if limit:
                condition = f"{limit} && ({condition})"
            self.line(depth, f"for ({stmt.counter} = 0; {condition}; {stmt.counter}++) {{")
        self.block(depth + 1, stmt.body)
        if together:
            self.sync(depth + 1, self.barriers.behind_round(stmt))
        self.line(depth, "}")

    def stmt_If(self, depth: int, stmt: If) -> None:
        together = self.uniform and self.several
        if together:
            self.sync(depth, self.barriers.before(stmt))
        condition = self.expression(stmt.condition) if not self.scanned else "mp_there"
        then, orelse = stmt.then, stmt.orelse
        if not then and orelse:
            condition, then, orelse = f"!({condition})", orelse, ()
        before = self.barriers.copy()
        self.line(depth, f"if ({condition}) {{")
        self.block(depth + 1, then)
        behind = self.barriers
        if orelse:
            self.line(depth, "} else {")
            self.barriers = before
            self.block(depth + 1, orelse)
            before = self.barriers
        self.line(depth, "}")
        self.barriers = behind.joined(before)

    def stmt_Check(self, depth: int, stmt: Check) -> None:
        values = [self.as_i64(part) for v in stmt.values for part in _parts(v)][:MOST_VALUES]
        if not never(stmt.ok):
            self.line(depth, f"if (!({self.expression(stmt.ok)})) {{")
            depth += 1
        first = f"if ({self.group.thread} == 0) " if self.uniform and self.several else ""
        self.line(depth, f"{first}mp_fail({', '.join(['c', 'mp_launch', self.at, str(stmt.site), *values])});")
        self.line(depth, self.leaving())
        if not never(stmt.ok):
            self.line(depth - 1, "}")

    def leaving(self) -> str:
        """Leave the kernel; a thread that divides a loop with others does so with them."""
        if not self.uniform and self.kernel.together and self.several:
            return f"{{ mp_left_{self.exits} = 1; goto mp_end_{self.exits}; }}"
        return "return;"

    def as_i64(self, e: E) -> str:
        """A value for a message: integers as they are, floats by their bits as f64."""
        if e.dtype.kind in "iub":
            return self.expression(Op("convert", (e,), i64) if e.dtype != i64 else e, CALL)
        e = e if e.dtype == np.float64 else Op("convert", (e,), np.dtype("float64"))
        return self.printer.call("i64_bits_of_f64", self.expression(e, CALL))[0]

    def stmt_Swap(self, depth: int, stmt: Swap) -> None:
        a, b, kind = stmt.a.name, stmt.b.name, c_name(stmt.a.dtype)
        self.line(depth, f"{{ {kind}* const mp_spare = {a}; {a} = {b}; {b} = mp_spare; }}")
        if stmt.a in self.grown:
            self.line(depth, f"{{ i64 s = mp_{a}_room; mp_{a}_room = mp_{b}_room; mp_{b}_room = s; }}")

    def stmt_Grow(self, depth: int, stmt: Grow) -> None:
        for buf in stmt.bufs:
            rows, row = self.dim(stmt.length), self.dim(product(buf.dims[1:]) * buf.dtype.itemsize)
            call = f"mp_grow(c, mp_launch, {buf.name}, &mp_{buf.name}_room, {rows}, {row})"
            if self.uniform and self.several:
                self.line(depth, f"if (threadIdx.x == 0) mp_{buf.name} = ({c_name(buf.dtype)}*){call};")
                self.line(depth, "__syncthreads();")
                self.line(depth, f"{buf.name} = mp_{buf.name};")
                self.line(depth, "__syncthreads();")
            else:
                self.line(depth, f"{buf.name} = ({c_name(buf.dtype)}*){call};")
            self.line(depth, f"if ({buf.name} == nullptr) {self.leaving()}")


def _neutral(stmt: Store) -> set[tuple[str, str]]:
    """The monoids in which what a statement gives a variable changes nothing, with the variable."""
    value = stmt.value.value if isinstance(stmt.value, Const) else None
    if isinstance(stmt.value, Index) and isinstance(stmt.value.dim, int):
        value = np.int64(stmt.value.dim)
    if value is None or stmt.buf.dims:
        return set()
    found = (m for m in MONOIDS.values() if np.asarray(m.identity(stmt.buf.dtype)).tobytes() == value.tobytes())
    return {(stmt.buf.name, monoid.name) for monoid in found}


def _parts(e: E) -> tuple[E, ...]:
    """The real numbers that a number is made of."""
    if e.dtype.kind != "c":
        return (e,)
    real = np.dtype("float64" if e.dtype.itemsize == 16 else "float32")
    return Op("real", (e,), real), Op("imag", (e,), real)


__all__ = ["KernelWriter"]
