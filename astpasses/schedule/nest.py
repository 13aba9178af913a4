"""The loop-nest language: what native code is made from. It prints as Python loops (python_loops.py) and
runs.

In: statements.py and storage.py. Out: both, `Fn`, `Program`, and the facts of a statement that follow from
its declaration, each worked out once. A row sum:

    For("i", n, (Store(s, (), zero),
                 For("j", m, (Store(s, (), Load(x, (i, j)), monoid="sum"),)),
                 Store(y, (i,), Load(s, ()))))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import is_

import numpy as np

from metaphrase.core.dims import Dim, DimLike, Sym, symbols
from metaphrase.core.facts import Facts
from metaphrase.core.native import Const, E, Op, constant, operation
from metaphrase.core.scalars import facts
from metaphrase.exceptions import Site as Site
from metaphrase.late import dataclass, field
from metaphrase.source import Span

from .names import Names
from .statements import (
    Axis,
    Bind,
    CallFn,
    Change,
    Check,
    Combine,
    Effect,
    For,
    Grow,
    If,
    Lap,
    LibraryCall,
    Nest,
    Parts,
    SetDims,
    Stmt,
    Store,
    Swap,
    View,
    While,
)
from .storage import (
    Access,
    Buf,
    Index,
    Load,
    Map,
    expression_symbols,
    fact,
    index_symbols,
    loads,
    place_symbols,
    subexpressions,
    value_symbols,
)
from .target import CPU, Target


@dataclass(frozen=True)
class Kernel:
    """How a GPU runs a function. `count`: the iterations of its loops over the grid; None: one block does it all.
    `together`: the threads of a block do one iteration together, or each an iteration. `threads`: of a block. `rows`:
    iterations that a block does together at a time, each by a warp (warps.py); `count` counts those as one. `ends`: the
    array that it leaves False in where a loop of the host's ends, and how many launches of the round are behind it."""

    count: DimLike | None
    together: bool
    threads: int
    rows: int = 1
    ends: tuple[str, int] | None = None


@dataclass(eq=False)
class Fn:
    """A function: `bufs` and `sizes` are its parameters, `temps` its own storage; `scratch` names the parameters that
    are room for what is its own as well: nothing is in them before or wanted of them behind. `is_part`: a thread of a
    pool may run it, which no signal can end."""

    name: str
    bufs: tuple[Buf, ...]
    sizes: tuple[str, ...]
    body: tuple[Stmt, ...]
    temps: tuple[Buf, ...] = ()
    fails: bool = False
    result: Buf | None = None  # the scalar it returns
    names: Names = field(default_factory=Names)  # gives passes fresh ones
    facts: Facts = field(default_factory=Facts)
    scratch: frozenset[str] = frozenset()
    is_part: bool = False
    kernel: Kernel | None = None

    def with_body(self, body: tuple[Stmt, ...]) -> Fn:
        """The function with another body; itself, with what is known of it, where that is the same."""
        same = len(body) == len(self.body) and all(map(is_, body, self.body))
        return self if same else replace(self, body=body)


@dataclass(eq=False)
class Program:
    """`entry` after the Fns it calls. `entry.bufs`: parameters, then results, then constants."""

    name: str
    params: tuple[Buf, ...]
    results: tuple[Buf, ...]
    constants: tuple[Buf, ...]
    sizes: tuple[str, ...]
    entry: Fn
    fns: tuple[Fn, ...] = ()
    sites: tuple[Site, ...] = ()
    in_place: tuple[tuple[int, int], ...] = ()  # (result, parameter) that are one Buf: the caller's array
    target: Target = CPU


def local(name: str, dtype: np.dtype) -> Buf:
    """A scalar variable."""
    return Buf(name, dtype, ())


def boolean(value: bool) -> Const:
    return constant(value, bool)


def never(condition: E) -> bool:
    """Whether a condition is False by its look."""
    return isinstance(condition, Const) and not condition.value


def always(condition: E) -> bool:
    """Whether a condition is True by its look."""
    return isinstance(condition, Const) and bool(condition.value)


# --- what follows from the declarations -------------------------------------------------------------


