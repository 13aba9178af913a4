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
from itertools import combinations
from typing import TYPE_CHECKING

from ..staging.journal import BoxLocation, Location
from ..staging.session import Session
from ..staging.signals import TrialOver

if TYPE_CHECKING:
    from .carries import Pass, Path
    from .loops import Loop, StagedBody


class Flow:
    """From which place of the loop's state to which the objects go: by iterations that end with what another
    place had, or may have had, at their beginning."""

    def __init__(self, work: Pass):
        origins = work.here.journal.shared.origins
        self.ends = {path: origins(id(work.left[path])) for path, *_ in work.objects if path in work.left}
        self.starts = {path: origins(id(entry)) for path, entry, _ in work.objects if path in self.ends}
        given = {id(made): path for path, _, made in work.objects if path in self.ends}
        self.nearest = {path: {given[k] for k in end if k in given} for path, end in self.ends.items()}

    def sources(self, path: Path) -> set[Path]:
        """The places whose first object may get here."""
        found, todo = set(self.nearest[path]), [*self.nearest[path]]
        while todo:
            more = self.nearest[todo.pop()] - found
            found |= more
            todo += more
        return found

    def twins(self) -> set[frozenset[Path]]:
        """The pairs of places that may hold one object after some iterations."""
        places = defaultdict(set)
        for known in (self.starts, self.ends):
            for path, origins in known.items():
                for key in origins:
                    places[id(known), key].add(path)
        found = {frozenset(pair) for paths in places.values() for pair in combinations(paths, 2)}
        users = defaultdict(set)  # the places that may end with what a place began with
        for path, nearest in self.nearest.items():
            for source in nearest:
                users[source].add(path)
        todo = list(found)
        while todo:
            one, other = todo.pop()
            more = {frozenset((p, q)) for p in users[one] for q in users[other] if p != q} - found
            found |= more
            todo += more
        return found


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
    flow = Flow(work)
    twins = set().union(*flow.twins())
    older = [k for k in shared.things if not any(k in region.fresh for region in here.regions[depth:])]
    copied = set().union(*map(shared.origins, shared.copies))
    for path in changed:
        origins = set().union(*(flow.starts[p] | flow.ends[p] for p in (path, *flow.sources(path))))
        others = [k for k in older if not origins.isdisjoint(shared.origins(k))]
        if path in twins or not copied.isdisjoint(origins) or others and shared.reachable(others):
            raise TrialOver(
                f"'{path[0]}' is changed in place and replaced by another object in one loop, and another "
                "name may hold one of these",
                loop.span,
                "make a new object on every path",
            )


def link_objects(here: Session, loop: Loop, staged: StagedBody, sure: bool) -> None:
    """Note which objects those after the loop may be."""
    work, shared, flow = staged.work, here.journal.shared, Flow(staged.work)
    first = {path: entry for path, entry, _ in work.objects if path in flow.ends}
    after = {path: work.rebuilt.get(id(made), made) for path, _, made in work.objects if path in flow.ends}
    for path, entry in first.items():
        before = {k for k in flow.ends[path] if k not in staged.body.fresh}
        older = [shared.things[k] for k in before if k in shared.things]
        older += [work.left[path]] if id(work.left[path]) in before else []
        older += [first[source] for source in flow.sources(path)] + ([] if sure else [entry])
        shared.join(after[path], older, str(path[0]), loop.span)
        if any(k in shared.copies for k in flow.ends[path]):
            shared.add_copy(after[path], loop.span)
    for one, other in flow.twins():
        shared.join(after[one], [after[other]], "object", loop.span)
