"""Users' classes: their operators and protocols are staged like any function they write.

In: an operator and its operands, a context manager, an iterable, an attribute. Out: what Python would give;
methods that the user wrote (`__add__`, `__lt__`, `__enter__`, `__iter__`, `__setitem__`, ...) are called
through the stager, so that they may branch on staged values.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import operator
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from metaphrase.late import module
from metaphrase.source import SourceError

from ..flow.attempts import Attempt
from ..flow.branches import negated
from ..flow.gathering import is_gathered, length, not_a_list, refuse_read, snapshot
from ..flow.lazy import lazily
from ..flow.stack_calls import METHODS
from ..flow.stacks import is_stack
from ..rewrite.convert import may_swallow
from ..rewrite.plain import COMPARED, OPERATORS, SWAPPED, UNARY
from ..staging.captured import known, make_attributes_known
from ..staging.closing import all_lets
from ..staging.journal import AttributeLocation
from ..staging.session import Session, session
from ..staging.signals import BranchRaised, StagerSignal
from ..staging.users_code import guard_class
from ..values.definitions import found_in
from ..values.staged_values import BINARY, Number, Staged, StagedArray

call: Any = module("metaphrase.astpasses.frontend.calls.call")

_DUNDERS = {symbol: (f"__{name}__", f"__r{name}__") for name, symbol in BINARY.items()} | {
    symbol: (f"__{name}__", f"__{COMPARED[SWAPPED[symbol]]}__") for symbol, name in COMPARED.items()
}
_UNARY = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}
# Functions that ask an object's class first, and the names that they ask for.
ASKED: dict[Any, tuple[str, ...]] = {
    float: ("__float__", "__index__"),
    int: ("__int__", "__index__", "__trunc__"),
    round: ("__round__",),
    complex: ("__complex__", "__float__"),
    math.floor: ("__floor__", "__float__"),
    divmod: ("__divmod__",),
    math.ceil: ("__ceil__", "__float__"),
    math.trunc: ("__trunc__",),
    reversed: ("__reversed__",),
    operator.index: ("__index__",),
}
_KNOWN = {Number, StagedArray, int, float, bool, complex, str, np.ndarray, np.float64, np.int64, type(None)}
_ORDER = ("<", "<=", ">", ">=")


def written(value: Any, name: str) -> types.FunctionType | None:
    """The method of a user's class that answers to a special name."""
    kind = type(value)
    if kind in _KNOWN:
        return None
    guard_class(session(), kind)
    method = getattr(kind, name, None)
    if not isinstance(method, types.FunctionType) or method.__code__.co_filename == "<string>":
        return None
    native = call.is_native(method.__module__ or "") and not is_ordering(method)
    return None if native or isinstance(value, Staged) else method


def is_ordering(function: types.FunctionType) -> bool:
    """Whether `functools.total_ordering` made it: it calls a user's `__lt__` or the like."""
    return function.__module__ == "functools" and "_from_" in function.__code__.co_name


def call_written(method: Any, *args: Any) -> Any:
    return call.call_value(method, args, {})


def array_of(value: Any) -> Any:
    """What NumPy takes a user's object for: the array that its `__array__` gives; else itself."""
    method = written(value, "__array__")
    if method is None or hasattr(type(value), "__array_function__"):
        return value
    made = call_written(method, value)
    if not isinstance(made, (StagedArray, np.ndarray)):
        raise ValueError("object __array__ method not producing an array")
    return made


# --- operators ---


def operate(symbol: str, left: Any, right: Any) -> Any:
    """`left symbol right`."""
    if type(left) in _KNOWN and type(right) in _KNOWN:
        return OPERATORS[symbol](left, right)
    here = session()
    for value in (left, right):
        if type(value) is list:
            refuse_read(here, value)
    if symbol in ("==", "!=") and type(left) is list and type(right) is list and not (left and right):
        for one, other in ((left, right), (right, left)):
            if is_gathered(one) and not other:
                return operate(symbol, length(here, one), 0)
    left, right = (snapshot(here, v) if is_gathered(v) else known(here, v) for v in (left, right))
    for value in (left, right):
        if dataclasses.is_dataclass(value):
            make_attributes_known(here, value)
    forward, backward = _DUNDERS[symbol]
    mine, theirs = written(left, forward), written(right, backward)
    if mine is None and theirs is None:
        if isinstance(left, StagedArray) or isinstance(right, StagedArray):
            left, right = array_of(left), array_of(right)
        if symbol in _ORDER or symbol[-1] == "=":
            return _compared(symbol, left, right)
        made = OPERATORS[symbol](left, right)  # `[0] * n`, `a + b`, `a | b` of lists, dicts and sets are new
        return here.born(made) if type(made) in (list, dict, set) else made
    attempts = [(mine or getattr(type(left), forward, None), left, right)]
    attempts.append((theirs or getattr(type(right), backward, None), right, left))
    if isinstance(left, Staged) or type(left) is not type(right) and issubclass(type(right), type(left)):
        attempts.reverse()
    for method, one, other in attempts:
        if method is None:
            continue
        is_written = isinstance(method, types.FunctionType) and not isinstance(one, Staged)
        made = call_written(method, one, other) if is_written else method(one, other)
        if made is not NotImplemented:
            return made
    return OPERATORS[symbol](left, right)


