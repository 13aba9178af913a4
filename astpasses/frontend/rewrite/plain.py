"""The stager whose operations are plain Python: the control stage runs on NumPy with it.

In: what the control stage's text calls. Out: what Python itself would do.

    from metaphrase.astpasses.frontend.rewrite.plain import stager
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from metaphrase.late import dataclass

NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul"}
NAMES |= {"&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift"}
COMPARED = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}  # of `b ? a` for `a ? b`
_Binary = dict[str, Callable[[Any, Any], Any]]
INPLACE: _Binary = {symbol: getattr(operator, f"__i{name}__") for symbol, name in NAMES.items()}
OPERATORS: _Binary = {symbol: getattr(operator, f"__{name}__") for symbol, name in (NAMES | COMPARED).items()}
UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}


class Undefined:
    """The value of a variable that nothing has bound yet. `label` is its name, None for names of our own. `was_read`:
    whether the program has come to where it is read."""

    __slots__ = ("label", "was_read")

    def __init__(self, label: str | None):
        self.label, self.was_read = label, False

    def __repr__(self) -> str:
        return f"<{self.label or 'nothing'}: not bound>"

    def error(self) -> UnboundLocalError:
        return UnboundLocalError(f"cannot access local variable '{self.label}' where it is not associated with a value")


class NoAttribute(Undefined):
    """What an attribute is that an object does not have yet. `label` is its name."""

    __slots__ = ("kind",)

    def __init__(self, kind: str, label: str):
        super().__init__(label)
        self.kind = kind

    def error(self) -> AttributeError:  # type: ignore[override]
        return AttributeError(f"{self.kind!r} object has no attribute {self.label!r}")


@dataclass
class Nested:
    """A `for` of a comprehension: its iterable, what it makes of an item (or another `for`), its test."""

    iterable: Any
    element: Callable
    test: Callable | None

    def in_python(self, stager: Any) -> Iterator:
        """The items one by one. `stager`: whose `iterate` and `truth` are asked."""
        for item in stager.iterate(self.iterable):
            if self.test is None or stager.truth(self.test(item)):
                value = self.element(item)
                if isinstance(value, Nested):
                    yield from value.in_python(stager)
                else:
                    yield value


class PlainStager:
    """Every operation of the control stage, by Python's own rules."""

    # What Python has under other names.
    undefined: Any = staticmethod(Undefined)
    nested: Any = staticmethod(Nested)
    truth: Any = staticmethod(bool)
    known: Any = staticmethod(bool)
    slice: Any = staticmethod(slice)
    items: Any = staticmethod(list)
    members: Any = staticmethod(set)  # of which nothing but `in` is asked
    text: Any = staticmethod(str.format)
    percent: Any = staticmethod(operator.mod)
    attribute: Any = staticmethod(getattr)
    item: Any = staticmethod(operator.getitem)
    delete_item: Any = staticmethod(operator.delitem)
    is_: Any = staticmethod(operator.is_)
    is_not: Any = staticmethod(operator.is_not)
    not_: Any = staticmethod(operator.not_)
    signals: tuple[type[BaseException], ...] = ()  # what is raised here that no user's handler may take

    def use(self, value: Any) -> Any:
        if isinstance(value, Undefined):
            raise value.error()
        return value

    def captured(self, value: Any, name: str) -> Any:
        return value

    def fresh(self, value: Any) -> Any:
        """The value as it is."""
        return value

    mapping = iterate = managed = raised = fresh

    def spread(self, starred: tuple, *values: Any) -> list:
        """A list display with starred items."""
        return [v for star, value in zip(starred, values) for v in (value if star else (value,))]

    def listed(
        self, iterable: Any, element: Callable, test: Callable | None, several: bool = False, tested: bool = False
    ) -> list:
        return list(Nested(iterable, element, test).in_python(self))

    def generator(self, iterable: Any, element: Callable, test: Callable | None) -> Any:
        return Nested(iter(iterable), element, test).in_python(self)

    def quantified(self, function: Callable, name: str, iterable: Any, test: Callable) -> Any:
        return function(test(item) for item in iterable)

    def unpack(self, value: Any, count: int) -> Any:
        return value

    def call(self, function: Callable, /, *args: Any, **keywords: Any) -> Any:
        return function(*args, **keywords)

    def method(self, target: Any, name: str, /, *args: Any, **keywords: Any) -> Any:
        return getattr(target, name)(*args, **keywords)

    def store_item(self, value: Any, container: Any, index: Any) -> None:
        container[index] = value

    def store_attribute(self, value: Any, target: Any, name: str) -> None:
        setattr(target, name, value)

    def store_cell(self, value: Any, setter: Callable[[Any], None]) -> None:
        setter(value)

    def update_item(self, container: Any, index: Any, symbol: str, value: Callable[[], Any]) -> None:
        old = container[index]
        container[index] = INPLACE[symbol](old, value())

    def update_attribute(self, target: Any, name: str, symbol: str, value: Callable[[], Any]) -> None:
        old = getattr(target, name)
        setattr(target, name, INPLACE[symbol](old, value()))

    def inplace(self, symbol: str, old: Any, value: Any) -> Any:
        return INPLACE[symbol](old, value)

    def operate(self, symbol: str, left: Any, right: Any) -> Any:
        return OPERATORS[symbol](left, right)

    def unary(self, symbol: str, value: Any) -> Any:
        return UNARY[symbol](value)

    def taken_by(self, manager: Any) -> tuple:
        return ()

    def and_(self, first: Any, *rest: Callable[[], Any]) -> Any:
        for following in rest:
            if not first:
                return first
            first = following()
        return first

    def or_(self, first: Any, *rest: Callable[[], Any]) -> Any:
        for following in rest:
            if first:
                return first
            first = following()
        return first

    def choose(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        return then() if test else otherwise()

    def contains(self, value: Any, container: Any) -> bool:
        return value in container

    def lacks(self, value: Any, container: Any) -> bool:
        return value not in container

    def assert_(self, test: Any, message: Callable[[], Any]) -> None:
        if not test:
            text = message()
            raise AssertionError(*([] if text is None else [text]))

    @contextmanager
    def finally_(self) -> Iterator[None]:
        yield

    def finishing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def attempt(self, classes: Callable[[], Any]) -> AbstractContextManager[None]:
        return nullcontext()

    def try_(self, body: Callable, get: Callable, set: Callable, names: tuple) -> None:
        body()

    def if_(self, test: Any, then: Callable, otherwise: Callable, get: Callable, set: Callable, names: tuple) -> None:
        (then if test else otherwise)()

    def while_(self, test: Callable, body: Callable, get: Callable, set: Callable, names: tuple) -> None:
        while test():
            body()

    def for_(
        self, iterable: Any, body: Callable, get: Callable, set: Callable, names: tuple, stop: Callable | None = None
    ) -> None:
        for element in iterable:
            body(element)
            if stop is not None and stop():
                break


stager = PlainStager()
