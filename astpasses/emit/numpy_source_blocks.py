"""From Lets to statements: which values get a name, which move into the expression that uses them.

In: a core Function and expressions for its parameters. Out: lines of NumPy source, and expressions for its
results.

A value used once moves into its consumer while the line stays short; a value the user named keeps its line.
Values that wait to be used (`pending`) are written down before a name that they read is bound again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from metaphrase.core.dims import Dim, DimLike, Sym, substitute, symbols
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.native import Point, Reduce
from metaphrase.core.types import Array, i64
from metaphrase.source import Span, rows_at

from .numpy_source_expressions import ATOM, SUM, Expr, Storage, literal, name, reads_of, strong
from .numpy_source_names import Names, named_by_user, wanted_name
from .source_text import folded, wrapped

WIDTH = 84  # of a statement, before its indentation
SMALL = 24  # shorter operands do not help a long line by getting a name


class Block:
    """One region while it is written."""

    def __init__(self, function: Function):
        self.function = function
        self.env: dict[Var, Expr] = {}
        self.pending: dict[Var, Expr] = {}
        self.position = -1
        self.uses: dict[Var, int] = {}
        self.last_use: dict[Var, int] = {}
        self.makers: dict[Var, Let] = {}
        self.dying: dict[int, list[Var]] = {}
        self.names: set[str] = set()
        self.holder: dict[str, Var] = {}
        self.carried: dict[Atom, str] = {}  # what a name will hold in the next iteration
        self.dims: dict[Var, DimLike] = {}  # numbers that are sizes
        self.chains: dict[Var, Var | None] | None = None  # for writes in place, the last state that has a name
        self.counted: Let | None = None  # what the header of the loop does: adds to its counter
        self.only_rows: set[Var] = set()  # results of loops that only other loops go through,
        self.row_lists: dict[Var, Any] = {}  # and the lists they are kept in
        self.segments: set[Var] = set()  # results that only the loop around reads, as its segments,
        self.lists: set[Var] = set()  # and those of them that stay Python lists
        for position, let in enumerate(function.lets):
            self.makers.update((v, let) for v in let.outs)
            self._count(let.args[:-2] if self.on_diagonal(let) else let.args, position)
        self._count(function.results, len(function.lets))
        for var, last in self.last_use.items():
            self.dying.setdefault(last, []).append(var)

    def _count(self, atoms: Sequence[Atom], position: int) -> None:
        for atom in atoms:
            if isinstance(atom, Var):
                self.uses[atom] = self.uses.get(atom, 0) + 1
                self.last_use[atom] = position

    def on_diagonal(self, let: Let) -> bool:
        """Whether a Let reads, or adds to, the diagonal of a square matrix: texts say `np.diag` then, without
        its indices."""
        if let.primitive.name not in ("gather", "scatter_add") or let.args[0].type.ndim != 2:
            return False
        (rows, columns), (first, second) = let.args[0].type.dims, let.args[-2:]
        maker = self.makers.get(first) if isinstance(first, Var) and first is second else None
        counts = maker is not None and maker.primitive.name == "iota" and maker.attributes["length"] == rows
        return (
            counts
            and rows == columns
            and (self._only_computed_with(let.out) if let.primitive.name == "gather" else self._from_zeros(let))
        )

    def _only_computed_with(self, var: Var) -> bool:
        """Whether nobody stores into `var` or hands it on: `np.diag` of a matrix is a view of it."""
        users = [let for let in self.function.lets if var in let.args]
        return var not in self.function.results and all(
            isinstance(let.primitive.native, Point | Reduce) for let in users
        )

    def _from_zeros(self, let: Let) -> bool:
        """Whether a derivative adds to an array that has nothing but zeros so far."""
        start = self.makers.get(let.args[0]) if isinstance(let.args[0], Var) else None
        derived = let.span is not None and let.span.role == "adjoint"
        return (
            derived
            and start is not None
            and start.primitive.name == "broadcast"
            and (isinstance(start.args[0], Literal) and start.args[0].value == 0)
        )

    def live_after(self, var: Var) -> bool:
        """Whether anything later than the current Let reads `var`."""
        return self.last_use.get(var, -1) > self.position


class Emitter:
    """Writes the body of one Python function."""

    def __init__(self, names: Names, spell: Callable[[Emitter, Let], Expr]):
        self.names, self.spell = names, spell
        self.lines: list[str] = []
        self.indent = 1
        self.blocks: list[Block] = []
        self.sizes: dict[str, str] = {}  # size symbol -> Python text
        self.sizes_named: set[str] = set()  # names of sizes that the body finds
        self.size_reads: set[str] = set()  # names that the texts of sizes read
        self.size_names: dict[str, str] = {}  # size symbol of a parameter -> its name, once it is needed
        self.storage_of: dict[str, tuple[Storage, ...]] = {}
        self.to_numpy: set[str] = set()  # scalar parameters that have to be NumPy scalars
        self.roots: dict[str, frozenset[str]] = {}  # scalar parameters that a name may hold as they were given
        self.helpers: set[str] = set()
        self.foreign: dict[str, str] = {}  # what functions of scipy.special are called in this module
        self.exceptions: dict[str, str] = {}  # a user's exception class -> what it is called here
        self.functions: dict[Function, tuple[str, list]] = {}  # what is called by name: numpy_source_calls.py
        self.constants = Constants(names)
        self.wrap_around = False  # does integer arithmetic on scalars, which may overflow
        self.statements: dict[str, Callable[[Emitter, Let], None]] = {}
        self.remark: tuple[str, int] | None = None
        self.span: Span | None = None  # where the line that is written comes from

    # --- lines -------------------------------------------------------------------------------------------

    @property
    def block(self) -> Block:
        return self.blocks[-1]

    def line(self, text: str, let: Let | None = None, of: Sequence[Atom] = ()) -> None:
        remark = self._remark(let)
        row = "    " * self.indent + text
        if remark and len(row) + len(remark) <= 106:
            row = f"{row}  {remark}"
        elif remark:
            self.lines.append("    " * self.indent + remark)
        if let is not None and let.span is not None:
            self.span = let.span
        self.lines += rows_at(wrapped(row), self.span, *folded(self.block, of if let is None else let.args))

    def _remark(self, let: Let | None) -> str:
        """The user's line that a line of derivative code comes from, the first time."""
        span = let.span if let is not None else None
        if let is None or span is None or let.primitive.region or (span.file, span.line) == self.remark:
            return ""
        if not any(v.name.endswith({"adjoint": "_bar", "tangent": "_dot"}.get(span.role, "?")) for v in let.outs):
            return ""
        text = span.text().strip()
        self.remark = (span.file, span.line)
        if len(text) > 90:
            text = text[:87] + "..."
        return f"# {span.role} of: {text}" if text else f"# {span.role} of line {span.line}"

    @contextmanager
    def captured(self, deeper: int = 0) -> Iterator[list[str]]:
        """Lines written inside land in the list given instead."""
        outer, self.lines = self.lines, []
        self.indent += deeper
        try:
            yield self.lines
        finally:
            self.lines = outer
            self.indent -= deeper

    @contextmanager
    def inside(self, function: Function) -> Iterator[Block]:
        """A region: names made in it are free again behind it."""
        block = Block(function)
        self.blocks.append(block)
        try:
            yield block
        finally:
            self.blocks.pop()
            self.names.release(block.names)

    # --- values ------------------------------------------------------------------------------------------

    def expr(self, atom: Atom) -> Expr:
        return literal(atom.value) if isinstance(atom, Literal) else self.block.env[atom]

    def dim(self, dim: DimLike) -> str:
        """A size as Python text; remembers which sizes have to be read off the arguments."""
        return self.dim_expr(dim).text

    def dim_expr(self, dim: DimLike) -> Expr:
        if isinstance(dim, int):
            return literal(np.int64(dim))
        texts = {s: Sym(self.size(s)) for s in symbols(dim)}
        text = str(_positive_first(substitute(dim, texts)))
        text = text if text.isidentifier() else ast.unparse(ast.parse(text, mode="eval"))
        simple = isinstance(dim, Dim) and (dim.is_sym or text.isidentifier())
        return Expr(text, ATOM if simple else SUM, Array(i64), weak=40, operations=0 if simple else 1)

    def size(self, symbol: str) -> str:
        if symbol not in self.sizes:
            self.sizes[symbol] = self.size_names[symbol] = self.names.fresh(symbol.split("__")[0])
        return self.sizes[symbol]

    def shape(self, dims: Sequence[DimLike]) -> str:
        """A shape as an argument: `n`, or `(n, 3)`."""
        texts = [self.dim(d) for d in dims]
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def numpy_scalars(self, *exprs: Expr) -> None:
        """Say that an operation needs NumPy's meaning and no operand is sure to bring it."""
        if all(e.maybe_python or e.weak is not None for e in exprs):
            for e in exprs:
                if e.maybe_python:
                    self.need_numpy(e)

    def roots_of(self, exprs: Sequence[Expr]) -> frozenset[str]:
        """The parameters that a value may be, handed on as Python numbers."""
        return frozenset().union(*(self.roots.get(r, frozenset([r])) for e in exprs for r in e.reads))

    def need_numpy(self, expr: Expr) -> None:
        """The parameters that `expr` may hold as Python numbers have to be NumPy scalars."""
        for read in expr.reads:
            self.to_numpy |= self.roots.get(read, frozenset([read]))

    # --- running a block ---------------------------------------------------------------------------------

    def run(self, block: Block) -> None:
        for position, let in enumerate(block.function.lets):
            block.position = position
            if let is block.counted:
                continue
            statement = self.statements.get(let.primitive.name)
            if statement is not None:
                statement(self, let)
            elif any(v in block.uses for v in let.outs) or let.primitive.effect:
                self.value(let)
            for var in block.dying.get(position, ()):
                block.pending.pop(var, None)

    def value(self, let: Let) -> None:
        """A Let without effect: its expression waits or gets a name."""
        expr = self.fitting(let, lambda: self.spell(self, let))
        if len(let.outs) == 1:
            self.bind(let.out, expr, let)
        else:
            targets = [self.define(v, let) if v in self.block.uses else "_" for v in let.outs]
            self.line(f"{', '.join(targets)} = {expr.text}", let)
            for var, target in zip(let.outs, targets):
                if target != "_":
                    self.hold(var, name(target, var.type, storages=(Storage(False),)), target)

    def fitting(self, let: Let | None, build: Callable[[], Expr], atoms: Sequence[Atom] | None = None) -> Expr:
        """`build()`, after operands got names until the text is short enough."""
        while True:
            expr = build()
            if len(expr.text) <= WIDTH:
                return expr
            waiting = [
                a
                for a in (let.args if let is not None else atoms or ())
                if isinstance(a, Var)
                and a in self.block.pending
                and self.block.pending[a].operations
                and len(self.block.pending[a].text) > SMALL
            ]
            if not waiting:
                return expr
            longest = max(waiting, key=lambda a: len(self.block.pending[a].text))
            self._shorten(longest, self.block.env[longest])

    def _shorten(self, var: Var, expr: Expr) -> None:
        """Give `var` a name; where it is a number spread over an array, the number."""
        number, let = expr.loose, self.block.makers.get(var)
        if number is None or not number.operations or number.type.dims or let is None:
            self.assign(var, expr)
            return
        atom = let.args[0]
        maker = self.block.makers.get(atom) if isinstance(atom, Var) else None
        target = self.names.fresh(wanted_name(atom if isinstance(atom, Var) else var, maker or let))
        self.block.names.add(target)
        self.line(f"{target} = {number.text}", maker or let)
        short = name(target, number.type)
        text = expr.text.replace(number.text, target)
        self.wait(
            var,
            replace(
                expr,
                text=text,
                reads=expr.reads - number.reads | short.reads,
                operations=1,
                loose=short,
                narrow=expr.narrow and short,
                cheap=True,
            ),
        )

    def bind(self, var: Var, expr: Expr, let: Let | None) -> None:
        """Decide whether `var` waits for its consumer or gets a line of its own."""
        block = self.block
        uses = block.uses.get(var, 0)
        result = var in block.function.results
        if expr.operations == 0 or expr.cheap or let is not None and _is_neighbour(var, expr, let):
            self.wait(var, expr)
        elif uses == 1 and (
            result and not (len(self.blocks) == 1 and named_by_user(var, let)) or not named_by_user(var, let)
        ):
            self.wait(var, expr)
        else:
            self.assign(var, expr)

    def wait(self, var: Var, expr: Expr) -> None:
        self.block.env[var] = self.block.pending[var] = expr
        for storage in expr.storages:
            storage.add(self.block, var)

    def hold(self, var: Var, expr: Expr, target: str) -> None:
        """Record that the Python variable `target` now is `var`."""
        block = self.block
        block.env[var] = expr
        block.pending.pop(var, None)
        block.holder[target] = var
        self.keep_track(target, expr.storages)
        for storage in expr.storages:
            storage.add(block, var)

    def keep_track(self, target: str, storages: tuple[Storage, ...]) -> None:
        """The Python variable `target` holds an array in these storages now."""
        self.storage_of[target] = storages
        for storage in storages:
            storage.names.add(target)

    def assign(self, var: Var, expr: Expr, target: str | None = None) -> Expr:
        """`target = expr`; from here on `var` is that name."""
        let = self.block.makers.get(var)
        if expr.is_name and target is None and self.block.holder.get(expr.text) is var:
            return expr
        target = target or self.define(var, let, expr.text)
        if expr.weak is None or expr.type.dtype != np.int64:
            expr = strong(expr)
        self.line(assignment(target, expr, in_place=not expr.type.dims), let)
        made = named(target, var, expr)
        if expr.maybe_python:
            self.roots[target] = self.roots_of([expr])
        self.hold(var, made, target)
        return made

    def define(self, var: Var, let: Let | None, text: str = "") -> str:
        """A name for `var`; that of a dead value of the same block may be taken over."""
        block = self.block
        target = block.carried.get(var)
        if target is not None and target not in self._protected(var):
            if not self._still_needed(block.holder[target], target):
                block.holder[target] = var
                return target
        base = wanted_name(var, let, text)
        old = block.holder.get(base)
        if old is not None and base not in self._protected(var) and not self._still_needed(old, base):
            block.holder[base] = var
            return base
        target = self.names.fresh(base)
        block.names.add(target)
        block.holder[target] = var
        return target

    def _protected(self, var: Var) -> frozenset[str]:
        """Names that the operands of the current Let read after the line that gives `var` its name."""
        block = self.block
        if not 0 <= block.position < len(block.function.lets):
            return frozenset()
        let = block.function.lets[block.position]
        args = let.args[:-2] if block.on_diagonal(let) else let.args
        if var not in let.outs or let.primitive.region:
            return reads_of([self.expr(a) for a in args])
        written = let.primitive.name in self.statements
        return reads_of([self.expr(a) for a in args[1:]]) if written else frozenset()

    def _still_needed(self, old: Var, target: str) -> bool:
        position, lets = self.block.position, self.block.function.lets
        if target in self.size_reads or self.block.live_after(old) or lets and old in lets[position].outs:
            return True
        return any(
            target in e.reads and (block is not self.block or block.live_after(v))
            for block in self.blocks
            for v, e in block.pending.items()
        )

    def named(self, atom: Atom, let: Let | None = None) -> Expr:
        """The expression of an atom, at most a name or a literal."""
        expr = self.expr(atom)
        if isinstance(atom, Var) and not expr.is_name and expr.operations:
            return self.assign(atom, expr)
        return expr

    def flush(self, names: set[str] | frozenset[str], spare: Sequence[Var] = ()) -> None:
        """Write down what waits and reads one of `names`, because they are about to change."""
        block = self.block
        for var, expr in list(block.pending.items()):
            if expr.reads & names and var not in spare and block.live_after(var):
                self.assign(var, expr)

    def flush_storage(self, storages: Sequence[Storage], spare: Sequence[Var] = ()) -> None:
        """The same, for what reads an array that is about to be written."""
        touched = {n for s in storages for n in s.names if s in self.storage_of.get(n, ())}
        self.flush(touched, spare)

    def may_write(self, atom: Atom, times: int = 1) -> bool:
        """Whether the array of `atom` dies at the current Let, so that it can be written in place."""
        expr = self.expr(atom)
        if not isinstance(atom, Var) or len(expr.storages) != 1 or not expr.storages[0].owned:
            return False
        storage = expr.storages[0]
        if storage.block not in (None, self.block):
            return False  # made in an outer region and not handed over
        return not storage.live()


