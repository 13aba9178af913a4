"""What a statement reads and writes, and when two of them may share a loop.

In: statements. Out: `Item` summaries; `conflict(p, n)`; `may_share(p, n, loop)`; `distance` of two places, in
iterations of a loop, and `in_step`, which every rewrite asks that changes the order of iterations.

    p: y[i, j] = ...    n: z[i] += y[i, k]      may share the loop over i: y is read where it is written, i
    by i p: s += y[i]        n: z[i] = y[i] / s      may not: n needs the whole sum
"""

from __future__ import annotations

from typing import NamedTuple

from metaphrase.core.dims import Dim, DimLike, product, substitute, symbols, symbols_of, terms_of
from metaphrase.core.facts import Facts
from metaphrase.late import dataclass, field

from .nest import (
    Access,
    Axis,
    Buf,
    Check,
    E,
    Map,
    Nest,
    Stmt,
    Sym,
    expression_symbols,
    fact,
    index_symbols,
    loaded,
    walk,
)
from .rewrite import rename_statement


@dataclass(eq=False)
class Item:
    """A statement with the loops it still may be put in (`axes`, for a Nest) and what it touches."""

    axes: tuple[Axis, ...]
    body: tuple[Stmt, ...]
    first: tuple[Stmt, ...] = ()  # as in Nest
    accesses: list[Access] = field(default_factory=list)
    reads: frozenset[str] = frozenset()  # integer symbols
    binds: frozenset[str] = frozenset()
    ordered: bool = False  # checks, effects
    checks: bool = False
    guarded: bool = False  # must stay behind earlier checks: its indices are data
    is_nest: bool = True
    touched: dict[Buf, list[Access]] = field(default_factory=dict)
    scalars: frozenset[str] = frozenset()  # names of the scalar Bufs it touches
    scalars_written: frozenset[str] = frozenset()

    def finish(self) -> Item:
        self.touched = {}
        for access in self.accesses:
            self.touched.setdefault(access.buf, []).append(access)
        scalars = [(b.name, any(a.write for a in found)) for b, found in self.touched.items() if not b.dims]
        self.scalars = frozenset(name for name, _ in scalars)
        self.scalars_written = frozenset(name for name, written in scalars if written)
        return self


@fact
def summarize(stmt: Stmt) -> Item:
    """The Item of one statement of a block."""
    if isinstance(stmt, Nest):
        return summary(stmt.axes, stmt.body, stmt.first, True)
    return summary((), (stmt,), (), False)


def summary(axes: tuple[Axis, ...], body: tuple[Stmt, ...], first: tuple[Stmt, ...], is_nest: bool) -> Item:
    """The Item of a nest's parts."""
    statements = (*first, *body)
    effects = _together([*map(_own, walk(statements))] if is_nest else [*map(_inside, statements)])
    own = {a.name for a in axes}
    return Item(
        axes,
        body,
        first,
        list(effects.accesses),
        effects.read.union(*(symbols(a.extent) for a in axes)) - own,
        effects.bound,
        effects.ordered,
        effects.checks,
        effects.guarded or is_nest and bool(effects.bound),
        is_nest,
    ).finish()


class _Effects(NamedTuple):
    """What statements do to the storages and the integer symbols around them."""

    read: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    accesses: tuple[Access, ...] = ()
    guarded: bool = False
    ordered: bool = False
    checks: bool = False


def _together(rows: list[_Effects]) -> _Effects:
    if len(rows) == 1:
        return rows[0]
    return _Effects(
        frozenset().union(*(e.read for e in rows)),
        frozenset().union(*(e.bound for e in rows)),
        tuple(a for e in rows for a in e.accesses),
        any(e.guarded for e in rows),
        any(e.ordered for e in rows),
        any(e.checks for e in rows),
    )


@fact
def _own(stmt: Stmt) -> _Effects:
    """Those of a statement itself."""
    accesses = (*(Access(load.buf, load.index, False) for load in loaded(stmt)), *stmt.accesses)
    # An array can be made, and its places found, once its sizes are known.
    dims = (*stmt.extents, *(d for access in accesses for d in access.buf.dims))
    places = (index_symbols(access.index) for access in stmt.accesses)
    read = symbols_of(dims).union(*map(expression_symbols, stmt.expressions), *places)
    bound = frozenset() if stmt.binds is None else frozenset([stmt.binds])
    return _Effects(read, bound, accesses, stmt.guarded, stmt.ordered, isinstance(stmt, Check))


@fact
def _inside(stmt: Stmt) -> _Effects:
    """Those of a statement and the ones inside it; of a Buf that is used inside any part may be."""
    own = _own(stmt)
    if not stmt.blocks:
        return own
    both = _together([own, *(_inside(s) for block in stmt.blocks for s in block)])
    whole = dict.fromkeys((a.buf, a.write) for a in both.accesses)
    return both._replace(accesses=tuple(Access(buf, (), write, True) for buf, write in whole))


