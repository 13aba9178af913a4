"""What a test says: inside `if i < n:` an index check against n is not needed, inside `if best is not None:`
best is a value.

In: comparisons of integers whose symbolic expressions are known, and flags. Out: while a side is staged,
facts that hold there and truths of flags.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from metaphrase.core.dims import Dim, DimLike, Sym, symbols
from metaphrase.core.facts import Facts
from metaphrase.core.ir import Atom

from ..rewrite.plain import SWAPPED
from ..values.optional import Either
from ..values.staged_values import Maybe, Number, Staged, Unsettled
from .outer import adopted

if TYPE_CHECKING:
    from .session import Session


def relate(here: Session, atom: Atom, symbol: str, a: DimLike | None, b: DimLike | None) -> None:
    """Remember that `atom` is `a symbol b`: which expressions are not negative where it holds, and where it
    does not."""
    if a is None or b is None:
        return
    if symbol in (">", ">="):
        a, b, symbol = b, a, SWAPPED[symbol]
    if symbol == "<":
        here.relations[atom] = ((b - a - 1,), (a - b,))
    elif symbol == "<=":
        here.relations[atom] = ((b - a,), (a - b - 1,))
    elif symbol == "==":
        here.relations[atom] = ((b - a, a - b), ())
    elif symbol == "!=":
        here.relations[atom] = ((), (b - a, a - b))


def relate_not(here: Session, atom: Any, operand: Any) -> None:
    holds, fails = here.relations.get(operand, ((), ()))
    here.relations[atom] = (fails, holds)
    here.parts[atom] = ("not", operand)


def relate_both(here: Session, symbol: str, atom: Any, first: Any, second: Any) -> None:
    """`first and second`, `first or second`."""
    (a, not_a), (b, not_b) = (here.relations.get(x, ((), ())) for x in (first, second))
    here.relations[atom] = (a + b, ()) if symbol == "and" else ((), not_a + not_b)
    here.parts[atom] = (symbol, first, second)


def implied(here: Session, test: Atom, holds: bool) -> dict[Atom, bool]:
    """Truths that follow from `test` being true (or false)."""
    symbol, *operands = here.parts.get(test, ("",))
    found = {test: holds}
    if symbol == "not":
        found |= implied(here, operands[0], not holds)
    elif symbol and (symbol == "and") == holds:
        for operand in operands:
            found |= implied(here, operand, holds)
    return found


def is_there(here: Session, value: Maybe | Either) -> bool | None:
    """Whether a variable that may be missing is bound here; None where that is only known at run time."""
    flag = value.flag
    return here.truths.get(flag._atom) if isinstance(flag, Number) else bool(flag)


def narrowed(here: Session, value: Any) -> Any:
    """A variable that may be missing (or a number) as the value that it is here, where that is known."""
    while isinstance(value, (Maybe, Either)) and (there := is_there(here, value)) is not None:
        if there:
            value = value.value
        elif isinstance(value, Either):
            value = value.number
        else:
            break
    return value


def narrowed_inside(here: Session, value: Any, depth: int = 4) -> Any:
    """The same for what stands in lists, tuples and slices, in new ones where something is known, and what an
    outer function made as a hidden argument."""
    if isinstance(value, Staged):
        return value if value.session is here else adopted(here, value)
    if isinstance(value, Unsettled):
        return narrowed(here, value)
    if type(value) is slice:
        inside = [narrowed(here, part) for part in (value.start, value.stop, value.step)]
        return slice(*inside)
    if type(value) not in (list, tuple) or not depth:
        return value
    made = [narrowed_inside(here, part, depth - 1) for part in value]
    return value if all(new is old for new, old in zip(made, value)) else type(value)(made)


@contextmanager
def assuming(here: Session, test: Any, holds: bool) -> Iterator[None]:
    """Facts that follow from `test` being true (or false), for a while."""
    known = here.relations.get(test, ((), ()))[0 if holds else 1]
    before, truths = here.facts, here.truths
    here.truths = {**truths, **implied(here, test, holds)}
    if known:
        here.facts = Facts(before.ranges)
        for dim in known:
            _learn(here.facts, dim)
    assumed = {name for dim in known for name in symbols(dim)}  # they are older than this side
    try:
        yield
    finally:
        ranges = here.facts.ranges
        learned = {k: v for k, v in ranges.items() if k not in before.ranges and k not in assumed}
        here.facts, here.truths = before, truths
        for name, (low, high) in learned.items():
            before.learn(name, low, high)


def _learn(facts: Facts, dim: DimLike) -> None:
    """`dim` >= 0, as a bound on each symbol that stands in it alone and once."""
    if not isinstance(dim, Dim):
        return
    for name in sorted(symbols(dim)):
        symbol = Sym(name)
        for sign in (1, -1):
            rest = dim - sign * symbol
            if name in symbols(rest):
                continue
            low, high = facts.ranges.get(name, (0, None))
            if sign == 1:
                bound = -rest
                low = bound if low is None or facts.less_equal(low, bound) else low
            else:
                high = rest if high is None or facts.less_equal(rest, high) else high
            facts.learn(name, low, high)
            break
