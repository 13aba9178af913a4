"""The stager that converted code calls: each operation of the control stage on staged values.

In: what user code holds, staged or not. Out: the same by Python's rules for Python values, and Lets for
staged ones. Outside of any staging the operations are those of `plain.py`, so converted functions still run
on NumPy.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from ..calls.call import call_method, call_value
from ..calls.outside import refuse_outside
from ..calls.text import Text, formatted, percent
from ..flow import attempts
from ..flow.branches import negated, run_branch, static_truth, truth_atom
from ..flow.choices import over_raised, takes_choices
from ..flow.gathering import is_gathered, make_plain
from ..flow.generators import mapped, run_items
from ..flow.iteration import run_while
from ..flow.joins import parts
from ..flow.lazy import choose, lazily
from ..flow.quantifiers import quantified
from ..flow.raised import kept, raises_later
from ..flow.stack_calls import stored_in_rows
from ..flow.stacks import is_stack
from ..operators import protocols
from ..operators.arithmetic import require_count
from ..operators.masks import update_mask
from ..operators.membership import contains, is_one_array, members, require_told_apart
from ..rewrite.convert import Outer
from ..rewrite.plain import INPLACE, Nested, PlainStager
from ..values.staged_values import Maybe, Number, Poison, Staged, StagedArray
from .captured import guard_identity, known
from .chosen_items import store_one_of_many
from .comprehensions import listed
from .journal import CellLocation, ItemLocation, StructureLocation
from .knowledge import is_there, narrowed
from .literals import elements, lift_outer, load_attribute, load_item
from .python_names import refuse_type
from .session import current_session, session
from .settling import found, settled, tested
from .signals import BranchRaised, StagerSignal, TrialOver


def _lazy_operation(symbol: str) -> Callable:
    """`and` or `or` of a first operand and functions that give the others."""
    plain = getattr(PlainStager, f"{symbol}_")

    def operation(self: StagedStager, first: Any, *rest: Callable[[], Any]) -> Any:
        if current_session() is None:
            return plain(self, first, *rest)
        first = tested(first)
        return lazily(symbol, first, lambda: operation(self, rest[0](), *rest[1:])) if rest else first

    return operation


@takes_choices
class StagedStager(PlainStager):
    """One for each converted function: it knows the names that the function takes from outside."""

    signals = (StagerSignal,)

    def __init__(self, outer: Outer):
        self.outer = outer

    # --- names ---

    def use(self, value: Any) -> Any:
        return settled(value) if current_session() else super().use(value)

    def captured(self, value: Any, name: str) -> Any:
        here = current_session()
        return value if here is None else lift_outer(here, self.outer, value, name)

    def fresh(self, value: Any) -> Any:
        here = current_session()
        return value if here is None else here.born(value)

    def items(self, value: Any) -> list:
        return self.call(list, value)

    def spread(self, starred: tuple, *values: Any) -> list:
        made = session().born([])
        for star, value in zip(starred, values):
            self.method(made, "extend", value) if star else made.append(value)
        return made

    def mapping(self, value: Any) -> Any:
        here = current_session()
        refuse_type(value, Staged, "argument after ** must be a mapping, not {}")
        return value if here is None else known(here, settled(value))

    def iterate(self, value: Any) -> Any:
        return elements(session(), settled(value))

    def listed(
        self, iterable: Any, element: Callable, test: Callable | None, several: bool = False, tested: bool = False
    ) -> Any:
        """A list comprehension: gathered where the number of items is not known."""
        return listed(self, session(), Nested(iterable, element, test), several, tested)

    def generator(self, iterable: Any, element: Callable, test: Callable | None) -> Any:
        """A generator expression."""
        here = current_session()
        if here is None:
            return super().generator(iterable, element, test)
        return mapped(here, settled(iterable), element, test)

    def quantified(self, function: Callable, name: str, iterable: Any, test: Callable) -> Any:
        """`any` or `all` of a generator expression, unless the name stands for something else."""
        here = current_session()
        if here is None or function is not getattr(builtins, name):
            return self.call(function, self.fresh(test(item) for item in self.iterate(iterable)))
        return quantified(here, name == "any", settled(iterable), test)

    def text(self, template: str, *values: Any) -> Any:
        return formatted(template, values)

    def percent(self, template: Any, values: Any) -> Any:
        return percent(template, settled(values))

    def truth(self, value: Any) -> bool:
        known = static_truth(tested(value)) if current_session() else bool(value)
        return bool(value) if known is None else known

    def known(self, value: Any) -> bool:
        found = static_truth(tested(value)) if current_session() else bool(value)
        if found is None:
            raise session().unsupported(
                "a `yield` depends on a test on staged values",
                "yield one value after the branch: `v = a if test else b`, `yield v`",
                code="generator",
            )
        return found

    def unpack(self, value: Any, count: int) -> Any:
        here, value = session(), settled(value)
        if isinstance(value, (list, tuple)):
            value = elements(here, value)
        if isinstance(value, StagedArray) and count >= 0:
            dim = value.type.dims[0] if value.ndim else None
            if dim is not None and dim != count:
                require_count(here, dim, count)
                return tuple(value[k] for k in range(count))
        refuse_type(value, Number, "cannot unpack non-iterable {} object")
        return value

    # --- calls and loads ---

    def call(self, function: Callable, /, *args: Any, **keywords: Any) -> Any:
        return call_value(settled(function), args, keywords)

    def method(self, target: Any, name: str, /, *args: Any, **keywords: Any) -> Any:
        return call_method(settled(target), name, args, keywords)

    def attribute(self, target: Any, name: str) -> Any:
        return found(load_attribute(session(), settled(target), name))

    def item(self, container: Any, index: Any) -> Any:
        return found(load_item(session(), settled(container), settled(index)))

    # --- stores ---

    def store_item(self, value: Any, container: Any, index: Any) -> None:
        here, container, index = session(), settled(container), settled(index)
        if isinstance(container, np.ndarray):
            container = here.lift(container)
        if isinstance(container, StagedArray):
            container[index] = settled(value)
            return
        refuse_type(container, Number, "{!r} object does not support item assignment")
        method = protocols.written(container, "__setitem__")
        if method is not None:
            protocols.call_written(method, container, index, value)
            return
        if isinstance(index, Number) and not is_gathered(container):
            if type(container) is list and store_one_of_many(here, container, index, settled(value), self.store_item):
                return
            index = operator.index(index)
        elif isinstance(index, Text):
            index = index.concrete()
        elif isinstance(container, list) and isinstance(index, np.integer):
            index = int(index)
        if is_gathered(container) and stored_in_rows(here, container, index, value):
            return
        if isinstance(container, (list, dict)):
            if isinstance(container, dict):
                fits = index in container
            else:
                fits = isinstance(index, int) and -len(container) <= index < len(container)
                if isinstance(index, int) and index < 0:
                    index += len(container)
            here.journal.note(ItemLocation(container, index) if fits else StructureLocation(container))
        elif here.in_region() and not here.is_fresh(container, 0) and hasattr(container, "__setitem__"):
            self.unknown_effect(f"a store into a {type(container).__name__}")
        container[index] = value

    def delete_item(self, container: Any, index: Any) -> None:
        here, container, index = session(), settled(container), settled(index)
        if isinstance(container, (list, dict)):
            if is_gathered(container):
                make_plain(here, container)
            here.journal.note(StructureLocation(container))
        method = protocols.written(container, "__delitem__")
        if method is not None:
            protocols.call_written(method, container, index)
            return
        del container[index]

    def store_attribute(self, value: Any, target: Any, name: str) -> None:
        protocols.store_attribute(session(), value, settled(target), name)

    def store_cell(self, value: Any, setter: Callable[[Any], None]) -> None:
        here = current_session()
        if here is not None:
            name = setter.__code__.co_freevars[0]
            here.journal.note(CellLocation(setter.__closure__[0], name))  # type: ignore[index]
        setter(value)

    def update_item(self, container: Any, index: Any, symbol: str, value: Callable[[], Any]) -> None:
        container, index = settled(container), settled(index)
        if isinstance(container, StagedArray) and update_mask(container, index, symbol, value):
            return
        old = self.item(container, index)
        self.store_item(self.inplace(symbol, old, settled(value())), container, index)

    def update_attribute(self, target: Any, name: str, symbol: str, value: Callable[[], Any]) -> None:
        old = self.attribute(target, name)
        self.store_attribute(self.inplace(symbol, old, value()), target, name)

    def inplace(self, symbol: str, old: Any, value: Any) -> Any:
        if isinstance(old, (list, dict, set)) and not is_stack(old):
            session().journal.note(StructureLocation(old))
        return protocols.inplace(symbol, settled(old), settled(value), INPLACE[symbol])

    def operate(self, symbol: str, left: Any, right: Any) -> Any:
        return protocols.operate(symbol, settled(left), settled(right))

    def unary(self, symbol: str, value: Any) -> Any:
        return protocols.unary(symbol, settled(value))

    def managed(self, value: Any) -> Any:
        refuse_outside(session(), value, "`with`")
        return protocols.managed(settled(value))

    def taken_by(self, manager: Any) -> tuple:
        return manager.classes() if isinstance(manager, protocols.Managed) else ()

    # --- truth ---

    and_, or_ = _lazy_operation("and"), _lazy_operation("or")

    def not_(self, value: Any) -> Any:
        return not value if current_session() is None else negated(tested(value))

    def choose(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        if current_session() is None:
            return then() if test else otherwise()
        return choose(tested(test), then, otherwise)

    def is_(self, left: Any, right: Any) -> Any:
        if isinstance(left, Maybe) and right is None:
            if left.missing is None and (there := is_there(session(), left)) is not None:
                return not there or narrowed(session(), left.value) is None
            return negated(left.flag) if left.missing is None else settled(left) is None
        if isinstance(left, Maybe) and left.missing is None and not isinstance(right, (Maybe, Poison)):
            return self.and_(left.flag, lambda: self.is_(left.value, right))
        left, right = settled(left), settled(right)  # what has no common form is no object
        if isinstance(left, Number) and left.python is bool and isinstance(right, bool):
            return left if right else negated(left)
        here = session()
        if type(left) is type(right):
            if isinstance(left, StagedArray) or parts(left) is not None:
                here.compared.append((left, right))
            here.journal.shared.refuse_identity(left, right, here.span())
            require_told_apart(here, left, right)
        guard_identity(here, left, right)
        both = isinstance(left, StagedArray) and isinstance(right, StagedArray)
        return is_one_array(here, left, right) if both else left is right

    def is_not(self, left: Any, right: Any) -> Any:
        return self.not_(self.is_(left, right))

    def contains(self, value: Any, container: Any) -> Any:
        return contains(self, session(), settled(value), settled(container))

    def members(self, items: Any) -> Any:
        return super().members(items) if current_session() is None else members(items)

    def lacks(self, value: Any, container: Any) -> Any:
        return self.not_(self.contains(value, container))

    def assert_(self, test: Any, message: Callable[[], Any]) -> None:
        here = current_session()
        known = static_truth(tested(test)) if here else bool(test)
        if known:
            return
        text = message()
        error = AssertionError(*([] if text is None else [text]))
        if known is not None:
            raise self.raised(error)
        assert here is not None
        here.raises += attempts.catcher(here, AssertionError) is None
        kept(here, error, here.span()).require(here, truth_atom(here, test))

    def raised(self, exception: Any) -> Any:
        here, exception = session(), settled(exception)
        chosen, found = over_raised(exception, lambda one: StagedStager.raised(self, one))
        if chosen:
            return found
        if isinstance(exception, type):
            exception = exception()
        if not isinstance(exception, BaseException):
            raise TypeError("exceptions must derive from BaseException")
        attempt = attempts.catcher(here, type(exception))
        if attempt is not None and attempt.depth < len(here.regions):
            raise attempts.MustFork(attempt, here)
        if attempt is not None or not here.in_region() and not raises_later(here, exception):
            return exception
        here.raises += 1
        raise BranchRaised(exception, here.users_span())

    @contextmanager
    def finally_(self) -> Iterator[None]:
        """Around a `try` with `finally`."""
        here = current_session()
        if here is None:
            yield
            return
        here.tries.append(protocols.Began(here))
        try:
            yield
        finally:
            here.tries.pop()

    def finishing(self) -> AbstractContextManager[None]:
        """Around the body of a `finally`."""
        here = current_session()
        return nullcontext() if here is None else here.tries[-1].ends(here, "`finally`")

    def attempt(self, classes: Callable[[], Any]) -> AbstractContextManager[None]:
        """Around the body of a `try` with handlers, which take exceptions of `classes()`."""
        here = current_session()
        return nullcontext() if here is None else attempts.under_way(here, classes)

    def try_(self, body: Callable, get: Callable, set: Callable, names: tuple) -> None:
        """A `try` with handlers, whole: `body()` is the statement."""
        here = current_session()
        if here is None:
            body()
        else:
            attempts.attempted(here, {}, body, get, set, names)

    def unknown_effect(self, what: str) -> None:
        here = session()
        raise TrialOver(f"{what} can't be undone, should the loop or branch be staged again", here.span())

    # --- regions ---

    def if_(self, test: Any, then: Callable, otherwise: Callable, get: Callable, set: Callable, names: tuple) -> None:
        if current_session() is None:
            (then if test else otherwise)()
            return
        run_branch(tested(test), then, otherwise, get, set, names)

    def while_(self, test: Callable, body: Callable, get: Callable, set: Callable, names: tuple) -> None:
        if current_session() is None:
            super().while_(test, body, get, set, names)
            return
        run_while(test, body, get, set, names)

    def for_(
        self, iterable: Any, body: Callable, get: Callable, set: Callable, names: tuple, stop: Callable | None = None
    ) -> None:
        run_items(settled(iterable), body, (get, set, names), stop)
