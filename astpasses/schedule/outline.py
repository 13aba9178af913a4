"""Large programs in pieces: each nest becomes a function of its own, and equal nests become one function. So
does an `if` with loops in it.

In: the final tree of a program. Out: Fns with canonical parameter names, and the tree with calls in their
places.

    for i in range(n): w[i] = w[i] - lr*dw[i]        ->   nest_0(w, dw, n, lr)
    for i in range(m*k): b[i] = b[i] - lr*db[i]      ->   nest_0(b, db, m*k, lr)

A C compiler's time grows faster than a function's length; programs of a few loops stay whole, which reads
better.
"""

from __future__ import annotations

from dataclasses import replace

from metaphrase.core.dims import Dim, DimLike, Sym, symbols
from metaphrase.core.types import i64
from metaphrase.late import dataclass, field
from metaphrase.locks import cached_property

from .canonical import canonical, text_of
from .lifetimes import Lifetimes, key_of, read_before_given
from .nest import (
    Bind,
    Buf,
    CallFn,
    Check,
    Combine,
    Effect,
    Fn,
    For,
    Grow,
    If,
    LibraryCall,
    Program,
    SetDims,
    Stmt,
    Store,
    Swap,
    While,
    expression_symbols,
    loaded,
    operations,
    other_symbols,
    touched,
    walk,
)
from .place import near
from .rewrite import map_statement
from .target import Target


@dataclass(eq=False)
class _Contents:
    """What a statement touches."""

    arrays: dict[Buf, None] = field(default_factory=dict)
    written: set[Buf] = field(default_factory=set)
    scalars: dict[Buf, None] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)


def outline(program: Program) -> Program:
    """Put nests into functions, in each function that has many."""
    nests: dict[str, Fn] = {}
    entry, *fns = (_with_calls(fn, program.target, nests) for fn in (program.entry, *program.fns))
    return replace(program, entry=entry, fns=(*nests.values(), *fns))


def _with_calls(fn: Fn, target: Target, nests: dict[str, Fn]) -> Fn:
    """`nests`: the functions made so far, by what they are."""
    return replace(fn, body=_Outliner(fn.body, target, nests).block(fn.body)) if is_large(fn, target) else fn


def is_large(fn: Fn, target: Target) -> bool:
    """Whether a function has more loops than one that a C compiler is given whole."""
    return sum(1 for s in walk(fn.body) if _is_leaf(s, target)) > target.whole


def _is_leaf(stmt: Stmt, target: Target) -> bool:
    inner = isinstance(stmt, For) and not any(isinstance(s, For) for s in walk(stmt.body))
    return inner and not _is_tiny(stmt, target)


def _is_tiny(stmt: Stmt, target: Target) -> bool:
    """Less work than a call is worth."""
    return (work := _work(stmt)) is not None and work <= target.call


def _work(stmt: Stmt) -> int | None:
    """About how many operations; None where that is not known."""
    total = operations(stmt)
    inside = 0 if stmt.blocks else 1
    for block in stmt.blocks:
        for inner in block:
            if (work := _work(inner)) is None:
                return None
            inside += work
    if isinstance(stmt, For):
        return total + stmt.extent * inside if isinstance(stmt.extent, int) else None
    return None if isinstance(stmt, While) else total + inside