def _compared(symbol: str, left: Any, right: Any) -> Any:
    """Comparisons of containers go by their items, and of dataclasses by their fields."""
    if symbol == "!=" and (written(left, "__eq__") or written(right, "__eq__")):
        return negated(operate("==", left, right))
    kind = type(left)
    if kind is not type(right):
        return OPERATORS[symbol](left, right)
    if dataclasses.is_dataclass(kind):
        made = getattr(kind, _DUNDERS[symbol][0], None)
        if isinstance(made, types.FunctionType) and made.__code__.co_filename == "<string>":
            names = [f.name for f in dataclasses.fields(kind) if f.compare]
            left, right = (tuple(getattr(v, n) for n in names) for v in (left, right))
    if isinstance(left, dict) and call.has_staged((left, right)):
        if left.keys() != right.keys():
            return symbol == "!="
        left, right = [left[key] for key in left], [right[key] for key in left]
    if not isinstance(left, (tuple, list)) or not (call.has_staged(left) or call.has_staged(right)):
        return OPERATORS[symbol](left, right)
    if is_gathered(left) or is_gathered(right):
        raise not_a_list(session())
    if symbol in ("==", "!="):
        same: Any = len(left) == len(right)
        for a, b in zip(left, right) if same else ():
            same = lazily("and", same, functools.partial(operate, "==", a, b))
        if isinstance(same, np.bool_) or isinstance(same, Number) and same.python is None:
            same = negated(negated(same))  # containers compare to Python's bools
        return same if symbol == "==" else negated(same)
    if not left or not right:
        return OPERATORS[symbol](len(left), len(right))
    strict = symbol[0]
    return lazily(
        "or",
        operate(strict, left[0], right[0]),
        lambda: lazily("and", operate("==", left[0], right[0]), lambda: operate(symbol, left[1:], right[1:])),
    )


def unary(symbol: str, value: Any) -> Any:
    """`-value`, `+value`, `~value`."""
    method = written(value, _UNARY[symbol])
    return UNARY[symbol](value) if method is None else call_written(method, value)


def inplace(symbol: str, old: Any, value: Any, operation: Callable) -> Any:
    """`old symbol= value`, the new value of `old`."""
    if type(old) in _KNOWN and type(value) in _KNOWN:
        return operation(old, value)
    if type(old) is list and is_stack(old) and symbol == "+":
        METHODS["extend"](session(), old, value)
        return old
    if type(value) is list and isinstance(old, Number):
        return operate(symbol, old, value)
    method = written(old, "__i" + _DUNDERS[symbol][0][2:])
    if method is not None:
        made = call_written(method, old, value)
        if made is not NotImplemented:
            return made
    if any(written(old, n) or written(value, n) for n in _DUNDERS[symbol]):
        return operate(symbol, old, value)
    return operation(old, value)


# --- with, for ---


class Began:
    """Where what must be ended with a `finally` or an `__exit__` began."""

    def __init__(self, here: Session):
        self.region, self.at = here.region, len(here.region.builder.lets)

    @contextmanager
    def ends(self, here: Session, what: str) -> Iterator[None]:
        """Around the end. What fails when the program runs ends it there: an end that prints or raises comes
        too late."""
        start, raises, raised = len(self.region.builder.lets), here.raises, None
        try:
            yield
        except SourceError:
            raise
        except (Exception, BranchRaised) as error:
            raised = error
        lets, late = self.region.builder.lets, ""
        if _any_effect(lets[start:], "ordered"):
            late = "prints"
        elif raised is not None or here.raises > raises:
            late = "raises"
        if late and self.region is here.region and _any_effect(lets[self.at : start], "failing"):
            raise here.unsupported(
                f"{what} {late}, and what stands before it may fail when the program runs",
                f"{late[:-1]} before, or test for the case that fails",
                code="finally",
            )
        if raised is not None:
            raise raised


def _any_effect(lets: Any, kind: str) -> bool:
    return any(let.primitive.effect == kind for let in all_lets(lets))


_ENDING = (contextlib.suppress, contextlib.ExitStack)


