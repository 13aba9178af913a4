"""`itertools.takewhile`, `dropwhile`, `compress`, `starmap`, `filterfalse` and `accumulate` of staged values.

In: an iterable and a function. Out: an iterator that a loop takes apart (`flow/generators.py`), or Python's
way through it.

    for v in takewhile(test, a): ...    going = True; for v in a: going = test(v); if not going: break; ...
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from ..flow.branches import State, negated, nothing, run_branch, state_in
from ..flow.generators import Lazy, mapped
from ..flow.lazy import lazily
from ..rewrite.plain import Nested
from ..staging.literals import elements
from ..staging.session import Session, session
from ..staging.settling import tested
from .builtin_calls import bool_, zip_
from .call import call_value, handles


class While(Lazy):
    """The items up to the first that fails the test, or from there on (`dropping`)."""

    __slots__ = ("test", "dropping")

    def __init__(self, here: Session, iterable: Any, test: Callable, dropping: bool):
        super().__init__(here, Nested(iterable, lambda item: item, None))
        self.test, self.dropping = test, dropping

    def step(self) -> Iterator:
        on = True
        for item in super().step():
            if on:
                on = self.truth(self.test(item))
                if not on and not self.dropping:
                    return
            if on is not self.dropping:
                yield item

    def run(self, here: Session, body: Callable, state: State, stop: Callable | None) -> None:
        on: list = [True]
        both = state_in(on, "on", beside=state)

        def each(item: Any) -> None:
            if self.dropping:  # asked until it fails for once
                on[0] = lazily("and", on[0], lambda: bool_(tested(self.test(item))))
            else:
                on[0] = bool_(tested(self.test(item)))
            wanted = negated(on[0]) if self.dropping else on[0]
            run_branch(wanted, lambda: body(item), nothing, *both)

        def ended() -> Any:
            over = negated(on[0])
            return over if stop is None else lazily("or", over, stop)

        last = stop if self.dropping else ended
        super().run(here, each, both, last)


@handles(itertools.takewhile)
def takewhile(predicate: Callable, iterable: Any) -> Any:
    here = session()
    return here.born(While(here, iterable, lambda item: call_value(predicate, (item,), {}), False))


@handles(itertools.dropwhile)
def dropwhile(predicate: Callable, iterable: Any) -> Any:
    here = session()
    return here.born(While(here, iterable, lambda item: call_value(predicate, (item,), {}), True))


@handles(itertools.compress)
def compress(data: Any, selectors: Any) -> Any:
    return mapped(session(), zip_(data, selectors), lambda pair: pair[0], lambda pair: pair[1])


@handles(itertools.starmap)
def starmap(function: Callable, iterable: Any) -> Any:
    return mapped(session(), iterable, lambda items: call_value(function, tuple(elements(session(), items)), {}))


@handles(itertools.filterfalse)
def filterfalse(function: Callable | None, iterable: Any) -> Any:
    test = negated if function is None else lambda item: negated(call_value(function, (item,), {}))
    return mapped(session(), iterable, lambda item: item, test)


@handles(itertools.accumulate)
def accumulate(iterable: Any, func: Callable | None = None, *, initial: Any = None) -> Any:
    here, function = session(), operator.add if func is None else func

    def joined(total: Any, item: Any) -> Any:
        return call_value(function, (total, item), {})

    return here.born(itertools.accumulate(elements(here, iterable), joined, initial=initial))
