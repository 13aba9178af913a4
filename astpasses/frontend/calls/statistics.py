"""NumPy's statistics, sets and index makers, in terms of its simpler functions.

In: arrays, staged or not. Out: staged arrays; run-time sizes where NumPy's sizes depend on values.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.ops.compare import and_, ge, lt
from metaphrase.ops.effects import check
from metaphrase.ops.families import like

from ..operators.kinds import weak_type
from ..staging.session import session
from .call import answers, call_value
from .numpy_calls import store_out
from .numpy_shapes import as_array, axes_of, refused

# --- what is not a number ---


def _at_limits(larger: bool) -> Callable:
    def position(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        x: Any = as_array(a)
        if out is not None:
            raise refused("out= of np.nanargmax is not translated", "assign the result")
        if x.dtype.kind in "fc":
            ok = session().atom(np.all(np.any(~np.isnan(x), axis=axis)))
            session().emit(check, ok, exception="ValueError", message="All-NaN slice encountered")
            x = np.where(np.isnan(x), -np.inf if larger else np.inf, x)
        return (np.argmax if larger else np.argmin)(x, axis=axis, keepdims=keepdims)

    return position


answers(np.nanargmax)(_at_limits(True))
answers(np.nanargmin)(_at_limits(False))


@answers(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    x = as_array(a)
    return np.cumprod(np.where(np.isnan(x), 1, x), axis=axis, dtype=dtype, out=out)


def _lines(a: Any, axis: Any) -> tuple[Any, tuple, tuple]:
    """Rows along the axes to reduce, the shape of the rest, and the shape with those axes kept."""
    x: Any = as_array(a)
    axes = axes_of(axis, x.ndim)
    rest = tuple(d for k, d in enumerate(x.shape) if k not in axes)
    kept = tuple(1 if k in axes else d for k, d in enumerate(x.shape))
    moved = np.moveaxis(x, axes, tuple(range(-len(axes), 0)))
    return moved.reshape((*rest, math.prod(x.shape[k] for k in axes))), rest, kept


@answers(np.nanquantile)
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    """Of the numbers of each row: sorting puts NaN last, and the places are counted among the numbers."""
    if method != "linear" or out is not None:
        raise refused(f"np.nanquantile by {method!r} is not translated", "use method='linear'")
    rows, rest, kept = _lines(a, axis)
    surely = session().facts.less(0, rows.type.dims[-1])
    if rows.dtype.kind != "f":
        if surely:
            return np.quantile(a, q, axis, keepdims=keepdims)
        rows = rows.astype(float)
    if not surely:  # there may be none: then the NaN behind them is the quantile
        rows = np.concatenate([rows, np.full((*rest, 1), np.nan, rows.dtype)], axis=-1)
    ordered = np.sort(rows, axis=-1)
    count = np.sum(~np.isnan(rows), axis=-1)
    shares = as_array(q)
    weak = shares.dtype.kind != "f" or weak_type(q) is float  # has no part in the type of the result
    working = rows.dtype if weak else np.result_type(rows, shares)
    shares = shares if shares.dtype.kind == "f" else shares.astype(float)
    place = as_array(count - 1).astype(shares.dtype)[..., None] * shares.ravel()
    low, high = (np.maximum(f(place), 0) for f in (np.floor, np.ceil))
    below, above = (np.take_along_axis(ordered, as_array(p).astype(int), -1) for p in (low, high))
    weight, gap = place - low, above - below
    near, far = (as_array(w).astype(working) for w in (weight, 1 - weight))
    value = np.where(below == above, below, np.where(weight < 0.5, below + near * gap, above - far * gap))
    return _scalar(np.moveaxis(value, -1, 0).reshape((*shares.shape, *(kept if keepdims else rest))))


@answers(np.nanpercentile)
def nanpercentile(a: Any, q: Any, axis: Any = None, **keywords: Any) -> Any:
    return nanquantile(a, (q if weak_type(q) in (int, float) else as_array(q)) / 100, axis, **keywords)


@answers(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """The mean of the one or two in the middle; complex numbers are ordered by their real parts first."""
    if out is not None:
        raise refused("out= of np.nanmedian is not translated", "assign the result")
    rows, _, kept = _lines(a, axis)
    kind = rows.dtype.type if rows.dtype.kind in "fc" else np.float64
    ends = np.full((*rows.shape[:-1], 1), np.nan, kind)  # NaN is last, and all there is of no numbers
    ordered = np.sort(np.concatenate([rows.astype(kind), ends], axis=-1), axis=-1)
    count = as_array(np.sum(~np.isnan(rows), axis=-1))
    places = (as_array(np.maximum(place, 0)) for place in ((count - 1) // 2, count // 2))
    low, high = (np.take_along_axis(ordered, place[..., None], -1)[..., 0] for place in places)
    value = as_array(np.mean(np.stack([low, high]), axis=0))
    return value.reshape(kept) if keepdims and keepdims is not np._NoValue else _scalar(value)


def _scalar(value: Any) -> Any:
    """A number of NumPy's where there are no axes."""
    return value if np.ndim(value) else value[()]


# --- sets ---


@answers(np.unique_values)
def unique_values(x: Any) -> Any:
    return np.unique(x, equal_nan=False)


# --- indices, joins, choices ---


