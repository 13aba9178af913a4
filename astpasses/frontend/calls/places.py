"""`x.at[index].set(v)` and its like, with JAX's modes: a new array, and x stays as it is.

In: a staged array, an index, and the options `mode`, `fill_value`, `unique_indices`. Out: staged arrays. A
place that an index array names several times is updated as often. Without a mode an index out of range is an
IndexError, as everywhere; "clip", "wrap", "fill" and "drop" are JAX's.

    x.at[i].add(v)      x.at[9].get(mode="fill", fill_value=0.0)      x.at[i].set(v, mode="drop")
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.astpasses.library.arrays import update_at

from ..staging.session import session
from ..values.staged_values import Staged, StagedArray
from .call import call_value
from .numpy_shapes import as_array

_SAFE = (None, "promise_in_bounds")
_MODES = (*_SAFE, "clip", "wrap", "fill", "drop")


class At:
    """`x.at`, to be indexed."""

    def __init__(self, array: Any):
        self.array = as_array(array)

    def __getitem__(self, index: Any) -> Place:
        return Place(self.array, index)


class Place:
    """`x.at[index]`: `get`, or an update."""

    def __init__(self, array: StagedArray, index: Any):
        self.array, self.index = array, index

    def get(
        self, *, indices_are_sorted: Any = None, unique_indices: Any = None, mode: Any = None, fill_value: Any = None
    ) -> Any:
        """The elements; those out of range are `fill_value` (by default NaN, or the least or largest
        integer) in mode "fill"."""
        mode = _checked(mode)
        if mode in _SAFE:
            return self.array[self.index]
        items = _Items(self.array, self.index)
        found = self.array[items.moved("clip" if mode in ("fill", "drop") else mode)]
        valid = items.valid(np.ndim(found)) if mode in ("fill", "drop") else None
        if valid is None:
            return found
        dtype = self.array.dtype
        fill = call_value(np.asarray, (_nothing(dtype) if fill_value is None else fill_value,), {})
        made = call_value(np.where, (valid, found, fill.astype(dtype)), {})
        return made if np.ndim(found) else made[()]  # a scalar, as x[i] is

    def set(self, values: Any, **options: Any) -> StagedArray:
        return self._update(lambda target, index: target.__setitem__(index, values), **options)

    def add(self, values: Any, **options: Any) -> StagedArray:
        return self._update(lambda target, index: call_value(np.add.at, (target, index, values), {}), **options)

    def subtract(self, values: Any, **options: Any) -> StagedArray:
        return self.add(call_value(np.negative, (values,), {}), **options)

    def multiply(self, values: Any, **options: Any) -> StagedArray:
        return self._change(np.multiply, values, **options)

    def divide(self, values: Any, **options: Any) -> StagedArray:
        if self.array.dtype.kind in "fc":
            return self._change(np.true_divide, values, **options)
        ones = Place(call_value(np.ones_like, (self.array,), {}), self.index)
        return call_value(np.true_divide, (self.array, ones.multiply(values, **options)), {})

    def power(self, values: Any, **options: Any) -> StagedArray:
        return self._change(np.power, values, **options)

    def max(self, values: Any, **options: Any) -> StagedArray:
        return self._change(np.maximum, values, **options)

    def min(self, values: Any, **options: Any) -> StagedArray:
        return self._change(np.minimum, values, **options)

    def apply(self, func: Callable, **options: Any) -> StagedArray:
        """`func` of the elements; of an element that is named twice, `func` of `func` of it."""
        return self._change(func, **options)

    mul, div, pow = multiply, divide, power

    def _change(self, function: Any, *values: Any, unique_indices: Any = None, **options: Any) -> StagedArray:
        def change(target: StagedArray, index: Any) -> None:
            if unique_indices or not any(map(_is_index_array, _parts(index))):
                target[index] = call_value(function, (target[index], *values), {})
            else:
                call_value(update_at, (function, target, index, *values), {})

        return self._update(change, **options)

    def _update(
        self,
        update: Callable[[StagedArray, Any], None],
        *,
        indices_are_sorted: Any = None,
        unique_indices: Any = None,
        mode: Any = None,
    ) -> StagedArray:
        mode = _checked(mode)
        if mode not in ("fill", "drop"):
            target = session().array(self.array.read())
            update(target, self.index if mode in _SAFE else _Items(self.array, self.index).moved(mode))
            return target
        # What is out of range goes to a row beyond the last, which is cut off.
        items = _Items(self.array, self.index)
        axes = [axis for _, axis in items.integers]
        wider = [(0, 1 if axis in axes else 0) for axis in range(self.array.ndim)]
        target = call_value(np.pad, (self.array, wider), {})
        update(target, items.moved("drop"))
        return target[tuple(slice(0, size) for size in self.array.shape)]


def _checked(mode: Any) -> Any:
    if mode not in _MODES:
        raise ValueError(
            f"mode={mode!r} of x.at[...]: the modes are 'promise_in_bounds', 'clip', 'wrap', 'fill', 'drop'"
        )
    return mode


def _nothing(dtype: np.dtype) -> Any:
    """What mode "fill" gives where nothing is: as in JAX."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if dtype.kind == "i" else limits.max
    return True if dtype.kind == "b" else np.nan


