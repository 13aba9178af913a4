"""`numpy.linalg`: systems of equations, determinants, factors, eigenvalues, singular values, norms.

In: operands as a user gave them; stacks of matrices in the last two axes. Out: core atoms, in NumPy's named
tuples where NumPy gives those. A matrix that LAPACK refuses raises LinAlgError when the program runs.

    x = solve(a, b)         values, vectors = eigh(a)         u, s, vh = svd(a, full_matrices=False)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dims import fresh_symbol
from ..core.ir import Atom, Var
from ..core.types import i64
from ..exceptions import exception_name
from ..source import DTypeError, ShapeError, UnsupportedError
from . import determinants
from . import linear_algebra as linear
from .arithmetic import div, mul
from .arrays import as_dim
from .compare import eq, gt, not_, select
from .complex_numbers import conj
from .effects import check
from .families import like, real_dtype
from .library_creation import eye
from .library_elementwise import isfinite_
from .library_norms import norm
from .library_products import dot, matmul
from .library_products import matrix_power as positive_power
from .library_reductions import all_, amax, amin, sum_
from .library_shapes import concatenate, expand_dims, moveaxis, part, reshape, squeeze
from .limits import UnknownSize
from .matrices import adjoint, along_rows, as_dtype, hermitian_from_lower, turned
from .matrices import product as matrix_product
from .promotion import (
    NeedsValue,
    Operand,
    broadcast_dims,
    broadcast_to,
    inexact_dtype,
    lift,
    promote,
    sized,
    surely_differ,
    to_dtype,
    ufunc,
)
from .reduce import reduce_all


class MatrixError(ShapeError, np.linalg.LinAlgError):
    """Arrays that are no matrices, or none that fit."""


_SQUARE = "Last 2 dimensions of the array must be square"


def _result(name: str, *parts: Any) -> Any:
    """NumPy's named tuple of this name."""
    return getattr(np.linalg._linalg, name)(*parts)


def matrices(a: Operand, what: str, square: bool = False, lapack: bool = True) -> Atom:
    """a as stacks of matrices, in a dtype that LAPACK has if `lapack`."""
    x = lift(a)
    if x.type.ndim < 2:
        message = f"{x.type.ndim}-dimensional array given. Array must be at least two-dimensional"
        raise MatrixError(message, remedy=f"give numpy.linalg.{what} matrices", code="product")
    m, n = x.type.dims[-2:]
    if square and isinstance(m - n, int) and m != n:
        remedy = f"give numpy.linalg.{what} as many rows as columns, not {m} and {n}"
        raise MatrixError(_SQUARE, remedy=remedy, code="product")
    if square and m != n:
        x = sized(x, x.type.ndim - 1, m, _SQUARE, exception=exception_name(np.linalg.LinAlgError))
    return in_lapack(x) if lapack else x


def in_lapack(x: Atom) -> Atom:
    """x in a dtype that LAPACK has."""
    if x.type.dtype == np.float16:
        message = "array type float16 is unsupported in linalg"
        raise DTypeError(message, remedy="convert it to float32 first", code="dtype")
    return to_dtype(x, inexact_dtype(x.type.dtype))


def required(failed: Atom, message: str) -> None:
    """LinAlgError for a flag of LAPACK."""
    check(not_(failed), exception="LinAlgError", message=message)


# --- systems of equations ----------------------------------------------------------------------------------


def solve(a: Operand, b: Operand) -> Atom:
    """A one-dimensional b is one right side; else its last two axes are matrices (NumPy 2)."""
    matrix, side = matrices(a, "solve", True), lift(b)
    matrix, side = promote(matrix, in_lapack(side))
    vector = side.type.ndim == 1
    side = expand_dims(side, 1) if vector else side
    rows, given = matrix.type.dims[-1], side.type.dims[-2]
    if surely_differ(rows, given):
        raise ShapeError(
            f"solve: a matrix of {rows} rows and a right side of {given}",
            remedy="give them equally many rows",
            code="product",
        )
    side = sized(side, side.type.ndim - 2, matrix.type.dims[-1], "solve: sizes {} and {} differ")
    lead = broadcast_dims(matrix.type.dims[:-2], side.type.dims[:-2])
    x, singular = linear.solve(
        broadcast_to(matrix, (*lead, *matrix.type.dims[-2:])),
        broadcast_to(side, (*lead, *side.type.dims[-2:])),
        transposed=False,
    )
    required(singular, "Singular matrix")
    return squeeze(x, -1) if vector else x


