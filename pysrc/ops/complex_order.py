"""The order that NumPy gives complex numbers: by their real parts, then by their imaginary ones.

In: two atoms of one complex type. Out: bools, or the larger or smaller of each pair.

    by_order(np.less, a, b)       # NaN in either makes it False
    by_order(np.maximum, a, b)    # the first operand that is NaN, where one is
"""

from __future__ import annotations

import numpy as np

from ..core.ir import Atom
from .compare import and_, eq, ge, gt, le, lt, not_, or_, select
from .complex_numbers import imag, real
from .elementary import isnan

_LARGER = {np.less: (lt, lt), np.less_equal: (lt, le), np.greater: (gt, gt), np.greater_equal: (gt, ge)}
ORDERED = frozenset((*_LARGER, np.maximum, np.minimum))


def by_order(function: np.ufunc, a: Atom, b: Atom) -> Atom:
    if function in (np.maximum, np.minimum):
        first = by_order(np.greater_equal if function is np.maximum else np.less_equal, a, b)
        return select(or_(first, or_(isnan(real(a)), isnan(imag(a)))), a, b)
    by_real, by_imag = _LARGER[function]  # type: ignore[index]
    sure = not_(or_(isnan(imag(a)), isnan(imag(b))))
    return or_(and_(by_real(real(a), real(b)), sure), and_(eq(real(a), real(b)), by_imag(imag(a), imag(b))))


__all__ = ["ORDERED", "by_order"]
