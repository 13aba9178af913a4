"""The places that a rolled loop changes: numbered in its plan, and found again when the loop is staged again.

In: locations from the journal. Out: labels that outlast a staging, and the locations that these say in another one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ..staging.journal import AttributeLocation, BoxLocation, Location
from ..staging.session import Session
from .specs import Path


def remembered(here: Session, loc: Location) -> tuple | None:
    """By what a place is found again when the loop is staged again, in another iteration of those around."""
    if isinstance(loc, BoxLocation):
        return loc.owner.label
    if not isinstance(loc, AttributeLocation) or not hasattr(loc.owner, "__weakref__"):
        return None
    region = next((r for r in here.regions if id(loc.owner) in r.fresh), None)
    key = weakref.ref(loc.owner) if region is None else region.labels.get(id(loc.owner))
    return None if key is None else ("attribute", key, loc.name)


def places_of(here: Session, plan: dict, labels: list) -> list[Location]:
    """The places that the loop was seen to change, as far as they are there; `plan` and `labels` number them."""
    heap: list[Location] = []
    numbers: dict[int, int] = {}
    for k, label in enumerate(labels):
        loc: Location | None = None
        if label is not None and label[0] == "attribute":
            key = label[1] if isinstance(label[1], weakref.ref) else here.newest.get(label[1])
            owner = None if key is None else key()
            if owner is not None and (key is label[1] or here.is_fresh(owner, 0)):
                loc = AttributeLocation(owner, label[2])
        elif (box := here.newest.get(label)) is not None and box.region in here.regions and box.alive():
            loc = BoxLocation(box)
        if loc is not None and all(loc.key() != other.key() for other in heap):
            numbers[k] = len(heap)
            heap.append(loc)
    kept = {path: plan.pop(path) for path in [p for p in plan if p[0] == "heap"]}
    plan.update({("heap", numbers[p[1]], *p[2:]): spec for p, spec in kept.items() if p[1] in numbers})
    labels[:] = [labels[k] for k in numbers]
    return heap


def first_in(here: Session, loc: Location, mark: int) -> Any:
    """What was in a place before it was first written to since `mark`."""
    return next(old for where, old in here.journal.notes[mark:] if where.key() == loc.key())


def labels_of(here: Session, heap: list[Location]) -> Callable[[Path], str]:
    """What is at a path is called so in the program."""

    def label(path: Path) -> str:
        if path[0] == "heap":
            owner = heap[path[1]].owner if path[1] < len(heap) else None
            if id(owner) in here.list_names and len(path) == 3 and isinstance(path[2], int):
                return here.list_names[id(owner)][0] + ("_start", "_end", "")[min(path[2], 2)]
            if path[1] < len(heap) and isinstance(heap[path[1]], AttributeLocation):
                return "_".join([heap[path[1]].name, *(p for p in path[2:] if p == "kept")])
            return getattr(getattr(owner, "atom", None), "name", "item")
        return path[0] if all(isinstance(p, int) for p in path[1:]) or path[-1] == "value" else f"{path[0]}_{path[-1]}"

    return label


def is_outer(here: Session, loc: Location, depth: int) -> bool:
    """Whether a place existed before the loop."""
    if isinstance(loc, BoxLocation):
        return loc.owner.region in here.regions[:depth]
    return not here.is_fresh(loc.owner, depth)
