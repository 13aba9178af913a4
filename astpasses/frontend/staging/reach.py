"""Which objects user code can still reach while it is being staged.

In: some objects. Out: those to which a reference leads that is not staging's own. As CPython's collector of
garbage does, it counts: the references to an object, less those from where staging keeps objects, less those
from other objects that it knows. What is left comes from user code, or from a place nobody thought of, and
leads on to all that such an object holds. Example:

    l = [x[0], 2.0]
    if x[1] > 0:
        l = l[:]             # nothing leads to the old list any more: the joined one may be written to
    l[0] += 1.0
"""

from __future__ import annotations

import gc
import sys
from collections import Counter, deque
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from metaphrase.interpreter import collect_all

from .journal import Location

if TYPE_CHECKING:
    from .session import Session

_PROBE = {0: object()}
_COUNTING = sys.getrefcount(_PROBE[0]) - 1  # what asking adds
_BUILTIN = (list, dict, set, tuple, deque)
_LARGEST = 1000  # what is larger is not looked into


def reachable(here: Session, wanted: Collection[int]) -> set[int]:
    """Those of the objects with these identities that user code can reach, or of which nothing is known."""
    found = _held(here, wanted)
    for collect in (gc.collect, collect_all):  # what a trial left behind refers to itself
        if found:
            collect()
            found = _held(here, wanted)
    return found


def _held(here: Session, wanted: Collection[int]) -> set[int]:
    own = list(_own(here))
    known = {id(thing): thing for thing in own if type(thing) in _BUILTIN}
    for region in here.alive:
        known.update(region.fresh)
    known.update(here.journal.shared.things)
    count = Counter(map(id, own))
    del own

    def others(key: int) -> int:
        """How many references to an object are not staging's, and not that of `known`."""
        return sys.getrefcount(known[key]) - _COUNTING - 1 - count[key]

    if all(key in known and not others(key) for key in wanted):
        return set()
    inner, leads = _among(known)
    held: set[int] = set()
    todo = [key for key in known if others(key) - inner[key]]
    while todo:
        key = todo.pop()
        if key not in held:
            held.add(key)
            todo += leads[key]
    return {key for key in wanted if key in held or key not in known}


def _own(here: Session) -> Iterator[Any]:
    """What staging keeps, once for each reference."""
    shared, places = here.journal.shared, {}
    yield from shared.things.values()
    yield from (thing for thing, _ in shared.copies.values())
    yield from (named for _, named in here.list_names.values())
    for region in here.alive:
        yield from region.fresh.values()
    for location, old in here.journal.notes:
        places[id(location)] = location
        yield old
    for kept in here.holders:
        for thing in kept():
            if isinstance(thing, Location):
                places[id(thing)] = thing
            else:
                yield thing
    for location in places.values():
        yield location.owner


def _among(known: dict[int, Any]) -> tuple[Counter[int], dict[int, list[int]]]:
    """How many references to each of the objects come from the others, and where each leads; containers that
    they hold are added to them."""
    inner: Counter[int] = Counter()
    leads: dict[int, list[int]] = {}
    todo = list(known)
    while todo:
        key = todo.pop()
        leads[key] = []
        for child in gc.get_referents(known[key]):
            if id(child) not in known:
                if type(child) not in _BUILTIN or len(child) > _LARGEST:
                    continue
                known[id(child)] = child
                todo.append(id(child))
            inner[id(child)] += 1
            leads[key].append(id(child))
    return inner, leads