def conflict(p: Item, n: Item, facts: Facts) -> bool:
    """Whether n must come after p."""
    if p.ordered and n.ordered or p.checks and n.guarded:
        return True
    # Integer symbols are variables: a scalar i64 Buf and the symbol of its name are the same one.
    if p.binds & (n.reads | n.binds) or p.reads & n.binds:
        return True
    if p.scalars_written & (n.reads | n.binds) or n.scalars_written & (p.reads | p.binds):
        return True
    if p.binds & n.scalars or n.binds & p.scalars:
        return True
    small, large = (p.touched, n.touched) if len(p.touched) <= len(n.touched) else (n.touched, p.touched)
    for buf in small:
        if buf in large:
            theirs, mine = p.touched[buf], n.touched[buf]
            if any(a.write for a in theirs) or any(b.write for b in mine):
                own = frozenset(a.name for a in n.axes) | n.binds
                pairs = ((a, b) for a in theirs for b in mine if a.write or b.write)
                if not all(_never_meet(a, b, facts, own) for a, b in pairs):
                    return True
    return False


def _never_meet(a: Access, b: Access, facts: Facts, own: frozenset[str]) -> bool:
    if a.whole or b.whole or len(a.index) != len(b.index) or a.index == b.index:
        return False
    return disjoint(a.index, b.index, facts, own)


def apart(x: DimLike, y: DimLike, facts: Facts, own: frozenset[str]) -> bool:
    """Whether two index entries are never equal, whatever the loops of each (y's are `own`) do. False: not shown."""
    names = set(symbols(y) & own)
    while more := {s for name in names for s in symbols_of(_range(facts, name)) & own} - names:
        names |= more  # a loop inside another may run as far as the index of that says
    values: dict[str, DimLike] = {name: Sym(name + "'") for name in names}
    for name in names:
        low, high = (None if d is None else substitute(d, values) for d in facts.ranges.get(name, (None, None)))
        facts.learn(name + "'", low, high)
    between = substitute(y, values) - x
    return facts.less(0, between) or facts.less(between, 0)


def _range(facts: Facts, name: str) -> list[DimLike]:
    return [d for d in facts.ranges.get(name, ()) if d is not None]


def disjoint(a: Map, b: Map, facts: Facts, own: frozenset[str]) -> bool:
    """Whether two places never meet, whatever the loops of each (b's are `own`) do. False: not shown."""
    for x, y in zip(a, b):
        if isinstance(x, int) and isinstance(y, int):
            if x != y:
                return True
        elif not (isinstance(x, E) or isinstance(y, E) or x == y and not symbols(x)) and apart(x, y, facts, own):
            return True
    return False


def slope(entry: DimLike, loop: str) -> int | None:
    """By how much an index entry moves with each iteration of `loop`; None where that is no constant."""
    if not isinstance(entry, Dim):
        return 0
    found = 0
    for monomial, coefficient in entry.terms:
        if any(loop in symbols(Dim(((((atom, 1),), 1),))) for atom, _ in monomial):
            if len(monomial) != 1 or monomial[0][1] != 1 or monomial[0][0].kind != "sym":
                return None
            found = coefficient
    return found


def pinned(entry: object, loop: str, inner: frozenset[str]) -> bool:
    """Whether an index entry moves with `loop` one to one, and with no loop inside it."""
    return isinstance(entry, Dim) and bool(slope(entry, loop)) and not symbols(entry) & inner


class Distance(NamedTuple):
    """How many iterations of a loop lie between two accesses that meet. `at` None: any number. `sure`: they do meet."""

    at: int | None
    sure: bool


def distance(
    a: Map, b: Map, loop: str, extent: DimLike, inner: frozenset[str], data: frozenset[str]
) -> Distance | None:
    """From place `a` to place `b` of one array, both of which an iteration of `loop` names: None where no two
    iterations meet. `inner`: the indices of loops inside; `data`: the other symbols that iterations give values to.

    >>> i, j = Sym("i"), Sym("j")
    >>> distance((i + 1, j), (i, j), "i", Sym("n"), frozenset("j"), frozenset())
    Distance(at=1, sure=True)
    >>> distance((2 * i,), (2 * i + 1,), "i", Sym("n"), frozenset(), frozenset()) is None
    True
    """
    at: int | None = None
    sure = len(a) == len(b)
    for x, y in zip(a, b):
        if isinstance(x, E) or isinstance(y, E):
            sure = False
            continue
        moves, between = slope(x, loop), 0 if x == y else x - y
        if moves is None or moves != slope(y, loop):
            sure = False
        elif (symbols(x) | symbols(y)) & (inner if moves else frozenset()) or (symbols(x) | symbols(y)) & data:
            sure = False
        elif not moves and between != 0:
            if isinstance(between, int) and not symbols(x) & inner:
                return None
            sure = False
        elif moves and not isinstance(between, int):
            sure = False
        elif moves:
            here, rest = divmod(between, moves)  # type: ignore[operator]
            if rest or at is not None and at != here or isinstance(extent, int) and abs(here) >= extent:
                return None
            at = here
    return Distance(at, sure)


