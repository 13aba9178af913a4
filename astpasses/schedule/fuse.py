"""Fusion: nests that can run iteration by iteration share loops, recursively, from the outermost loop
inwards.

In: a block whose nests are perfect. Out: the same program as a tree of For loops. Where `Limits.streams` is 0, every
nest has its own loops and nothing else changes.

    for i: y[i] = sin(x[i])      ->      for i:
    for i: s += y[i]                         y[i] = sin(x[i])
                                             s += y[i]            (then shrink makes y a scalar)

The order of items is a list schedule: an item joins a group at or after the last group that it must follow, or one that
may as well stand behind that, so no cycle can arise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from metaphrase.core.dims import Dim, product, symbols
from metaphrase.core.facts import Facts
from metaphrase.core.scalars import CALLED
from metaphrase.late import dataclass, field

from .dependence import Item, conflict, may_share, pinned, renamed, summarize, summary
from .nest import Access, Axis, Buf, For, If, Nest, Stmt, Store, dearest
from .target import Target


@dataclass(eq=False)
class Group:
    """One loop with its members, or (no `loop`) one statement that stays as it is."""

    members: list[Item] = field(default_factory=list)
    loop: str | None = None
    extent: object = None
    kinds: set[str] = field(default_factory=set)
    place: int = 0  # among the groups of its block


@dataclass(frozen=True)
class Limits:
    """`streams`: the arrays that one loop may touch, those aside that nothing else touches; where it is 0, nests share
    no loops. `sums_inside`: the loop that an array is combined along is never outside of those over its elements: each
    may be a thread's own. `accesses`: how often the function touches each array. `beside`: see target.py.
    `near`: what stands between two loops with no more others between them is looked at."""

    streams: int
    sums_inside: bool = False
    accesses: Mapping[Buf, int] | None = None
    beside: int = 0
    near: int = 8

    @classmethod
    def of(cls, target: Target) -> Limits:
        """Those of a target."""
        return cls(target.streams, target.threads > 0, beside=target.beside)

    def outer(self, item: Item) -> list[Axis]:
        """The axes of a nest that may be its outermost loop."""
        free = [axis for axis in item.axes if axis.kind == "par"] if self.sums_inside else []
        return free or list(item.axes)

    def leave(self, touched: Mapping[Buf, int]) -> int:
        """How many of the arrays that a loop touches so often are touched elsewhere, too: the others will be no arrays,
        or a few elements of one."""
        assert self.accesses is not None
        return sum(1 for b, n in touched.items() if b.dims and (b.space != "temp" or n < self.accesses.get(b, n)))


def fuse_block(block: tuple[Stmt, ...], facts: Facts, limits: Limits) -> tuple[Stmt, ...]:
    """Fuse a block and every block inside it."""
    if limits.accesses is None:
        limits = replace(limits, accesses=_counted(map(summarize, block)))

    def inside(stmt: Stmt) -> Stmt:
        blocks = () if isinstance(stmt, Nest) else stmt.blocks
        return stmt.with_blocks(tuple(fuse_block(b, facts, limits) for b in blocks)) if blocks else stmt

    runs = [s for s in map(inside, block) if not _never_runs(s, facts)]
    if not any(isinstance(s, Nest) and s.axes for s in runs):
        return tuple(row for s in runs for row in (s.body if isinstance(s, Nest) else (s,)))
    return _fuse([summarize(s) for s in runs], facts, limits)


def _never_runs(stmt: Stmt, facts: Facts) -> bool:
    """Whether a nest surely has no iteration: what it would touch is no reason to keep others apart, or together."""
    sizes = [axis.extent for axis in stmt.axes if axis.kind == "par"] if isinstance(stmt, Nest) else []
    told = [size for size in sizes if not isinstance(size, Dim) or not size.is_sym]
    return any(facts.equal(size, 0) or facts.less_equal(size, 0) for size in told)


def _fuse(items: list[Item], facts: Facts, limits: Limits) -> tuple[Stmt, ...]:
    if not any(item.axes for item in items):
        return tuple(s for item in items for s in item.body)
    groups = _Groups()
    for item in items:
        if not item.axes:
            groups.append(Group([item]))
            continue
        best = _best_group(groups, item, facts, limits) if limits.streams else None
        if best is None:
            axis = limits.outer(item)[0]
            before, item = _begun(item, axis)
            for made in before:
                groups.append(made)
            groups.append(Group([item], axis.name, axis.extent, {axis.kind}))
        else:
            group, joined, axis, first = best
            groups.move(group, first)
            before, joined = _begun(joined, axis)
            groups.insert(before, group)
            groups.join(group, joined, axis.kind)
    return tuple(s for g in groups.rows for s in _written(g, facts, limits))


class _Groups:
    """The groups in order, and which of them touch what: an item is compared with those only that have
    something in common with it, so that long straight code takes no time of its square."""

    def __init__(self) -> None:
        self.rows: list[Group] = []
        self.writers: dict[Buf | str, dict[Group, None]] = {}
        self.readers: dict[Buf | str, dict[Group, None]] = {}
        self.ordered: dict[Group, None] = {}
        self.checks: dict[Group, None] = {}

    def append(self, group: Group) -> None:
        group.place = len(self.rows)
        self.rows.append(group)
        for member in group.members:
            self._note(group, member)

    def insert(self, made: list[Group], before: Group) -> None:
        """Put groups in front of one that is there."""
        if made:
            following = self.rows[before.place :]
            del self.rows[before.place :]
            for group in made:
                self.append(group)
            for group in following:
                group.place = len(self.rows)
                self.rows.append(group)

    def join(self, group: Group, item: Item, kind: str) -> None:
        group.members.append(item)
        group.kinds.add(kind)
        self._note(group, item)

    def _note(self, group: Group, item: Item) -> None:
        reads, writes = _keys(item)
        for key in reads:
            self.readers.setdefault(key, {})[group] = None
        for key in writes:
            self.writers.setdefault(key, {})[group] = None
        if item.ordered:
            self.ordered[group] = None
        if item.checks:
            self.checks[group] = None

    def _near(self, item: Item) -> set[Group]:
        """All that an item may conflict with."""
        reads, writes = _keys(item)
        found = {g for key in (*reads, *writes) for g in self.writers.get(key, ())}
        found.update(g for key in writes for g in self.readers.get(key, ()))
        found.update(self.ordered if item.ordered else ())
        found.update(self.checks if item.guarded else ())
        return found

    def first_for(self, item: Item, facts: Facts) -> int:
        """The place of the last group that the item must not precede."""
        for group in sorted(self._near(item), key=lambda g: g.place, reverse=True):
            if any(conflict(member, item, facts) for member in group.members):
                return group.place
        return 0

    def sharing(self, item: Item, first: int, facts: Facts, near: int) -> list[Group]:
        """The loops from a place on that touch an array that the item touches, and those before it that may as well
        stand behind it."""
        arrays = [buf for buf in item.touched if buf.dims]
        found = {g for buf in arrays for of in (self.readers, self.writers) for g in of.get(buf, ()) if g.loop}
        return sorted((g for g in found if self.may_stand_behind(g, first, facts, near)), key=lambda g: g.place)

    def may_stand_behind(self, group: Group, first: int, facts: Facts, near: int) -> bool:
        """Whether a group stands at a place or behind it, or nothing from it on to that place needs it where it is."""
        if group.place >= first:
            return True
        if first - group.place > near or group in self.ordered or group in self.checks:
            return False
        between = [member for other in self.rows[group.place + 1 : first + 1] for member in other.members]
        return not any(conflict(mine, other, facts) for mine in group.members for other in between)

    def move(self, group: Group, first: int) -> None:
        """Put a group behind a place, if it stands before it."""
        if group.place < first:
            self.rows.remove(group)
            self.rows.insert(first, group)
            for place, one in enumerate(self.rows):
                one.place = place


def _keys(item: Item) -> tuple[list[Buf | str], list[Buf | str]]:
    """What an item reads, and what it writes: Bufs, and names of symbols, which scalar Bufs are too."""
    reads: list[Buf | str] = [*item.reads, *item.scalars]
    writes: list[Buf | str] = [*item.binds, *item.scalars_written]
    for buf, accesses in item.touched.items():
        (writes if any(a.write for a in accesses) else reads).append(buf)
    return reads, writes


def _begun(item: Item, axis: Axis) -> tuple[list[Group], Item]:
    """The item without its `first`, which becomes a nest of its own, if `axis` is one that it must
    precede."""
    if axis.kind == "par" or not item.first:
        return [], item
    rest = tuple(a for a in item.axes if a.kind == "par")
    before = summary(rest, item.first, (), True)
    for axis in rest:  # the same axes come again in the item itself: loops have names of their own
        before = renamed(before, axis.name, axis.name + "_0")
    group = Group([before], before.axes[0].name, before.axes[0].extent, {"par"}) if rest else Group([before])
    return [group], summary(item.axes, item.body, (), True)


def _written(group: Group, facts: Facts, limits: Limits) -> tuple[Stmt, ...]:
    if group.loop is None:
        return group.members[0].body
    inner = []
    for item in group.members:
        rest = tuple(a for a in item.axes if a.name != group.loop)
        inner.append(replace(item, axes=rest))
    kind = "seq" if "seq" in group.kinds else "red" if "red" in group.kinds else "par"
    body = _fuse(inner, facts, limits)
    return (For(group.loop, group.extent, body, kind, group.members[0].body[0].span),)  # type: ignore[arg-type]


def _best_group(groups: _Groups, item: Item, facts: Facts, limits: Limits) -> tuple[Group, Item, Axis, int] | None:
    """The group and axis with the most to gain from sharing, if there is any gain, and behind what it stands then."""
    best: tuple[int, Group, Item, Axis] | None = None
    first = groups.first_for(item, facts)
    for group in groups.sharing(item, first, facts, limits.near):
        assert group.loop is not None
        for axis in limits.outer(item):
            if not facts.equal(axis.extent, group.extent):  # type: ignore[arg-type]
                continue
            joined = renamed(item, axis.name, group.loop)
            gain = _gain(group, joined, axis.kind, limits)
            if gain > 0 and (best is None or gain > best[0]):
                if all(may_share(member, joined, group.loop, facts) for member in group.members) and _may_begin(
                    group, joined, axis, facts
                ):
                    best = gain, group, joined, Axis(group.loop, axis.extent, axis.kind)
    return (*best[1:], first) if best else None


def _may_begin(group: Group, item: Item, axis: Axis, facts: Facts) -> bool:
    """Whether what must precede a reduction along `axis` may precede the whole group."""
    if axis.kind == "par" or not item.first:
        return True
    before = summary((), item.first, (), True)
    return not any(conflict(member, before, facts) for member in group.members)


def _gain(group: Group, item: Item, kind: str, limits: Limits) -> int:
    """Arrays that both touch, those that one makes for the other counted double; 0 where sharing would
    hurt."""
    loop = group.loop
    assert loop is not None
    inner = frozenset(a.name for a in item.axes if a.name != loop)
    if inner and (_walks_across(item, loop, inner) or _is_called_alone(group, item, limits)):
        return 0
    gain, made, arrays = 0, False, _counted([*group.members, item])
    for member in group.members:
        for buf, theirs in member.touched.items():
            mine = item.touched.get(buf)
            if mine is None or not buf.dims:
                continue
            free = frozenset(a.name for a in member.axes if a.name != loop) | inner
            flows = any(a.write for a in theirs)
            if limits.sums_inside and not flows and not _meet_along(loop, theirs, mine):
                continue
            if any(pinned(e, loop, free) for access in (*theirs, *mine) for e in access.index):
                made = made or flows
                gain += 2 if flows else 1
    if limits.leave(arrays) > limits.streams:
        return 0
    if (
        not made
        and not inner
        and _straight(item, kind) != all(_straight(m, k) for m in group.members for k in group.kinds)
    ):
        return 0  # a loop that can be vectorised stays free of one that can't
    return gain


def _is_called_alone(group: Group, item: Item, limits: Limits) -> bool:
    """Whether a loop calls elementary functions, for several elements at a time, and would for one at a time with the
    short loops of the item in its rounds."""
    length = product(axis.extent for axis in item.axes if axis.name != group.loop)
    if not isinstance(length, int) or length > limits.beside or group.kinds != {"par"}:
        return False
    alone = all(len(member.axes) == 1 and _straight(member, "par") for member in group.members)
    return alone and any(dearest(s) >= CALLED for member in group.members for s in member.body)


def _meet_along(loop: str, theirs: Iterable[Access], mine: Iterable[Access]) -> bool:
    """Whether some two accesses to an array move along the same dim of it with a loop."""

    def moving(access: Access) -> set[int]:
        return {k for k, entry in enumerate(access.index) if isinstance(entry, Dim) and loop in symbols(entry)}

    return any(moving(a) & moving(b) for a in theirs for b in mine)


def _counted(items: Iterable[Item]) -> Counter[Buf]:
    """How often they touch each array."""
    found: Counter[Buf] = Counter()
    for item in items:
        for buf, accesses in item.touched.items():
            found[buf] += len(accesses)
    return found


def _straight(item: Item, kind: str) -> bool:
    return kind != "seq" and not item.binds and not any(isinstance(s, If) for s in item.body)


def _walks_across(item: Item, loop: str, inner: frozenset[str]) -> bool:
    """Whether with `loop` outermost the inner loops would stride through memory although `loop` itself is
    the one that runs along it."""

    def last(index: tuple) -> frozenset[str]:
        entry = index[-1] if index else 0
        return symbols(entry) if not hasattr(entry, "dtype") else frozenset()  # type: ignore[arg-type]

    stores = [s.index for s in item.body if isinstance(s, Store) and s.index]
    writes = [last(i) for i in stores]
    reads = [last(a.index) for a in item.accesses if a.index and not a.write]
    along = sum(loop in names for names in (*writes, *reads))
    within = sum(bool(names & inner) for names in (*writes, *reads))
    return along > within


__all__ = ["fuse_block"]
