"""Boolean masks as indices.

In: an array and a bool array. Out: for reading, the positions of the true elements (their number is a new
size); for writing, an elementwise choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.dims import product
from metaphrase.ops.compare import eq, select
from metaphrase.ops.effects import check
from metaphrase.ops.indexing import scatter
from metaphrase.ops.reduce import reduce_sum
from metaphrase.ops.shape import broadcast, convert, reshape
from metaphrase.ops.sorting import nonzero as core_nonzero

from ..staging.session import Session
from ..values.capacities import used
from ..values.staged_values import Box, StagedArray
from .arithmetic import binary, check_castable, equal_size, operand, require_equal, spread
from .indexing import write_view
from .kinds import is_number
from .python_numbers import held

_i64 = np.dtype("int64")


_UNEQUAL = (
    "NumPy boolean array indexing assignment cannot assign {} input values to the {} output values "
    "where the mask is true"
)


def mask_of(index: Any) -> StagedArray | None:
    """An index that is one array of bools."""
    mask = operand(index) if isinstance(index, (np.ndarray, StagedArray)) else None
    return mask if isinstance(mask, StagedArray) and mask.dtype == bool and mask.ndim > 0 else None


def positions(here: Session, array: StagedArray, mask: StagedArray, axis: int) -> list[StagedArray]:
    """Index arrays of the true elements, one for each dim of the mask."""
    dims = mask.type.dims
    require_fit(here, array, mask, axis)
    atom = here.emit(reshape, mask.read(), shape=(product(dims),)) if len(dims) != 1 else mask.read()
    total = here.emit(reduce_sum, here.emit(convert, atom, dtype=_i64), axes=(0,))
    total.name = "count"
    count = used(here, total, product(dims), "count")
    flat = here.emit(core_nonzero, atom, axis=0, length=count)
    out, rest = [], StagedArray(Box(here, flat))
    for k in range(len(dims)):
        below = here.size(product(dims[k + 1 :]))
        index = rest // below if k < len(dims) - 1 else rest
        out.append(StagedArray(Box(here, here.atom(index, _i64), origin="positions")))
        if k < len(dims) - 1:
            rest = rest % below
    return out


def require_fit(here: Session, array: StagedArray, mask: StagedArray, axis: int = 0) -> None:
    """A mask has the sizes of the axes that it picks from: known, or checked when the program runs."""
    for k, (have, size) in enumerate(zip(array.type.dims[axis:], mask.type.dims), axis):
        message = (
            f"boolean index did not match indexed array along axis {k}; size of axis is {{}} but size of "
            f"corresponding boolean axis is {{}}"
        )
        if isinstance(have, int) and isinstance(size, int) and have != size:
            raise IndexError(message.format(have, size))
        require_equal(here, have, size, message, exception="IndexError")


def update_mask(array: StagedArray, index: Any, symbol: str, value: Callable[[], Any]) -> bool:
    """`array[mask] op= value` without picking, where `value` is a scalar. False where that does not apply."""
    if (mask := mask_of(index)) is None:
        return False
    given = value()
    here = array.session
    if is_number(given):
        new = binary(symbol, array, given)
        check_castable(here, new, array, symbol)
        store_mask(here, array, mask, held(here, new, array.dtype), True)
        return True
    array[mask] = binary(symbol, array[mask], given)
    return True


def store_mask(here: Session, array: StagedArray, mask: StagedArray, value: Any, whole: bool = False) -> None:
    """`array[mask] = value`. `whole`: it has a value for every element of the array, of which the mask picks."""
    dims = array.type.dims
    require_fit(here, array, mask)
    if mask.type.dims != dims[: mask.ndim]:  # sizes that were just checked to be equal
        atom = mask.read()
        for k, size in enumerate(dims[: mask.ndim]):
            atom = equal_size(here, atom, k, size) if atom.type.dims[k] != size else atom
        mask = StagedArray(Box(here, atom))
    test = mask.read()
    if mask.ndim < len(dims):
        test = here.emit(broadcast, test, shape=dims, axes=tuple(range(mask.ndim)))
    new = held(here, value, array.dtype)
    if not whole and new.type.ndim > len(dims) - mask.ndim:
        if new.type.dims[0] != 1:
            write_view(array, _placed(here, array, mask, new))
            return
        new = here.emit(reshape, new, shape=new.type.dims[1:])
    if not whole:
        new = spread(here, new, dims)
    write_view(array, here.emit(select, test, new, array.read()))


def _placed(here: Session, array: StagedArray, mask: StagedArray, atom: Any) -> Any:
    """The array with a row of `atom` at each true element."""
    dims, size, given = array.type.dims, product(mask.type.dims), atom.type.dims[0]
    row, whole = mask.read(), array.read()
    if mask.ndim != 1:
        row = here.emit(reshape, row, shape=(size,))
        whole = here.emit(reshape, whole, shape=(size, *dims[mask.ndim :]))
    count = here.emit(reduce_sum, here.emit(convert, row, dtype=_i64), axes=(0,))
    number = here.dim_atom(given)
    equal = here.emit(eq, count, number)
    here.emit(check, equal, number, count, exception="ValueError", message=_UNEQUAL)
    places = here.emit(core_nonzero, row, axis=0, length=given)
    new = here.emit(scatter, whole, atom, places, axes=(0,), unique=True)
    return new if new.type.dims == dims else here.emit(reshape, new, shape=dims)
