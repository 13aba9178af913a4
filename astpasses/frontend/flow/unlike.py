"""An array on one path and a number on the other, in one variable: it is used where a test says which.

In: what the sides of a branch leave. Out: an `Either` of both, which as a result is the one or the other;
None where they are no such pair, or their arrays have no common form. Example:

    prev = 0                          # the first iteration is run apart, and behind it `prev` is
    while not close(x, prev):         # Either(x, 0); where the test holds, in the rest of the loop,
        prev, x = x, step(x)          # it is the array
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metaphrase.core.ir import Atom
from metaphrase.ops.compare import not_

from ..operators.kinds import is_number
from ..staging.knowledge import relate_not
from ..staging.session import Session
from ..values.optional import Either
from ..values.staged_values import Number, Poison, Staged, StagedArray
from .joins import same_static

if TYPE_CHECKING:
    from .merging import Maker, Merger


def array_or_number(merger: Merger, a: Any, b: Any, name: str) -> Maker | None:
    """What makes the joined value from the results of the `cond`."""
    sides = [_taken_apart(value) for value in (a, b)]
    arrays = [side[1] for side in sides if side is not None and side[1] is not None]
    numbers = [side[2] for side in sides if side is not None and side[2] is not None]
    older = [value for value in (a, b) if isinstance(value, Either)]
    if None in sides or not arrays or not numbers or not same_static(numbers[0], numbers[-1]):
        return (lambda outs: Poison(older[0].reason, older[0].span)) if older else None
    first, second = (merger.filler(arrays[0]) if side[1] is None else side[1] for side in sides)  # type: ignore
    reason = older[0] if older else merger.poison(a, b, name)(())
    flag = merger.merge(sides[0][0], sides[1][0], f"{name}_bound")  # type: ignore[index]
    array = merger.merge(first, second, name)

    def make(outs: tuple) -> Any:
        made = array(outs)
        if isinstance(made, Poison):
            return made
        return Either(flag(outs), made, numbers[0], reason.reason, reason.span)

    return make


def _taken_apart(value: Any) -> tuple[Any, Any, Any] | None:
    """Whether it is an array; the array, or None; the number, or None."""
    if isinstance(value, Either):
        return value.flag, value.value, value.number
    if isinstance(value, StagedArray) and value.ndim:
        return True, value, None
    return (False, None, value) if is_number(value) and not isinstance(value, Staged) else None


def negated_test(here: Session, test: Atom) -> Number:
    """`not test`, of which staging knows that it is that."""
    out = here.emit(not_, test)
    relate_not(here, out, test)
    return here.wrap(out, bool)
