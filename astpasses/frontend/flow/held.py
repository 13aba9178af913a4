"""Whether an object has another name than the one that a branch or loop has rebound.

In: where staging itself keeps an object. Out: whether something else does, by the number of references to it.
Only places in which the object is found are counted as staging's own, so that a reference nobody thought of
makes it one that has another name. Example:

    l = [x[0], 2.0]
    if x[1] > 0:
        l = l[:]             # nothing holds the old list any more: the joined one may be written to
    l[0] += 1.0
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..staging.session import Session

_PROBE = [object()]
_COUNTING = sys.getrefcount(_PROBE[0]) - 1  # what asking adds


def noted(here: Session) -> Counter[int]:
    """How many notes of what was written hold an object, by its identity."""
    locations = {id(location): location for location, _ in here.journal.notes}
    return Counter(id(location.owner) for location in locations.values())


def held_elsewhere(
    here: Session, place: Any, k: int, holders: Iterable[Iterable[Any]], notes: Counter[int], more: int = 0
) -> bool:
    """Whether `place[k]` is held by more than the holders (`place` is to be one of them), the notes of what
    was written and made, and `more` that the caller knows of: the object around it, say."""
    known = more + sum(item is place[k] for holder in holders for item in holder)
    known += sum(region.fresh.get(id(place[k])) is place[k] for region in here.regions)
    known += notes[id(place[k])]
    known += sum(named is place[k] for _, named in here.list_names.values())
    return sys.getrefcount(place[k]) - _COUNTING > known


def captured_by(functions: Iterable[Callable]) -> list[Any]:
    """The cells of some functions, each once."""
    cells = {id(cell): cell for f in functions for cell in getattr(f, "__closure__", None) or ()}
    return list(cells.values())


__all__ = ["noted", "held_elsewhere", "captured_by"]