def _is_neighbour(var: Var, expr: Expr, let: Let) -> bool:
    """`i - 1`, which is read more easily in its place than by a name."""
    return (
        let.primitive.name in ("add", "sub")
        and not var.type.dims
        and var.type.dtype == i64
        and expr.operations == 1
        and any(isinstance(a, Literal) for a in let.args)
        and not named_by_user(var, let)
    )


class Constants:
    """Arrays written into the program that are too large for a line: constants of the module."""

    def __init__(self, names: Names):
        self.names, self.found = names, dict[tuple, tuple[str, np.ndarray]]()

    def text(self, value: np.ndarray, wish: str) -> str:
        key = (value.dtype, value.shape, value.tobytes())
        if key not in self.found:
            self.found[key] = (self.names.fresh(wish.upper() if wish != "constant" else "TABLE"), value)
        return self.found[key][0]


def _positive_first(dim: DimLike) -> str:
    """`4 - j`, not `-j + 4`."""
    if not isinstance(dim, Dim):
        return str(dim)
    terms = sorted(dim.terms, key=lambda term: term[1] < 0)
    text = ""
    for monomial, count in terms:
        one = str(Dim(((monomial, abs(count)),))) if monomial else str(abs(count))
        if count < 0 and not text and ("//" in one or "%" in one):
            one = f"({one})"
        sign = (" - " if text else "-") if count < 0 else " + " if text else ""
        text += sign + one
    return text


