"""One of several Python values, which one the run decides: texts, members of enums, functions of NumPy.

In: operations of the stager with a `OneOf` among their operands. Out: what they give for each of its values,
joined: a table of results where staging knows them, else a branch on the number of the value.

    mode = "up" if x > 0 else "down"     # OneOf(("up", "down"), tag)
    if mode == "up": ...                 # a test on the tag
    rates[mode]                          # a select, or a `cond`, on the tag
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.core.ir import Atom, Literal
from metaphrase.core.types import i64
from metaphrase.exceptions import exception_of
from metaphrase.ops.compare import eq, or_, select

from ..calls.text import Text
from ..operators.kinds import is_number
from ..rewrite import plain
from ..staging.python_names import in_python_words
from ..staging.session import Session, session
from ..staging.signals import BranchRaised
from ..staging.under_way import current_session
from ..values.staged_values import Maybe, Number, OneOf, Staged
from .attempts import catcher, in_reach
from .joins import joined_number, same_static

_VALUES = (str, bytes, enum.Enum, np.ufunc, types.BuiltinFunctionType, type)
_CONSTANTS = (bool, int, float, complex, type(None))
_LIBRARIES = ("builtins", "numpy", "math", "operator", "functools", "collections")
_KEEPS = frozenset("append insert extend add update setdefault".split())
_WRITTEN = (types.FunctionType, types.MethodType, functools.partial)
MOST = 32  # values that a run chooses among


def choosable(value: Any) -> bool:
    """Whether a run may choose among such values."""
    if isinstance(value, BaseException):  # of which nothing is only known when it runs
        return not vars(value) and all(isinstance(a, (*_VALUES, *_CONSTANTS)) for a in value.args)
    return isinstance(value, (*_VALUES, OneOf))


def united(*values: Any) -> tuple:
    """All that these may be, each once."""
    found: list[Any] = []
    for value in values:
        for one in value.values if isinstance(value, OneOf) else (value,):
            if not any(same_static(one, other) for other in found):
                found.append(one)
    return tuple(found)


def tag_of(here: Session, value: Any, values: tuple) -> Atom:
    """The number of a value among `values`, in the current region."""
    places = [next(k for k, v in enumerate(values) if same_static(v, one)) for one in united(value)]
    if not isinstance(value, OneOf):
        return literal(places[0], i64)
    if places == list(range(len(places))):
        return here.atom(value.tag, i64)
    return here.atom(table(here, value.tag, places), i64)


def one_of(values: tuple, tag: Any) -> Any:
    """The value itself where its number is known."""
    if isinstance(tag, Number) and isinstance(tag._atom, Literal):
        tag = int(tag._atom.value)
    return values[tag] if isinstance(tag, int) else OneOf(values, tag)


def table(here: Session, tag: Number, results: list) -> Any:
    """results[tag], of Python numbers."""
    at = here.atom(tag, i64)
    if all(isinstance(r, (bool, np.bool_)) for r in results):
        hits = [here.emit(eq, at, literal(k, i64)) for k, r in enumerate(results) if r]
        return here.wrap(functools.reduce(lambda a, b: here.emit(or_, a, b), hits), bool)
    dtype, python = joined_number(results)
    found = literal(results[-1], dtype)
    for k in reversed(range(len(results) - 1)):
        found = here.emit(select, here.emit(eq, at, literal(k, i64)), literal(results[k], dtype), found)
    return here.wrap(found, python)


def truth(value: OneOf) -> Any:
    """The truth of what is chosen."""
    return _joined(session(), value, [bool(v) for v in value.values])[1]


def _joined(here: Session, one: OneOf, results: list) -> tuple[bool, Any]:
    """Whether results that staging knows have a common form, and that."""
    first = results[0]
    if all(r is first or same_static(first, r) for r in results):
        return True, first
    if all(is_number(r) and not isinstance(r, Staged) for r in results):
        return True, table(here, one.tag, results)
    if all(map(choosable, results)) and not any(isinstance(r, OneOf) for r in results):
        values = united(*results)
        places = [next(k for k, v in enumerate(values) if same_static(v, r)) for r in results]
        return True, OneOf(values, table(here, one.tag, places))
    return False, None


def over(one: OneOf, operation: Callable[[Any], Any], known: bool) -> Any:
    """`operation` of what is chosen. `known`: it only looks at Python values, and changes nothing."""
    here = session()
    if known:
        try:
            results = [operation(v) for v in one.values]
        except Exception:  # for some value only, which may not be the one: the branch raises it
            results = []
        if results:
            done, found = _joined(here, one, results)
            if done:
                return found
    return _branches(here, one, operation, 0)


def _branches(here: Session, one: OneOf, operation: Callable[[Any], Any], k: int) -> Any:
    from .lazy import choose

    def chosen() -> Any:
        try:
            return operation(one.values[k])
        except LookupError as error:  # raised where this value is the one
            if catcher(here, type(error)) is None:
                raise BranchRaised(error, here.span()) from error
            in_reach(here, error)
            raise

    if k == len(one.values) - 1:
        return chosen()
    test = here.wrap(here.emit(eq, here.atom(one.tag, i64), literal(k, i64)), bool)
    return choose(test, chosen, lambda: _branches(here, one, operation, k + 1))


def _plain(value: Any) -> bool:
    """A Python value without staged parts that an operation can look at as often as it likes."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_plain, value))
    return isinstance(value, (*_VALUES, *_CONSTANTS))


