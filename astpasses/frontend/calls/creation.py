"""Arrays from values: `np.array`, `np.asarray`, nested lists with staged numbers, and casts like
`np.float32(x)`.

In: nested lists, scalars, arrays, shapes with staged sizes. Out: new staged arrays. `np.zeros`, `np.arange`
and their like are answered by the library of `ops`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.core.types import CoreTypeError, dtype_name
from metaphrase.ops.compare import ge
from metaphrase.ops.effects import check
from metaphrase.ops.shape import reshape
from metaphrase.ops.structure import concatenate

from ..flow.gathering import gathered, is_gathered
from ..flow.iterators import Ranged
from ..operators.kinds import WEAK
from ..operators.python_numbers import held
from ..staging.session import Session, session
from ..staging.settling import settled
from ..values.orders import put_in_order
from ..values.staged_values import Number, Staged, StagedArray
from .call import call_value, handles, has_staged
from .signatures import not_a_dtype


def dtype_given(dtype: Any) -> np.dtype:
    """A dtype as user code spells it."""
    here = session()
    if isinstance(dtype, Staged):
        raise not_a_dtype("this")
    if isinstance(dtype, type) and dtype in WEAK:
        return WEAK[dtype]
    try:
        found = np.dtype(getattr(dtype, "dtype", dtype) if not isinstance(dtype, type) else dtype)
        dtype_name(found)
        return found
    except (TypeError, CoreTypeError) as error:
        raise here.dtype_error(str(error), getattr(error, "remedy", "")) from None


def dims_given(here: Session, shape: Any, negative: str = "negative dimensions are not allowed") -> tuple:
    """A shape as user code spells it: an int or a sequence of ints, staged or not."""
    if isinstance(shape, StagedArray):
        shape = [shape[k] for k in range(len(shape))] if shape.ndim else [shape[()]]
    if isinstance(shape, (int, np.integer, Number)):
        shape = (shape,)
    for size in shape if here.attempts else ():  # a handler may take it
        here.emit(
            check, here.emit(ge, here.atom(size, WEAK[int]), literal(0)), exception="ValueError", message=negative
        )
    dims = tuple(here.as_dim(d) for d in shape)
    if any(isinstance(d, int) and d < 0 for d in dims):
        raise ValueError(negative)
    return dims


# --- from values ---


def array_from(value: Any, dtype: Any = None) -> StagedArray:
    """A new array from a number, a nested list, or an array (which is copied)."""
    here, value = session(), settled(value)
    if is_gathered(value):
        return array_from(gathered(here, value), dtype)
    if isinstance(value, Ranged) and value.bounds:
        return array_from(call_value(np.arange, value.bounds, {}), dtype)
    if isinstance(value, (list, tuple)) and (has_staged(value) or _holds_rows(value)):
        given = None if dtype is None else dtype_given(dtype)
        parts = [array_from(v, given if isinstance(v, Number) else None) for v in value]
        if dtype is None:  # an array of Python numbers has NumPy's default types: nothing is weak in it
            dtype = np.result_type(*[p.dtype for p in parts])
        dims = parts[0].type.dims
        for part in parts:
            if part.ndim != len(dims) or any(
                a != b and isinstance(a, int) and isinstance(b, int) for a, b in zip(part.type.dims, dims)
            ):
                raise ValueError(
                    "setting an array element with a sequence. The requested array has an inhomogeneous shape"
                )
        rows = [here.emit(reshape, here.atom(p, dtype), shape=(1, *dims)) for p in parts]
        return here.array(rows[0] if len(rows) == 1 else here.emit(concatenate, *rows, axis=0))
    if isinstance(value, (StagedArray, Number)):
        kind = dtype_given(dtype) if dtype is not None else value.dtype
        return here.array(held(here, value, kind) if isinstance(value, Number) else here.atom(value, kind))
    known = np.array(value, None if dtype is None else dtype_given(dtype))
    return here.lift(known)


def _holds_rows(value: Any) -> bool:
    """Whether a list in it is one whose length only the run knows."""
    return isinstance(value, (list, tuple)) and any(is_gathered(v) or _holds_rows(v) for v in value)


@handles(np.array)
def array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", ndmin: int = 0, **ignored: Any
) -> StagedArray:
    if copy is not True and isinstance(object, StagedArray):
        made = asarray(object, dtype)
    else:
        made = put_down(array_from(object, dtype), order)
    while made.ndim < ndmin:
        made = made[None]
    return made


@handles(np.asarray, np.asanyarray)
def asarray(a: Any, dtype: Any = None, order: Any = None, copy: Any = None, **ignored: Any) -> StagedArray:
    if isinstance(a, np.ndarray):
        a = session().lift(a)
    if isinstance(a, StagedArray) and not copy and (dtype is None or dtype_given(dtype) == a.dtype):
        return _laid_out(a, order)
    return put_down(array_from(a, dtype), order)


@handles(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None, **ignored: Any) -> StagedArray:
    array = asarray(a, dtype, "C")
    return array if array.ndim else array[None]  # has an axis at least


@handles(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None, **ignored: Any) -> StagedArray:
    array = asarray(a, dtype, "F")
    return array if array.ndim else array[None]


def _laid_out(array: StagedArray, order: Any) -> StagedArray:
    """The array itself if its elements lie in this order already, else a copy."""
    if order not in ("C", "F"):
        return array
    from .numpy_shapes import ravel, transpose

    flat = ravel(array if order == "C" else transpose(array))
    if flat.box is array.box:
        return array
    made = put_down(session().array(array.read()), order)
    made.box.phi = flat.box.phi  # where the layout is not known, neither is whether this is the array
    return made


@handles(np.copy)
def copy(a: Any, order: Any = "K", **ignored: Any) -> StagedArray:
    return put_down(array_from(a), order)


def put_down(made: StagedArray, order: Any) -> StagedArray:
    """A new array whose elements lie in this order; in that of what it was made of for "K", "A" and None."""
    if order in ("C", "F"):
        put_in_order(made.box, order == "C")
    return made


def cast_scalar(cls: type, value: Any = 0) -> Any:
    """`np.float32(x)`: a NumPy scalar; of an array, an array: the same one if it has this type."""
    if not has_staged(value) and not isinstance(value, (list, np.ndarray)):
        return cls(value)
    here, dtype = session(), dtype_given(cls)
    if isinstance(value, (list, tuple, np.ndarray)) or isinstance(value, StagedArray) and value.ndim:
        return asarray(value, dtype)
    weak = isinstance(value, Number) and value.python is not None
    return here.wrap(held(here, value, dtype) if weak else here.atom(value, dtype))
