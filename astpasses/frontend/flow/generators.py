"""Generator expressions, `map` and `filter` on staged values: iterators that loops take apart.

In: the clauses of a generator expression, or a function and what it is mapped over. Out: a Python iterator
for who steps through it, which needs tests that are known; and, for `for`, `next`, `in`, `any`, `all` and
what uses up all items, the loop that it stands for, where a test may be staged.

    next((v for v in a if v > 0), 0.0)    found = False; for v in a: if v > 0: value, found = v, True; break
    for v in filter(test, a): ...         for v in a: if test(v): ...
    list(f(v) for v in a if v > 0)        [f(v) for v in a if v > 0]
"""

from __future__ import annotations

import collections
import functools
import heapq
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..rewrite.plain import Nested, Undefined
from ..staging.literals import elements, refuse_moved
from ..staging.session import Session, session
from ..staging.settling import settled, tested
from ..staging.signals import Restart
from ..values.objects import is_one_of
from ..values.staged_values import Maybe
from .branches import STATELESS, State, negated, nothing, run_branch, state_in, static_truth
from .gathering import FEW, arrays_inside, as_argument, is_gathered, is_of_arrays, refuse_read
from .iteration import UNROLL, ranged, run_for
from .iterators import Ranged
from .lazy import choose

# They take every item of what they are given, whatever the items are.
USE_ALL = {
    list, tuple, set, frozenset, dict, collections.deque, sum, sorted, max, min, functools.reduce, math.fsum,
    math.prod, np.array, np.asarray, np.fromiter, np.stack, np.concatenate,
}  # fmt: skip
STEP_BY_STEP = (next, iter, map, filter, any, all, isinstance, type, id)
# These know gathered lists.
READ_AS_LISTS = (
    len, bool, isinstance, type, id, enumerate, zip, map, filter, reversed, iter, list, tuple,
    collections.deque, sum, max, min, sorted, heapq.heappush, heapq.heappop, heapq.heapreplace,
    heapq.heappushpop, heapq.heapify, heapq.nsmallest, heapq.nlargest, functools.reduce,
)  # fmt: skip
SHOWS = (print, str, repr, format)  # and these show them


class Lazy:
    """An iterator over what the clauses make. `steps`: Python's way through it, once that has begun."""

    __slots__ = ("clause", "site", "span", "steps", "__weakref__")

    def __init__(self, here: Session, clause: Nested):
        self.clause, self.span = clause, here.place()[0]
        self.site = ("generator", self.span, tuple(here.path))
        self.steps: Iterator | None = None

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        here = session()
        if self.steps is None:
            self.steps = iter(elements(here, all_of(here, self))) if is_loop(here, self) else self.step()
        return next(self.steps)

    def step(self) -> Iterator:
        """Item by item. Where a test turns out to be staged all of it is a loop."""
        return self.clause.in_python(self)

    def iterate(self, iterable: Any) -> Any:
        return elements(session(), settled(iterable))

    def truth(self, test: Any) -> bool:
        """The truth of a test. Where only the run knows it all of this is a loop."""
        here, known = session(), static_truth(tested(test))
        if known is None:
            here.decisions.must_roll(self.site, here.rolling)
            raise Restart()
        return known

    def run(self, here: Session, body: Callable, state: State, stop: Callable | None) -> None:
        """The loop that it stands for."""
        run_clause(here, self.clause, body, state, stop)


def is_loop(here: Session, lazy: Lazy) -> bool:
    """Whether its tests are only known when the program runs."""
    return here.decisions.rolls(lazy.site, here.rolling)


def mapped(here: Session, iterable: Any, function: Callable, test: Callable | None = None) -> Lazy:
    """`map(function, iterable)`, of the items that pass the test."""
    return here.born(Lazy(here, Nested(iterable, function, test)))


# --- the loops that it stands for ---


def run_items(iterable: Any, body: Callable, state: State, stop: Callable | None) -> None:
    """`for item in iterable: body(item); if stop(): break`."""
    here = session()
    if isinstance(iterable, Lazy) and iterable.steps is None and _rolls(here, iterable):
        run_lazy(here, iterable, body, state, stop)
    else:
        run_for(iterable, body, *state, stop)


def _rolls(here: Session, lazy: Lazy) -> bool:
    """Whether the loop over it is one over an array or a range. One over few items runs in Python, and an
    iterator that is left in the middle can be used again."""
    source = settled(lazy.clause.iterable)
    if is_loop(here, lazy) or isinstance(source, Lazy) and _rolls(here, source):
        return True
    if isinstance(source, range) and len(source) <= FEW:  # its items, and what tests say of them, are known
        return False
    over = source if isinstance(source, Ranged) else None
    if over is None and (type(source) is not list or is_gathered(source)):
        over = ranged(here, source)
    return over is not None and not (isinstance(over.length, int) and over.length <= UNROLL)


