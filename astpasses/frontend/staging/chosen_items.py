"""Stores into Python's lists at an index that only the run knows.

In: a list of numbers, a staged index, a number. Out: every item takes the number or keeps its own.
(`flow/one_of_many.py` reads such items.)

    counts[arm] += 1    # each of counts: counts[k] = select(arm == k, counts[arm] + 1, counts[k])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metaphrase.core.build import literal
from metaphrase.core.ir import Atom
from metaphrase.core.types import i64
from metaphrase.ops.arithmetic import add
from metaphrase.ops.compare import and_, eq, ge, lt, select
from metaphrase.ops.effects import check

from ..flow.joins import joined_number
from ..operators.kinds import is_number
from ..values.staged_values import Number
from .demand import need_concrete
from .literals import elements
from .session import Session
from .signals import NeedConcrete

MANY = 64  # items of a list up to which a store looks at each


def place_in(here: Session, index: Number, size: int, message: str) -> Atom:
    """An index into so many items, counted from the front; Python's error where there is no such item."""
    given, zero, count = here.atom(index, i64), literal(0), literal(size)
    if index.dim is not None and here.facts.less_equal(0, index.dim) and here.facts.less(index.dim, size):
        return given
    place = here.emit(select, here.emit(lt, given, zero), here.emit(add, given, count), given)
    fits = here.emit(and_, here.emit(ge, place, zero), here.emit(lt, place, count))
    here.emit(check, fits, exception="IndexError", message=message)
    return place


def store_one_of_many(here: Session, container: list, index: Number, value: Any, store: Callable) -> bool:
    """`container[index] = value` where only the run knows the index; False where staging can know it."""
    try:
        need_concrete(index, "the index of an item that is stored", int, "keep the items in an array")
        return False
    except NeedConcrete as need:
        known_outside = not any(root[0] in ("array", "carry", "size") for root in need.roots)
        if known_outside and not here.in_region():  # the index of an argument is pinned; not in a rolled loop
            return False
        items = list(elements(here, container))
        if len(items) > MANY or not items or not all(map(is_number, (*items, value))):
            if known_outside:
                return False
            raise
    place = place_in(here, index, len(items), "list assignment index out of range")
    for k, item in enumerate(items):
        dtype, python = joined_number([item, value])
        here_it_is = here.emit(eq, place, literal(k))
        chosen = here.emit(select, here_it_is, here.atom(value, dtype), here.atom(item, dtype))
        store(here.wrap(chosen, python), container, k)
    return True
