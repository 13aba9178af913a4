"""NumPy's functions that call the user's: `vectorize`, `apply_along_axis`, `piecewise`, `fromfunction`, ...

In: a function of the user's, and arrays. Out: what it gives for each element or row, in one loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.dims import product

from ..flow.gathering import arrays_inside
from ..staging.session import session
from ..values.orders import lay_like
from ..values.staged_values import StagedArray
from .call import call_value, handles, has_staged
from .numpy_shapes import as_array, axes_of, broadcast_arrays, refused
from .written_math import apply_rows


@handles(np.vectorize.__call__)
def vectorized(self: Any, *args: Any, **keywords: Any) -> Any:
    """`np.vectorize(f)(x, y)`: one loop over the elements, which are Python numbers, as in NumPy."""
    if keywords or self.excluded or self.signature is not None:
        raise refused(
            "np.vectorize with a signature, excluded arguments or keywords is not translated",
            "write the loop, or use metaphrase.vmap",
        )
    arrays = broadcast_arrays(*args)
    dims = arrays[0].shape
    if any(isinstance(d, int) and d == 0 for d in dims):
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    flat = [a.ravel() for a in arrays]
    if not (kinds := self.otypes):  # those that the function gives for NumPy's numbers
        first = call_value(self.pyfunc, tuple(a[0] for a in flat), {})
        kinds = [as_array(v).dtype.char for v in (first if isinstance(first, tuple) else (first,))]
    results, several = apply_rows(self.pyfunc, flat, list(kinds), True)
    here = session()
    shaped = tuple(here.array(r.reshape(dims).read()) for r in results)
    for made in shaped:
        lay_like(here, made, [a.read() for a in arrays])
    return shaped if several else shaped[0]


@handles(np.apply_along_axis)
def apply_along_axis(func1d: Callable, axis: int, arr: Any, *args: Any, **keywords: Any) -> Any:
    x: Any = as_array(arr)
    (at,) = axes_of(axis, x.ndim)
    moved: Any = np.moveaxis(x, at, -1)
    rest = moved.shape[:-1]
    if 0 in moved.type.dims[:-1]:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")

    def row(values: Any) -> Any:
        return call_value(func1d, (values, *args), keywords)

    if not rest:
        return as_array(row(x))
    results, several = apply_rows(row, [moved.reshape((math.prod(rest), moved.shape[-1]))], None, False)
    if several:
        raise refused("np.apply_along_axis of a function that gives a tuple", "give one array")
    made = results[0]
    inner = made.shape[1:]
    made = made.reshape((*rest, *inner))
    axes = range(len(rest), made.ndim)
    return np.moveaxis(made, tuple(axes), tuple(range(at, at + len(inner)))) if inner else made


@handles(np.apply_over_axes)
def apply_over_axes(func: Callable, a: Any, axes: Any) -> Any:
    x: Any = as_array(a)
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        made = as_array(call_value(func, (x, axis), {}))
        x = made if made.ndim == x.ndim else np.expand_dims(made, axis)
    return x


@handles(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **keywords: Any) -> Any:
    """Every function is called on all of x; its result is taken where the condition holds."""
    x = as_array(x)
    conditions = condlist if isinstance(condlist, (list, tuple)) else [condlist]
    functions = list(funclist)
    if len(conditions) not in (len(functions), len(functions) - 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )
    others = functions[len(conditions) :]

    def value(function: Any) -> Any:
        return call_value(function, (x, *args), keywords) if callable(function) else function

    out = call_value(np.full, (x.shape, value(others[0]) if others else 0), {"dtype": x.dtype})
    for condition, function in zip(conditions, functions):
        made = call_value(np.where, (condition, value(function), out), {})
        out = made.astype(x.dtype)
    return out


@handles(np.fromfunction)
def fromfunction(function: Callable, shape: Any, *, dtype: Any = float, like: Any = None, **keywords: Any) -> Any:
    if has_staged(shape):
        raise refused("np.fromfunction needs a known shape", "use np.arange and broadcasting")
    return call_value(function, tuple(np.indices(shape, dtype=dtype)), keywords)


@handles(np.fromiter)
def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    values = iter if isinstance(iter, StagedArray) else list(iter)  # an array of what the run counts
    return call_value(np.array, (values if count < 0 else values[:count],), {"dtype": dtype})


@handles(np.frompyfunc)
def frompyfunc(*args: Any, **keywords: Any) -> Any:
    raise refused("np.frompyfunc gives arrays of objects", "use np.vectorize")


def _index_object(rule: Callable) -> Callable:
    def handler(self: Any, key: Any) -> Any:
        key = arrays_inside(session(), key)
        arrays = any(isinstance(k, np.ndarray) for k in (key if isinstance(key, tuple) else (key,)))
        return rule(self, key) if arrays or has_staged(key) else type(self).__getitem__(self, key)

    return handler


def _line(piece: slice) -> Any:
    """The numbers that a slice in `np.r_` or `np.mgrid` stands for."""
    start, step = 0 if piece.start is None else piece.start, 1 if piece.step is None else piece.step
    counted = np.dtype(getattr(step, "dtype", type(step))).kind == "c"
    return call_value(_spaced if counted else np.arange, (start, piece.stop, step), {})


def _spaced(start, stop, step):
    count = int(abs(step))
    return np.arange(count) * ((stop - start) / max(count - 1, 1)) + start


def _joined(self: Any, key: Any) -> Any:
    """`np.r_[...]`, `np.c_[...]`."""
    entries = list(key) if isinstance(key, tuple) else [key]
    axis, ndmin, one_dim = self.axis, self.ndmin, self.trans1d
    if entries and isinstance(entries[0], str):
        text = entries.pop(0)
        if text in ("r", "c"):
            raise refused("np.r_ makes no matrices here", "use np.concatenate")
        numbers = [int(v) for v in text.split(",")]
        axis, ndmin, one_dim = (*numbers, *(axis, ndmin, one_dim)[len(numbers) :])  # type: ignore[misc]
    parts = []
    for entry in entries:
        is_number = not isinstance(entry, (slice, list, tuple)) and not getattr(entry, "ndim", 0)
        made: Any = as_array(_line(entry) if isinstance(entry, slice) else entry)
        rank = made.ndim
        if ndmin > rank:
            made = made.reshape((*(1,) * (ndmin - rank), *made.shape))
            if not is_number and one_dim != -1:
                rest, own = range(ndmin - rank), range(ndmin - rank, ndmin)
                place = one_dim + ndmin if one_dim < 0 else one_dim
                made = np.transpose(made, [*rest[:place], *own, *rest[place:]])
        parts.append((made, entry if is_number else made))
    kinds = [raw for _, raw in parts]
    dtype = call_value(np.result_type, tuple(kinds), {})
    return call_value(np.concatenate, ([p.astype(dtype) for p, _ in parts],), {"axis": axis})


def _grid(self: Any, key: Any) -> Any:
    """`np.mgrid[...]`, `np.ogrid[...]` with staged bounds."""
    if isinstance(key, slice):
        return _line(key)
    lines = tuple(map(_line, key))
    dtype = call_value(np.result_type, lines, {})
    axes = tuple(line.astype(dtype) for line in lines)
    made = call_value(np.meshgrid, axes, {"indexing": "ij", "sparse": self.sparse})
    return tuple(made) if self.sparse else call_value(np.stack, (list(made),), {})


handles(type(np.r_).__mro__[1].__getitem__)(_index_object(_joined))  # type: ignore[index]
handles(type(np.mgrid).__mro__[1].__getitem__)(_index_object(_grid))  # type: ignore[index]


@handles(np.broadcast)
class _Broadcast:
    """`np.broadcast(x, y)`: its shape."""

    def __init__(self, *arrays: Any):
        self.shape = broadcast_arrays(*arrays)[0].shape
        self.ndim = self.nd = len(self.shape)

    @property
    def size(self) -> Any:
        return product(self.shape)


@handles(np.iterable)
def iterable(y: Any) -> bool:
    return y.ndim > 0 if isinstance(y, StagedArray) else np.iterable(y)


@handles(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return as_array(x).dtype.kind != "c"


@handles(np.common_type)
def common_type(*arrays: Any) -> type:
    return np.common_type(*(np.empty(0, as_array(a).dtype) for a in arrays))
