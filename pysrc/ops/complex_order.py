"""The order that NumPy gives complex numbers: by their real parts, then by their imaginary ones.

In: two atoms of one complex type. Out: bools, or the larger or smaller of each pair.

    by_order(np.less, a, b)       # NaN in either makes it False
    by_order(np.maximum, a, b)    # the first operand that is NaN, where one is
    running(np.maximum, x, axis)  # the largest so far
"""

from __future__ import annotations

import numpy as np

from ..core.build import Builder
from ..core.ir import Atom, Roles
from ..core.types import Array, i64
from .compare import and_, eq, ge, gt, le, lt, not_, or_, select
from .complex_numbers import imag, real
from .elementary import isnan
from .families import like
from .regions import loop
from .shape import permute

_LARGER = {np.less: (lt, lt), np.less_equal: (lt, le), np.greater: (gt, gt), np.greater_equal: (gt, ge)}
ORDERED = frozenset((*_LARGER, np.maximum, np.minimum))


def by_order(function: np.ufunc, a: Atom, b: Atom) -> Atom:
    if function in (np.maximum, np.minimum):
        first = by_order(np.greater_equal if function is np.maximum else np.less_equal, a, b)
        return select(or_(first, or_(isnan(real(a)), isnan(imag(a)))), a, b)
    by_real, by_imag = _LARGER[function]  # type: ignore[index]
    sure = not_(or_(isnan(imag(a)), isnan(imag(b))))
    return or_(and_(by_real(real(a), real(b)), sure), and_(eq(real(a), real(b)), by_imag(imag(a), imag(b))))


def running(function: np.ufunc, x: Atom, axis: int) -> Atom:
    """The larger or smaller of each element and all before it along an axis, one after the other."""
    rank = x.type.ndim
    order = (axis, *(k for k in range(rank) if k != axis))
    rows = permute(x, axes=order) if axis else x
    row = rows.type.with_dims(rows.type.dims[1:])
    none = -np.inf if function is np.maximum else np.inf
    with Builder(f"running_{function.__name__}") as body:
        body.parameter("i", Array(i64))
        found = by_order(function, *(body.parameter(name, row) for name in ("running", "x")))
        step = body.function((found, found))
    first = like(row, complex(none, none))
    _, found = loop(first, rows, body=step, cond=None, length=x.type.dims[axis], roles=Roles(0, 1, 0, 1), reverse=False)
    return permute(found, axes=tuple(sorted(range(rank), key=order.__getitem__))) if axis else found


__all__ = ["ORDERED", "by_order", "running"]
