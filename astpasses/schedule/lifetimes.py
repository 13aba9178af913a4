"""When each array and variable of a function holds a value that is still wanted.

In: a body. Out: `Lifetimes`, which answers whether a loop's iterations may each have one of their own. Example:

    for i in range(n):              t is private to an iteration of the loop over i: the first that one does with it
        t = sin(x[i])               is to store, and nobody reads t behind the loop. s is not: it is read before.
        y[i] = t*t
        s = s + t

Places are compared in the order of the text. A store in a branch counts for the other one too: where a loop is parallel
no iteration reads what another one, or nobody, has stored.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator

from .nest import (
    Buf,
    CallFn,
    Combine,
    Effect,
    Fn,
    For,
    Grow,
    If,
    LibraryCall,
    SetDims,
    Stmt,
    Store,
    Swap,
    While,
    expression_symbols,
    fact,
    loaded,
    other_symbols,
    place_symbols,
    value_symbols,
)

Key = Buf | str  # an array, or the name of a variable: an integer symbol and the scalar Buf of its name are one


def key_of(buf: Buf) -> Key:
    return buf if buf.dims else buf.name


def read_before_given(block: tuple[Stmt, ...], given: frozenset[str] = frozenset()) -> tuple[set[str], frozenset[str]]:
    """The variables that a block may read before it gives them a value, and those that have one behind it on each path.

    An integer symbol and the scalar Buf of its name are one variable.
    """
    read: set[str] = set()
    for stmt in block:
        first, behind = _reads_and_gives(stmt)
        read |= first - given
        given |= behind
    return read, given


@fact
def _reads_and_gives(stmt: Stmt) -> tuple[frozenset[str], frozenset[str]]:
    """The same of a statement, where nothing is given before it."""
    used = frozenset(_variables_read(stmt))
    if isinstance(stmt, While):
        read, given = read_before_given(stmt.before, frozenset([stmt.counter]))  # runs once at least
        return frozenset(read | used - given | read_before_given(stmt.body, given)[0]), given
    given = frozenset(access.buf.name for access in stmt.accesses if access.write and not access.buf.dims)
    if isinstance(stmt, For):  # it may have no iteration
        return used | read_before_given(stmt.body, frozenset([stmt.index]))[0], given
    if stmt.binds is not None:
        given |= {stmt.binds}
    sides = [read_before_given(side) for side in stmt.blocks]
    if sides:
        given |= frozenset.intersection(*(behind for _, behind in sides))
    return used.union(*(read for read, _ in sides)), given


def _variables_read(stmt: Stmt) -> Iterator[str]:
    for e in stmt.expressions:
        yield from value_symbols(e)
        yield from place_symbols(e)
    yield from other_symbols(stmt)
    yield from (load.buf.name for load in loaded(stmt) if not load.buf.dims)
    if not (isinstance(stmt, Store) and stmt.monoid is None):
        yield from (access.buf.name for access in stmt.accesses if not access.buf.dims)


@fact
def keys_read(stmt: Stmt) -> frozenset[Key]:
    """What a statement itself reads."""
    found: set[Key] = {*other_symbols(stmt), *(key_of(load.buf) for load in loaded(stmt))}
    found.update(*map(expression_symbols, stmt.expressions))
    if not (isinstance(stmt, Store) and not stmt.monoid or isinstance(stmt, (Grow, SetDims))):
        kept = isinstance(stmt, (Store, Combine, Swap))  # the others say where something goes, and read nothing there
        found.update(key_of(access.buf) for access in stmt.accesses if kept or not access.write)
    return frozenset(found)


@fact
def variables_read(stmt: Stmt) -> frozenset[str]:
    return frozenset(key for key in keys_read(stmt) if isinstance(key, str))


@fact
def keys_written(stmt: Stmt) -> frozenset[Key]:
    """What a statement itself gives a value to."""
    found: set[Key] = set() if stmt.binds is None else {stmt.binds}
    if isinstance(stmt, (Store, LibraryCall, Combine, CallFn, Effect, Swap)):
        found.update(key_of(access.buf) for access in stmt.accesses if access.write)
    return frozenset(found)


def wanted_behind(
    body: tuple[Stmt, ...], note: Callable[[Stmt, frozenset[str]], None], names: Collection[str] | None = None
) -> None:
    """Tell `note` of each statement the variables that may be read behind it before they are given a value, along any
    path: in a later round of a loop around it, too. Of a statement in a loop it is told more than once, the last time
    all. `names`: of which variables; None: of all."""

    def read(stmt: Stmt) -> frozenset[str]:
        return variables_read(stmt) if names is None else variables_read(stmt).intersection(names)

    def ahead_of(block: tuple[Stmt, ...], wanted: frozenset[str]) -> frozenset[str]:
        for stmt in reversed(block):
            note(stmt, wanted)
            if isinstance(stmt, (For, While)):
                wanted = of_rounds(stmt, wanted | read(stmt))
            elif stmt.blocks:
                kept = frozenset() if isinstance(stmt, If) else wanted
                wanted = read(stmt).union(kept, *(ahead_of(side, wanted) for side in stmt.blocks))
            else:
                wanted = (wanted - keys_written(stmt)) | read(stmt)
        return wanted

    def of_rounds(loop: For | While, wanted: frozenset[str]) -> frozenset[str]:
        while True:  # until what a round wants is known to the round before it
            first = ahead_of(loop.body, wanted)
            if isinstance(loop, While):
                first = ahead_of(loop.before, wanted | first)
            if first <= wanted:
                return wanted
            wanted |= first

    ahead_of(body, frozenset())


@fact
def lifetimes_in(fn: Fn) -> Lifetimes:
    """Those of a function's body."""
    return Lifetimes(fn.body)


