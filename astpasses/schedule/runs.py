"""Loops that become one loop over blocks of elements: sweeps over the same elements, and rounds of sweeps (rounds.py).

In: statements in their order. Out: a `Run` of those that can be one, and the loop. Example:

    run = Run(fn, target, lifetimes, in_rounds)
    while run.takes(stmt): ...
    run.written()                     # the loop and what stands beside it; nothing where it may as well stay as it is
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from metaphrase.core.dims import DimLike, Sym, dim_min, floordiv, product, substitute, symbols
from metaphrase.core.types import i64
from metaphrase.late import dataclass, field

from .dependence import conflict, in_step, summarize
from .lifetimes import Lifetimes, read_before_given
from .nest import (
    Bind,
    Buf,
    Check,
    E,
    Fn,
    For,
    If,
    Index,
    Load,
    Map,
    Stmt,
    Store,
    While,
    bound_inside,
    constant,
    index_symbols,
    loaded,
    local,
    touched,
    walk,
)
from .place import accesses_of, near
from .rewrite import map_expression, map_statement, rebound, rename_statement, with_storages
from .target import Target
from .waves import of_threads, waiting


def may_be_rounds(stmt: Stmt) -> bool:
    is_loop = isinstance(stmt, While) or isinstance(stmt, For) and stmt.kind == "seq" and stmt.extent not in (0, 1)
    return is_loop and not _is_sweep(stmt) and any(_is_sweep(s) for block in stmt.blocks for s in block)


def _is_sweep(stmt: Stmt) -> TypeGuard[For]:
    """Whether a loop runs over elements: a parallel one, or one of the user's that stores where its index says, unless
    parallel ones stand in it."""
    if not isinstance(stmt, For) or stmt.kind == "par":
        return isinstance(stmt, For)
    if any(isinstance(s, For) and s.kind == "par" for s in walk(stmt.body)):
        return False
    stores = [s for s in walk(stmt.body) if isinstance(s, Store) and s.buf.dims]
    return stmt.kind == "seq" and bool(stores) and all(stmt.index in index_symbols(s.index) for s in stores)


@dataclass
class _Member:
    """A loop of a run: a sweep, or rounds. `sweeps`: the parallel loops; `around`: the other statements."""

    loop: For | While
    sweeps: list[For] = field(default_factory=list)
    around: list[Stmt] = field(default_factory=list)

    @property
    def variables(self) -> list[Buf]:
        """Those that get a value outside of sweeps."""
        return list(dict.fromkeys(s.buf for s in self.around if isinstance(s, Store)))

    @property
    def names(self) -> set[str]:
        """Those of the variables and symbols that get a value outside of sweeps."""
        return {b.name for b in self.variables} | {s.binds for s in self.around if s.binds is not None}


def _member(loop: Stmt, target: Target) -> _Member | None:
    """What a loop is made of, if it is a sweep or rounds of sweeps."""
    if not isinstance(loop, (For, While)):
        return None
    member = _Member(loop)
    allowed = (Store, For, If, Bind, Check) if target.threads else (Store, For, If)

    def fits(stmt: Stmt) -> bool:
        if _is_sweep(stmt):
            member.sweeps.append(stmt)
            return all(isinstance(s, allowed) for s in walk(stmt.body))
        member.around.append(stmt)
        before = len(member.sweeps)
        inside = all(fits(s) for block in stmt.blocks for s in block)
        if isinstance(stmt, (For, While)):
            is_seq = isinstance(stmt, While) or stmt.kind == "seq"
            return inside and is_seq and len(member.sweeps) > before
        plain = isinstance(stmt, (Bind, If)) or isinstance(stmt, Check) and target.threads > 0
        return inside and (plain or isinstance(stmt, Store) and stmt.buf.is_scalar)

    return member if fits(loop) and len(member.around) <= target.around_sweeps else None


class Run:
    """Loops that can be one, in their order. `ahead`: statements between them that may as well stand before them.
    `turned` turns what is inside of them (rounds.py)."""

    def __init__(self, fn: Fn, target: Target, lifetimes: Lifetimes, turned: Callable[[Fn, Target], tuple[Stmt, ...]]):
        self.fn, self.target, self.lifetimes, self.turned = fn, target, lifetimes, turned
        self.statements: list[Stmt] = []  # all of them, as they were
        self.members: list[_Member] = []
        self.ahead: list[Stmt] = []
        self.here = ""  # the index of an element
        self.extent: DimLike = 0
        self.bound: frozenset[str] = frozenset()
        self.places: dict[Buf, dict[Map, bool]] = {}  # of arrays, by the index of an element, and whether it is stored

    # --- whether they can be one ----------------------------------------------------------------------

    def takes(self, stmt: Stmt) -> bool:
        """Whether a statement can be of the run; then it is."""
        member = _member(stmt, self.target)
        if member is not None and self.fits(member):
            self.members.append(member)
        elif self.members and self.may_go_ahead(stmt):
            self.ahead.append(stmt)
        else:
            return False
        self.statements.append(stmt)
        return True

    def may_go_ahead(self, stmt: Stmt) -> bool:
        if not (isinstance(stmt, Bind) or isinstance(stmt, Store) and stmt.buf.is_scalar):
            return False
        item = summarize(stmt)
        return not any(conflict(summarize(m.loop), item, self.fn.facts) for m in self.members)

    def fits(self, member: _Member) -> bool:
        extent = self.extent if self.members else member.sweeps[0].extent
        here = self.here or self.fn.names.fresh("i")
        elements = _elements(member.loop, here)
        bound = self.bound | bound_inside(member.loop)
        if symbols(extent) & bound or not all(self.fn.facts.equal(s.extent, extent) for s in member.sweeps):
            return False
        # What rounds change is there for the others behind all rounds, not behind those of a block.
        for other in self.members:
            if any(self.uses(other, name) for name in member.names) or any(self.uses(member, n) for n in other.names):
                return False
        inner = bound | {b.name for s in walk(elements) for b in touched(s) if not b.dims}
        places: dict[Buf, dict[Map, bool]] = {}  # of the arrays that this loop names
        own = {buf for sweep in member.sweeps for buf in self.own_arrays(sweep)} if self.target.threads else set()
        for stmt in walk(elements):
            for access in accesses_of(stmt):
                if access.buf.dims and access.buf not in own:
                    known = places.setdefault(access.buf, {**self.places.get(access.buf, {})})
                    known[access.index] = known.get(access.index, False) or access.write
                    if not all(
                        in_step(access.index, index, here, extent, inner)
                        for index, stored in known.items()
                        if stored or access.write
                    ):
                        return False
        places = self.places | places
        around = {load.buf for m in (*self.members, member) for s in m.around for load in loaded(s)}
        if any(any(places[buf].values()) for buf in around & places.keys()):
            return False
        if not all(self.has_its_own_variables(sweep, member) for sweep in member.sweeps):
            return False
        self.here, self.extent, self.bound, self.places = here, extent, bound, places
        return True

    def uses(self, member: _Member, name: str) -> bool:
        begin, end = self.lifetimes.spans[member.loop]
        return any(2 * begin <= event < 2 * end for event in self.lifetimes.events.get(name, ()))

    def own_arrays(self, sweep: For) -> set[Buf]:
        """The arrays that each iteration of a sweep has for itself."""
        arrays = {b for s in walk(sweep.body) for b in touched(s) if b.dims and b.space == "temp"}
        return {buf for buf in arrays if self.lifetimes.private(buf, sweep)}

    def has_its_own_variables(self, sweep: For, member: _Member) -> bool:
        """Whether the variables that a sweep gives a value are those of an iteration of it."""
        given = {b for s in walk(sweep.body) for b in touched(s) if not b.dims}
        return not given & {*member.variables} and all(self.lifetimes.private(b.name, sweep) for b in given)

    # --- the one loop ---------------------------------------------------------------------------------

    def written(self) -> list[Stmt]:
        """The run as one loop; nothing where it may as well stay as it is."""
        rounds = [m.loop for m in self.members if may_be_rounds(m.loop)]
        if not rounds or self.would_be_seen():
            return []
        held = self.held()
        length = self.length(held)
        if not self.pays(held) or isinstance(self.extent, int) and self.extent <= length:
            return []
        names, facts, span = self.fn.names, self.fn.facts, rounds[0].span
        number = names.fresh("i")
        first = length * Sym(number)
        count: DimLike = dim_min(length, self.extent - first) if length > 1 else 1
        body: list[Stmt] = []
        if length > 1:
            body.append(Bind(names.fresh("count"), Index(count), span))
            facts.learn(body[0].binds, 1, length)  # type: ignore[arg-type]
            count = Sym(body[0].binds)  # type: ignore[arg-type]
        short = {b: _with_dim(b, k, length) for b, k in held.items()}
        behind: list[Stmt] = []
        for member in self.members:
            made, left = self.of_block(member, first, count)
            body += [_shortened(s, held, short, first) for s in made]
            behind += left
        if self.target.threads:
            body = self.in_variables(body, first)
            read, _ = read_before_given(tuple(body))  # what is exchanged for the first time nobody has stored
            unset = [b for b in short.values() if not b.dims and b.name in read]
            body = [*(Store(b, (), constant(0, b.dtype), None, span) for b in unset), *body]
        blocks = floordiv(self.extent + length - 1, length)
        return [*self.ahead, For(number, blocks, tuple(body), "par", span), *behind]

    def would_be_seen(self) -> bool:
        """Whether who catches a failure could see what elements have stored behind the round that failed."""
        checks = any(isinstance(s, Check) for m in self.members for s in walk((m.loop,)))
        return checks and any(buf.space == "arg" and any(indices.values()) for buf, indices in self.places.items())

    def pays(self, held: dict[Buf, int]) -> bool:
        """Whether rounds come back to more arrays than they find new rows of, which lie far from one another. A row
        that begins a little further on than the last one is none."""
        if self.target.threads:
            return self.keeps_device_busy()
        again: set[Buf] = set()
        new: set[Buf] = set()
        for loop in (m.loop for m in self.members if may_be_rounds(m.loop)):
            bound = bound_inside(loop) - {s.index for m in self.members for s in m.sweeps}
            for stmt in walk((loop,)):
                for access in accesses_of(stmt):
                    if access.buf.dims and access.buf not in held:
                        (
                            new if any(_goes_far(entry, bound, self.target.lanes) for entry in access.index) else again
                        ).add(access.buf)
        return len(again - new) + len(held) > len(new)

    def held(self) -> dict[Buf, int]:
        """The temporaries that nothing else uses, with the dim of each that runs over the elements."""
        first, last, here = self.members[0].loop, self.members[-1].loop, Sym(self.here)
        begin, end = self.lifetimes.spans[first][0], self.lifetimes.spans[last][1]
        again = self.in_rounds_of_others(first)
        found: dict[Buf, int] = {}
        for buf, indices in self.places.items():
            events = self.lifetimes.events[buf]
            if buf.space != "temp" or events[0] < 2 * begin or events[-1] >= 2 * end or again and buf.carried:
                continue
            if events[0] % 2 or buf.unbound:
                for k, extent in enumerate(buf.dims):
                    if all(index[k] == here for index in indices) and self.fn.facts.equal(extent, self.extent):
                        found[buf] = k
        if self.target.threads:  # a thread has little room; what all have of an array lies side by side
            fits = near(sorted((_with_dim(b, k, 1) for b, k in found.items()), key=_nbytes), self.target.stack_bytes)
            names = {buf.name for buf in fits}
            return {buf: k for buf, k in found.items() if buf.name in names}
        return found

    def in_rounds_of_others(self, loop: Stmt) -> bool:
        """Whether a loop stands in one whose iterations may find what the one before has left."""
        around = self.lifetimes.around[loop]
        while isinstance(around, For) and around.kind == "par":
            around = self.lifetimes.around[around]
        return around is not None

    def keeps_device_busy(self) -> bool:
        """Whether a GPU has enough to do where the rounds of each element are its own: there are many elements, or few
        numbers in each; else the numbers of an element have to go their own ways, too."""
        if isinstance(self.extent, int) and self.extent >= self.target.grid_from:
            return True
        numbers = [_numbers(sweep) for m in self.members for sweep in m.sweeps]
        if all(isinstance(n, int) and n <= self.target.of_a_block for n in numbers):
            return True
        body = tuple(s for m in self.members for s in self.of_block(m, Sym(self.here), 1)[0])
        return all(  # or they wait for one another, as a block's threads do
            not may_be_rounds(s) or isinstance(s, For) and waiting(s, of_threads(self.target)) is not None
            for s in walk(self.turned(replace(self.fn, body=body), self.target))
        )

    def in_variables(self, body: list[Stmt], here: DimLike) -> list[Stmt]:
        """What is done with an element, the arrays that it has one number of in variables meanwhile."""
        own: dict[Buf, Buf] = {}
        before: list[Stmt] = []
        behind: list[Stmt] = []
        for buf, indices in self.places.items():
            (index, *others), stored = indices, any(indices.values())
            if (
                others
                or not stored
                or any(isinstance(entry, E) for entry in index)
                or index_symbols(index) & self.bound
            ):
                continue
            if not any(access.buf is buf for s in walk(tuple(body)) for access in accesses_of(s)):
                continue  # of the element alone already
            place = tuple(substitute(entry, {self.here: here}) for entry in index)  # type: ignore[arg-type]
            own[buf] = variable = local(self.fn.names.fresh(buf.name), buf.dtype)
            before.append(Store(variable, (), Load(buf, place)))
            behind.append(Store(buf, place, Load(variable)))
        if not own:
            return body
        changed = [_with_variables(s, own) for s in body]
        read, given = read_before_given(tuple(changed))
        wanted = {v.name for v in own.values() if v.name in read or v.name not in given}
        return [*(s for s in before if s.buf.name in wanted), *changed, *behind]  # type: ignore[attr-defined]

    def length(self, held: dict[Buf, int]) -> int:
        """How many elements a block has: a power of two."""
        target = self.target
        if target.threads:
            return 1  # a thread's
        longest = 1
        for numbers in (_numbers(sweep) for m in self.members for sweep in m.sweeps):
            if not isinstance(numbers, int):
                return 1  # an element is a row
            longest = max(longest, numbers)
        kept = [product(d for k, d in enumerate(b.dims) if k != held[b]) for b in held]
        total = sum(n if isinstance(n, int) else target.unknown for n in kept)
        most = max(target.kept_of_a_block // max(total, 1), 2 * target.lanes)
        return 1 << max((min(target.block, most) // longest).bit_length() - 1, 0)

    def of_block(self, member: _Member, first: DimLike, count: DimLike) -> tuple[list[Stmt], list[Stmt]]:
        """What a member does with a block, and what leaves in its variables the values that are wanted behind it."""
        loop, names = member.loop, self.fn.names
        made = _each_sweep(loop, lambda sweep: _of_block(sweep, first, count))
        if not member.around:
            return made, []
        bound = [s.binds for s in member.around if s.binds is not None]
        given = (*(s.binds for s in member.around if not isinstance(s, For)), *(b.name for b in member.variables))
        wanted = any(self.lifetimes.wanted_behind(name, loop) for name in given if name is not None)
        before, _ = read_before_given((loop,))
        own = {b: local(names.fresh(b.name), b.dtype) for b in member.variables if wanted or b.name in before}
        renamed = {b.name: variable.name for b, variable in own.items()}
        renamed |= {n: names.fresh(n) for n in dict.fromkeys(bound) if n not in renamed and (wanted or n in before)}
        begin: list[Stmt] = [
            Store(variable, (), _value_of(b), None, loop.span) for b, variable in own.items() if b.name in before
        ]
        begin += [
            Bind(new, Index(Sym(name)), loop.span)
            for name, new in renamed.items()
            if name in before and name not in {b.name for b in own}
        ]
        made = [rebound(with_storages(s, own), renamed) for s in made]
        return [*begin, *made], _each_sweep(loop, lambda sweep: []) if wanted else []


def _goes_far(entry: DimLike | E, bound: frozenset[str], few: int) -> bool:
    """Whether a place along a dim is another one in each round, and not just a few elements further on in the row."""
    own = index_symbols((entry,)) & bound
    if not own or isinstance(entry, E):
        return bool(own)
    steps = [substitute(entry, {name: Sym(name) + 1}) - entry for name in own]
    return index_symbols((entry,)) == own or not all(isinstance(s, int) and abs(s) <= few for s in steps)


def _each_sweep(stmt: Stmt, rule: Callable[[For], list[Stmt]]) -> list[Stmt]:
    """A statement with something else in place of each of its sweeps."""
    if _is_sweep(stmt):
        return rule(stmt)
    if not stmt.blocks:
        return [stmt]
    return [stmt.with_blocks(tuple(tuple(t for s in block for t in _each_sweep(s, rule)) for block in stmt.blocks))]


def _elements(loop: Stmt, here: str) -> tuple[Stmt, ...]:
    """What a loop does with one element."""
    return tuple(_each_sweep(loop, lambda sweep: [rename_statement(s, {sweep.index: Sym(here)}) for s in sweep.body]))


def _of_block(sweep: For, first: DimLike, count: DimLike) -> list[Stmt]:
    """A sweep over the elements from `first` on."""
    here = first if count == 1 else first + Sym(sweep.index)
    body = tuple(rename_statement(s, {sweep.index: here}) for s in sweep.body)
    return list(body) if count == 1 else [For(sweep.index, count, body, "par", sweep.span)]


def _numbers(loop: For) -> DimLike:
    """How many numbers an iteration goes over."""
    inner = [within.extent * _numbers(within) for s in loop.body for within in _loops(s)]  # type: ignore[operator]
    known = [n for n in inner if isinstance(n, int)]
    return max((1, *known)) if len(known) == len(inner) else next(n for n in inner if not isinstance(n, int))


def _loops(stmt: Stmt) -> list[For]:
    return [stmt] if isinstance(stmt, For) else [loop for block in stmt.blocks for s in block for loop in _loops(s)]


def _with_dim(buf: Buf, k: int, extent: int) -> Buf:
    """A temporary with another extent; without the dim, where that is 1."""
    short = Buf(buf.name, buf.dtype, (*buf.dims[:k], *([extent] if extent > 1 else []), *buf.dims[k + 1 :]))
    short.carried, short.unbound = buf.carried, buf.unbound
    return short


def _shortened(stmt: Stmt, held: dict[Buf, int], short: dict[Buf, Buf], first: DimLike) -> Stmt:
    """A statement with temporaries that are as long as a block."""

    def place(buf: Buf, index: Map) -> tuple[Buf, Map]:
        index = tuple(expression(i) if isinstance(i, E) else i for i in index)
        if buf not in held:
            return buf, index
        k = held[buf]
        within = [index[k] - first] if len(short[buf].dims) == len(index) else []  # type: ignore[operator]
        return short[buf], (*index[:k], *within, *index[k + 1 :])

    def expression(e: E) -> E:
        return map_expression(e, lambda x: Load(*place(x.buf, x.index)) if isinstance(x, Load) else None)

    return map_statement(stmt, expression, place)


def _with_variables(stmt: Stmt, own: dict[Buf, Buf]) -> Stmt:
    """A statement with variables in place of elements of arrays."""

    def expression(e: E) -> E:
        return map_expression(e, lambda x: Load(own[x.buf]) if isinstance(x, Load) and x.buf in own else None)

    return map_statement(stmt, expression, lambda buf, index: (own[buf], ()) if buf in own else (buf, index))


def _nbytes(buf: Buf) -> int:
    """What an array of known size takes; that of others is beyond all."""
    total = product(buf.dims)
    return total * buf.dtype.itemsize if isinstance(total, int) else 1 << 62


def _value_of(buf: Buf) -> E:
    return Index(Sym(buf.name)) if buf.dtype == i64 else Load(buf)


__all__ = ["Run", "may_be_rounds"]
