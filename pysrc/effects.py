"""What a program does when it runs beside computing: how `print` shows a number, where a warning is given, and which
Python function is called back.

In: values of the run. Out: text, a warning at the user's line, or what the function returns. Example:

>>> import numpy as np
>>> printed(np.float64(0.5)), printed(np.float32(0.5))
(0.5, np.float32(0.5))
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .exceptions import made_exception
from .source import Span


def printed(value: Any) -> Any:
    """A value as `print` shows it: float64, int64, bool and complex128 scalars are Python's."""
    value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    plain = isinstance(value, np.generic) and value.dtype.name in ("float64", "int64", "bool", "complex128")
    return value.item() if plain else value


_OURS = ("metaphrase.", "metaphrase_numpy_source")
# Of programs whose place is in no module: what has been said there, as `__warningregistry__` of a module.
_said: dict[str, dict] = {}


def warn_user(category: type[BaseException], text: str, span: Span | None, above: int) -> None:
    """Warn at a place of the user's, or that many calls `above` the translated function; Python's own filters
    decide what is shown."""
    message: Any = made_exception(category, text)
    if span is None or above:
        level, frame = 1 + max(above, 1), sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
            level, frame = level + 1, frame.f_back
        warnings.warn(message, stacklevel=level)
        return
    module = next((m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == span.file), None)
    there: Any = _said if module is None else vars(module)
    said = there.setdefault(span.file if module is None else "__warningregistry__", {})
    name = getattr(module, "__name__", span.file.removesuffix(".py"))  # without any Python says nothing
    warnings.warn_explicit(message, None, span.file, span.line, name, said)


# ---- calls of Python functions -------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[..., Any]] = {}


def callback_name(function: Callable[..., Any]) -> str:
    """What a program calls a Python function that it calls back; the function lives as long as the process."""
    base = getattr(function, "__qualname__", type(function).__name__)
    name, count = base, 1
    while _FUNCTIONS.setdefault(name, function) is not function:
        count += 1
        name = f"{base}#{count}"
    return name


def callback(name: str) -> Callable[..., Any]:
    """The function that `callback_name` named."""
    return _FUNCTIONS[name]


def called_back(name: str, types: Sequence[tuple[Any, tuple[int, ...]]], *values: Any) -> tuple:
    """What the function gives for these values: an array of each promised dtype and shape.

    >>> called_back(callback_name(lambda x: (x + 1,)), [("float64", ())], np.float64(1.0))
    (np.float64(2.0),)
    """
    returned = callback(name)(*(np.array(value)[()] for value in values))  # copies: it may keep them
    if len(returned) != len(types):
        raise ValueError(f"a callback returned {len(returned)} values where {len(types)} were promised")
    return tuple(promised(value, *type_)[()] for value, type_ in zip(returned, types))


def promised(value: Any, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """What a callback returned, as an array of the dtype and shape that were promised. Raises ValueError for another
    shape, TypeError for a dtype of which numbers would be lost."""
    array = np.asarray(value)
    if array.shape != shape:
        raise ValueError(f"a callback returned the shape {array.shape} where {shape} was promised")
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        raise TypeError(f"a callback returned {array.dtype} where {np.dtype(dtype)} was promised")
    return np.array(array, dtype, order="C")


__all__ = ["callback", "callback_name", "called_back", "printed", "promised", "warn_user"]
