"""`any` and `all` of a generator expression: no element is computed behind the one that decides.

In: what is iterated, and a function that computes the test of an item. Out: a bool.

    any(v > x for v in a)       found = False; for v in a: found = v > x; if found: break
    all(f(v) for v in (p, q))   f(p) and f(q)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..calls.builtin_calls import bool_
from ..staging.literals import elements
from ..staging.session import Session
from ..values.staged_values import StagedArray
from .branches import static_truth
from .gathering import is_gathered
from .generators import decided, run_items
from .iteration import UNROLL, ranged
from .lazy import lazily


def quantified(here: Session, wanted: bool, iterable: Any, test: Callable[[Any], Any]) -> Any:
    """`any(test(v) for v in iterable)` if `wanted`, else `all(...)`."""
    few = isinstance(iterable, (list, tuple)) and not is_gathered(iterable)
    if not few and isinstance(iterable, (StagedArray, range)):
        source = ranged(here, iterable)
        few = source is not None and isinstance(source.length, int) and source.length <= UNROLL
    if few:
        out: Any = not wanted
        for item in elements(here, iterable):
            out = lazily("or" if wanted else "and", out, lambda item=item: bool_(test(item)))
            if static_truth(out) is wanted:
                break
        return out
    return decided(wanted, test, functools.partial(run_items, iterable))
