"""`sum`, `max`, `min` and `sorted` of a list whose length only the run knows.

In: a gathered list of numbers, or of tuples of numbers where a key is given. Out: what Python
gives, of Python's types where the items have them.

    sum(1 for v in a if v > 0)                      # the sum of the rows, an int
    max((v for v in a if v < 0), default=0.0)       # a choice on whether there are any
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.astpasses.library.lists import best_by, order_by, require

from ..flow.branches import state_in
from ..flow.gathering import Rows, all_known, columns, gathered, length
from ..flow.iteration import run_for
from ..flow.lazy import choose
from ..operators.kinds import WEAK
from ..operators.protocols import operate
from ..staging.session import Session
from ..values.staged_values import StagedArray
from .call import call_value


def is_one_column(here: Session, items: list) -> bool:
    """Whether the items are numbers."""
    tree, arrays, _ = columns(here, items)
    return tree.num_nodes == 1 and arrays[0].ndim == 1


def _as_item(here: Session, items: list, number: Any) -> Any:
    """A number of the items' Python type, if they have one."""
    (kind,) = columns(here, items)[2]
    only = int if kind is bool else kind
    return here.wrap(here.atom(number, WEAK[only]), only) if only is not None else number


def total(here: Session, items: list, start: Any) -> Any:
    """`sum(items, start)`: that of the rows; but one by one of lists, which are joined, and of a known number
    of Python's ints, which are checked."""
    rows = [item for item in items if isinstance(item, Rows)]
    if any(not r.tree.is_leaf() or r.python[0] is int and all_known(items) for r in rows):
        return _one_by_one(here, items, start)
    found = gathered(here, items)
    return summed(found, start, lambda made: _as_item(here, items, made) if is_one_column(here, items) else made)


def summed(array: StagedArray, start: Any, item: Callable = lambda made: made) -> Any:
    """`sum(array, start)`, which is as wide as `start` and an item make it: of narrow integers narrow."""
    made = item(array.sum(axis=0, dtype=operate("+", start, array.dtype.type(0)).dtype))
    return made if isinstance(start, int) and start == 0 else start + made


def _one_by_one(here: Session, items: list, start: Any) -> Any:
    held = [start]

    def add(item: Any) -> None:
        held[0] = operate("+", held[0], item)

    run_for(items, add, *state_in(held, "total"), None)
    return held[0]


def extreme(here: Session, items: list, python: Callable, of_array: Callable, key: Any, default: tuple) -> Any:
    """`max(items)` or `min(items)`."""
    try:
        python([])
    except ValueError as error:
        empty = error
    if key is None and is_one_column(here, items):  # what it is in an array
        best = lambda: _as_item(here, items, of_array(gathered(here, items)))  # noqa: E731
    else:
        best = lambda: call_value(best_by, (items, _itself if key is None else key, python is max), {})  # noqa: E731
    some = length(here, items) > 0
    if default:
        return choose(some, best, lambda: default[0])
    call_value(require, (some, str(empty)), {})
    return best()


def _itself(item: Any) -> Any:
    return item


def in_order(here: Session, items: list, key: Any, reverse: bool) -> list:
    """`sorted(items)`: a new list, gathered as well."""
    tree, arrays, python = columns(here, items)
    if key is None and not is_one_column(here, items):
        raise here.unsupported(
            "sorted would compare tuples of a list whose length is only known when the program runs",
            "give a key that is a number: sorted(items, key=lambda item: item[0])",
            code="gathered",
        )
    if key is None:
        made = [call_value(np.sort, (arrays[0],), {})]
        made = [made[0][::-1]] if reverse else made
    else:
        order = call_value(order_by, (items, key, reverse), {})
        made = [array[order] for array in arrays]
    return here.born([Rows(tree, made, python)])
