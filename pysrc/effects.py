"""What a program does when it runs beside computing: how `print` shows a number, and where a warning is given.

In: values of the run. Out: text, or a warning at the user's line. Example:

>>> import numpy as np
>>> printed(np.float64(0.5)), printed(np.float32(0.5))
(0.5, np.float32(0.5))
"""

from __future__ import annotations

import sys
import warnings
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
    warnings.warn_explicit(message, None, span.file, span.line, getattr(module, "__name__", None), said)


__all__ = ["printed", "warn_user"]
