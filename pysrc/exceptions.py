"""The exceptions that users raise, as a program keeps them: a class by its name, and a message or all parts.

In: an exception's class. Out: its name, and of the name an exception again. `Holds` says of what its
arguments and attributes are made, where it holds more than a message; the numbers are values of the run:

    raise Diverged(k, x[k])     # super().__init__(f"diverged at {k}"); self.at = k
    holds = ((("text", "diverged at {}"),), (("at", ("number", "int")),))        # of k, k

>>> raised("KeyError", "", ((("number", "int"),), ()), [2])
KeyError(2)
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .late import dataclass, module
from .source import Span

string = module("string")

# ("value", a constant), ("number", its type), ("text", a template), ("tuple" or "list", the parts)
Part = tuple[str, Any]
Holds = tuple[tuple[Part, ...], tuple[tuple[str, Part], ...]]
MOST = 16  # numbers that an exception may show or hold; a complex one counts twice


@dataclass(frozen=True)
class Site:
    """What a failing site raises, or an ordered site does. `kind`: "check", "print", "warn", or
    "callback", whose `exception` is the function's name and whose `holds` are its results' dtypes and ranks."""

    kind: str
    exception: str
    message: str
    span: Span | None
    dtypes: tuple[np.dtype, ...] = ()  # of the values shown, or of an effect's operands
    ranks: tuple[int, ...] = ()
    holds: tuple = ()  # of what an exception that holds more than a message is made


class ListFull(Exception):
    """A list has grown beyond the room that a run gave it; whoever runs the program gives it more and runs it
    again. The message is the name of the hidden argument that says how much."""


_EXCEPTIONS: dict[str, type[BaseException]] = {"LinAlgError": np.linalg.LinAlgError}


FIRST_ROOM = 64  # items of a list that there is room for at first


class Room:
    """How many items a list may have that a loop changes and reads: a hidden argument of the program, which
    grows when a run needs more. `size` is replaced, never changed: a run under way keeps what it read."""

    def __init__(self, name: str, size: int = FIRST_ROOM):
        self.name, self.size = name, np.array(size)

    def grow(self) -> None:
        now = int(self.size)
        if now >= 2**40:
            raise MemoryError(f"a list has more than {now} items")
        self.size = np.array(4 * now)


def make_room(rooms: Sequence[Room], full: ListFull) -> None:
    """More room for the list that a run of the program had too little for."""
    if not rooms:
        raise RuntimeError("a list is full, and nothing says how much room it has") from full
    for room in rooms:
        if room.name == str(full):
            room.grow()


def exception_name(kind: type[BaseException]) -> str:
    """What a program calls an exception class: a builtin's name, or `module:class` for any other.

    >>> exception_name(ValueError), exception_name(ListFull)
    ('ValueError', 'metaphrase.exceptions:ListFull')
    """
    if getattr(builtins, kind.__name__, None) is kind:
        return kind.__name__
    base = name = f"{kind.__module__}:{kind.__qualname__}"
    count = 1
    while _EXCEPTIONS.setdefault(name, kind) is not kind:  # a class made anew by each call of a function
        count += 1
        name = f"{base}#{count}"
    return name


def exception_class(name: str) -> type[BaseException]:
    """The class that `exception_name` named; RuntimeError where it can't be found.

    >>> exception_class("IndexError")
    <class 'IndexError'>
    """
    found = _EXCEPTIONS.get(name, getattr(builtins, name, None))
    if found is None and ":" in name:
        module, _, path = name.partition(":")
        try:
            found = importlib.import_module(module)
            for part in path.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError):
            found = None
    return found if isinstance(found, type) and issubclass(found, BaseException) else RuntimeError


def made_exception(kind: type[BaseException], message: str) -> BaseException:
    """An exception of this class with a message, whatever its `__init__` takes.

    >>> made_exception(ValueError, "negative")
    ValueError('negative')
    """
    try:
        return kind(message) if message else kind()
    except TypeError:
        made = kind.__new__(kind, message)
        made.args = (message,)
        return made


def exception_of(kind: Any, count: int, names: Sequence[str], *parts: Any) -> BaseException:
    """An exception of `count` arguments and these attributes, past what the user's `__init__` takes."""
    made = kind.__new__(kind, *parts[:count])
    builtin_base(kind).__init__(made, *parts[:count])
    made.__dict__.update(zip(names, parts[count:]))
    return made


def builtin_base(cls: type) -> Any:
    """The class of Python's own that a class is derived from."""
    return next(base for base in cls.__mro__ if base.__module__ == "builtins")


def fields(template: str) -> int:
    """How many values a template shows."""
    return sum(field is not None for _, field, _, _ in string.Formatter().parse(template))


def filled(part: Part, values: Iterator[Any], number: Callable, text: Callable) -> Any:
    """What a part stands for. `number(type, value)` and `text(template, values)` make the others."""
    kind, given = part
    if kind == "value":
        return given
    if kind == "number":
        return number(given, next(values))
    if kind == "text":
        return text(given, [next(values) for _ in range(fields(given))])
    return {"tuple": tuple, "list": list}[kind](filled(p, values, number, text) for p in given)


def raised_with(
    kind: type[BaseException], holds: Holds, values: Sequence[Any], number: Callable, text: Callable
) -> BaseException:
    """An exception of these parts."""
    left = iter(values)
    args, attributes = holds
    parts = [filled(part, left, number, text) for part in (*args, *(part for _, part in attributes))]
    return exception_of(kind, len(args), [name for name, _ in attributes], *parts)


def raised(
    exception: str | type[BaseException], message: str, holds: Holds | tuple, values: Sequence[Any]
) -> BaseException:
    """What a failing check raises: of its message, or of its parts; `values` are Python numbers."""
    kind = exception if isinstance(exception, type) else exception_class(exception)
    if not holds:
        return made_exception(kind, message.format(*values))
    return raised_with(kind, holds, values, _number, lambda template, shown: template.format(*shown))


def _number(name: str, value: Any) -> Any:
    kind = {"bool": bool, "int": int, "float": float, "complex": complex}.get(name)
    return kind(value) if kind else np.dtype(name.removeprefix("np.")).type(value)


__all__ = [
    "Holds",
    "ListFull",
    "MOST",
    "FIRST_ROOM",
    "Part",
    "Room",
    "Site",
    "builtin_base",
    "exception_class",
    "exception_name",
    "exception_of",
    "fields",
    "filled",
    "made_exception",
    "make_room",
    "raised",
    "raised_with",
]
