"""Mutable Python objects that a rolled loop carries by their parts, as it carries arrays by their contents.

In: the objects that stand for those before the loop, and those at the end of its body. Out: what is known of
the former when the body is staged again; after the loop, the objects that may still be one of several.

    for x in xs:
        if x > best.value:
            best = Best(x, 1)        # carried: value and count
        else:
            best.count += 1          # written to: nothing else may reach what `best` was before
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..staging.session import Session
from ..values.objects import Sides, agree

if TYPE_CHECKING:
    from .carries import Pass
    from .loops import Loop, StagedBody
    from .specs import Path

Users = dict["Path", Sequence[Sides]]  # places, and on which sides of branches they are meant


class Flow:
    """From which place of the loop's state to which the objects go: by iterations that end with what another
    place had, or may have had, at their beginning. `fresh`: what an iteration makes."""

    def __init__(self, work: Pass, fresh: Collection[int]):
        origins, left = work.here.journal.shared.origins, work.left
        given = {id(made): path for path, _, made in work.objects if path in left}
        ends = {path: origins(id(left[path]), given) for path in given.values()}
        self.starts = {path: origins(id(entry)) for path, entry, _ in work.objects if path in left}
        self.nearest = {p: {given[k]: at for k, at in end.items() if k in given} for p, end in ends.items()}
        self.made = {p: {k: at for k, at in end.items() if k in fresh} for p, end in ends.items()}
        self.older = {p: {k: at for k, at in end.items() if k not in fresh} for p, end in ends.items()}

    def sources(self, path: Path) -> set[Path]:
        """The places whose first object may get here."""
        found, todo = set(self.nearest[path]), [*self.nearest[path]]
        while todo:
            more = self.nearest[todo.pop()].keys() - found
            found |= more
            todo += more
        return found

    def twins(self) -> set[frozenset[Path]]:
        """The pairs of places that may hold one object after some iterations."""
        begin, made, taken = _turned(self.starts), _turned(self.made), _turned(self.older)
        later = _turned(self.nearest)  # the places that may end with what one began with
        found = {pair for known in (begin, made, taken) for at in known.values() for pair in _pairs(at, at)}
        for source in self.older:  # one has an older object for some iterations, another one takes it now
            for key in {k for place in (source, *self.sources(source)) for k in self.older[place]}:
                found |= _pairs(taken[key], later[source])
        todo = list(found)
        while todo:
            one, other = todo.pop()
            more = _pairs(later[one], later[other]) - found
            found |= more
            todo += more
        return found


def _turned(known: Mapping[Path, Mapping[Any, Sequence[Sides]]]) -> defaultdict[Any, Users]:
    found: defaultdict[Any, Users] = defaultdict(dict)
    for path, things in known.items():
        for thing, sides in things.items():
            found[thing][path] = sides
    return found


def _pairs(one: Users, other: Users) -> set[frozenset[Path]]:
    """Two places that can be where they are in one run."""
    return {frozenset((p, q)) for p in one for q in other if p != q and agree(one[p], other[q])}


class Known:
    """What the passes over a loop's body have found of its places: older objects that they may have had since
    an iteration, others of them that may have the same object, and whether a list may have that by its parts.
    The next pass begins with it, so that a write is refused where another name sees it."""

    def __init__(self) -> None:
        self.older: defaultdict[Path, dict[int, Any]] = defaultdict(dict)
        self.twins: set[frozenset[Path]] = set()
        self.copied: set[Path] = set()

    def kept(self) -> Iterator[Any]:
        """What is held here, once for each reference."""
        for things in self.older.values():
            yield from things.values()

    def tell(self, work: Pass) -> None:
        """Said of the objects that a pass begins with."""
        shared, span = work.here.journal.shared, work.here.span()
        begun = {path: made for path, _, made in work.objects}
        if not work.branch:
            work.branch = shared.branches = shared.branches + 1
        for number, (path, entry, made) in enumerate(work.objects):  # only twins are one older object
            shared.name(made, str(path[0]), span)
            for thing in (entry, *self.older[path].values()):
                shared.join(made, thing, str(path[0]), span, {work.branch: number})
            if path in self.copied:
                shared.add_copy(made, span)
        for one, other in self.twins:
            if one in begun and other in begun:
                shared.join(begun[one], begun[other], str(one[0]), span)

    def settle(self, work: Pass, fresh: Collection[int], asked: Collection[int]) -> bool:
        """Learn from a pass until nothing is new; whether that concerns objects of which the pass asked: then
        it must ask again."""
        shared = work.here.journal.shared
        while self.learn(work, fresh):
            self.tell(work)
            if any(key in shared.things or key in shared.copies for key in asked):
                return True
        return False

    def learn(self, work: Pass, fresh: Collection[int]) -> bool:
        """Take in what a pass has found; whether that is new."""
        flow, shared = Flow(work, fresh), work.here.journal.shared
        before = sum(map(len, self.older.values())), len(self.twins), len(self.copied)
        first = {path: entry for path, entry, _ in work.objects}
        last = {id(thing): thing for thing in work.left.values()}
        begun = {path: id(made) for path, _, made in work.objects}
        for path in flow.older:
            sources = flow.sources(path)
            for place in (path, *sources):
                self.older[path].update({key: shared.things.get(key, last.get(key)) for key in flow.older[place]})
            self.older[path].update({id(first[place]): first[place] for place in sources if place != path})
            if any(key in shared.copies for key in (begun[path], *flow.made[path], *flow.older[path])):
                self.copied.add(path)
        self.twins |= flow.twins()
        return before != (sum(map(len, self.older.values())), len(self.twins), len(self.copied))


def link_objects(here: Session, loop: Loop, staged: StagedBody, sure: bool) -> None:
    """Note which objects those after the loop may be."""
    work, shared = staged.work, here.journal.shared
    flow = Flow(work, staged.body.fresh)
    first = {path: entry for path, entry, _ in work.objects if path in work.left}
    after = {path: work.rebuilt.get(id(made), made) for path, _, made in work.objects if path in work.left}
    shared.branches += 1
    for number, (path, entry) in enumerate(first.items()):  # two are one older object only if they are twins
        older = [shared.things[k] for k in flow.older[path] if k in shared.things]
        older += [work.left[path]] if id(work.left[path]) in flow.older[path] else []
        older += [first[source] for source in flow.sources(path)] + ([] if sure else [entry])
        shared.name(after[path], str(path[0]), loop.span)
        for thing in older:
            shared.join(after[path], thing, str(path[0]), loop.span, {shared.branches: number})
        if any(k in shared.copies for k in (*flow.made[path], *flow.older[path])):
            shared.add_copy(after[path], loop.span)
    for one, other in flow.twins():
        shared.join(after[one], after[other], str(one[0]), loop.span)
