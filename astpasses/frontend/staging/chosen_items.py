"""Stores into Python's lists at an index that only the run knows.

In: a list of numbers, a staged index, a number. Out: every item takes the number or keeps its own.
(`flow/one_of_many.py` reads such items.)

    counts[arm] += 1    # each of counts: counts[k] = select(arm == k, counts[arm] + 1, counts[k])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.ops.compare import eq, select

from ..operators.arithmetic import is_number
from ..values.staged_values import Number
from .demand import need_concrete
from .session import Session
from .signals import NeedConcrete

MANY = 64  # items of a list up to which a store looks at each


def store_one_of_many(here: Session, container: list, index: Number, value: Any, store: Callable) -> bool:
    """`container[index] = value` where only the run knows the index; False where staging can know it."""
    from ..flow.joins import joined_number
    from ..operators.indexing import position
    from .literals import elements

    try:
        need_concrete(index, "the index of an item that is stored", int, "keep the items in an array")
        return False
    except NeedConcrete as need:
        if not any(root[0] in ("array", "carry", "size") for root in need.roots):
            return False
        items = list(elements(here, container))
        if len(items) > MANY or not items or not all(map(is_number, (*items, value))):
            raise
    place = position(here, index, len(items), 0)
    for k, item in enumerate(items):
        dtype, python = joined_number([item, value])
        here_it_is = here.emit(eq, place, literal(k, np.dtype("int64")))
        chosen = here.emit(select, here_it_is, here.atom(value, dtype), here.atom(item, dtype))
        store(here.wrap(chosen, python), container, k)
    return True


__all__ = ["store_one_of_many"]
