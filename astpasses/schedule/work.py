"""How much work a block is, before it runs: what a program is charged when it asks for signals, and whether a loop is
worth sharing among threads.

In: a block, and where it stands in a function. Out: dims, in units of about a nanosecond. Example:

    for i in range(n):            `before` of the block: 3*n*m, charged where the block begins
        for j in range(m): ...
    k = count[0]                  `behind`: {1: 5*k}, charged where k is known
    for i in range(k): ...

It is a guess, too large rather than too small: the runtime measures what the units are worth. Loops whose
rounds are known only inside another loop count as of `target.unknown` rounds there, and are charged again where they
begin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from metaphrase.core.dims import Dim, DimLike, product, substitute, symbols

from .nest import (
    Bind,
    CallFn,
    E,
    Fn,
    For,
    If,
    LibraryCall,
    Program,
    Stmt,
    Store,
    While,
    expression_symbols,
    fact,
    loaded,
    loads,
    operations,
    walk,
)


class Work:
    """The work of the blocks of one program. `whiles`: whether their rounds count, too, or each asks for itself."""

    def __init__(self, program: Program, whiles: bool = False):
        self.fns: Mapping[str, Fn] = {fn.name: fn for fn in program.fns}
        self.an_element = {offer.operation: offer.an_element for offer in program.target.offers}
        self.target, self.rounds = program.target, program.target.unknown if whiles else 0
        self.known: dict[int, DimLike] = {}
        self.early = _early(program)

    def before(self, block: tuple[Stmt, ...]) -> DimLike:
        """What is known where the block begins."""
        return self._charges(block)[-1]

    def behind(self, block: tuple[Stmt, ...]) -> dict[int, DimLike]:
        """What is known behind the k-th statement, and not before."""
        return {k: total for k, total in self._charges(block).items() if k >= 0}

    def _charges(self, block: tuple[Stmt, ...]) -> dict[int, DimLike]:
        bound: dict[str, int] = {}
        charges: dict[int, DimLike] = {-1: 0}
        for k, stmt in enumerate(block):
            for monomial, coefficient in _terms(self.of(stmt)):
                term = Dim(((monomial, coefficient),)) if monomial else coefficient
                place = max((bound.get(name, -1) for name in symbols(term)), default=-1)
                charges[place] = charges.get(place, 0) + term
            if stmt not in self.early:
                bound.update(dict.fromkeys(binds(stmt), k))
        return charges

    def of(self, stmt: Stmt) -> DimLike:
        """The work of one statement."""
        if id(stmt) not in self.known:
            self.known[id(stmt)] = self._work(stmt)
        return self.known[id(stmt)]

    def _work(self, stmt: Stmt) -> DimLike:
        if isinstance(stmt, For) and stmt.parts is not None:  # as much as one part that is the whole
            (call,) = stmt.body
            assert isinstance(call, CallFn)
            fn = self.fns[call.fn]
            values = {**dict(zip(fn.sizes, call.sizes)), fn.sizes[-1]: stmt.parts.whole}
            return _at_most(substitute(self._inside(fn.body), values), {stmt.index: 0})
        if isinstance(stmt, For):
            return stmt.extent * self.iteration(stmt)
        if isinstance(stmt, If):
            return 1 + operations(stmt) + self._inside(stmt.then) + self._inside(stmt.orelse)
        if isinstance(stmt, While):
            return self.rounds * (1 + operations(stmt) + self._inside(stmt.before) + self._inside(stmt.body))
        if isinstance(stmt, LibraryCall):
            return _library(stmt, self.an_element.get(stmt.operation, 0))
        if isinstance(stmt, CallFn):
            fn = self.fns[stmt.fn]
            return substitute(self._inside(fn.body), dict(zip(fn.sizes, stmt.sizes)))
        gathered = sum(_is_far(load.index) for load in loaded(stmt))
        if isinstance(stmt, Bind):  # most likely an index
            gathered += any(True for _ in loads(stmt.value))
        elif isinstance(stmt, Store):
            gathered += _is_far(stmt.index)
        return 1 + operations(stmt) + self.target.far * gathered

    def iteration(self, loop: For) -> DimLike:
        """The work of one iteration, of the longest where they differ."""
        return _at_most(self._inside(loop.body), {loop.index: loop.extent}) + 1

    def _inside(self, block: tuple[Stmt, ...]) -> DimLike:
        """Of a block that is run many times: what is known in it only is taken for so much."""
        total: DimLike = 0
        for stmt in block:
            total = total + self.of(stmt)
        return _at_most(total, {name: self.target.unknown for stmt in block for name in binds(stmt)})


def _early(program: Program) -> list[Stmt]:
    """The statements of an entry that say sizes by what the call is given."""
    stores = Counter(stmt.buf for stmt in walk(program.entry.body) if isinstance(stmt, Store))
    known = {*program.sizes, *(buf.name for buf in program.params if not buf.dims and buf not in stores)}
    early: list[Stmt] = []
    for stmt in program.entry.body:
        if not isinstance(stmt, Bind) and not (isinstance(stmt, Store) and stores[stmt.buf] == 1):
            continue
        names = binds(stmt)
        if len(names) == 1 and reads(stmt) <= known:
            known |= names
            early.append(stmt)
    return early


def reads(stmt: Stmt) -> set[str]:
    """The names of the symbols and storages that a statement's expressions read."""
    return {load.buf.name for load in loaded(stmt)}.union(*map(expression_symbols, stmt.expressions))


def _terms(dim: DimLike) -> tuple:
    return dim.terms if isinstance(dim, Dim) else (((), dim),)


def _at_most(dim: DimLike, values: Mapping[str, DimLike]) -> DimLike:
    """A dim with these in the place of symbols, which are at least 0 and at most that."""
    if not symbols(dim) & set(values):
        return dim
    total: DimLike = 0
    for monomial, coefficient in _terms(dim):
        term = Dim(((monomial, coefficient),)) if monomial else coefficient
        if coefficient > 0 or not symbols(term) & set(values):
            total = total + substitute(term, values)
    return total


@fact
def binds(stmt: Stmt) -> frozenset[str]:
    """The symbols that a statement gives a value to."""
    own = {access.buf.name for access in stmt.accesses if access.write and not access.buf.dims}
    if stmt.binds is not None and not isinstance(stmt, For):
        own.add(stmt.binds)
    return frozenset(own).union(*(binds(inner) for block in stmt.blocks for inner in block))


def _is_far(index: tuple) -> bool:
    return any(isinstance(entry, E) for entry in index)


def _library(call: LibraryCall, an_element: int) -> DimLike:
    """The work of a library routine: so much for each element, or each product of elements."""
    elements = product(call.reads[0].extents)
    if call.operation == "dot_general":
        return elements * call.reads[1].extents[-1]
    if an_element:
        return (elements + product(call.writes[0].extents)) * an_element
    widths = [view.extents[-1] for view in call.reads if view.extents]
    total: DimLike = 0
    for width in widths:
        total = total + elements * width * 4
    return total


__all__ = ["Work", "binds", "reads"]
