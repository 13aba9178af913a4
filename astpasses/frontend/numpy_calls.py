"""NumPy's functions on staged values: the table of handlers, and what all of them share.

In: the arguments of `np.f(...)`. Out: staged values. Ufuncs that a primitive answers to (`Primitive.spellings`) need no
entry here. The other handlers stand by theme in `numpy_shapes`, `numpy_reduce`, `numpy_composed`, `creation`, `products`.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.source import UnsupportedError

from .arithmetic import SPELLED, broadcast_dims, dims_of, dtype_of, elementwise, operand, resolve, spread
from .calls import UFUNC_METHODS, has_staged
from .library_calls import library_handler
from .session import session
from .values import StagedArray

COMPOSED: dict[np.ufunc, Callable] = {}


def composed(*functions: np.ufunc) -> Callable:
    """Register a ufunc written with others."""
    def register(handler: Callable) -> Callable:
        for function in functions:
            COMPOSED[function] = handler
        return handler
    return register


def ufunc_handler(function: np.ufunc) -> Callable:
    """The handler of a ufunc: promotion, broadcasting, `out`, `where` and `dtype`."""
    def handler(*args: Any, out: Any = None, where: Any = True, dtype: Any = None, **keywords: Any) -> Any:
        here = session()
        if len(args) > function.nin:
            args, out = args[:function.nin], args[function.nin]
        if isinstance(out, tuple):
            out = out[0] if len(out) == 1 else out
        if not has_staged((args, out, where)) and not any(isinstance(a, (np.ndarray, list)) for a in args):
            return function(*args, dtype=dtype) if dtype is not None else function(*args)
        values = [operand(a) for a in args]
        if dtype is not None:
            from .methods import astype
            values = [astype(v, dtype) if hasattr(v, "dtype") else np.dtype(dtype).type(v) for v in values]
        if function in COMPOSED:
            result = COMPOSED[function](*values)
        elif function in SPELLED:
            result = elementwise(SPELLED[function], values, resolve(function, [dtype_of(v) for v in values]))
        elif (rule := library_handler(function)) is not None:
            result = rule(*values)
        else:
            raise UnsupportedError(f"numpy.{function.__name__} has no translation yet", here.span(),
                                   code="no-translation", remedy="write it with functions that have one")
        if where is not True:
            from .numpy_composed import where_
            result = where_(where, result, out if out is not None else result)
        return result if out is None else store_out(out, result)
    return handler


def store_out(out: Any, result: Any) -> Any:
    """`out=`: the result goes into an array that is there."""
    here = session()
    out = operand(out)
    from .indexing import write_view
    if not isinstance(out, StagedArray):
        raise TypeError("return arrays must be of ArrayType")
    dims = broadcast_dims([dims_of(result), out.type.dims])
    if dims != out.type.dims:
        raise here.shape_error(f"non-broadcastable output operand with shape {out.type.dims}")
    write_view(out, spread(here, here.atom(result, out.dtype), dims))
    return out


def ufunc_reduce(function: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
                 keepdims: bool = False, **keywords: Any) -> Any:
    from .numpy_reduce import BY_UFUNC
    if function not in BY_UFUNC:
        raise UnsupportedError(f"numpy.{function.__name__}.reduce has no translation yet", session().span(),
                               code="no-translation", remedy="write the reduction as a loop")
    return BY_UFUNC[function](array, axis=axis, keepdims=keepdims)


def ufunc_outer(function: np.ufunc, a: Any, b: Any, **keywords: Any) -> Any:
    from .calls import call_value
    a, b = operand(a), operand(b)
    rank = len(dims_of(b))
    if rank and len(dims_of(a)):
        a = a[(..., *[None] * rank)]
    return call_value(function, (a, b), keywords)


def ufunc_at(function: np.ufunc, array: Any, indices: Any, values: Any = None) -> None:
    from .numpy_picking import add_at
    array = operand(array)
    if function is np.add:
        add_at(array, indices, operand(values))
    elif function is np.subtract:
        add_at(array, indices, -operand(values))
    else:
        raise UnsupportedError(f"numpy.{function.__name__}.at has no translation yet", session().span(),
                               code="no-translation", remedy="use np.add.at, or a loop")


def ufunc_accumulate(function: np.ufunc, array: Any, axis: int = 0, **keywords: Any) -> Any:
    from .numpy_reduce import accumulate
    return accumulate(function, operand(array), axis)


UFUNC_METHODS.update(reduce=ufunc_reduce, outer=ufunc_outer, at=ufunc_at, accumulate=ufunc_accumulate)
