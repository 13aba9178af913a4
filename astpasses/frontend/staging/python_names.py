"""What a user calls the types of staged values, in the errors that Python itself raises about them.

In: an error, and the operands of what raised it. Out: the same error in the user's words.

    object of type 'Number' has no len()        ->   object of type 'float' has no len()
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..values.staged_values import Number, OneOf, Staged, StagedArray

# What to say where the value itself is not at hand.
_SAID = {
    "Number": "number", "StagedArray": "numpy.ndarray", "Ranged": "range", "Lazy": "generator", "Text": "str",
    "OneOf": "object", "Rows": "list",
}  # fmt: skip
_OURS = re.compile(rf"\b({'|'.join(_SAID)})\b")


def python_name(value: Any) -> str:
    """The type of a value, as Python's messages say it."""
    if isinstance(value, Number):
        return value.python.__name__ if value.python else f"numpy.{value.dtype.name}"
    if isinstance(value, StagedArray):
        return "numpy.ndarray"
    if isinstance(value, OneOf):
        return python_name(value.values[0])
    kind = type(value)
    if kind.__name__ == "Ranged" and value.once:
        return "iterator"
    if kind.__module__.startswith("metaphrase.astpasses.") and kind.__name__ in _SAID:
        return _SAID[kind.__name__]
    return f"numpy.{kind.__name__}" if issubclass(kind, (np.generic, np.ndarray)) else kind.__name__


def python_class(value: Staged) -> type:
    """The class that Python has in the place of a staged value."""
    return value.python or value.dtype.type if isinstance(value, Number) else np.ndarray


def refuse_type(value: Any, kind: type, message: str) -> None:
    """Raise what Python does where it is given a value of this kind."""
    if isinstance(value, kind):
        raise TypeError(message.format(python_name(value)))


def in_python_words(error: Exception, operands: Iterable[Any]) -> None:
    """Say the types of these operands in an error's message as Python does, once."""
    message = error.args[0] if error.args and type(error) in (TypeError, AttributeError) else None
    if isinstance(message, str) and _OURS.search(message) and not hasattr(error, "told"):
        named = [(type(value).__name__, python_name(value)) for value in _among(operands)]

        def name(found: re.Match) -> str:
            at = next((k for k, (own, _) in enumerate(named) if own == found[0]), None)
            return _SAID[found[0]] if at is None else named.pop(at)[1]

        error.told = True  # type: ignore[attr-defined]
        error.args = (_OURS.sub(name, message), *error.args[1:])


def _among(values: Iterable[Any], depth: int = 3) -> Iterator[Any]:
    """The values, and those in containers."""
    for value in values:
        yield value
        if depth and isinstance(value, (list, tuple, dict)):
            yield from _among(value.values() if isinstance(value, dict) else value, depth - 1)