def in_step(
    a: Map, b: Map, loop: str, extent: DimLike, inner: frozenset[str] = frozenset(), data: frozenset[str] = frozenset()
) -> bool:
    """Whether two places meet within one iteration of `loop` only, or not at all: the one condition under which loops
    are fused, and iterations run in any order or side by side. False: not shown."""
    found = distance(a, b, loop, extent, inner, data)
    return found is None or found.at == 0


def in_blocks(a: Map, b: Map, loop: str, facts: Facts) -> bool:
    """Whether each iteration of `loop` has a block of places to itself: `32*i + j` and `32*i + k` for j, k < 32.
    `facts` know how far the loops inside run."""
    for x, y in zip(a, b):
        if isinstance(x, E) or isinstance(y, E):
            continue
        moves = slope(x, loop)
        if moves and moves == slope(y, loop):
            starts = (entry - moves * Sym(loop) for entry in (x, y))
            if all(facts.less_equal(0, start) and facts.less(start, abs(moves)) for start in starts):
                return True
    return False


INSIDE = tuple(f"inside {d}" for d in range(64))  # of a library's rows; NumPy's arrays have no more dims


def in_rows(access: Access, facts: Facts) -> Access:
    """What a library works on as one place: any along the dims that it works along, or in the rows where all lies."""
    if access.spread is None:
        return access
    index, dims = access.index, access.buf.dims
    free = [d for d, entry in enumerate(index) if isinstance(entry, int) and entry == 0]
    along = set[int]()
    for extent, stride in access.spread:
        own = (d for d in free if product(dims[d + 1 :]) == stride and facts.less_equal(extent, dims[d]))
        along.add(next((d for d in own if d not in along), -1))
    if -1 in along:
        last = sum(((extent - 1) * stride for extent, stride in access.spread), start=0)
        if any(factor < 0 for _, stride in access.spread for _, factor in terms_of(stride)):
            return access
        rows = (k for k in range(len(dims) + 1) if facts.less(last, product(dims[k:])))
        first = max(rows, default=-1)
        along = set(range(first, len(dims)))
        if not along <= set(free):
            return access
    fixed = ((entry, dims[d]) for d, entry in enumerate(index) if d not in along)
    if not all(isinstance(x, E) or facts.less_equal(0, x) and facts.less(x, dim) for x, dim in fixed):
        return access  # a place in other rows than its numbers say
    return Access(access.buf, tuple(Sym(INSIDE[d]) if d in along else index[d] for d in range(len(dims))), access.write)


def may_share(p: Item, n: Item, loop: str, facts: Facts) -> bool:
    """Whether p and n (both with their axis already called `loop`) may run iteration by iteration, p
    first."""
    if p.ordered and n.ordered or p.checks and n.guarded:
        return False
    if p.binds & n.reads or p.reads & n.binds or p.binds & n.binds:
        return False
    inner = frozenset(a.name for a in (*p.axes, *n.axes) if a.name != loop)
    data = p.binds | n.binds
    own = frozenset(a.name for a in n.axes) | n.binds | {loop}
    extent = next(a.extent for a in n.axes if a.name == loop)
    for buf, theirs in n.touched.items():
        for b in theirs:
            for a in p.touched.get(buf, ()):
                if not (a.write or b.write):
                    continue
                if a.whole or b.whole or len(a.index) != len(b.index):
                    return False
                if not in_step(a.index, b.index, loop, extent, inner, data) and not disjoint(
                    a.index, b.index, facts, own
                ):
                    return False
    return True


def renamed(item: Item, axis: str, loop: str) -> Item:
    """The item with one of its axes under another name."""
    if axis == loop:
        return item
    values = {axis: Sym(loop)}
    axes = tuple(Axis(loop, a.extent, a.kind) if a.name == axis else a for a in item.axes)
    body, first = (tuple(rename_statement(s, values) for s in block) for block in (item.body, item.first))
    return summary(axes, body, first, item.is_nest)


__all__ = [
    "Access",
    "Distance",
    "Item",
    "conflict",
    "disjoint",
    "distance",
    "in_blocks",
    "in_step",
    "may_share",
    "pinned",
    "renamed",
    "slope",
    "summarize",
    "summary",
]
