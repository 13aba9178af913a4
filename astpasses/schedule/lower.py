"""Core to nests: each Let becomes a perfect nest, or nothing at all when its result is only read through.

In: a core Function (composites expanded). Out: a `Program` whose entry body is a list of Nests, loops and
calls.

    y = sin(x); s = reduce_sum(y, axes=(0,))
    ->  Nest(i: y[i] = sin(x[i]));  s = 0;  Nest(i: s += y[i])

Rules for the native fields are in lower_arrays.py, for regions in lower_regions.py, for libraries in
library.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from metaphrase.core.build import substitute_attribute
from metaphrase.core.dims import DimLike, Sym, substitute, symbols
from metaphrase.core.facts import Facts
from metaphrase.core.ir import Atom, ConstantArray, Function, Let, Literal, Var
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import Array, i64
from metaphrase.source import Span

from . import scalars
from .names import Names
from .nest import Axis, Bind, Buf, Const, E, Fn, Index, Load, Nest, Op, Program, SetDims, Site, Stmt, Store, local
from .ownership import Plan, Root, is_lazy, written_in_place
from .target import Target
from .values import Indices, Place, Value, scalar, stored

Rule = Callable[["Block", Let], None]
RULES: dict[type, Rule] = {}


def rule(native: type) -> Callable[[Rule], Rule]:
    """Register the lowering of one kind of native field."""

    def register(function: Rule) -> Rule:
        RULES[native] = function
        return function

    return register


class Lowering:
    """What one program shares: names, facts, failure sites, constant arrays."""

    def __init__(self, target: Target, bounds: bool = True) -> None:
        self.target = target
        self.bounds = bounds  # whether indices are checked
        self.names = Names(target.words)
        self.facts = Facts()
        self.sites: list[Site] = []
        self.constants: dict[ConstantArray, Buf] = {}
        self.entry: Block | None = None
        self.arguments: set[str] = set()  # symbols that are integer arguments
        self.callees: dict[Function, Fn] = {}  # what is called from several places, inner before outer

    def site(
        self,
        kind: str,
        exception: str,
        message: str,
        span: Span | None,
        operands: Sequence[Value] = (),
        holds: tuple = (),
    ) -> int:
        self.sites.append(
            Site(
                kind,
                exception,
                message,
                span,
                tuple(v.dtype for v in operands),
                tuple(len(v.dims) for v in operands),
                holds,
            )
        )
        return len(self.sites) - 1

    def constant(self, value: ConstantArray, name: str) -> Buf:
        if value not in self.constants:
            self.constants[value] = Buf(
                self.names.fresh(name), value.value.dtype, value.value.shape, "const", len(self.constants), value.value
            )
        return self.constants[value]

    def symbol(self, base: str, low: DimLike | None = None, high: DimLike | None = None) -> str:
        """A new integer symbol with what is known of it."""
        name = self.names.fresh(base)
        self.facts.learn(name, low, high)
        return name


class Block:
    """A straight stretch of statements being written: the entry, a branch, a loop body."""

    def __init__(self, shared: Lowering, made: Plan, sizes: dict[str, DimLike]):
        self.shared, self.plan, self.sizes = shared, made, dict(sizes)
        self.statements: list[Stmt] = []
        self.values: dict[Var, Value] = {}
        self.wanted: dict[Var, Place] = {}
        self.saves: dict[Var, Place] = {}  # rows to be copied out as soon as they are made
        self.behind: dict[Var, tuple[Buf, DimLike]] = {}  # arrays to be made on a stack, from that row on
        self.span: Span | None = None

    # --- reading core -----------------------------------------------------------------------------

    def dims(self, dims: Sequence[DimLike]) -> Indices:
        return tuple(substitute(d, self.sizes) for d in dims)

    def attributes(self, let: Let) -> dict[str, Any]:
        """The attributes with this program's size symbols (regions are left alone: they are lowered with
        ours)."""
        return {
            k: v
            if isinstance(v, Function) or isinstance(v, tuple) and any(isinstance(f, Function) for f in v)
            else substitute_attribute(v, self.sizes)
            for k, v in let.attributes.items()
        }

    def types(self, let: Let) -> tuple[Array, ...]:
        return tuple(Array(a.type.dtype, self.dims(a.type.dims)) for a in let.args)

    def value(self, atom: Atom) -> Value:
        if isinstance(atom, Literal):
            return scalar(Index(int(atom.value)) if atom.value.dtype == i64 else Const(atom.value))
        return self.values[atom]

    def args(self, let: Let) -> list[Value]:
        return [self.value(a) for a in let.args]

    # --- writing nests ----------------------------------------------------------------------------

    def emit(self, stmt: Stmt) -> None:
        self.statements.append(self.placed(stmt))

    def placed(self, stmt: Stmt) -> Stmt:
        """The statement, which knows where it comes from."""
        stmt.span = self.span
        for e in stmt.expressions:
            _placed(e, self.span)
        return stmt

    def apply(self, name: str, *args: E, dtype: Any) -> E:
        return scalars.apply(self.shared.facts, name, args, np.dtype(dtype))

    def axes(self, dims: Sequence[DimLike], kind: str = "par") -> tuple[list[Axis], Indices]:
        """Loops over `dims` and the index they make; a dim of 1 needs no loop."""
        loops: list[Axis] = []
        index: list[DimLike] = []
        for dim in dims:
            if dim == 1:
                index.append(0)
                continue
            name = self.shared.symbol("i", 0, dim - 1)
            loops.append(Axis(name, dim, kind))
            index.append(Sym(name))
        return loops, tuple(index)

    def nest(self, axes: Sequence[Axis], body: Sequence[Stmt], first: Sequence[Stmt] = ()) -> None:
        for stmt in (*first, *body):
            self.placed(stmt)
        if first and all(a.kind == "par" for a in axes):  # what the reduction runs along has one element
            body, first = (*first, *body), ()
        if any(a.extent == 0 for a in axes):
            axes, body, first = [a for a in axes if a.kind == "par"], first, ()
            if not body or any(a.extent == 0 for a in axes):
                return
        if axes:
            self.emit(Nest(tuple(axes), tuple(body), tuple(first)))
        else:
            self.statements.extend((*first, *body))

    def fill(self, place: Place, at: Callable[[Indices], E]) -> None:
        """place[index] = at(index), for every index."""
        axes, index = self.axes(place.dims)
        self.nest(axes, [Store(place.buf, (*place.prefix, *index), at(index))])

    def copy(self, place: Place, value: Value) -> None:
        if value.place is None or (value.place.buf, value.place.prefix) != (place.buf, place.prefix):
            here, self.span = self.span, value.span or self.span
            self.fill(place, value.at)
            self.span = here

    def temp(self, name: str, dtype: np.dtype, dims: Sequence[DimLike]) -> Place:
        return Place(Buf(self.shared.names.fresh(name), dtype, tuple(dims)))

    def local(self, name: str, e: E) -> E:
        """Keep a scalar in a variable: integers as symbols, others as rank-0 Bufs."""
        if e.dtype == i64:
            symbol = self.shared.symbol(name)
            self.emit(Bind(symbol, e))
            return Index(Sym(symbol))
        buf = local(self.shared.names.fresh(name), e.dtype)
        self.emit(Store(buf, (), e))
        return Load(buf)

    def place_for(self, out: Var) -> Place:
        """Where the result `out` is to be written: where it is wanted, else new storage."""
        wanted = self.wanted.pop(out, None)
        return wanted or self.temp(out.name, out.type.dtype, self.dims(out.type.dims))

    def define(self, out: Var, at: Callable[[Indices], E], lazy: bool = False) -> None:
        """`out[index] = at(index)`: stored by a nest, or (lazy) read through; a scalar goes into a
        variable."""
        dims = self.dims(out.type.dims)
        if not dims:
            e = at(())
            simple = (
                isinstance(e, Const)
                or isinstance(e, Index)
                and scalars.is_small(e.dim)
                or isinstance(e, Load)
                and not e.buf.dims
            )
            self.values[out] = scalar(e if simple else self.local(out.name, e))
        elif lazy and out not in self.plan.kept:
            span = self.span
            self.values[out] = Value(out.type.dtype, dims, lambda index: _placed(at(index), span), span=span)
        else:
            place = self.place_for(out)
            self.fill(place, at)
            self.values[out] = stored(place)

    # --- lowering ---------------------------------------------------------------------------------

    def run(self, function: Function) -> None:
        for let in function.lets:
            self.span = let.span
            native = let.primitive.native
            if type(native) not in RULES:
                raise AssertionError(f"{let.primitive.name}: no lowering for {native}")
            RULES[type(native)](self, let)
            for out in let.outs:
                if out in self.saves:
                    self.copy(self.saves[out], self.values[out])

    def want(self, places: Iterable[tuple[Root, Place]]) -> None:
        """Ask that storage of results be these places, where it is made in this block."""
        for root, place in places:
            if root is not None and root in self.plan.position and root not in self.wanted:
                if self.dims(root.type.dims) == place.dims and root.type.dtype == place.buf.dtype:
                    self.wanted[root] = place


def _placed(e: E, span: Span | None) -> E:
    """The expression, whose operations know where they come from: they may end in a statement of another line. What is
    in one that knows it has been here."""
    if isinstance(e, Op) and e.span is None:
        object.__setattr__(e, "span", span)  # it is no part of what the operation is
        for x in e.args:
            _placed(x, span)
    elif isinstance(e, Load):
        for index in e.index:
            if isinstance(index, E):
                _placed(index, span)
    return e


def lower(function: Function, target: Target, writes: Mapping[int, int] | None = None, bounds: bool = True) -> Program:
    """The whole program, unfused: one nest a Let. `writes`: results that are a parameter's new value."""
    shared = Lowering(target, bounds)
    made, in_place = written_in_place(function, target, writes or {})
    sizes = size_symbols(function)
    renamed: dict[str, DimLike] = {}
    for name in sizes:
        renamed[name] = Sym(shared.symbol(name.split("__")[0], 0, None))
    shared.entry = block = Block(shared, made, renamed)
    params = []
    for k, param in enumerate(function.params):
        buf = Buf(shared.names.fresh(param.name), param.type.dtype, block.dims(param.type.dims), "arg", k)
        params.append(buf)
        if param.type.dims:
            block.values[param] = stored(Place(buf))
        elif param.type.dtype == i64:
            shared.facts.learn(buf.name, None, None)
            shared.arguments.add(buf.name)
            block.values[param] = scalar(Index(Sym(buf.name)))
        else:
            block.values[param] = scalar(Load(buf))
    results, places = [], {}
    for k, result in enumerate(function.results):
        if k in in_place:
            results.append(params[in_place[k]])
            places[k] = Place(results[-1])
            continue
        chosen = isinstance(result, Var) and result not in function.params and result.name not in REGISTRY
        name = shared.names.fresh(result.name if chosen and result.type.dims else "out")  # type: ignore[union-attr]
        dims = block.dims(result.type.dims)  # sizes bound inside are put in below
        results.append(Buf(name, result.type.dtype, dims, "out", k))
        if dims and all(symbols(d) <= {s.name for s in renamed.values()} for d in dims):  # type: ignore[union-attr]
            places[k] = Place(results[-1])
    block.want((made.roots[k], place) for k, place in places.items())
    block.run(function)
    block.span = None
    for k, result in sorted(enumerate(function.results), key=lambda r: r[0] in in_place):  # arguments last
        value, buf = block.value(result), results[k]
        if not buf.dims:
            block.emit(Store(buf, (), value.scalar))
            continue
        if k not in places:
            buf.dims, buf.dynamic = block.dims(result.type.dims), True
            block.emit(SetDims(buf))
        block.copy(Place(buf), value)
    constants = tuple(shared.constants.values())
    entry = Fn(
        "entry",
        (*params, *results, *constants),
        tuple(s.name for s in renamed.values()),  # type: ignore
        tuple(block.statements),
        names=shared.names,
        facts=shared.facts,
    )
    return Program(
        function.name,
        tuple(params),
        tuple(results),
        constants,
        entry.sizes,
        entry,
        tuple(shared.callees.values()),
        tuple(shared.sites),
        tuple(in_place.items()),
        target,
    )


def size_symbols(function: Function) -> tuple[str, ...]:
    """The signature's size symbols, in order of first appearance in the parameter types: the entry's
    `sizes`."""
    found: dict[str, None] = {}
    for param in function.params:
        for dim in param.type.dims:
            for name in sorted(symbols(dim)):
                found.setdefault(name)
    return tuple(found)


__all__ = ["Block", "Lowering", "lower", "rule", "RULES", "size_symbols", "is_lazy"]