class Managed:
    """A user's context manager, whose `__enter__` and `__exit__` are staged, or one of `contextlib` that ends
    exceptions."""

    def __init__(self, manager: Any):
        self.manager, self.native = manager, isinstance(manager, _ENDING)

    def classes(self) -> tuple:
        """The exceptions that it may end."""
        kind, manager = type(self.manager), self.manager
        if issubclass(kind, contextlib.suppress):
            return tuple(manager._exceptions)
        inside = [manager]
        if issubclass(kind, contextlib.ExitStack):
            inside = [getattr(leave, "__self__", None) for _, leave in manager._exit_callbacks]
        return (Exception,) if any(may_swallow(type(one)) for one in inside) else ()

    def __enter__(self) -> Any:
        here = session()
        self.began = Began(here)
        enter = type(self.manager).__enter__
        entered = enter(self.manager) if self.native else call_written(enter, self.manager)
        self.attempt = Attempt(
            None,
            "a `with` whose manager may end the exception",
            "write its class in the `with` itself, as in `with contextlib.suppress(IndexError):`",
        )
        self.attempt.depth, self.attempt.classes = len(here.regions), self.classes
        here.attempts.append(self.attempt)
        return entered

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        here = session()
        here.attempts.remove(self.attempt)
        if self.native:
            return not isinstance(error, StagerSignal) and self.manager.__exit__(kind, error, trace)
        leave = type(self.manager).__exit__
        if isinstance(error, BranchRaised) and not error.told:
            told = error.exception
            call_written(leave, self.manager, type(told), told, None)
            return False
        if isinstance(error, StagerSignal):  # what is staged here is thrown away
            return False
        with self.began.ends(here, "`__exit__`"):
            return call_written(leave, self.manager, kind, error, trace)


def managed(value: Any) -> Any:
    """What `with` enters."""
    if isinstance(value, np.errstate):
        asked = [getattr(value, name, None) for name in ("_all", "_divide", "_over", "_under", "_invalid")]
        if "raise" in asked or "call" in asked:
            raise session().unsupported(
                "`np.errstate` can't make floating-point faults raise: they are silent when translated",
                "test the numbers (np.isfinite) and raise",
            )
    users = written(value, "__enter__") and written(value, "__exit__")
    return Managed(value) if users or isinstance(value, _ENDING) else value


def steps(iterator: Any) -> Iterator:
    """The items of a user's iterator."""
    method = type(iterator).__next__
    while True:
        try:
            item = call_written(method, iterator)
        except StopIteration:
            return
        except BranchRaised as raised:
            if raised.told or not isinstance(raised.exception, StopIteration):
                raise
            return
        yield item


def iterated(value: Any) -> Any:
    """What a `for` runs over, for users' iterables."""
    method = written(value, "__iter__")
    if method is not None:
        value = call_written(method, value)
    return steps(value) if written(value, "__next__") else value


# --- attributes ---


def attribute(here: Session, target: Any, name: str) -> tuple[bool, Any]:
    """Attributes that users' code computes: (True, value), or (False, None) for those that are just there."""
    kind = type(target)
    computed = found_in(kind, name)
    if isinstance(computed, property) and isinstance(computed.fget, types.FunctionType):
        return True, call_written(computed.fget, target)
    if isinstance(computed, functools.cached_property) and name not in getattr(target, "__dict__", ()):
        value = call_written(computed.func, target)
        if here.is_fresh(target, 0):
            here.journal.note(AttributeLocation(target, name))
            target.__dict__[name] = value
        return True, value
    if computed is not None and written(computed, "__get__") and not isinstance(target, type):
        if written(computed, "__set__") or name not in getattr(target, "__dict__", ()):
            return True, call_written(type(computed).__get__, computed, target, kind)
    method = written(target, "__getattr__")
    if method is not None and computed is None:
        try:
            object.__getattribute__(target, name)
        except AttributeError:
            return True, call_written(method, target, name)
    return False, None


def set_attribute(target: Any, name: str, value: Any) -> bool:
    """Whether a user's property, descriptor or `__setattr__` took the value."""
    computed = found_in(type(target), name)
    if isinstance(computed, property) and isinstance(computed.fset, types.FunctionType):
        call_written(computed.fset, target, value)
        return True
    if computed is not None and written(computed, "__set__"):
        call_written(type(computed).__set__, computed, target, value)
        return True
    method = written(target, "__setattr__")
    if method is not None:
        call_written(method, target, name, value)
    return method is not None


def store_attribute(here: Session, value: Any, target: Any, name: str) -> None:
    """`target.name = value`."""
    if isinstance(target, StagedArray) and name in ("real", "imag", "flat", "shape", "T"):
        from ..calls.methods import store_attribute as store_part

        store_part(target, name, value)
        return
    if isinstance(target, (type, types.ModuleType)) and not here.is_fresh(target, 0):
        kind = "class" if isinstance(target, type) else "module"
        raise here.unsupported(
            f"the function changes attribute {name!r} of the {kind} {target.__name__}",
            "keep it in an object or array that is passed in, or return the new value",
            code="outer-write",
        )
    if not set_attribute(target, name, value):
        here.journal.note(AttributeLocation(target, name))
        setattr(target, name, value)
