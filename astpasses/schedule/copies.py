"""Variables that are copied into one another become one, where nobody wants the values of both.

In: the body of a function whose loops are what they will be. Out: the same with fewer variables and copies (G. J.
Chaitin and others, Register allocation via coloring, 1981). Example:

    if x < least:                         if x < least:
        least_1 = x                           least = x
    else:                        ->
        least_1 = least
    least = least_1
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from metaphrase.core.dims import Sym, symbols, symbols_of

from .lifetimes import keys_read, keys_written, wanted_behind
from .nest import Bind, Buf, Fn, For, If, Index, Load, Stmt, Store, While, loaded, touched, walk
from .rewrite import rebound, with_storages
from .scalars import negated
from .target import Target


def without_copies(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with one variable for those of which each is a copy of another."""
    weights: Counter[tuple[str, str]] = Counter()
    for depth, given, read in _copies(fn.body, 0):
        weights[min(given, read), max(given, read)] += target.unknown**depth
    if not weights:
        return fn.body
    classes = _Classes(fn, {name for pair in weights for name in pair})
    for pair, _ in weights.most_common():
        classes.join(*pair)
    storages, names = classes.storages(), classes.symbols()
    body = tuple(with_storages(s, storages) for s in fn.body)
    body = tuple(rebound(stmt, names) for stmt in body) if names else body
    return _tidied(body) if storages or names else fn.body


def _copy(stmt: Stmt) -> tuple[str, str] | None:
    """The variable that a statement gives the value of another one, and that one."""
    if isinstance(stmt, Bind) and isinstance(stmt.value, Index):
        names = symbols(stmt.value.dim)
        return next(((stmt.name, name) for name in names if stmt.value.dim == Sym(name)), None)
    if not isinstance(stmt, Store) or stmt.monoid is not None or not isinstance(stmt.value, Load):
        return None
    both = stmt.buf.is_scalar and stmt.value.buf.is_scalar and stmt.value.dtype == stmt.buf.dtype
    return (stmt.buf.name, stmt.value.buf.name) if both else None


def _copies(block: tuple[Stmt, ...], depth: int) -> Iterator[tuple[int, str, str]]:
    """Each copy that is worth leaving out, and in how many loops it stands. Of `if x > y: m = x` and `else: m = y` none
    is: what is left would be harder to read."""
    for stmt in block:
        if (copy := _copy(stmt)) is not None:
            yield depth, *copy
        blocks = stmt.blocks
        if isinstance(stmt, If) and stmt.orelse and len(stmt.then) == 1 and _copy(stmt.then[0]) is not None:
            blocks = (stmt.orelse,)
        for inner in blocks:
            yield from _copies(inner, depth + isinstance(stmt, (For, While)))


class _Classes:
    """Which variables have become one. Of the first of each class: its members, and the variables that hold a wanted
    value of their own where one of these is given its own."""

    def __init__(self, fn: Fn, copied: set[str]):
        self.bufs: dict[str, Buf] = {}
        taken = {*fn.sizes, *(buf.name for buf in fn.bufs)}
        taken |= set() if fn.result is None else {fn.result.name}
        self.read: Counter[str] = Counter()  # otherwise than by a copy
        self.symbols_copied: dict[str, set[str]] = {}
        for stmt in walk(fn.body):
            taken |= self._kept(stmt)
            copy = _copy(stmt)
            if copy is None:
                self.read.update(key for key in keys_read(stmt) if isinstance(key, str))
            elif isinstance(stmt, Bind):
                self.symbols_copied.setdefault(copy[1], set()).add(copy[0])
            for buf in (*touched(stmt), *(load.buf for load in loaded(stmt))):
                if not buf.dims and self.bufs.setdefault(buf.name, buf) is not buf:
                    taken.add(buf.name)
            if isinstance(stmt, Bind) and stmt.name in self.bufs:
                taken.add(stmt.name)
        names = sorted(copied - taken)
        self.first = {name: name for name in names}
        self.members = {name: {name} for name in names}
        self.beside: dict[str, set[str]] = {name: set() for name in names}
        if len(names) > 1:
            wanted_behind(fn.body, self._given, self.first.keys())

    def _kept(self, stmt: Stmt) -> set[str]:
        """The variables that a statement does more with than to store or read a number."""
        kept = {name for buf in (*touched(stmt), *(l.buf for l in loaded(stmt))) for name in symbols_of(buf.dims)}
        if isinstance(stmt, (For, While)):
            kept.add(stmt.binds or "")
        if isinstance(stmt, For):
            kept |= {buf.name for buf in (*(stmt.private or ()), *(buf for buf, _ in stmt.partials))}
        if not isinstance(stmt, Store):
            kept |= {buf.name for buf in touched(stmt) if not buf.dims}
        return kept

    def _given(self, stmt: Stmt, wanted: frozenset[str]) -> None:
        """Note what is wanted where a statement gives variables their values; the copied one has the same."""
        if not stmt.blocks:
            for name in keys_written(stmt) & self.first.keys():
                self.beside[name] |= wanted - {name, *(_copy(stmt) or ())}  # type: ignore[index]

    def join(self, one: str, other: str) -> None:
        """Make the classes of two variables one, if no value of one is wanted where the other is given its own."""
        if one not in self.first or other not in self.first:
            return
        a, b = self.first[one], self.first[other]
        if a == b or (one in self.bufs) != (other in self.bufs):
            return
        if self.beside[a] & self.members[b] or self.beside[b] & self.members[a]:
            return
        if one not in self.bufs:
            # What is known of the numbers that a symbol stands for has to hold for those of the other one, too.
            kept, gone = (a, b) if self._is_for(b, a) else (b, a)
            if not self._is_for(gone, kept):
                return
        else:
            kept, gone = sorted((a, b), key=_plainness)
            self.bufs[kept].carried |= self.bufs[gone].carried
            self.bufs[kept].unbound |= self.bufs[gone].unbound
        self.members[kept] |= self.members[gone]
        self.beside[kept] |= self.beside[gone]
        self.first.update(dict.fromkeys(self.members[gone], kept))

    def _is_for(self, gone: str, kept: str) -> bool:
        """Whether each number of a class of symbols that anyone reads becomes another's."""
        names = self.members[gone]
        others = set().union(*(self.symbols_copied.get(name, ()) for name in names))
        return not any(self.read[name] for name in names) and others <= names | self.members[kept]

    def storages(self) -> dict[Buf, Buf]:
        """The variable that stands for each that is gone."""
        return {self.bufs[n]: self.bufs[f] for n, f in self.first.items() if n != f and n in self.bufs}

    def symbols(self) -> dict[str, str]:
        """The symbol that stands for each that is gone."""
        return {name: first for name, first in self.first.items() if name != first and name not in self.bufs}


def _plainness(name: str) -> tuple[int, int, str]:
    """Names without a number at their end come first."""
    return len(re.findall(r"_\d+$", name)), len(name), name


def _tidied(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """A block without copies of a variable into itself, and without branches in which nothing is left."""
    rows: list[Stmt] = []
    for stmt in block:
        copy = _copy(stmt)
        if copy is not None and copy[0] == copy[1]:
            continue
        if stmt.blocks:
            stmt = stmt.with_blocks(tuple(map(_tidied, stmt.blocks)))
        if isinstance(stmt, If) and not stmt.then:
            if not stmt.orelse:
                continue
            stmt = stmt.but(condition=negated(stmt.condition), then=stmt.orelse, orelse=())
        rows.append(stmt)
    return tuple(rows)


__all__ = ["without_copies"]
