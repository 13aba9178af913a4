"""`a and b`, `a or b` and `a if test else b` of staged values: the second operand is staged where it is
wanted.

In: the first operand or test, and functions of the others. Out: the value: an `and_` or `or_` where both can
be computed without harm, else that of a branch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.ir import Atom, Literal
from metaphrase.core.native import Point
from metaphrase.ops.compare import and_ as core_and
from metaphrase.ops.compare import or_ as core_or

from ..operators.kinds import common_doubts, doubtful, settled_kinds
from ..staging.knowledge import assuming, is_there, relate_both
from ..staging.session import Region, Session, session
from ..staging.signals import BranchRaised
from ..values.staged_values import Maybe, Number, Poison, StagedArray, Truth
from .branches import branch, raised_here, state_in, static_truth, truth_atom

_CONTAINERS = (list, tuple, dict, set, frozenset)


def choose(test: Any, then: Callable, otherwise: Callable) -> Any:
    """`then() if test else otherwise()`."""
    known = static_truth(test)
    if known is not None:
        return then() if known else otherwise()
    held, hint = [None], session().place()[1]

    def assign(function: Callable) -> Callable:
        def side() -> None:
            held[0] = function()

        return side

    branch(test, assign(then), assign(otherwise), *state_in(held, hint or "cond"))
    made = held[0]
    atom = made._atom if isinstance(made, Number) else made.box.atom if isinstance(made, StagedArray) else None
    if hint and atom is not None and not isinstance(atom, Literal) and atom.name == "cond":
        atom.name = hint
    return made


def lazily(symbol: str, first: Any, rest: Callable) -> Any:
    """`first and rest()`, `first or rest()` for a staged first operand."""
    here = session()
    known = static_truth(first)
    if known is not None:
        return rest() if known == (symbol == "and") else first
    test = truth_atom(here, first)
    simple, apart = _eagerly(here, symbol, first, test, rest)
    if simple is not None:
        return simple
    held: list[Any] = []

    def second() -> Any:
        held[:] = [rest()]
        return held[0]

    if apart or type(first) is list or isinstance(first, Truth):
        sides = (lambda: (_truth(here, second()), held[0]), lambda: (False, first))
        if symbol == "or":
            sides = (lambda: (True, first), lambda: (_truth(here, second()), held[0]))
        flag, made = choose(Number(here, test, bool), *sides)
        if type(first) is list and not isinstance(made, Poison):
            return made
        return Truth(flag, f"the two sides of `{symbol}` have no common form", here.span())
    sides = (second, lambda: first) if symbol == "and" else (lambda: first, second)
    made = choose(Number(here, test, bool), *sides)
    if held and isinstance(made, Number) and isinstance(held[0], Number):
        relate_both(here, symbol, made._atom, test, held[0]._atom)
    return made


def truth_of_maybe(value: Maybe) -> Any:
    """The truth of what is None on some paths."""
    here = session()
    there = is_there(here, value)
    if not there and there is not None:
        return None
    inner = truth_of_maybe(value.value) if isinstance(value.value, Maybe) else value.value
    if there or inner is None:
        return inner
    flag = truth = truth_atom(here, value.flag)
    known = static_truth(inner)
    if known is None:
        second = truth_atom(here, inner)
        truth = here.emit(core_and, flag, second)
        relate_both(here, "and", truth, flag, second)
    elif not known:
        return False
    return Truth(Number(here, truth, bool), "it is None on some paths", here.span())


def _truth(here: Session, value: Any) -> Any:
    known = static_truth(value)
    return Number(here, truth_atom(here, value), bool) if known is None else known


def _is_one(value: Any) -> bool:
    """An array of one element, which has a truth."""
    return isinstance(value, StagedArray) and value.ndim > 0 and all(d == 1 for d in value.type.dims)


def _apart(first: Any, second: Any) -> bool:
    """Whether an array of one element stands beside what is none like it, or a list beside what is no list:
    only their truths have a common form."""
    if isinstance(second, Truth) or isinstance(second, _CONTAINERS) and not isinstance(first, _CONTAINERS):
        return True
    if not (_is_one(first) or _is_one(second)):
        return False
    if isinstance(first, StagedArray) and isinstance(second, StagedArray):
        return first.ndim != second.ndim
    return not isinstance(second, (Maybe, Poison))


def _eagerly(here: Session, symbol: str, first: Any, test: Atom, rest: Callable) -> tuple[Number | None, bool]:
    """Bool scalars whose second operand can be computed without harm need no branch. And whether the two are apart."""
    held = []
    mark = here.journal.mark()
    region = Region("operand", mark)
    with here.inside(region), assuming(here, test, symbol == "and"):
        try:
            held.append(rest())
        except (BranchRaised, Exception) as error:
            if not isinstance(error, BranchRaised):
                raised_here(here, error)  # or it is raised again
            here.journal.undo(mark)
            return None, False
        second = held[0]
        plain = isinstance(second, (bool, np.bool_)) or isinstance(second, Number) and second.dtype == bool
        harmless = (
            plain
            and here.journal.mark() == mark
            and all(
                isinstance(let.primitive.native, Point) and not let.out.type.dims and not let.primitive.effect
                for let in region.builder.lets
            )
        )
    if not harmless or not (isinstance(first, Number) and first.dtype == bool):
        here.journal.undo(mark)
        return None, _apart(first, second)
    if isinstance(second, (bool, np.bool_)):
        if bool(second) == (symbol == "and"):
            return first, False
        return second, False  # type: ignore[return-value]
    here.region.builder.lets += region.builder.lets
    out = here.emit(core_and if symbol == "and" else core_or, test, here.atom(second))
    relate_both(here, symbol, out, test, here.atom(second))
    first, second = settled_kinds((first, second))
    if doubts := common_doubts(first, second, bool):
        return doubtful(here, out, bool, doubts), False
    return here.wrap(out, bool if first.python and second.python else None), False
