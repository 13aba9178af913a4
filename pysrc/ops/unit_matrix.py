"""The unit matrix: ones on one diagonal, zeros elsewhere; texts say `np.eye(n)`.

In: two sizes, the number of the diagonal, a dtype. Out: a matrix.

    unit: f64[m, n] = eye(rows=m, columns=n, diagonal=0, dtype=f64)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dims import DimLike
from ..core.native import Composite
from ..core.primitive import NotLinear, Primitive
from ..core.relation import NO_OPERANDS
from ..core.scalars import FREE
from ..core.types import Array, i64
from .arithmetic import add
from .arrays import iota
from .compare import eq
from .families import like
from .shape import broadcast, convert


def _eye_written(*, rows: DimLike, columns: DimLike, diagonal: int, dtype: Any) -> Any:
    row = broadcast(iota(length=rows, dtype=i64), shape=(rows, columns), axes=(0,))
    column = broadcast(iota(length=columns, dtype=i64), shape=(rows, columns), axes=(1,))
    mask = eq(column, row if diagonal == 0 else add(row, like(row, diagonal)))
    return mask if dtype == np.bool_ else convert(mask, dtype=dtype)


eye: Primitive = Primitive(
    "eye",
    type=lambda *, rows, columns, diagonal, dtype: Array(dtype, (rows, columns)),
    numpy=lambda *, rows, columns, diagonal, dtype: np.eye(rows, columns, diagonal, dtype),
    jvp=(),
    transpose=NotLinear,
    dims=NO_OPERANDS,
    native=Composite(_eye_written),
    cost=FREE,
    doc="Ones where column = row + diagonal, zeros elsewhere.",
)

__all__ = ["eye"]
