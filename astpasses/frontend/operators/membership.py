"""`value in container` on staged values, and what a hash of a staged number means.

In: what stands on both sides of `in`. Out: a bool, a staged bool where it is known when the program runs
only. Example: `state in {1, 2, 3}` for a staged `state` is `state == 1 or state == 2 or state == 3`.
"""

from __future__ import annotations

import functools
from collections.abc import Set
from typing import Any

import numpy as np

from metaphrase.ops.compare import or_

from ..calls.call import call_value
from ..flow.gathering import holds, is_gathered
from ..flow.generators import Lazy, any_of
from ..staging.captured import captured_at, guard_structure
from ..staging.knowledge import narrowed
from ..staging.literals import elements
from ..staging.session import Session
from ..staging.settling import settled
from ..values.phi import all_of, choices_among, may_be_one
from ..values.staged_values import Number, Staged, StagedArray
from . import protocols

_MANY = 8  # more numbers than these are compared as one array


def contains(stager: Any, here: Session, value: Any, container: Any) -> Any:
    """`stager`: whose `and_`, `or_` and `not_` make of tests what they are in the place they stand in."""
    method = protocols.written(container, "__contains__")
    if method is not None:
        return stager.not_(stager.not_(protocols.call_written(method, container, value)))
    if isinstance(container, Lazy) and container.steps is None:
        return any_of(here, container, True, lambda item: protocols.operate("==", item, value))
    if is_gathered(container):
        return holds(here, container, value)
    if type(container) in (list, tuple):
        container = [narrowed(here, item) for item in elements(here, container)]
    else:
        guard_structure(here, container)
    if isinstance(container, (tuple, list)) and (
        isinstance(value, Staged) or any(isinstance(c, Staged) for c in container)
    ):
        return _equals_any(stager, here, value, container)
    if isinstance(container, StagedArray):
        return call_value(bool, ((container == value).any(),), {})
    if isinstance(value, Number) and isinstance(container, range):
        return _in_range(stager, value, container)
    if isinstance(value, Number) and isinstance(container, (Set, dict)):
        # By hash, as in Python, a number is found among numbers only.
        numbers = [c for c in container if isinstance(c, (bool, int, float, complex, np.number, np.bool_))]
        return _equals_any(stager, here, value, numbers)
    return value in container


def members(items: Any) -> Any:
    """A set of which nothing but `in` is asked: staged numbers, which have no hash, are compared."""
    items = [settled(item) for item in items]
    if not any(isinstance(item, Number) for item in items):
        return set(items)
    for item in items:
        if not isinstance(item, Number):
            hash(item)
    return tuple(items)


def _equals_any(stager: Any, here: Session, value: Any, items: Any) -> Any:
    if len(items) > _MANY and isinstance(value, Number) and all(type(c) is int for c in items):
        if all(-(2**63) <= c < 2**63 for c in items):
            return contains(stager, here, value, here.lift(np.array(items)))
    found = stager.or_(False, *[lambda c=c: value == c for c in items])
    numpys = isinstance(found, np.bool_) or isinstance(found, Number) and found.python is None
    return stager.not_(stager.not_(found)) if numpys else found


def _in_range(stager: Any, value: Number, bounds: range) -> Any:
    if bounds.step < 0:
        bounds = bounds[::-1]
    tests = [lambda: value < bounds.stop]
    if bounds.step > 1:
        tests.append(lambda: (value - bounds.start) % bounds.step == 0)
    return stager.and_(value >= bounds.start, *tests)


def require_told_apart(here: Session, left: Any, right: Any) -> None:
    """`left is right` of arrays or containers that the call was given, or one that was there before: one program serves
    calls where they are one and calls where they are two. An item of a list that a loop made is made anew each time."""
    given = [_given(here, left), _given(here, right)]
    if left is not right and any(given) and all(g or captured_at(here, v) for g, v in zip(given, (left, right))):
        what = "array" if isinstance(left, StagedArray) else "object"
        two = "two arguments are" if all(given) else "an argument and what was there before are"
        raise here.unsupported(
            f"whether {two} one {what} depends on the call", "tell it by another argument", code="alias"
        )
    arrays = [v for v in (left, right) if isinstance(v, StagedArray)] if left is not right else []
    if any(id(array.box) in here.items for array in arrays):
        raise here.unsupported(
            "whether an array is an item of a list that a loop made is asked: the list has the contents",
            "compare positions, or contents",
            code="alias",
        )


def is_one_array(here: Session, left: StagedArray, right: StagedArray) -> Any:
    """Whether an array is another one: what the run says where only it knows which array a name is."""
    one, other = (left.box, right.box) if right.box.phi is None else (right.box, left.box)
    if left is right or left.chain or right.chain or one is other or not may_be_one(one, other):
        return left is right
    choices = choices_among(one, lambda box: box is other) if other.phi is None else None
    if choices is None or any(chain for _, _, chain in choices):
        text = "whether two arrays are one is only known when the program runs"
        raise here.unsupported(text, "compare contents, or keep a flag", "alias")
    flags = [all_of(here, flags) for flags, _, _ in choices]
    return here.wrap(functools.reduce(lambda a, b: here.emit(or_, a, b), flags), bool)


def _given(here: Session, value: Any) -> bool:
    if isinstance(value, StagedArray):
        return not value.chain and isinstance(value.box.origin, tuple)
    return id(value) in here.journal.containers