def walk(block: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement, outer before inner."""
    waiting = [*reversed(block)]
    while waiting:
        stmt = waiting.pop()
        yield stmt
        for inner in reversed(stmt.blocks):
            waiting += reversed(inner)


def runs_along(buf: Buf, index: Map, loops: Sequence[For]) -> bool:
    """Whether places of an array are numbered as the iterations of loops in one another are."""
    own = tuple(Sym(loop.index) for loop in loops)
    return index == own and buf.dims[1:] == tuple(loop.extent for loop in loops[1:])


@fact
def loaded(stmt: Stmt) -> tuple[Load, ...]:
    """The Loads in the expressions of a statement itself."""
    return tuple(load for e in stmt.expressions for load in loads(e))


@fact
def operations(stmt: Stmt) -> int:
    """What the operations of a statement itself count for, without those of the blocks inside it."""
    inside = (x for e in stmt.expressions for x in subexpressions(e) if isinstance(x, Op))
    return sum(max(1, facts(x.name).cost) for x in inside)


@fact
def dearest(stmt: Stmt) -> int:
    """What the dearest operation of a statement itself costs (core/scalars.py)."""
    inside = (x for e in stmt.expressions for x in subexpressions(e) if isinstance(x, Op))
    return max((facts(x.name).cost for x in inside), default=0)


@fact
def places(stmt: Stmt) -> tuple[Span, ...]:
    """Where a statement comes from in the user's source: its operations, the outermost first, or itself. What has been
    put together of several lines has several places."""
    inside = (x.span for e in stmt.expressions for x in subexpressions(e) if isinstance(x, Op) and x.span is not None)
    found: dict[tuple, Span] = {}
    for span in inside:
        found.setdefault((span.file, span.line, span.role), span)
    return tuple(found.values()) or ((stmt.span,) if stmt.span is not None else ())


@fact
def touched(stmt: Stmt) -> tuple[Buf, ...]:
    """The Bufs that a statement names outside of expressions."""
    return tuple(access.buf for access in stmt.accesses)


@fact
def other_symbols(stmt: Stmt) -> frozenset[str]:
    """The symbols in extents, places and sizes: everywhere but in expressions."""
    names = [index_symbols(access.index) for access in stmt.accesses]
    dims = (*stmt.extents, *(d for buf in touched(stmt) for d in buf.dims))
    return frozenset().union(*names, *map(symbols, dims))


def mentions(block: tuple[Stmt, ...], name: str) -> bool:
    """Whether statements have to do with an integer."""
    return any(name in other_symbols(s).union(*map(expression_symbols, s.expressions)) for s in walk(block))


@fact
def bound_inside(stmt: Stmt) -> frozenset[str]:
    """The symbols that a statement and those inside it bind."""
    return frozenset(s.binds for s in walk((stmt,)) if s.binds is not None)


@fact
def named(stmt: Stmt) -> tuple[Buf, ...]:
    """The Bufs that a statement itself names, each once."""
    return tuple(dict.fromkeys((*touched(stmt), *(load.buf for load in loaded(stmt)))))


@fact
def used_inside(stmt: Stmt) -> frozenset[Buf]:
    """The Bufs that a statement and those inside it name."""
    return frozenset(named(stmt)).union(*(used_inside(s) for block in stmt.blocks for s in block))


__all__ = [
    "Access",
    "Axis",
    "Bind",
    "Buf",
    "CallFn",
    "Change",
    "Check",
    "Combine",
    "Const",
    "Dim",
    "DimLike",
    "E",
    "Effect",
    "Fn",
    "For",
    "Grow",
    "If",
    "Index",
    "Kernel",
    "Lap",
    "LibraryCall",
    "Load",
    "Map",
    "Nest",
    "Op",
    "Parts",
    "Program",
    "SetDims",
    "Site",
    "Stmt",
    "Store",
    "Swap",
    "Sym",
    "Target",
    "View",
    "While",
    "always",
    "boolean",
    "bound_inside",
    "constant",
    "expression_symbols",
    "fact",
    "index_symbols",
    "loaded",
    "loads",
    "mentions",
    "named",
    "local",
    "never",
    "operation",
    "dearest",
    "operations",
    "other_symbols",
    "runs_along",
    "place_symbols",
    "places",
    "subexpressions",
    "touched",
    "used_inside",
    "value_symbols",
    "walk",
]
