"""Functions of NumPy in plain NumPy and Python: they are staged as a user's own functions are.

In: the arguments of the call. Out: what NumPy gives; stores go into the arrays that were given.

    np.maximum.at(x, k, v)   is   update_at(np.maximum, x, k, v): a loop over the places, in order
"""

from __future__ import annotations

import numpy as np

from . import stands_for

# --- stores ---


def update_at(ufunc, target, indices, *operands):
    """`ufunc.at(target, indices, ...)`: each place is updated as often as it is named."""
    places = np.arange(target.size).reshape(target.shape)[indices]
    flat, values = target.flat, [np.ravel(np.broadcast_to(v, np.shape(places))) for v in operands]
    if (ufunc is np.add or ufunc is np.subtract) and (target.dtype.kind in "fc" or values[0].dtype.kind in "iub"):
        ufunc.at(flat, np.ravel(places), values[0].astype(target.dtype))
    else:  # each sum of an integer and a float is rounded
        for number, place in enumerate(np.ravel(places)):
            flat[place] = ufunc(flat[place], *[v[number] for v in values])


@stands_for(np.place)
def place(arr, mask, vals):
    vals = np.ravel(vals)
    mask = np.reshape(np.asarray(mask, dtype=bool), arr.shape)
    if len(vals) > 0:
        ranks = np.reshape(np.cumsum(mask) - 1, arr.shape)
        arr[...] = np.where(mask, vals[ranks % len(vals)], arr)
    elif np.any(mask):
        raise ValueError("Cannot insert from an empty array!")


@stands_for(np.putmask)
def putmask(a, mask, values):
    values = np.ravel(values)
    mask = np.reshape(np.asarray(mask, dtype=bool), a.shape)
    if len(values) > 0:
        wanted = np.reshape(values[np.arange(a.size) % len(values)], a.shape)
        a[...] = np.where(mask, wanted, a)


# --- indices ---


def spaced_places(start, stop, step, size):
    """The indices that `start:stop:step` picks of `size`."""
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, size) if step > 0 else (-1, size - 1)
    if start is None:
        start = 0 if step > 0 else size - 1
    else:
        start = min(max(start + size if start < 0 else start, low), high)
    if stop is None:
        stop = size if step > 0 else -1
    else:
        stop = min(max(stop + size if stop < 0 else stop, low), high)
    count = (stop - start + step - (1 if step > 0 else -1)) // step
    return start + step * np.arange(max(count, 0))


@stands_for(np.ix_)
def ix_(*args):
    made = []
    for k, values in enumerate(args):
        values = np.asarray(values)
        if values.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if values.dtype == bool:
            values = np.nonzero(values)[0]
        made.append(values.reshape((1,) * k + (values.size,) + (1,) * (len(args) - 1 - k)))
    return tuple(made)


# --- sets ---


@stands_for(np.union1d)
def union1d(ar1, ar2):
    return np.unique(np.concatenate([ar1, ar2], axis=None))


@stands_for(np.intersect1d)
def intersect1d(ar1, ar2, assume_unique=False):
    first = np.ravel(ar1) if assume_unique else np.unique(ar1)
    second = np.ravel(ar2)
    common = first[np.isin(first, second)].astype(np.result_type(first, second))
    return np.sort(common) if assume_unique else common


@stands_for(np.setdiff1d)
def setdiff1d(ar1, ar2, assume_unique=False):
    first = np.ravel(ar1) if assume_unique else np.unique(ar1)
    return first[~np.isin(first, np.ravel(ar2))]


@stands_for(np.setxor1d)
def setxor1d(ar1, ar2, assume_unique=False):
    first = np.ravel(ar1) if assume_unique else np.unique(ar1)
    second = np.ravel(ar2) if assume_unique else np.unique(ar2)
    return np.sort(np.concatenate([first[~np.isin(first, second)], second[~np.isin(second, first)]]))