def _parts(index: Any) -> tuple:
    return index if isinstance(index, tuple) else (index,)


def _is_index_array(part: Any) -> bool:
    return isinstance(part, (list, StagedArray)) or isinstance(part, np.ndarray) and part.ndim > 0


def _is_integer(part: Any) -> bool:
    if isinstance(part, list):
        return all(map(_is_integer, part))
    if isinstance(part, (Staged, np.ndarray)):
        return np.dtype(part.dtype).kind in "iu"
    return isinstance(part, (int, np.integer)) and not isinstance(part, bool)


class _Items:
    """The items of an index, with the axis of each integer among them."""

    def __init__(self, array: StagedArray, index: Any):
        self.array, self.parts = array, list(_parts(index))
        self.integers: list[tuple[int, int]] = []  # (number of the part, axis)
        plain = (p is None or p is Ellipsis or isinstance(p, slice) or _is_integer(p) for p in self.parts)
        if not all(plain):  # a mask can't leave the array; beside one, integers are checked as everywhere
            return
        taken = sum(p is not None and p is not Ellipsis for p in self.parts)
        for k, part in enumerate(self.parts):
            if part is Ellipsis:
                self.parts[k : k + 1] = [slice(None)] * (array.ndim - taken)
                break
        axis = 0
        for k, part in enumerate(self.parts):
            if part is None:
                continue
            if not isinstance(part, slice):
                self.integers.append((k, axis))
            axis += 1

    def _forward(self, k: int, axis: int) -> Any:
        """The index counted from the front."""
        part, size = self.parts[k], self.array.shape[axis]
        part = call_value(np.asarray, (part,), {}) if isinstance(part, list) else part
        return call_value(np.where, (part < 0, part + size, part), {})

    def moved(self, mode: str) -> tuple:
        """The index with its integers brought into range; in mode "drop" those out of range are the size."""
        parts = list(self.parts)
        for k, axis in self.integers:
            part, size = self._forward(k, axis), self.array.shape[axis]
            if mode == "clip":
                part = call_value(np.clip, (part, 0, size - 1), {})
            elif mode == "wrap":
                part = part % size
            else:
                part = call_value(np.where, ((part >= 0) & (part < size), part, size), {})
            parts[k] = part
        return tuple(parts)

    def valid(self, rank: int) -> Any:
        """Where the elements of a result of this rank are in range; None where nothing can leave it."""
        if not self.integers:
            return None

        def inside(k: int, axis: int) -> Any:
            part = self._forward(k, axis)
            return (part >= 0) & (part < self.array.shape[axis])

        valid = functools.reduce(operator.and_, [inside(k, axis) for k, axis in self.integers])
        inner = np.ndim(valid)
        if inner == 0:
            return valid
        first, last = self.integers[0][0], self.integers[-1][0]
        together = last - first + 1 == len(self.integers)
        trailing = rank - inner - (first if together else 0)
        return call_value(np.reshape, (valid, (*np.shape(valid), *(1,) * trailing)), {})
