"""NumPy's covariances and correlations, with weights.

In: operands; rows are variables unless `rowvar` is false. Out: core atoms.

    c = cov(x, aweights=w)      r = corrcoef(x, y)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.build import literal
from ..core.ir import Atom
from ..source import ShapeError
from .arithmetic import div, max_, min_, mul, sub
from .compare import eq, ge
from .complex_numbers import complex_, conj, imag, real
from .effects import check
from .elementary import rint, sqrt
from .families import like
from .library_creation import diagonal
from .library_products import matmul
from .library_reductions import all_, average, mean, sum_
from .library_shapes import atleast_2d, concatenate, expand_dims, squeeze, transpose
from .promotion import (
    Operand,
    broadcast_to,
    is_weak,
    lift,
    result_type,
    scalar_dim,
    sized,
    surely_differ,
    to_dtype,
    ufunc,
)


def _variables(m: Operand, dtype: np.dtype, rowvar: bool) -> Atom:
    """A row for each variable."""
    x = lift(m)
    if x.type.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    rows = atleast_2d(to_dtype(x, dtype))
    return rows if rowvar or x.type.ndim == 1 else transpose(rows)


def _weights(w: Operand, name: str, rows: Atom) -> Atom:
    """One number for each observation, none of them negative."""
    made = to_dtype(w, np.float64)
    if made.type.ndim != 1 or surely_differ(made.type.dims[0], rows.type.dims[1]):
        raise ShapeError(
            f"cov: {name} is one number for each of the observations",
            code="shape",
            remedy="give a vector that is as long as a row of the array",
        )
    check(all_(ge(made, like(made, 0))), exception="ValueError", message=f"{name} cannot be negative")
    return sized(made, 0, rows.type.dims[1], f"cov: {name} of {{}} for {{}} observations")


def cov(
    m: Operand,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Atom:
    operands = (m,) if y is None else (m, y)
    dtype = np.result_type(result_type(*operands), np.float64) if dtype is None else np.dtype(dtype)
    rows = _variables(m, dtype, rowvar)
    if y is not None:
        rows = concatenate([rows, _variables(y, dtype, rowvar)], 0)
    if ddof is not None and is_weak(ddof) and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = None
    if fweights is not None:
        weights = _weights(fweights, "fweights", rows)
        check(all_(eq(weights, rint(weights))), exception="TypeError", message="fweights must be integer")
    if aweights is not None:
        shares = _weights(aweights, "aweights", rows)
        weights = shares if weights is None else mul(weights, shares)
    if weights is None:
        free, centre = ufunc(np.subtract, scalar_dim(rows.type.dims[1], np.float64), ddof), mean(rows, 1)
    else:
        total = sum_(weights)
        lost = div(sum_(mul(weights, shares)), total) if aweights is not None else like(total, 1)
        free, centre = ufunc(np.subtract, total, ufunc(np.multiply, ddof, lost)), average(rows, 1, weights)
    away = sub(rows, broadcast_to(expand_dims(centre, 1), rows.type.dims))
    weighted = away if weights is None else ufunc(np.multiply, away, weights)
    other = transpose(weighted)
    made = matmul(away, conj(other) if dtype.kind == "c" else other)
    factor = div(literal(1.0), max_(to_dtype(free, np.float64), literal(0.0)))
    return squeeze(to_dtype(ufunc(np.multiply, made, factor), dtype))


def corrcoef(x: Operand, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Atom:
    made = cov(x, y, rowvar, dtype=dtype)
    if not made.type.ndim:
        return div(made, made)
    own = diagonal(made)
    spread = sqrt(real(own) if own.type.dtype.kind == "c" else own)
    made = ufunc(np.true_divide, made, expand_dims(spread, 1))
    made = ufunc(np.true_divide, made, expand_dims(spread, 0))
    if made.type.dtype.kind != "c":
        return _limited(made)
    return complex_(_limited(real(made)), _limited(imag(made)))


def _limited(x: Atom) -> Atom:
    """What rounding took beyond 1 is 1."""
    return min_(max_(x, like(x, -1)), like(x, 1))


__all__ = ["cov", "corrcoef"]