def place_among(side, a, x, lo=0, hi=None, key=None):
    """`bisect`: where a value goes among items that are sorted."""
    items = np.asarray(a if key is None else [key(item) for item in a])
    return int(lo + np.searchsorted(items[lo:hi], x, side))


# --- sizes ---


def delete_place(arr, place, axis=None):
    """`np.delete` of one place."""
    arr, axis, size = laid_out(arr, axis)
    if place < -size or place >= size:
        raise IndexError(f"index {place} is out of bounds for axis {axis % arr.ndim} with size {size}")
    if place < 0:
        place += size
    rest = np.arange(size - 1)
    return np.take(arr, rest + (rest >= place), axis=axis)


def delete_places(arr, places, axis=None):
    """`np.delete` of several places, a mask or a slice."""
    arr, axis, size = laid_out(arr, axis)
    keep = np.ones(size, dtype=bool)
    if not isinstance(places, slice):
        places = np.asarray(places)
        if places.dtype == bool and (places.ndim != 1 or len(places) != size):
            words = "boolean array argument obj to delete must be one dimensional"
            raise ValueError(f"{words} and match the axis length of {size}")
    keep[places] = False
    return np.compress(keep, arr, axis=axis)


def insert_place(arr, place, values, axis=None):
    """`np.insert` of what goes to one place."""
    arr, axis, size = laid_out(arr, axis)
    if place < -size or place > size:
        raise IndexError(f"index {place} is out of bounds for axis {axis % arr.ndim} with size {size}")
    if place < 0:
        place += size
    new = np.array(values, dtype=arr.dtype, ndmin=arr.ndim)
    new = np.moveaxis(new, 0, axis)
    count = new.shape[axis]
    new = np.broadcast_to(new, with_size(arr.shape, axis, count))
    rows = np.arange(size + count)
    old = np.where(rows < place, rows, rows - count)
    source = np.where((rows >= place) & (rows < place + count), size + rows - place, old)
    return np.take(np.concatenate([arr, new], axis=axis), source, axis=axis)


def insert_places(arr, places, values, axis=None):
    """`np.insert` of an element, or a row, at each of several places."""
    arr, axis, size = laid_out(arr, axis)
    if isinstance(places, slice):
        places = np.arange(size)[places]
    places = np.asarray(places)
    if places.dtype == bool:
        places = np.flatnonzero(places)
    if np.any((places < -size) | (places > size)):
        raise IndexError(f"an index is out of bounds for axis {axis % arr.ndim} with size {size}")
    count = places.shape[0]
    new = np.array(values, dtype=arr.dtype, ndmin=arr.ndim)
    new = np.broadcast_to(new, with_size(arr.shape, axis, count))
    places = np.where(places < 0, places + size, places)
    order = np.argsort(places, kind="stable")
    target = np.zeros(count, dtype=int)
    target[order] = places[order] + np.arange(count)
    old = np.ones(size + count, dtype=bool)
    old[target] = False
    source = np.cumsum(old) - 1
    source[target] = size + np.arange(count)
    return np.take(np.concatenate([arr, new], axis=axis), source, axis=axis)


def laid_out(arr, axis):
    """The array, in a row where no axis is named, the axis and its size."""
    return (np.ravel(arr), 0, np.size(arr)) if axis is None else (arr, axis, arr.shape[axis])


def with_size(shape, axis, size):
    """A shape, but for the size of one axis."""
    return tuple(size if k == axis % len(shape) else d for k, d in enumerate(shape))


def whole(repeats):
    return np.array([int(count) for count in repeats], np.int64)


def repeat_counts(a, repeats, axis=None):
    """`np.repeat` with a count for each element."""
    a, axis, size = laid_out(a, axis)
    if len(repeats) == 1:
        repeats = np.broadcast_to(repeats, (size,))
    elif len(repeats) != size:
        raise ValueError("operands could not be broadcast together")
    if np.any(repeats < 0):
        raise ValueError("repeats may not contain negative values.")
    ends = np.cumsum(repeats)
    return np.take(a, np.searchsorted(ends, np.arange(np.sum(repeats)), side="right"), axis=axis)