def inv(a: Operand) -> Atom:
    x = matrices(a, "inv", True)
    unit = broadcast_to(eye(x.type.dims[-1], dtype=x.type.dtype), x.type.dims)
    return solve(x, unit)


def matrix_power(a: Operand, n: int) -> Atom:
    return positive_power(matrices(a, "matrix_power", True, False), n) if n >= 0 else positive_power(inv(a), -n)


def tensorinv(a: Operand, ind: int = 2) -> Atom:
    x = lift(a)
    front, back = x.type.dims[:ind], x.type.dims[ind:]
    rows = functools.reduce(lambda p, q: p * q, back, 1)  # type: ignore[arg-type, return-value]
    return reshape(inv(reshape(x, (-1, rows))), (*back, *front))


def tensorsolve(a: Operand, b: Operand, axes: Any = None) -> Atom:
    x, side = lift(a), lift(b)
    if axes is not None:
        for axis in axes:
            x = moveaxis(x, axis, -1)
    rest = x.type.dims[side.type.ndim :]
    size = functools.reduce(lambda p, q: p * q, rest, 1)  # type: ignore[arg-type, return-value]
    return reshape(solve(reshape(x, (-1, size)), reshape(side, (-1,))), rest)


# --- determinants ------------------------------------------------------------------------------------------


def slogdet(a: Operand) -> Any:
    return _result("SlogdetResult", *linear.slogdet(matrices(a, "slogdet", True)))


def det(a: Operand) -> Atom:
    return determinants.det(matrices(a, "det", True))


# --- factors -----------------------------------------------------------------------------------------------


def cholesky(a: Operand, /, *, upper: bool = False) -> Atom:
    x = matrices(a, "cholesky", True)
    low, failed = linear.cholesky(adjoint(x) if upper else x)
    required(failed, "Matrix is not positive definite")
    return adjoint(low) if upper else low


