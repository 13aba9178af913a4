"""Methods of NumPy's ufuncs that the library of `ops` has no reduction for: loops over the elements.

In: a ufunc, the name of its method, and the arguments. Out: staged arrays.

    np.bitwise_or.reduce(x, axis=1)      np.subtract.outer(a, b)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.ops.effects import check
from metaphrase.source import UnsupportedError

from ..staging.session import session
from .call import call_value, has_staged
from .numpy_shapes import as_array, axes_of, folded_axes
from .written_math import folded, folded_parts, run_along

MOST_PARTS = 16  # of a reduceat whose places are known: more are a loop


def ufunc_method(function: np.ufunc, name: str, args: tuple, keywords: dict) -> Any:
    """`function.name(*args, **keywords)`."""
    if not has_staged((args, keywords)):
        return getattr(function, name)(*args, **keywords)
    rule = _METHODS.get(name)
    if rule is None or function.nin != 2 or function.nout != 1:
        raise _untranslated(f"numpy.{function.__name__}.{name}")
    return rule(function, *args, **keywords)


def _refuse(function: np.ufunc, name: str, **given: Any) -> None:
    if used := [k for k, v in given.items() if v is not None]:
        raise _untranslated(f"numpy.{function.__name__}.{name} with {used[0]}=")


def _untranslated(what: str) -> UnsupportedError:
    words = f"{what} has no translation"
    return session().unsupported(words, "write the loop")


def _operand(function: np.ufunc, array: Any, dtype: Any) -> tuple[Any, np.dtype]:
    """The array and the dtype that NumPy folds it in; a TypeError where it has no loop for that."""
    x: Any = as_array(array)
    x = x if dtype is None else x.astype(dtype)
    return x, function.resolve_dtypes((None, x.dtype, None), reduction=True)[-1]


def _reduce(
    function: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    _refuse(function, "reduce", out=out, where=where)
    x, kind = _operand(function, array, dtype)
    axes = folded_axes(axis, x.ndim)
    start = function.identity if initial is None else initial
    if len(axes) > 1 and function.identity is None and function not in (np.maximum, np.minimum, np.fmax, np.fmin):
        what = f"reduction operation {function.__name__!r} is not reorderable"
        raise ValueError(f"{what}, so at most one axis may be specified")
    kept = tuple(1 if k in axes else d for k, d in enumerate(x.shape))
    rest = tuple(d for k, d in enumerate(x.shape) if k not in axes)
    rows = np.moveaxis(x, axes, tuple(range(len(axes)))).reshape((math.prod(x.shape[k] for k in axes), *rest))
    if start is None and rows.type.dims[0] == 0:
        raise ValueError(f"zero-size array to reduction operation {function.__name__} which has no identity")
    first, rows = (rows[0], rows[1:]) if start is None else (as_array(start), rows)
    first = call_value(np.broadcast_to, (first.astype(kind), rest), {}) if rest else as_array(first.astype(kind))[()]
    made = call_value(folded, (function, rows, first), {})
    return as_array(made).reshape(kept) if keepdims and kept else made


def _accumulate(function: np.ufunc, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    _refuse(function, "accumulate", out=out)
    x, kind = _operand(function, array, dtype)
    (at,) = axes_of(axis, x.ndim)
    rows = np.moveaxis(x, at, 0)
    made = call_value(np.empty_like, (rows,), {"dtype": kind})
    call_value(run_along, (function, rows, made), {})
    return np.moveaxis(made, 0, at)


def _outer(function: np.ufunc, a: Any, b: Any) -> Any:
    x, y = as_array(a), as_array(b)
    return call_value(function, (x.reshape((*x.shape, *(1,) * y.ndim)), y), {})


def _reduceat(function: np.ufunc, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    _refuse(function, "reduceat", out=out)
    x, kind = _operand(function, array, dtype)
    (at,) = axes_of(axis, x.ndim)
    rows = np.moveaxis(x, at, 0)
    if has_staged(indices) or len(indices) > MOST_PARTS:
        return np.moveaxis(call_value(folded_parts, (function, rows, as_array(indices), kind), {}), 0, at)
    places = [int(i) for i in indices]
    parts = []
    for k, first in enumerate(places):
        if first < 0 or not session().facts.less(first, rows.type.dims[0]):
            words = f"index {first} out-of-bounds in {function.__name__}.reduceat"
            inside = session().atom(first >= 0 and rows.shape[0] > first)
            session().emit(check, inside, exception="IndexError", message=words)
        last = places[k + 1] if k + 1 < len(places) else None
        piece = rows[first:last] if last is None or last > first else rows[first : first + 1]
        parts.append(call_value(function.reduce, (piece,), {"axis": 0, "dtype": dtype}))
    return np.moveaxis(call_value(np.stack, (parts,), {}), 0, at)


_METHODS: dict[str, Callable] = {"reduce": _reduce, "accumulate": _accumulate, "outer": _outer, "reduceat": _reduceat}
