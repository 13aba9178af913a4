"""An item of a list or tuple, which one is known when the program runs: `layers[k]["w"]`.

In: a container and a staged integer. Out: a number or array read out of all items stacked; of items that are
dicts, tuples or objects, one of the same structure, made of the parts.

    while error > tol and k < 3:
        x = np.tanh(layers[k]["w"] @ x)      # stack([layer["w"] for layer in layers])[k]

Numbers are always read so, and whatever an element of an array tells. For other items this is the last resort: first
the integer is asked for, which unrolls a loop or pins an argument, and keeps the items themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase.core.ir import Literal
from metaphrase.ops.indexing import gather
from metaphrase.source import UnsupportedError

from ..calls.call import call_value
from ..calls.creation import array_from
from ..operators.kinds import is_number
from ..staging.chosen_items import place_in
from ..staging.literals import elements
from ..staging.session import Session
from ..staging.signals import NeedConcrete
from ..values.phi import UnknownAlias, bind
from ..values.staged_values import Number, StagedArray
from .choices import MOST, choosable, one_of, table, united
from .joins import describe, joined_number, parts, same_static


def one_of_many(here: Session, container: Any, index: Number) -> tuple[bool, Any]:
    """Whether the item is read without knowing which it is, and the item."""
    if index.dtype.kind not in "iu" or isinstance(index._atom, Literal):
        return False, None
    site = (here.span(), tuple(here.path))
    items = list(elements(here, container))
    if items and all(map(is_number, items)):
        return True, _number(here, items, index, type(container).__name__)
    if items and site in here.decisions.stacked:
        return True, _joined(here, items, index, describe(container))
    try:
        index.__index__()
    except NeedConcrete as need:
        if items and ("array",) in need.roots:  # no loop that is unrolled and no argument that is pinned tells it
            return True, _joined(here, items, index, describe(container))
        need.otherwise = site if len(items) > 0 else None
        raise
    return False, None


def _number(here: Session, items: list, index: Number, what: str = "list") -> Any:
    dtype, python = joined_number(items)
    place = place_in(here, index, len(items), f"{what} index out of range")
    return here.wrap(here.emit(gather, here.atom(array_from(items, dtype)), place, axes=(0,)), python)


def _joined(here: Session, items: list, index: Number, what: str) -> Any:
    first = items[0]
    if all(map(is_number, items)):
        return _number(here, items, index)
    if all(isinstance(item, StagedArray) for item in items):
        for item in items:
            if item.type.dims != first.type.dims:
                raise _unlike(here, what, first, item)
        return _array(here, items, index)
    taken = [parts(item) for item in items]
    if taken[0] is not None:
        kind, children, metadata = taken[0]
        for item, found in zip(items, taken):
            if found is None or (found[0], len(found[1]), found[2]) != (kind, len(children), metadata):
                raise _unlike(here, what, first, item)
        columns = zip(*(found[1] for found in taken if found is not None))
        made = kind.unflatten(metadata, [_joined(here, list(column), index, what) for column in columns])
        for item in items:
            here.journal.shared.join(here.born(made), item, here.place()[1] or "item", here.span())
        return made
    if all(map(choosable, items)) and len(united(*items)) <= MOST:
        values, at = united(*items), _number(here, list(range(len(items))), index)
        places = [next(k for k, v in enumerate(values) if same_static(v, item)) for item in items]
        return one_of(values, at if places == list(range(len(items))) else table(here, at, places))
    for item in items:
        if not same_static(first, item):
            raise _unlike(here, what, first, item)
    return first


def _array(here: Session, items: list[StagedArray], index: Number) -> StagedArray:
    dtype = np.result_type(*[item.dtype for item in items])
    stacked = call_value(np.stack, ([item.astype(dtype) for item in items],), {})
    made = here.array(here.atom(stacked[index]))
    alias = UnknownAlias([item.box for item in items], here.place()[1] or "an item of a list", here.span())
    alias.remedy = "keep the items in one array: items = np.stack(items)"
    bind(made.box, alias)
    return made


def _unlike(here: Session, what: str, one: Any, other: Any) -> UnsupportedError:
    return here.unsupported(
        f"which item of {what} is read is only known when the program runs, and its items are unlike: "
        f"{describe(one)}, and {describe(other)}",
        "give them one structure and one shape, or test the index with `if`",
        code="join",
    )