def qr(a: Operand, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise UnsupportedError(
            f"numpy.linalg.qr with mode={mode!r} is not supported",
            remedy="use mode='reduced', 'complete' or 'r'",
            code="numpy-function",
        )
    x = matrices(a, "qr")
    m, n = (_known(d, "qr") for d in x.type.dims[-2:])
    if mode != "complete" and m < n:  # the factors of the square part give the rest: its derivative is known
        q, left = linear.qr(part(x, x.type.ndim - 1, 0, m), full=False)
        right = matrix_product(adjoint(q), part(x, x.type.ndim - 1, m, n - m))
        r = concatenate([left, right], -1)
    else:
        q, r = linear.qr(x, full=mode == "complete")
    return r if mode == "r" else _result("QRResult", q, r)


def _known(dim: Any, what: str) -> int:
    if not isinstance(dim, int):
        raise UnknownSize(f"linalg.{what}", dim)
    return dim


# --- eigenvalues -------------------------------------------------------------------------------------------


def eigh(a: Operand, UPLO: str = "L") -> Any:
    x = matrices(a, "eigh", True)
    values, vectors, failed = linear.eigh(adjoint(x) if UPLO.upper() == "U" else x)
    required(failed, "Eigenvalues did not converge")
    return _result("EighResult", values, vectors)


def eigvalsh(a: Operand, UPLO: str = "L") -> Atom:
    return eigh(a, UPLO)[0]


def eig(a: Operand) -> Any:
    """Complex, always: NumPy gives real arrays where all values are real, which depends on them."""
    x = matrices(a, "eig", True)
    check(all_(isfinite_(x)), exception="LinAlgError", message="Array must not contain infs or NaNs")
    values, vectors, failed = linear.eig(x)
    required(failed, "Eigenvalues did not converge")
    return _result("EigResult", values, vectors)


def eigvals(a: Operand) -> Atom:
    return eig(a)[0]


# --- singular values ---------------------------------------------------------------------------------------


def _told(a: Operand, what: str, hermitian: bool) -> Atom:
    """Matrices, of which NumPy reads the lower triangle where it is told that they are Hermitian."""
    x = matrices(a, what, bool(hermitian))
    return hermitian_from_lower(x) if hermitian else x


def svd(a: Operand, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    x = _told(a, "svd", hermitian)
    for dim in x.type.dims[-2:]:
        _known(dim, "svd")
    u, s, vh, failed = linear.svd(x, full=bool(full_matrices) and compute_uv)
    required(failed, "SVD did not converge")
    return _result("SVDResult", u, s, vh) if compute_uv else s


def svdvals(x: Operand, /) -> Atom:
    return svd(x, compute_uv=False)


def _cutoff(s: Atom, rtol: Any) -> Atom:
    """rtol times the largest singular value, at each."""
    largest = amax(s, -1, keepdims=True, initial=0 if s.type.dims[-1] == 0 else None)
    share = to_dtype(rtol, s.type.dtype)
    if share.type.dims:
        share = expand_dims(share, -1)
    return broadcast_to(ufunc(np.multiply, share, largest), s.type.dims)


def _epsilon(x: Atom) -> float:
    return float(np.finfo(x.type.dtype).eps)


def matrix_rank(A: Operand, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Atom:
    a = lift(A)
    if a.type.ndim < 2:
        zero = reduce_all(eq(a, like(a, 0)), axes=(0,)) if a.type.ndim else eq(a, like(a, 0))
        return to_dtype(not_(zero), i64)
    x = _told(a, "matrix_rank", hermitian)
    s = svd(x, compute_uv=False)
    size = max(_known(d, "matrix_rank") for d in x.type.dims[-2:])
    if tol is None:
        limit = _cutoff(s, size * _epsilon(x) if rtol is None else rtol)
    else:
        given = to_dtype(tol, s.type.dtype)
        limit = broadcast_to(expand_dims(given, -1) if given.type.dims else given, s.type.dims)
    return sum_(gt(s, limit), -1, i64)


def pinv(a: Operand, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Atom:
    x = _told(a, "pinv", hermitian)
    size = max(_known(d, "pinv") for d in x.type.dims[-2:])
    if rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else size * _epsilon(x) if rtol is None else rtol
    u, s, vh = svd(conj(x) if x.type.dtype.kind == "c" else x, full_matrices=False)
    large = gt(s, _cutoff(s, rcond))
    inverse = select(large, div(like(s, 1), select(large, s, like(s, 1))), like(s, 0))
    scaled = mul(turned(u), as_dtype(along_rows(inverse, turned(u)), u))
    return matmul(turned(vh), scaled)


def lstsq(a: Operand, b: Operand, rcond: Any = None) -> Any:
    """By singular values: solution, residuals (none where the rank is not full), rank, singular values."""
    x, side = lift(a), lift(b)
    vector = side.type.ndim == 1
    columns = expand_dims(side, 1) if vector else side
    for ndim in (x.type.ndim, columns.type.ndim):
        if ndim != 2:
            raise MatrixError(f"{ndim}-dimensional array given. Array must be two-dimensional", code="product")
    if surely_differ(x.type.dims[0], columns.type.dims[0]):
        raise MatrixError("Incompatible dimensions", remedy="give them equally many rows", code="product")
    x, columns = promote(in_lapack(x), in_lapack(columns))
    m, n = (_known(d, "lstsq") for d in x.type.dims)
    u, s, vh = svd(x, full_matrices=False)
    share = _epsilon(x) * max(m, n) if rcond is None or rcond == -1 else rcond
    large = gt(s, _cutoff(s, share))
    inverse = select(large, div(like(s, 1), select(large, s, like(s, 1))), like(s, 0))
    inside = matmul(adjoint(u), columns)
    scaled = mul(inside, as_dtype(along_rows(inverse, _real_like(inside)), inside))
    solution = matmul(adjoint(vh), scaled)
    rank = sum_(large, -1, i64)
    rest = ufunc(np.subtract, columns, matmul(x, solution))
    size = ufunc(np.absolute, rest)
    squares = sum_(mul(size, size), 0)
    if m <= n:
        residuals = part(squares, 0, 0, 0)
    else:
        sides = _known(columns.type.dims[1], "lstsq")
        count = select(eq(rank, like(rank, n)), like(rank, sides), like(rank, 0))
        residuals = part(squares, 0, 0, as_dim(count, size=fresh_symbol("residuals")).type.value)
    return (squeeze(solution, 1) if vector else solution), residuals, to_dtype(rank, np.int32), s


def _real_like(x: Atom) -> Any:
    """A type of x's shape whose elements are real."""
    return _Shape(x.type.with_dtype(real_dtype(x.type.dtype)))


class _Shape:
    def __init__(self, type_: Any):
        self.type = type_


def cond(x: Operand, p: Any = None) -> Atom:
    a = matrices(x, "cond")
    if p is None or p in (2, -2):
        s = svd(a, compute_uv=False)
        first, last = part(s, s.type.ndim - 1, 0, 1, squeezed=True), amin(s, -1)
        return div(last, first) if p == -2 else div(first, last)
    return ufunc(np.multiply, matrix_norm(a, ord=p), matrix_norm(inv(a), ord=p))


# --- norms, products ---------------------------------------------------------------------------------------


def general_norm(x: Operand, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Atom:
    """`numpy.linalg.norm`, with the norms that need singular values."""
    a = lift(x)
    if isinstance(ord, Var) and ord.type.dtype.kind in "iu":
        raise NeedsValue(ord, "the order of a norm")
    axes = tuple(range(a.type.ndim)) if axis is None else axis if isinstance(axis, (list, tuple)) else (axis,)
    if len(axes) != 2 or not (ord == "nuc" or ord in (2, -2)):
        return norm(x, ord, axis, keepdims)
    rank = a.type.ndim
    moved = moveaxis(a, axes, (-2, -1))
    s = svd(moved, compute_uv=False)
    y = sum_(s, -1) if ord == "nuc" else amax(s, -1, initial=0) if ord == 2 else amin(s, -1)
    return expand_dims(y, tuple(sorted(k % rank for k in axes))) if keepdims else y


def matrix_norm(x: Operand, /, *, keepdims: bool = False, ord: Any = "fro") -> Atom:
    return general_norm(x, ord, (-2, -1), keepdims)


def vector_norm(x: Operand, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Atom:
    a = lift(x)
    if isinstance(axis, (list, tuple)) or axis is None:
        axes = tuple(range(a.type.ndim)) if axis is None else tuple(k % a.type.ndim for k in axis)
        rest = [k for k in range(a.type.ndim) if k not in axes]
        flat = reshape(moveaxis(a, axes, tuple(range(len(axes)))), (-1, *(a.type.dims[k] for k in rest)))
        y = norm(flat, ord, 0)
        return expand_dims(y, axes) if keepdims else y
    return norm(a, ord, axis, keepdims)


def diagonal(x: Operand, /, *, offset: int = 0) -> Atom:
    from .library_creation import diagonal as along

    return along(x, offset, -2, -1)


def trace(x: Operand, /, *, offset: int = 0, dtype: Any = None) -> Atom:
    return sum_(diagonal(x, offset=offset), -1, dtype)


def vecdot(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Atom:
    from .library_products import vecdot as along

    return along(x1, x2, axis)


def multi_dot(arrays: Sequence[Operand]) -> Atom:
    return functools.reduce(dot, arrays)


__all__ = ["solve", "inv", "det", "slogdet", "cholesky", "qr", "eigh", "eig", "svd", "lstsq", "pinv", "cond"]
