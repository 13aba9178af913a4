"""Mutable Python objects that a rolled loop carries by their parts, as it carries arrays by their contents.

In: the objects that stand for those before the loop, and what the body wrote. Out: a trial that ends where a
write would miss the object it was meant for; after the loop, the objects that may still be one of several.

    for x in xs:
        if x > best.value:
            best = Best(x, 1)        # carried: value and count
        else:
            best.count += 1          # written to: nothing else may reach what `best` was before
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ..staging.journal import BoxLocation, Location
from ..staging.session import Session
from ..staging.signals import TrialOver
from ..values.objects import ANYWHERE, Sides, agree

if TYPE_CHECKING:
    from .carries import Pass
    from .loops import Loop, StagedBody
    from .specs import Path

Users = dict["Path", Sides]  # places, and on which sides of branches they are meant


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
        found = {
            pair for known in (begin, made, taken) for at in known.values() for pair in _pairs(at, at)
        }
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


def _turned(known: Mapping[Path, Mapping[Any, Sides]]) -> defaultdict[Any, Users]:
    found: defaultdict[Any, Users] = defaultdict(dict)
    for path, things in known.items():
        for thing, sides in things.items():
            found[thing][path] = sides
    return found


def _pairs(one: Users, other: Users) -> set[frozenset[Path]]:
    """Two places that can be where they are in one run."""
    return {frozenset((p, q)) for p in one for q in other if p != q and agree(one[p], other[q])}


def refuse_written(loop: Loop, work: Pass, written: list[Location]) -> None:
    """What an iteration writes to must be what the next one, and others, see as that object."""
    here, shared, depth = work.here, work.here.journal.shared, len(work.here.regions) - 1
    owners = {id(loc.owner) for loc in written if not isinstance(loc, BoxLocation)}
    for loc in written:
        # What an iteration makes it has written to before it gave it away: the next one makes another.
        if not here.is_fresh(loc.owner, depth):
            shared.refuse(loc.owner, loop.span)
    changed = [path for path, _, made in work.objects if id(made) in owners and path in work.left]
    if not changed:
        return
    fresh = {k for region in here.regions[depth:] for k in region.fresh}
    flow = Flow(work, fresh)
    twins = set().union(*flow.twins())
    copied = {k for copy in shared.copies for k in shared.origins(copy)}
    for path in changed:
        places = {path, *flow.sources(path)}
        may_be = {k for place in places for k in (*flow.starts[place], *flow.older[place])}
        others = [k for k in shared.others(dict.fromkeys(may_be, ANYWHERE)) if k not in fresh]
        may_be.update(id(made) for at, _, made in work.objects if at in places)
        may_be.update(k for place in places for k in flow.made[place])
        if path in twins or not copied.isdisjoint(may_be) or others and shared.reachable(others):
            raise TrialOver(
                f"'{path[0]}' is changed in place and replaced by another object in one loop, and another "
                "name may hold one of these",
                loop.span,
                "make a new object on every path",
            )


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
        for thing in older:
            shared.join(after[path], thing, str(path[0]), loop.span, {shared.branches: number})
        if any(k in shared.copies for k in (*flow.made[path], *flow.older[path])):
            shared.add_copy(after[path], loop.span)
    for one, other in flow.twins():
        shared.join(after[one], after[other], str(one[0]), loop.span)
