"""Classes of arrays: which mean what their elements mean, and which give operations another meaning.

In: a subclass of `numpy.ndarray`. Out: whether it computes as its elements do. A memory map does, and what a
user derives to carry a name or a unit along; `numpy.matrix`, whose `*` is a matrix product, does not.

>>> import numpy as np
>>> is_plain(np.memmap), is_plain(np.matrix)
(True, False)
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from ..source import DTypeError, Span

# What a subclass may define without another meaning of what is computed.
_OF_NO_MEANING = frozenset(
    "__new__ __init__ __array_finalize__ __array_wrap__ __array_priority__ __repr__ __str__ __format__ "
    "__reduce__ __reduce_ex__ __setstate__ __copy__ __deepcopy__ __doc__ __module__ __dict__ __weakref__ "
    "__slots__ __init_subclass__ __class_getitem__ __annotations__ __firstlineno__ "
    "__static_attributes__".split()
)


@functools.cache
def is_plain(cls: type) -> bool:
    """Whether arrays of this class compute as `numpy.ndarray` does."""
    own = [c for c in cls.__mro__ if issubclass(c, np.ndarray) and c not in (np.ndarray, np.memmap)]
    return all(name in _OF_NO_MEANING or not hasattr(np.ndarray, name) for c in own for name in vars(c))


def plain_array(array: np.ndarray, span: Span | None, what: str = "") -> np.ndarray:
    """The array of the elements; an error where the class means more. `what`: a name for the message."""
    cls = type(array)
    if cls is np.ndarray:
        return array
    named, comma = (f"{what!r}, ", ",") if what else ("", "")
    if isinstance(array, np.ma.MaskedArray):
        raise DTypeError(
            f"{named}a masked array{comma} can't be translated",
            span,
            code="dtype",
            remedy="pass its data and its mask as two arrays",
        )
    if not is_plain(cls):  # type: ignore[arg-type]
        raise DTypeError(
            f"{named}an array of class {cls.__name__}{comma} can't be translated: the class "
            "gives operations a meaning of its own",
            span,
            code="dtype",
            remedy="pass np.asarray(...) of it",
        )
    return np.asarray(array)


def is_on_device(value: Any) -> bool:
    """Whether a value is an array of CuPy's. Where nobody has imported CuPy there is none."""
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(value, getattr(cupy, "ndarray", ()))


def is_foreign(value: Any) -> bool:
    """Whether a value is an array or a table of another library, such as a column of pandas."""
    cls = type(value)
    ours = _library(cls) in ("numpy", "metaphrase")
    return not ours and hasattr(cls, "__array__") and hasattr(cls, "shape")


def _library(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def refuse_foreign(value: Any, span: Span | None, what: str) -> None:
    """An error for such a value, whose methods are not to be translated."""
    if not is_foreign(value):
        return
    cls = type(value)
    columns = hasattr(cls, "columns")
    how = "its columns as arrays: table['name'].to_numpy()" if columns else "np.asarray(...) of it"
    raise DTypeError(
        f"{what} is a {cls.__name__} of {_library(cls)}: what is translated are NumPy's arrays",
        span,
        code="dtype",
        remedy=f"pass {how}",
    )


__all__ = ["is_plain", "plain_array", "is_foreign", "is_on_device", "refuse_foreign"]