class _Outliner:
    def __init__(self, body: tuple[Stmt, ...], target: Target, nests: dict[str, Fn]):
        self.target, self.fns, self.body = target, nests, body
        self.readers: dict[Buf | str, int] = {}
        self.writers: dict[Buf, int] = {}
        for stmt in walk(body):
            for name in _names_read(stmt):
                self.readers[name] = self.readers.get(name, 0) + 1
            if isinstance(stmt, Store):
                self.writers[stmt.buf] = self.writers.get(stmt.buf, 0) + 1

    @cached_property
    def lifetimes(self) -> Lifetimes:
        return Lifetimes(self.body)

    def block(self, block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        rows: list[Stmt] = []
        for stmt in block:
            if isinstance(stmt, (For, If)) and (call := self.call(stmt)) is not None:
                rows.append(call)
            elif stmt.blocks:
                rows.append(stmt.with_blocks(tuple(self.block(b) for b in stmt.blocks)))
            else:
                rows.append(stmt)
        return tuple(rows)

    def call(self, nest: For | If) -> CallFn | None:
        """A call in the place of `nest`, or None if it has to stay."""
        whole = nest
        nest, extents = _with_simple_extents(nest)
        inside = list(walk((nest,)))
        if any(
            isinstance(s, (Check, Effect, Grow, SetDims, Swap, LibraryCall, Combine, CallFn, While)) for s in inside
        ):
            return None
        if (
            isinstance(nest, For)
            and nest.kind == "seq"
            and not _is_leaf(nest, self.target)
            or _is_tiny(nest, self.target)
        ):
            return None
        if isinstance(nest, If) and not any(isinstance(s, For) and not _is_tiny(s, self.target) for s in inside):
            return None
        found = _contents(nest, inside)
        if any(isinstance(s, For) and symbols(s.extent) & _values_bound(inside) for s in inside):
            return None  # how long it takes is known inside only, where a function can't ask for signals
        local_reads: dict[Buf | str, int] = {}
        for stmt in inside:
            for name in _names_read(stmt):
                local_reads[name] = local_reads.get(name, 0) + 1
        local_writes = [s.buf for s in inside if isinstance(s, Store)]
        escaping = [
            b
            for b in found.scalars
            if b in found.written
            and (self._reads(b) > _count(local_reads, b) or self.writers[b] > local_writes.count(b))
            and not (isinstance(whole, For) and self.lifetimes.private(key_of(b), whole))
        ]
        if len(escaping) > 1 or any(self.readers.get(n, 0) > local_reads.get(n, 0) for n in found.bound):
            return None
        read_before, given = read_before_given((nest,))
        if read_before & found.bound:  # a counter goes on from what it was
            return None
        private = [b for b in found.arrays if b.space == "temp" and self.readers.get(b, 0) == local_reads.get(b, 0)]
        own = near(private, self.target.stack_bytes)
        arrays = [b for b in found.arrays if b not in own and b.space != "const"]
        if not arrays:
            return None
        scalars = [
            b
            for b in found.scalars
            if b not in found.written or b in escaping and (b.name in read_before or b.name not in given)
        ]
        if any(b.dtype == i64 and b.name in found.read for b in found.scalars):
            return None
        wanted = found.read - found.bound
        for buf in (*arrays, *own):
            wanted |= _dims_symbols(buf)
        sizes = sorted(wanted, key=lambda name: (_first_extent(inside, name), name))
        result = escaping[0] if escaping else None
        fn = self.function(nest, found, arrays, own, private, scalars, sizes, result)
        return CallFn(
            fn.name,
            (*arrays, *scalars),
            tuple(extents.get(s, Sym(s)) for s in sizes),
            False,
            frozenset(b for b in arrays if b in found.written),
            result,
            nest.span,
        )

    def _reads(self, buf: Buf) -> int:
        return self.readers.get(buf, 0) + (self.readers.get(buf.name, 0) if buf.dtype == i64 else 0)

    def function(
        self,
        nest: For | If,
        found: _Contents,
        arrays: list[Buf],
        own: list[Buf],
        private: list[Buf],
        scalars: list[Buf],
        sizes: list[str],
        result: Buf | None,
    ) -> Fn:
        """The Fn of a nest under canonical names; the same one for equal nests."""
        rest = [b for b in found.scalars if b not in scalars]
        fn, bufs = canonical((nest,), arrays, own, scalars, rest, sizes, found.written, self.target.words)
        fn.result = bufs[result] if result is not None else None
        key, scratch = text_of(fn), frozenset(bufs[b].name for b in private if b not in own)
        if key not in self.fns:
            self.fns[key] = replace(fn, name=f"nest_{len(self.fns)}", scratch=scratch)
        else:  # of equal nests one may leave what another one does not
            self.fns[key] = replace(self.fns[key], scratch=self.fns[key].scratch & scratch)
        return self.fns[key]


def _with_simple_extents(nest: For | If) -> tuple[For | If, dict[str, DimLike]]:
    """The nest with a symbol for each extent that is computed, and what each stands for: nests that differ
    in how far they run are one function."""
    bound = {s.index for s in walk((nest,)) if isinstance(s, For)}
    bound |= {s.name for s in walk((nest,)) if isinstance(s, Bind)}
    found: dict[str, DimLike] = {}
    by_extent: dict[DimLike, str] = {}

    def simple(extent: DimLike) -> DimLike:
        if not isinstance(extent, Dim) or extent.is_sym or symbols(extent) & bound:
            return extent
        if extent not in by_extent:
            by_extent[extent] = f"extent {len(by_extent)}"  # no name of a program's
            found[by_extent[extent]] = extent
        return Sym(by_extent[extent])

    made = map_statement(nest, lambda e: e, lambda buf, index: (buf, index), simple)
    assert isinstance(made, (For, If))
    return made, found


def _first_extent(inside: list[Stmt], name: str) -> int:
    """Where a size is first said as an extent: an order that does not depend on names."""
    loops = [s.extent for s in inside if isinstance(s, For)]
    return next((k for k, e in enumerate(loops) if name in symbols(e)), len(loops))


def _contents(nest: For | If, inside: list[Stmt]) -> _Contents:
    found = _Contents()
    for stmt in inside:
        bufs: list[Buf] = [load.buf for load in loaded(stmt)]
        if isinstance(stmt, Store):
            bufs.append(stmt.buf)
            found.written.add(stmt.buf)
        for buf in bufs:
            (found.arrays if buf.dims else found.scalars).setdefault(buf)
        for e in stmt.expressions:
            found.read |= expression_symbols(e)
        found.read |= other_symbols(stmt)
        if isinstance(stmt, For):
            found.bound.add(stmt.index)
        elif isinstance(stmt, Bind):
            found.bound.add(stmt.name)
    return found


def _names_read(stmt: Stmt) -> list:
    names: list = [load.buf for load in loaded(stmt)]
    for e in stmt.expressions:
        names += expression_symbols(e)
    names += other_symbols(stmt)
    names += [b for b in touched(stmt) if not (isinstance(stmt, Store) and not b.dims and not stmt.monoid)]
    return names


def _count(reads: dict, buf: Buf) -> int:
    return reads.get(buf, 0) + (reads.get(buf.name, 0) if buf.dtype == i64 else 0)


def _values_bound(inside: list[Stmt]) -> set[str]:
    return {s.name for s in inside if isinstance(s, Bind)}


def _dims_symbols(buf: Buf) -> frozenset[str]:
    return frozenset().union(frozenset(), *(symbols(d) for d in buf.dims[1:]))


__all__ = ["is_large", "outline"]