def run_lazy(here: Session, lazy: Lazy, body: Callable, state: State, stop: Callable | None) -> None:
    """`for item in lazy: body(item); if stop(): break`, by a loop over what it is made from."""
    refuse_moved(here, lazy)
    if stop is not None:
        here.left[id(lazy)] = (lazy, here.span())
    lazy.steps = iter(())
    lazy.run(here, body, state, stop)


def run_clause(here: Session, clause: Nested, body: Callable, state: State, stop: Callable | None = None) -> None:
    """The loop of a clause and of those in it; `body` is told each item that they make."""

    def each(item: Any) -> None:
        if clause.test is None:
            pass_on(item)
            return
        run_branch(tested(clause.test(item)), lambda: pass_on(item), nothing, *state)

    def pass_on(item: Any) -> None:
        value = clause.element(item)
        if isinstance(value, Nested):
            run_clause(here, value, body, state, stop)
        else:
            body(value)

    here.path.append(("for", here.place()[0]))  # the loops of one line are told apart
    try:
        run_items(settled(clause.iterable), each, state, stop)
    finally:
        here.path.pop()


def all_of(here: Session, lazy: Lazy) -> list:
    """A list of all items; gathered where their number is only known when the program runs. Python's order is
    that of who asks for them one by one: what prints is not asked ahead."""
    from ..calls.call import call_method

    if lazy.steps is not None or not _rolls(here, lazy):
        refuse_moved(here, lazy)
        return here.born(list(lazy))
    printed = _prints(here)
    made = here.born([])
    run_lazy(here, lazy, lambda item: call_method(made, "append", (item,), {}), STATELESS, None)
    if _prints(here) != printed and is_loop(here, lazy):
        raise here.unsupported(
            "an iterator that prints, and whose tests are only known when the program runs, is used in parts",
            "make a list of its items before",
            code="generator",
        )
    return made


def _prints(here: Session) -> int:
    return sum(let.primitive.effect == "ordered" for let in here.region.builder.lets)


def handed(here: Session, function: Any, args: tuple) -> tuple:
    """The arguments of a function that is not the user's: what uses up an iterator is given a list, and what
    does not know lists whose length only the run knows is given arrays."""
    kinds = set(map(type, args))
    if any(issubclass(kind, Lazy) for kind in kinds) and not is_one_of(function, STEP_BY_STEP):
        whole = is_one_of(function, USE_ALL)
        taken = [isinstance(a, Lazy) and (whole or is_loop(here, a)) for a in args]
        args = tuple(all_of(here, a) if all_ else a for a, all_ in zip(args, taken))
        kinds.add(list)
    if here.gathers and (list in kinds or tuple in kinds) and is_of_arrays(function):
        args = tuple(a if is_gathered(a) else arrays_inside(here, a, function) for a in args)
    if list not in kinds:
        return args
    for arg in args:
        if type(arg) is list:
            refuse_read(here, arg)
    if is_one_of(function, (*READ_AS_LISTS, *SHOWS)) or not any(map(is_gathered, args)):
        return args
    return tuple(as_argument(here, function, a) if is_gathered(a) else a for a in args)


def first(here: Session, lazy: Lazy, default: tuple) -> Any:
    """`next(lazy)`, `next(lazy, default)`."""
    if lazy.steps is not None or not is_loop(here, lazy):
        refuse_moved(here, lazy)
        return next(lazy, *default)
    held: list = [False, Undefined(None)]

    def take(item: Any) -> None:
        held[:] = (True, item)

    run_lazy(here, lazy, take, state_in(held, "found", "value"), lambda: held[0])
    found, value = held
    # it was bound where `found` is true
    value = value.value if isinstance(value, Maybe) and isinstance(value.missing, Undefined) else value
    if default:
        return choose(found, lambda: value, lambda: default[0])
    run_branch(found, nothing, lambda: _end(here), *STATELESS)
    return value


def _end(here: Session) -> None:
    from ..staging.operations import StagedStager

    raise StagedStager.raised(None, StopIteration())  # type: ignore[arg-type]


def any_of(here: Session, lazy: Lazy, wanted: bool, test: Callable[[Any], Any]) -> Any:
    """`any(test(v) for v in lazy)` if `wanted`, else `all(...)`."""
    return decided(wanted, test, functools.partial(run_lazy, here, lazy))


def decided(wanted: bool, test: Callable[[Any], Any], run: Callable) -> Any:
    """`any` of the tests of items if `wanted`, else `all`. `run` is the loop over the items."""
    from ..calls.builtin_calls import bool_

    held: list = [not wanted]

    def look(item: Any) -> None:
        held[0] = bool_(test(item))

    stop = (lambda: held[0]) if wanted else (lambda: negated(held[0]))
    run(look, state_in(held, "found"), stop)
    return held[0]