def named(target: str, var: Var, expr: Expr) -> Expr:
    """The expression that reads `target`, which holds what `expr` made."""
    storages = expr.storages
    if var.type.dims and not storages:
        storages = (Storage(True),)
    return name(target, var.type, storages=storages, weak=expr.weak, maybe_python=expr.maybe_python)


def assignment(target: str, expr: Expr, in_place: bool) -> str:
    """`x = e`, or `x += e` where that means the same."""
    if in_place and expr.parts is not None and expr.parts[0] == "infix":
        _, left, operator, right = expr.parts
        if left.text == target and operator in ("+", "-", "*", "/", "//", "%", "@", "&", "|", "^"):
            return f"{target} {operator}= {right.text}"
    return f"{target} = {expr.text}"


def assign_all(
    emitter: Emitter,
    pairs: Sequence[tuple[str, Expr]],
    writable: set[str] = frozenset(),  # type: ignore
    let: Let | None = None,
) -> None:
    """Assign to several names at once: one by one where no value reads a name assigned before, else
    together."""
    left = [(t, e) for t, e in pairs if e.text != t]
    while left:
        free = next(
            (k for k, (t, _) in enumerate(left) if not any(t in e.reads for j, (_, e) in enumerate(left) if j != k)),
            None,
        )
        if free is None:
            emitter.line(f"{', '.join(t for t, _ in left)} = {', '.join(strong(e).text for _, e in left)}", let)
            return
        target, expr = left.pop(free)
        unread = expr.parts == ("undefined",) and expr.type.dtype == np.float64  # so a plain 0.0 will do
        expr = expr if expr.weak is None or unread else strong(expr)
        emitter.line(assignment(target, expr, in_place=not expr.type.dims or target in writable), let)


__all__ = ["Block", "Emitter", "assign_all", "assignment", "named", "Storage"]
