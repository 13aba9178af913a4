"""Rounds of a loop around one whose iterations wait for each other run side by side, as a wave: while a round waits,
others work.

In: the folded tree. Out: the same, where an element needs what the one before it left, and of what rounds before left
nothing that is more than a few elements further on. Each of some rounds is so many elements behind the one before it
that no two of them have to do with one another in a step. Example, of two rounds:

    for i in range(n):                              for g in range(n // 2):
        for j in range(m):                              for j in range(2): y[2*g, j + 1] = ...
            y[i, j + 1] = y[i, j]/3                     for j in range(m - 2):
                + y[i - 1, j + 2]           ->              y[2*g, j + 3] = y[2*g, j + 2]/3 + y[2*g - 1, j + 4]
                                                            y[2*g + 1, j + 1] = y[2*g + 1, j]/3 + y[2*g, j + 2]
                                                        for j in range(2): y[2*g + 1, m - 1 + j] = ...
                                                    for i in range(n % 2): ...

A round may be longer than the one before it (a triangle's rows): what the first one of them has is done side by side,
the rest of each behind it. Each element sees the same operations in the same order: results are the same to the bit.
This is loop skewing with unroll-and-jam (Wolfe, "Loop skewing: the wavefront method revisited", 1986). Branches stand
in the way, but for those that choose a value: one that is foreseen wrongly stops all rounds. A GPU's threads, which
have a round each, may have others (block_waves.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from metaphrase.core.dims import DimLike, Sym, dim_max, dim_min, floordiv, substitute, symbols
from metaphrase.core.facts import Facts
from metaphrase.late import dataclass, field

from .dependence import Distance, disjoint, distance, slope
from .independence import Independence
from .interchange import names_of
from .lifetimes import Lifetimes, lifetimes_in
from .nest import (
    Access,
    Bind,
    Buf,
    E,
    Fn,
    For,
    If,
    Stmt,
    Store,
    bound_inside,
    local,
    other_symbols,
    place_symbols,
    touched,
    walk,
)
from .place import accesses_of
from .rewrite import rebound, rename_index, rename_statement, with_storages
from .target import Target


def in_waves(fn: Fn, target: Target, independent: bool) -> tuple[Stmt, ...]:
    """The body of a function with such rounds side by side: all that is in loops whose rounds do not depend on one
    another, which threads may have shared by then, or all that is not."""
    may_wait = {s for s in walk(fn.body) if isinstance(s, For) and waiting(s, target) is not None}
    if not may_wait:
        return fn.body
    lifetimes, facts = lifetimes_in(fn), Facts(fn.facts.ranges)
    independence = Independence(fn, target, facts)

    def inside(block: tuple[Stmt, ...], free: bool) -> tuple[Stmt, ...]:
        rows: list[Stmt] = []
        for stmt in block:
            here, wave = free, None
            if may_wait.isdisjoint(walk((stmt,))):
                rows.append(stmt)
                continue
            if isinstance(stmt, For):
                facts.learn(stmt.index, 0, stmt.extent - 1)
                here = free or independence.roles(stmt) is not None
                wave = wave_of(stmt, lifetimes, facts, target) if here == independent else None
            if wave is not None:
                rows += _Writing(wave, fn, facts, target.together).written()
            else:
                rows.append(stmt.with_blocks(tuple(inside(b, here) for b in stmt.blocks)) if stmt.blocks else stmt)
        return tuple(rows)

    return inside(fn.body, fn.is_part)


@dataclass
class Wave:
    """A loop and its parts: what a round does `before` the loop `inside` it, whose iterations wait for each other, and
    `behind` that. `lag`: so many iterations is each round behind the one before it. `shared`: the variables that more
    than one part has to do with."""

    loop: For
    before: tuple[Stmt, ...]
    inside: For
    behind: tuple[Stmt, ...]
    lag: int = 0
    variables: dict[str, Buf | None] = field(default_factory=dict)
    shared: bool = False


def wave_of(loop: For, lifetimes: Lifetimes, facts: Facts, target: Target) -> Wave | None:
    """How rounds of a loop may run side by side; None where they may not, or would not gain by it."""
    wave = waiting(loop, target)
    if wave is None:
        return None
    wave.variables = _given(loop.body)
    places = frozenset[str]().union(*map(_symbols_of_places, walk(loop.body)))
    if places & wave.variables.keys() or not all(lifetimes.private(name, loop) for name in wave.variables):
        return None
    return _Meetings(wave, facts, target.together).settled(lifetimes)


def waiting(loop: For, target: Target) -> Wave | None:
    """The parts of a loop whose rounds might run side by side: its first loop is one whose iterations wait for each
    other, in which there are sums at most."""
    if target.together < 2 or loop.parts is not None or loop.kind == "red" or _is_short(loop.extent, target.together):
        return None
    first = next((k for k, s in enumerate(loop.body) if s.blocks), None)
    if first is None or not isinstance(inside := loop.body[first], For) or _is_short(inside.extent, target.vector_from):
        return None
    if loop.kind == "par" and _is_short(inside.extent, target.sum_from) and _runs_along(loop):
        return None  # of such rounds the C compiler makes vectors
    wave = Wave(loop, loop.body[:first], inside, loop.body[first + 1 :])
    statements = list(walk(loop.body))
    simple = all(_is_simple(s, target) and not (isinstance(s, For) and s.parts) for s in statements)
    few = len(list(walk(inside.body))) <= 4 * target.together
    sums = all(s.kind == "red" and not any(x.blocks for x in s.body) for s in walk(inside.body) if isinstance(s, For))
    return wave if simple and few and sums and inside.kind == "seq" and _waits(inside) else None


def _runs_along(loop: For) -> bool:
    """Whether rounds of a loop read and store one element after the other, or all the same ones."""

    def step(entry: object) -> int | None:
        return None if isinstance(entry, E) else slope(entry, loop.index)  # type: ignore[arg-type]

    places = [[step(entry) for entry in a.index] for s in walk(loop.body) for a in accesses_of(s) if a.index]
    return all(set(steps[:-1]) <= {0} and steps[-1] in (0, 1) for steps in places)


def _given(block: tuple[Stmt, ...]) -> dict[str, Buf | None]:
    """The variables that statements give values."""
    bound: dict[str, Buf | None] = {s.name: None for s in walk(block) if isinstance(s, Bind)}
    return bound | {b.name: b for s in walk(block) for b in touched(s) if not b.dims}


def _symbols_of_places(stmt: Stmt) -> frozenset[str]:
    return other_symbols(stmt).union(*map(place_symbols, stmt.expressions))


def _is_simple(stmt: Stmt, target: Target) -> bool:
    """Whether it stores, loops, or chooses what a variable is; threads may have branches."""
    if isinstance(stmt, If) and not target.threads:
        return not any(access.buf.dims for s in walk(stmt.blocks[0] + stmt.blocks[1]) for access in s.accesses)
    return isinstance(stmt, (Store, Bind, For, If))


def _is_short(extent: DimLike, limit: int) -> bool:
    return isinstance(extent, int) and extent < limit


def _waits(loop: For) -> bool:
    """Whether iterations of a loop read what those before them may have stored."""
    inner = bound_inside(loop) - {loop.index}
    places = [a for s in walk(loop.body) for a in accesses_of(s)]
    for a in places:
        for b in places:
            if a.write and not b.write and a.buf is b.buf:
                found = distance(a.index, b.index, loop.index, loop.extent, inner, frozenset())
                if found is not None and (found.at is None or found.at > 0):
                    return True
    return False


class _Meetings:
    """Where places of the rounds of a loop meet. Some rounds further on `loop.index` is so much more."""

    def __init__(self, wave: Wave, facts: Facts, together: int):
        self.wave, self.facts, self.together = wave, facts, together
        self.own = bound_inside(wave.loop) - {wave.loop.index}
        for stmt in walk(wave.loop.body):
            if isinstance(stmt, For):
                facts.learn(stmt.index, 0, stmt.extent - 1)

    def settled(self, lifetimes: Lifetimes) -> Wave | None:
        """The wave with its lag, and whether its parts share variables; None where rounds wait for each other."""
        wave = self.wave
        lag = self.lag()
        if lag is None or not self.may_grow(lag) or not self.may_move():
            return None
        parts = [
            {*wave.variables} & set[str]().union(*map(names_of, walk(part)))
            for part in (wave.before, wave.inside.body, wave.behind)
        ]
        shared = any(parts[k] & parts[k - 1] for k in range(3))
        if lag and not shared and not all(lifetimes.private(name, wave.inside) for name in parts[1]):
            return None
        return replace(wave, lag=lag, shared=shared)

    def lag(self) -> int | None:
        """The least lag with which what rounds do in one step has nothing to do with one another, and each finds what
        those before it leave for it."""
        places, lag = _places((self.wave.inside,)), 0
        for rounds in range(1, self.together):
            for found in self.between(places, places, rounds):
                if found.at is None:
                    return None
                lag = max(lag, -found.at // rounds + 1)
        return lag

    def between(self, places: list[Access], others: list[Access], rounds: int) -> list[Distance]:
        """How many iterations of the inner loop lie between places and those of some rounds later that they meet."""
        found = []
        loop, inside = self.wave.loop, self.wave.inside
        later = {loop.index: Sym(loop.index) + rounds}
        inner = self.own - {inside.index}
        for b in others:
            index = rename_index(b.index, later)
            for a in places:
                if a.buf is b.buf and (a.write or b.write) and not disjoint(a.index, index, self.facts, self.own):
                    if (one := distance(a.index, index, inside.index, inside.extent, inner, frozenset())) is not None:
                        found.append(one)
        return found

    def may_grow(self, lag: int) -> bool:
        """Whether loops inside are as long in one round as in the other, or, where rounds do not lag, the inner loop no
        shorter than in the round before."""
        index, inside = self.wave.loop.index, self.wave.inside
        sums = [s for s in walk(inside.body) if isinstance(s, For)]
        if any(index in symbols(s.extent) or lag and inside.index in symbols(s.extent) for s in sums):
            return False
        if index not in symbols(inside.extent):
            return True
        return not lag and (slope(inside.extent, index) or 0) > 0 and self.facts.less_equal(0, inside.extent)

    def may_move(self) -> bool:
        """Whether what rounds do before the inner loop may come before those of other rounds, and what they do behind
        it behind them."""
        wave = self.wave
        before, inside, behind = map(_places, (wave.before, (wave.inside,), wave.behind))
        return not any(
            self.between(inside + behind, before, rounds) or self.between(behind, inside, rounds)
            for rounds in range(1, self.together)
        )


def far_apart(wave: Wave, facts: Facts, names: Callable[[str], str], rounds: int) -> bool:
    """Whether rounds of which one comes so many behind the other, or more, have nothing to do with each other."""
    own, more = _Meetings(wave, facts, rounds).own, names("far")
    facts.learn(more, rounds, None)
    places, later = _places(wave.loop.body), {wave.loop.index: Sym(wave.loop.index) + Sym(more)}
    return all(
        a.buf is not b.buf or not (a.write or b.write) or disjoint(a.index, rename_index(b.index, later), facts, own)
        for a in places
        for b in places
    )


def of_threads(target: Target) -> Target:
    """A GPU as one whose threads may have a round each: of as many rounds as a warp has threads where they meet is
    looked at one by one."""
    return replace(target, together=target.warp, vector_from=target.block_from)


def _places(block: Iterable[Stmt]) -> list[Access]:
    """Those in arrays."""
    return list(dict.fromkeys(a for s in walk(tuple(block)) for a in accesses_of(s) if a.buf.dims))


class _Writing:
    """The text of a wave."""

    def __init__(self, wave: Wave, fn: Fn, facts: Facts, together: int):
        self.wave, self.names, self.facts, self.together = wave, fn.names, facts, together
        self.known = fn.facts
        self.group = fn.names.fresh("i")
        names = [name for name in _given(wave.loop.body) if wave.shared or name in _given(wave.inside.body)]
        self.own = [{name: self.names.fresh(name) for name in names} for _ in range(together)]
        stored = {name: b for name, b in wave.variables.items() if b is not None}
        self.storages = [
            {stored[old]: local(new, stored[old].dtype) for old, new in own.items() if old in stored}
            for own in self.own
        ]

    def written(self) -> list[Stmt]:
        wave, loop, count = self.wave, self.wave.loop, self.together
        blocks = floordiv(loop.extent, count)
        body: list[Stmt] = []
        for k in range(count):
            body += self.copied(wave.before, k)
        body += self.grown() if wave.loop.index in symbols(wave.inside.extent) else self.lagged()
        rows: list[Stmt] = [For(self.group, blocks, tuple(body), loop.kind, loop.span)]
        rest = loop.extent - count * blocks
        if rest != 0:
            left = {loop.index: count * blocks + Sym(loop.index)}
            same = tuple(rename_statement(s, left) for s in loop.body)
            rows.append(For(loop.index, rest, same, loop.kind, loop.span))
        for stmt in walk(tuple(rows)):
            if isinstance(stmt, For):
                self.known.learn(stmt.index, 0, stmt.extent - 1)
        return rows

    def lagged(self) -> list[Stmt]:
        """Rounds of equal length: a triangle in which the first ones get ahead, what they do side by side, and another
        triangle in which the last ones come to their end."""
        wave, last = self.wave, self.together - 1
        extent, lag = wave.inside.extent, wave.lag
        together = extent - lag * last
        if not self.facts.less_equal(0, together):
            together = dim_max(0, together)

        def ahead(k: DimLike) -> DimLike:
            start = lag * last - lag * k
            return start if self.facts.less_equal(lag * last, extent) else dim_min(start, extent)

        def begin(k: DimLike) -> list[Stmt]:
            return self.iterations(k, 0, ahead(k))

        def end(k: DimLike) -> list[Stmt]:
            done = ahead(k) + together
            return self.iterations(k, done, extent - done)

        rows = self.each_round(0, last, begin) if lag else []
        rows.append(self.side_by_side(together, [lag * last - lag * k for k in range(last + 1)]))
        rows += self.each_round(1, last, end) if lag else []
        return rows + self.each_round(0, last + 1, lambda k: self.copied(wave.behind, k)) if wave.behind else rows

    def grown(self) -> list[Stmt]:
        """Rounds each of which is longer than the one before it."""
        wave = self.wave
        first = self.together * Sym(self.group)
        common = substitute(wave.inside.extent, {wave.loop.index: first})

        def rest(k: DimLike) -> list[Stmt]:
            more = substitute(wave.inside.extent, {wave.loop.index: first + k}) - common
            return [*self.iterations(k, common, more), *self.copied(wave.behind, k)]

        return [self.side_by_side(common, [0] * self.together), *self.each_round(0, self.together, rest)]

    def each_round(self, first: int, count: int, made: Callable[[DimLike], list[Stmt]]) -> list[Stmt]:
        """What each of some rounds does, by a loop if no round has variables of its own."""
        if self.wave.shared:
            return [s for k in range(first, first + count) for s in made(k)]
        index = self.names.fresh("i")
        return [For(index, count, tuple(made(first + Sym(index))), "seq", self.wave.loop.span)]

    def iterations(self, k: DimLike, first: DimLike, count: DimLike) -> list[Stmt]:
        """Some iterations of the inner loop in round `k` of a group."""
        inside = self.wave.inside
        index = self.names.fresh("i")
        here = first if count == 1 else first + Sym(index)
        body = self.copied((rename_statement(s, {inside.index: here}) for s in inside.body), k)
        return [] if count == 0 else body if count == 1 else [For(index, count, tuple(body), "seq", inside.span)]

    def side_by_side(self, count: DimLike, starts: list[int]) -> Stmt:
        """An iteration of each round of a group, so many times."""
        inside = self.wave.inside
        index = self.names.fresh("i")
        rows = []
        for k, start in enumerate(starts):
            body = (rename_statement(s, {inside.index: start + Sym(index)}) for s in inside.body)
            rows.append(self.copied(body, k, True))
        return For(index, count, tuple(self.one_by_one(rows)), "seq", inside.span)

    def one_by_one(self, rows: list[list[Stmt]]) -> list[Stmt]:
        """What several rounds do up to a loop, round by round; then the loop of all as one; and so on."""
        made: list[Stmt] = []
        straight: list[list[Stmt]] = [[] for _ in rows]
        for several in zip(*rows):
            first = several[0]
            if isinstance(first, For):
                made += [s for row in straight for s in row]
                straight = [[] for _ in rows]
                body = [[rename_statement(x, {s.index: Sym(first.index)}) for x in s.body] for s in several]
                made.append(For(first.index, first.extent, tuple(self.one_by_one(body)), first.kind, first.span))
            else:
                for row, stmt in zip(straight, several):
                    row.append(stmt)
        return [*made, *(s for row in straight for s in row)]

    def copied(self, block: Iterable[Stmt], k: DimLike, apart: bool = False) -> list[Stmt]:
        """What round `k` of a group does, with loops of its own; with variables of its own if those of rounds are, or
        have to be, `apart`."""
        block = tuple(block)
        own, storages = dict[str, str](), dict[Buf, Buf]()
        if isinstance(k, int) and (apart or self.wave.shared):
            own, storages = self.own[k], self.storages[k]
        loops = {s.index: self.names.fresh("i") for s in walk(block) if isinstance(s, For)}
        here = {self.wave.loop.index: self.together * Sym(self.group) + k}
        return [with_storages(rebound(rename_statement(s, here), loops | own), storages) for s in block]


__all__ = ["Wave", "far_apart", "in_waves", "of_threads", "wave_of", "waiting"]
