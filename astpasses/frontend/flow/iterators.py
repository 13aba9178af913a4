"""What a rolled loop can run over, and how far an iterator has come.

In: a length and what makes the item of iteration k. Out: `Ranged`; one that Python iterates over once only
(`zip`, `enumerate`) remembers what is gone of it.

    pairs = zip(x, y)            # Ranged(n, item, [x, y], once=True)
    first = next(pairs)          # taken: 1
    for a, b in pairs: ...       # the items behind it; a second loop over `pairs` is refused
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from metaphrase.core.build import literal
from metaphrase.core.dims import DimLike
from metaphrase.late import dataclass, field
from metaphrase.ops.compare import gt
from metaphrase.ops.effects import check

from ..staging.closing import all_lets
from ..staging.demand import need_concrete
from ..staging.journal import AttributeLocation
from ..staging.session import Session, session
from ..staging.signals import TrialOver
from ..values.staged_values import Number, StagedArray


@dataclass
class Ranged:
    """`range(start, stop, step)` with staged bounds, and what iterates like it: `length` items made by `item(k)`."""

    length: DimLike
    item: Callable[[Any, list], Any]
    rows: list[StagedArray] = field(default_factory=list)
    by_view: Ranged | None = None
    bounds: tuple = ()  # of a `range`
    once: bool = False  # an iterator: of its items `taken` are gone, or all where that is None
    taken: int | None = 0

    def viewed(self) -> Ranged:
        """The same with items that are views, where that is another."""
        return self if self.by_view is None else self.by_view

    def __iter__(self) -> Iterator:
        if self.once:
            return iter(started(session(), self))
        return (self.item(k, [r[k] for r in self.rows]) for k in range(len(self)))

    def __len__(self) -> int:
        if isinstance(self.length, int):
            return self.length
        return need_concrete(session().size(self.length), "the number of items", int)


def iterator(here: Session, source: Ranged) -> Ranged:
    """What can be iterated over once, as `zip` and `enumerate` give it."""
    return here.born(replace(source, once=True))


def started(here: Session, source: Ranged, take: int | None = None) -> Ranged:
    """The items that an iterator still has, for a loop that takes all of them, or for `next`, which takes
    `take`. In Python a loop leaves none: the next use is refused."""
    if not source.once:
        return source
    innermost = max((k for k, r in enumerate(here.regions) if r.builder.name == "body"), default=0)
    if type(source.taken) is not int or not here.is_fresh(source, innermost):
        raise here.unsupported(
            "an iterator is used again after a loop that ran over it, or in a loop that it was not made in",
            "make a new iterator, or a list of its items",
            code="generator",
        )
    taken = source.taken
    here.journal.note(AttributeLocation(source, "taken"))
    source.taken = None if take is None else taken + take
    rest = replace(source, once=False)
    for _ in range(taken):
        rest = without_first(rest)
    return rest


def next_of(here: Session, source: Ranged, default: tuple) -> Any:
    """`next(iterator)`, `next(iterator, default)`."""
    rest = started(here, source, take=1)
    if rest.length == 0:
        return next(iter(()), *default)
    if not isinstance(rest.length, int) and not here.facts.less(0, rest.length):
        if default:
            raise here.unsupported(
                "whether an iterator has an item left is only known when the program runs",
                "keep a position, and compare it with the length",
                code="generator",
            )
        here.emit(check, here.emit(gt, here.dim_atom(rest.length), literal(0)), exception="StopIteration", message="")
    return rest.item(0, [r[0] for r in rest.rows])


def without_first(source: Ranged) -> Ranged:
    rows = [r[1:] for r in source.rows]
    view = without_first(source.by_view) if source.by_view is not None else None
    return Ranged(source.length - 1, lambda k, given: source.item(k + 1, given), rows, view)


def even_steps(items: Any) -> range | None:
    """The range that has the items of a tuple or list of ints: of `(-1, 0, 1)` that is `range(-1, 2)`."""
    if type(items) not in (tuple, list) or len(items) < 2 or any(type(item) is not int for item in items):
        return None
    step = items[1] - items[0]
    found = range(items[0], items[-1] + step, step) if step else range(0)
    return found if tuple(found) == tuple(items) else None


def has_loop(lets: Iterable[Any]) -> bool:
    return any(let.primitive.name == "loop" for let in all_lets(lets))


def around_loops(here: Session, items: tuple | list, body: Callable) -> Callable:
    """The body of a loop over a few ints, which is rolled only if it has loops in it."""
    steps = even_steps(items)

    def around(item: Any) -> None:
        body(item)
        if isinstance(item, Number) and not (even_steps(items) == steps and has_loop(here.region.builder.lets)):
            raise TrialOver("it runs over a few ints, and no loop is inside of it", here.span())

    return around
