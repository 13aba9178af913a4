"""`sorted(items)` and `items.sort()` where staged numbers decide the order.

In: the items of a list, a key, the direction. Out: a list of the same items in order, as Python gives it:
equal items keep their order. Items are numbers, or tuples of numbers, all of one form, and keys are numbers
(of several types they become one, as they do where paths meet); what else staged values would have to order
is refused.

    sorted([x, y, z])               # order = argsort([x, y, z]); the columns of the items, taken in order
    pairs.sort(key=lambda pair: pair[1])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..flow.joins import joined_number
from ..operators.kinds import is_number
from ..staging.session import Session
from ..staging.signals import NeedConcrete
from .call import call_value, has_staged
from .creation import array_from


def ordered(here: Session, items: list, key: Callable | None = None, reverse: bool = False) -> list:
    """The items in order."""
    keys = items if key is None else [call_value(key, (item,), {}) for item in items]
    plain = all(is_number(item) or type(item) is tuple and all(map(is_number, item)) for item in items)
    rows = [item if type(item) is tuple else (item,) for item in items] if plain else []
    columns = list(zip(*rows)) if len({len(row) for row in rows}) == 1 else []
    alike = columns and len({type(item) is tuple for item in items}) == 1
    if not (has_staged(keys) and alike and _joins(keys) and all(map(_joins, columns))):
        try:
            return [items[k] for k in sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)]
        except NeedConcrete as need:
            need.why = "the order of items that are not numbers"
            need.remedy = "keep them in arrays, and take rows in the order that np.argsort gives"
            raise
    # from behind, so that equal items keep their order in either direction
    line = array_from(keys[::-1] if reverse else keys)
    order = call_value(np.argsort, (line,), {"kind": "stable"})
    order = (len(items) - 1 - order)[::-1] if reverse else order
    taken = [_taken(here, column, order) for column in columns]
    return list(zip(*taken)) if type(items[0]) is tuple else taken[0]


def _joins(column: Any) -> bool:
    """Numbers that have an order. Of several types they become one: which comes where only the run knows."""
    return all(is_number(v) and np.dtype(joined_number([v])[0]).kind in "biuf" for v in column)


def _taken(here: Session, column: Any, order: Any) -> list:
    dtype, python = joined_number(list(column))
    moved = array_from(list(column), dtype)[order]
    return [here.wrap(here.atom(moved[k]), python) for k in range(len(column))]