@answers(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    index = as_array(a)
    index = index.astype(int) if index.dtype == bool else index
    kind = call_value(np.result_type, tuple(choices), {})
    parts = np.broadcast_arrays(index, *(as_array(c).astype(kind) for c in choices))
    table = np.stack(list(parts[1:]))
    if mode == "raise":
        where = np.broadcast_to(index, parts[0].shape)
        here = session()
        with here.stamped():
            atom = here.atom(where)
            check(
                and_(ge(atom, like(atom, 0)), lt(atom, like(atom, len(choices)))),
                exception="ValueError",
                message="invalid entry in choice array",
            )
        picked = where
    else:
        picked = np.clip(parts[0], 0, len(choices) - 1) if mode == "clip" else parts[0] % len(choices)
    made = np.take_along_axis(table, picked[None], 0)[0]
    return made if out is None else store_out(out, made)


@answers(np.diag_indices_from)
def diag_indices_from(arr: Any) -> tuple:
    x = as_array(arr)
    line = call_value(np.arange, (x.shape[0],), {})
    return (line,) * x.ndim


def _indices_from(indices: Callable, arr: Any, k: int = 0) -> tuple:
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return call_value(indices, (arr.shape[0], k, arr.shape[1]), {})


answers(np.tril_indices_from)(functools.partial(_indices_from, np.tril_indices))
answers(np.triu_indices_from)(functools.partial(_indices_from, np.triu_indices))


@answers(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    x, y = as_array(a1), as_array(a2)
    try:
        np.broadcast_shapes(tuple(map(int, x.shape)), tuple(map(int, y.shape)))
    except ValueError:
        return False
    return call_value(bool, (np.all(x == y),), {})


@answers(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Any:
    x = as_array(a)
    if x.dtype.kind == "c":
        raise refused("the dtype of np.real_if_close depends on values", "use x.real")
    return x


@answers(np.einsum_path)
def einsum_path(subscripts: Any, *operands: Any, **keywords: Any) -> Any:
    stand_ins = [np.broadcast_to(np.zeros(()), tuple(map(int, as_array(o).shape))) for o in operands]
    return np.einsum_path(subscripts, *stand_ins, **keywords)


@answers(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return np.histogram(a, bins, range)[1]


@answers(np.histogram2d)
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None) -> tuple:
    """Counts in the cells of two rows of edges; a cell holds its lower edges, the last ones both."""
    first, second = as_array(x), as_array(y)
    each = list(bins) if isinstance(bins, (list, tuple)) and len(bins) == 2 else [bins, bins]
    spans = [None, None] if range is None else list(range)
    edges = [np.histogram(v, b, s)[1] for v, b, s in zip((first, second), each, spans)]
    inside: Any
    places, inside = [], None
    for values, line in zip((first, second), edges):
        last = line.shape[0] - 2
        place = np.searchsorted(line, values, side="right") - 1
        place = np.where(values == line[-1], last, place)
        ok = (place >= 0) & (place <= last)
        inside = ok if inside is None else inside & ok
        places.append(np.clip(place, 0, last))
    weight = np.where(inside, 1.0 if weights is None else weights, 0.0)
    made = call_value(np.zeros, (tuple(e.shape[0] - 1 for e in edges),), {})
    np.add.at(made, tuple(places), weight)
    if density:
        areas = np.diff(edges[0])[:, None] * np.diff(edges[1])[None, :]
        made = made / areas / np.sum(made)
    else:
        made.box.by_rows = False  # NumPy's has an outer row and column, which it does not show
    return made, edges[0], edges[1]


@answers(np.cumulative_sum)
def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return _cumulative(np.cumsum, 0, x, axis, dtype, out, include_initial)


@answers(np.cumulative_prod)
def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return _cumulative(np.cumprod, 1, x, axis, dtype, out, include_initial)


def _cumulative(function: Any, first: int, x: Any, axis: Any, dtype: Any, out: Any, include: bool) -> Any:
    x = as_array(x)
    if x.ndim != 1 and axis is None:
        raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
    (at,) = axes_of(0 if axis is None else axis, x.ndim)
    made = function(x, axis=at, dtype=dtype)
    if include:
        shape = tuple(1 if k == at else d for k, d in enumerate(made.shape))
        made = np.concatenate([call_value(np.full, (shape, first), {"dtype": made.dtype}), made], axis=at)
    return made if out is None else store_out(out, made)


@answers(np.matvec)
def matvec(x1: Any, x2: Any) -> Any:
    return (as_array(x1) @ as_array(x2)[..., None])[..., 0]


@answers(np.vecmat)
def vecmat(x1: Any, x2: Any) -> Any:
    row: Any = as_array(x1)
    row = np.conj(row) if row.dtype.kind == "c" else row
    return (row[..., None, :] @ as_array(x2))[..., 0, :]


@answers(np.sort_complex)
def sort_complex(a: Any) -> Any:
    """By the real part, then the imaginary part."""
    x = as_array(a)
    if x.dtype.kind != "c":
        return np.sort(x).astype(np.complex64 if x.dtype.kind in "iu" and x.itemsize < 4 else complex)
    return np.sort(x)


@answers(np.packbits, np.unpackbits)
def bits(*args: Any, **keywords: Any) -> Any:
    raise refused("packing of bits is not translated", "use shifts and masks")


@answers(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    x = as_array(filt)
    if x.ndim != 1:
        raise refused("np.trim_zeros of more than one dimension is not translated", "use np.flatnonzero")
    places, trim = call_value(np.flatnonzero, (x != 0,), {}), trim.lower()
    size, found = x.shape[0], places.shape[0]
    padded = np.concatenate([places, [0]])
    first = np.where(found > 0, padded[0], size) if "f" in trim else 0
    last = np.where(found > 0, padded[found - 1] + 1, first if "f" in trim else 0) if "b" in trim else size
    return x[first:last]