@fact
def wanted_in(fn: Fn) -> dict[Stmt, frozenset[str]]:
    """Of each statement of a function the variables that are wanted behind it."""
    wanted: dict[Stmt, frozenset[str]] = {}
    wanted_behind(fn.body, wanted.__setitem__)
    return wanted


class Lifetimes:
    """The reads and writes of a body by what they touch, and where its loops begin and end."""

    def __init__(self, body: tuple[Stmt, ...]):
        self.events: dict[Key, list[int]] = {}  # 2*place, and 1 more where it writes
        self.spans: dict[Stmt, tuple[int, int]] = {}
        self.around: dict[Stmt, Stmt | None] = {}
        self.place = 0
        self._block(body, None)

    def _note(self, keys: Iterable[Key], writes: bool) -> None:
        for key in keys:
            self.events.setdefault(key, []).append(2 * self.place + writes)
        self.place += 1

    def _block(self, block: tuple[Stmt, ...], loop: Stmt | None) -> None:
        for stmt in block:
            if isinstance(stmt, (For, While)):
                begin = self.place
                self.around[stmt] = loop
                self._loop(stmt)
                self.spans[stmt] = begin, self.place
                continue
            self._note(keys_read(stmt), False)
            for inner in stmt.blocks:
                self._block(inner, loop)
            self._note(keys_written(stmt), True)

    def _loop(self, stmt: Stmt) -> None:
        if isinstance(stmt, While):
            self._note([stmt.counter], True)
            self._block(stmt.before, stmt)
            self._note(keys_read(stmt), False)
            self._block(stmt.body, stmt)
            self._note([stmt.counter], True)
            return
        self._note(keys_read(stmt), False)
        for inner in stmt.blocks:
            self._block(inner, stmt)

    def first(self, key: Key, begin: int, end: int) -> bool | None:
        """Whether the first that is done in a stretch of text is to write; None where nothing is done."""
        events = self.events.get(key, [])
        k = bisect_left(events, 2 * begin)
        return bool(events[k] % 2) if k < len(events) and events[k] < 2 * end else None

    def writes(self, key: Key, loop: Stmt) -> bool:
        """Whether anything in a loop writes."""
        begin, end = self.spans[loop]
        return any(event % 2 for event in self.events.get(key, []) if 2 * begin <= event < 2 * end)

    def wanted_behind(self, key: Key, loop: Stmt) -> bool:
        """Whether what a loop leaves is read."""
        end = self.spans[loop][1]
        while True:
            outer = self.around[loop]
            first, last = (0, self.place) if outer is None else self.spans[outer]
            following = self.first(key, end, last)
            if following is not None:
                return not following
            if outer is None:
                return False
            again = self.first(key, first, end)  # in the next iteration of the loop around
            if again is False:
                return True
            loop, end = outer, last

    def private(self, key: Key, loop: Stmt) -> bool:
        """Whether each iteration of a loop may have a storage or variable of its own, if none wants what another one
        leaves: a variable that it stores first and nobody reads behind the loop, an array that is used there only."""
        begin, end = self.spans[loop]
        if self.first(key, begin, end) is not True and not (isinstance(key, Buf) and key.unbound):
            return False
        if isinstance(key, str):
            return not self.wanted_behind(key, loop)
        return 2 * begin <= self.events[key][0] and self.events[key][-1] < 2 * end


__all__ = [
    "Key",
    "Lifetimes",
    "key_of",
    "keys_read",
    "keys_written",
    "lifetimes_in",
    "read_before_given",
    "variables_read",
    "wanted_behind",
    "wanted_in",
]
