"""What the words in the Python loops mean: scalar operations with NumPy's results, one NumPy scalar at a
time.

In: NumPy scalars. Out: NumPy scalars of the same dtype. `NAMESPACE` is what generated Python loops run in.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes  # noqa: F401 - registers bfloat16 with NumPy
import numpy as np

from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import SHORT


class _Element:
    """A dtype as the text says it: `f32(2.0)`."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype

    def __call__(self, value: Any) -> Any:
        return np.asarray(value).astype(self.dtype)[()]


def empty(dims: tuple, dtype: Any) -> np.ndarray:
    """Storage full of values nobody should read: NaN or a large number, so that a test sees who does."""
    made = np.empty(tuple(max(int(d), 0) for d in dims), dtype.dtype)
    made.fill(np.nan if made.dtype.kind in "fcV" else 1 if made.dtype.kind in "bu" else -99)
    return made


def grow(buf: np.ndarray | None, dims: tuple, dtype: Any) -> np.ndarray:
    """At least `dims[0]` rows, those so far kept."""
    if buf is not None and buf.shape[0] >= dims[0] and buf.shape[1:] == tuple(dims[1:]):
        return buf
    made = empty((max(2 * int(dims[0]), 4), *dims[1:]), dtype)
    if buf is not None and buf.shape[1:] == made.shape[1:]:
        made[: buf.shape[0]] = buf
    return made


def view(buf: np.ndarray, start: tuple, extents: tuple, strides: tuple) -> np.ndarray:
    """The strided part of a C-contiguous buffer that a library call works on."""
    buf = np.ascontiguousarray(buf) if not buf.flags.c_contiguous else buf
    offset = sum(int(i) * s for i, s in zip(start, buf.strides))
    flat = buf.reshape(-1)[offset // buf.itemsize :] if buf.size else buf.reshape(-1)
    return np.lib.stride_tricks.as_strided(
        flat, tuple(map(int, extents)), tuple(int(s) * buf.itemsize for s in strides)
    )


def convert(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(dtype.dtype)[()]


def bitcast(x: Any, dtype: Any) -> Any:
    return np.asarray(x).view(dtype.dtype)[()]


def _scalar(name: str) -> Any:
    numpy = REGISTRY[name].numpy

    def operation(*args: Any) -> Any:
        # As arrays of one element: NumPy has short cuts for scalars that differ (-inf to the power 0.5).
        return numpy(*(np.asarray(a).reshape(1) for a in args))[0]

    return operation


class _Namespace(dict):
    """Scalar operations are elementwise primitives: their NumPy meaning is their meaning here."""

    def __missing__(self, name: str) -> Any:
        for spelled in (name, name + "_"):
            if spelled in REGISTRY:
                self[name] = _scalar(spelled)
                return self[name]
        raise KeyError(name)


class _Builtins(dict):
    def __missing__(self, name: str) -> Any:
        return _OPERATIONS[name]


def library(operation: str, reads: tuple, writes: tuple, first: int = 0, **attributes: Any) -> None:
    """What a library computes: the primitive's NumPy rule, written into the views of its results. `first`: where the
    part begins in which there are places. Of a mask and an array it lists what is there rather than the places, and
    where a single number goes it counts them."""
    results: Any
    if operation == "nonzero" and not writes[0].ndim:
        results = np.count_nonzero(np.array(reads[0]))
    elif operation == "nonzero" and len(reads) == 2:
        results = np.array(reads[1])[REGISTRY[operation].numpy(np.array(reads[0]), **attributes)]
        first = 0
    else:
        results = REGISTRY[operation].numpy(*(np.array(view) for view in reads), **attributes)
    for view, result in zip(writes, results if isinstance(results, tuple) else (results,), strict=True):
        view[...] = result + first if first else result


def halves(combine: Any, values: np.ndarray) -> Any:
    """Partial results combined, halves first, as native code does."""
    while len(values) > 1:
        half = len(values) // 2
        values = np.array([combine(a, b) for a, b in zip(values[:half], values[half:])], values.dtype)
    return values[0]


_OPERATIONS = _Namespace(
    halves=halves,
    pick=lambda c, a, b: a if c else b,
    inf=np.inf,
    nan=np.nan,
    polygamma=lambda order, x: REGISTRY["polygamma"].numpy(x, order=int(order)),
    isnan=np.isnan,
    isinf=np.isinf,
    isfinite=np.isfinite,
    signbit=np.signbit,
    max=lambda a, b: max(a, b) if isinstance(a, int) and isinstance(b, int) else np.maximum(a, b),
    min=lambda a, b: min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b),
)

NAMESPACE: dict[str, Any] = {
    "np": np,
    "empty": empty,
    "grow": grow,
    "view": view,
    "library": library,
    "convert": convert,
    "bitcast": bitcast,
    **{name: _Element(dtype) for name, dtype in SHORT.items()},
    "__builtins__": _Builtins(range=range, True_=True, KeyError=KeyError),
}