def over_raised(exception: Any, operation: Callable[[Any], Any]) -> tuple[bool, Any]:
    """Whether the run chooses what is raised, or an argument of it; then `operation` of what it chooses."""
    if (one := _choice(exception)) is not None:
        return True, over(one, operation, False)
    args = list(exception.args) if isinstance(exception, BaseException) else []
    at = next((k for k, argument in enumerate(args) if _choice(argument) is not None), None)
    if at is None:
        return False, None

    def chosen(value: Any) -> Any:
        given = [*args[:at], _chosen(args[at], value), *args[at + 1 :]]
        attributes = vars(exception)
        made = exception_of(type(exception), len(given), tuple(attributes), *given, *attributes.values())
        return operation(made)

    return True, over(_choice(args[at]), chosen, False)  # type: ignore[arg-type]


def _choice(value: Any) -> OneOf | None:
    """What the run chooses in an operand: the value, or the words of a text with staged values."""
    if type(value) is Text:
        value = value.template
    return value if type(value) is OneOf else None


def _chosen(operand: Any, value: Any) -> Any:
    """The operand where the choice in it is `value`."""
    return Text(value, operand.values) if type(operand) is Text else value


def _split(name: str, args: tuple) -> list[int]:
    """The operands of an operation of the stager that are taken apart."""
    places = [k for k, a in enumerate(args) if _choice(a) is not None]
    if name == "call" and 0 not in places:
        function = args[0]
        own = isinstance(function, _WRITTEN) or type(function).__module__ not in _LIBRARIES
        if isinstance(function, type):
            own = function.__module__ not in _LIBRARIES or issubclass(function, BaseException)
        return [] if own else places
    if name == "method" and 0 not in places:
        target = args[0]
        own = not isinstance(target, Staged) and type(target).__module__ not in _LIBRARIES
        return [] if own or isinstance(target, (list, dict, set)) and args[1] in _KEEPS else places
    if name in ("call", "method"):
        return [0]
    return [k for k in places if k == 2] if name == "store_item" else places


_ASKED = (OneOf, Maybe, Text)
_KNOWN = frozenset("operate contains is_ attribute method unary".split())
_NAMES = "call method attribute item operate unary contains is_ text percent unpack iterate store_item".split()
_TOLD = (
    "items spread listed managed delete_item store_attribute update_item update_attribute inplace raised for_".split()
)


def takes_choices(stager: type) -> type:
    """The class of a stager, whose operations take values that the run chooses."""
    for name in (*_NAMES, *_TOLD):
        setattr(stager, name, _operation(name, getattr(plain.stager, name), getattr(stager, name)))
    return stager


def _operation(name: str, outside: Callable, method: Callable) -> Callable:
    """An operation of the stager: outside of any staging the plain one; else it raises what Python raises, in its
    words, and where the run chooses an operand it is done for each value of that."""
    takes = name in _NAMES

    @functools.wraps(method)
    def operation(self: Any, *args: Any, **keywords: Any) -> Any:
        here = current_session()
        if takes and here is not None and any(type(a) in _ASKED for a in args):
            if name != "is_" and any(type(a) is Maybe and type(a.value) is OneOf for a in args):
                from ..staging.settling import settled

                args = tuple(settled(a) if type(a) is Maybe and type(a.value) is OneOf else a for a in args)
            if places := _split(name, args):
                return _of_each(name, functools.partial(operation, self), places[0], args, keywords)
        try:
            return outside(*args, **keywords) if here is None else method(self, *args, **keywords)
        except (TypeError, AttributeError) as error:
            in_python_words(error, (*args, *keywords.values()))
            raise

    return operation


def _of_each(name: str, operation: Callable, at: int, args: tuple, keywords: dict) -> Any:
    """The operation of what the run chooses for the operand at a place."""
    one = _choice(args[at])
    assert one is not None
    rest = (*args[:at], *args[at + 1 :], *keywords.values())
    known = name in _KNOWN and args[at] is one and all(map(_plain, rest))

    def with_one(value: Any) -> Any:
        return operation(*args[:at], _chosen(args[at], value), *args[at + 1 :], **keywords)

    return over(one, with_one, known)
