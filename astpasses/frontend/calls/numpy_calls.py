"""NumPy's ufuncs on staged values, and what all calls with `out=` share.

In: the arguments of `np.f(...)`. Out: staged values. A ufunc is answered by the library of `ops`, else by
the primitive that names it among its spellings: a new primitive needs no entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.foreign import ufunc_name
from metaphrase.ops.promotion import require_bools

from ..operators.arithmetic import SPELLED, apply_to_both, check_castable, elementwise, operand, resolve, store_result
from ..operators.kinds import dtype_of, is_of_two_types
from ..staging.session import session
from ..values.orders import put_in_order
from ..values.staged_values import Number, StagedArray
from .call import call_value, handles, has_staged
from .library_calls import call_library, library_handler
from .methods import astype
from .signatures import lacks_argument


def ufunc_handler(function: np.ufunc) -> Callable:
    """The handler of a ufunc: promotion, broadcasting, `out`, `where` and `dtype`."""

    def handler(
        *args: Any,
        out: Any = None,
        where: Any = True,
        dtype: Any = None,
        order: str = "K",
        casting: str = "same_kind",
        subok: bool = True,
        **keywords: Any,
    ) -> Any:
        if keywords:
            raise lacks_argument(function.__name__, next(iter(keywords)))
        if len(args) > function.nin:
            args, out = args[: function.nin], args[function.nin :]
        out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        if not has_staged((args, out, where)) and not any(isinstance(a, (np.ndarray, list)) for a in args):
            return function(*args, dtype=dtype) if dtype is not None else function(*args)
        values = [operand(a) for a in args]
        if dtype is not None or casting != "same_kind":
            kinds = _loop_dtypes(function, values, dtype, casting)
        if dtype is not None:
            values = [astype(v, k) if hasattr(v, "dtype") else k.type(v) for v, k in zip(values, kinds)]
        result = _apply(function, values)
        if isinstance(out, (StagedArray, np.ndarray)):
            check_castable(session(), result, out, "out", casting)
        if where is not True:
            require_bools(where)
            result = call_value(np.where, (where, result, out if out is not None else result), {})
        if order in ("C", "F") and isinstance(result, StagedArray):
            put_in_order(result.box, order == "C")
        if isinstance(out, tuple):
            return tuple(r if o is None else store_out(o, r, casting) for o, r in zip(out, result))
        return result if out is None else store_out(out, result)

    return handler


def _loop_dtypes(function: np.ufunc, values: list, dtype: Any, casting: Any) -> tuple:
    """The dtypes of the operands where results have `dtype`; NumPy's TypeError where they do not fit."""
    kinds = [dtype_of(v) for v in values]
    if all(isinstance(kind, type) for kind in kinds):
        kinds = [np.dtype(kind) for kind in kinds]
    wanted = (*[None] * function.nin, *[None if dtype is None else np.dtype(dtype)] * function.nout)
    return function.resolve_dtypes((*kinds, *[None] * function.nout), signature=wanted, casting=casting)


def _apply(function: np.ufunc, values: list) -> Any:
    if any(map(is_of_two_types, values)):
        return apply_to_both(function, values, lambda values: _apply(function, values))
    rule = library_handler(function)
    if rule is not None:
        return rule(*values)
    if function in SPELLED:
        return elementwise(SPELLED[function], values, resolve(function, [dtype_of(v) for v in values]))
    raise session().unsupported(
        f"{ufunc_name(function)} has no translation yet", "write it with functions that have one"
    )


def store_out(out: Any, result: Any, casting: str = "unsafe") -> Any:
    """`out=`: the result goes into an array that is there."""
    here = session()
    out = operand(out)
    if not isinstance(out, StagedArray):
        raise TypeError("return arrays must be of ArrayType")
    return store_result(here, result, out, "out", casting)


@handles(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, *args: Any, **keywords: Any) -> Any:
    made = call_library(np.nan_to_num, (x, copy, *args), keywords)
    return made if copy or not isinstance(x, StagedArray) else store_out(x, made)


# --- questions about values ---


@handles(np.result_type)
def result_type(*args: Any) -> np.dtype:
    kinds = [dtype_of(a) if isinstance(a, (StagedArray, Number)) else a for a in args]
    return np.result_type(*[k(0) if isinstance(k, type) and k in (int, float, complex) else k for k in kinds])


@handles(np.isscalar)
def isscalar(element: Any) -> bool:
    return isinstance(element, Number) or np.isscalar(element)


@handles(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return x.dtype.kind == "c" if isinstance(x, (Number, StagedArray)) else np.iscomplexobj(x)
