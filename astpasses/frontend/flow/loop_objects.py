"""Mutable Python objects that a rolled loop carries by their parts, as it carries arrays by their contents.

In: the objects that stand for those before the loop, and what the body wrote. Out: a trial that ends where a
write would miss the object it was meant for; after the loop, the objects that may still be one of several.

    while t < end:
        state = State(state.x + state.v, state.v)   # carried: x and v
        t += 1
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ..staging.journal import BoxLocation, Location
from ..staging.session import Session
from ..staging.signals import TrialOver
from ..values.objects import is_mutable
from .held import held_elsewhere, noted

if TYPE_CHECKING:
    from .carries import Pass
    from .loops import Loop, StagedBody


def refuse_written(loop: Loop, work: Pass, written: list[Location]) -> None:
    """A body that replaces an object and also writes to the one it was given would write to a copy."""
    here, depth = work.here, len(work.here.regions) - 1
    owners = {id(loc.owner) for loc in written if not isinstance(loc, BoxLocation)}
    for loc in written:
        # What an iteration makes it has written to before it gave it away: the next one makes another.
        if loc.owner in here.journal.shared and not here.is_fresh(loc.owner, depth):
            here.journal.shared.refuse(loc.owner, loop.span, "it is written to")
    for path, _, made in work.objects:
        if id(made) in owners:
            raise TrialOver(
                f"'{path[0]}' is changed in place and replaced by another object in one loop",
                loop.span,
                "do the one or the other",
            )


def link_objects(here: Session, loop: Loop, staged: StagedBody, sure: bool, before: list) -> None:
    """Note the objects after the loop that another name may hold as well. `before`: what the loop's variables
    held."""
    work, shared = staged.work, here.journal.shared
    depth = len(here.regions)
    ends: dict[int, list[Any]] = {}
    notes = noted(here) if work.objects else Counter()
    holders, names = (before, *work.objects), Counter(id(triple[1]) for triple in work.objects)
    held = {
        triple[0] for triple in work.objects
        if is_mutable(triple[1])
        and (names[id(triple[1])] > 1
             or held_elsewhere(here, triple, 1, holders, notes, more=len(triple[0]) > 1))
    }
    for path, entry, made in work.objects:
        out = work.left.get(path)
        after = work.rebuilt.get(id(made), made)
        if out is None:
            continue
        if id(out) in shared.copies:
            shared.add_copy(after, loop.span)
        ends.setdefault(id(out), []).append(after)
        name, span = str(path[0]), loop.span
        if id(out) not in staged.body.fresh and not any(id(out) in r.fresh for r in here.regions[depth:]):
            shared.add(out, name, span)
            shared.add(after, name, span)
        if out in shared:  # by what the last iteration did, another name may hold it
            shared.add(after, name, span)
        if not sure or out is made or out in shared:
            if any(path[:k] in held for k in range(1, len(path) + 1)):  # or an object that it is in
                shared.add(entry, name, span)
                shared.add(after, name, span)
    for together in ends.values():
        for after in together if len(together) > 1 else ():
            shared.add(after, "object", loop.span)
