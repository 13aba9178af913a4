"""Linear algebra by LAPACK on stacks of matrices: solve, inverse, slogdet, cholesky, qr, eigh, svd, eig.

In: arrays [..., m, n] of f32, f64, c64 or c128. Out: what NumPy's functions of these names give, and, where
LAPACK may fail, a flag for each matrix: the library turns it into a LinAlgError.

    x, singular = solve(a, b, transposed=False)     # a: f64[..., n, n], b: f64[..., n, k]

Derivatives: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), for solve, slogdet, eigh; I. Murray, "Differentiation of the Cholesky decomposition"
(2016); S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2010), for qr;
J. Townsend, "Differentiating the singular value decomposition" (2016), after M. Seeger et al., "Auto-
differentiating linear algebra" (2017). Only the tangents are written: cotangents follow by transposition, as
every rule is linear in the tangent. `solve` and `triangular_solve` are linear in their right side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.native import Composite, Lib
from ..core.primitive import Accumulate, Joint, NotLinear, Primitive
from ..core.relation import Dims, Relation
from ..core.types import Array
from ..source import UnsupportedError
from .arithmetic import add, div, mul, neg, sub
from .compare import eq, select
from .complex_numbers import complex_, conj, imag, real
from .families import like, real_dtype, require
from .matrices import (
    adjoint,
    along_columns,
    along_rows,
    as_dtype,
    diagonal_of,
    diagonal_part,
    hermitian_from_lower,
    lower_part,
    places,
    product,
    turned,
    upper_part,
    zero_like,
)
from .reduce import reduce_any, reduce_sum, spread
from .unit_matrix import eye

NUMBERS = ("f4", "f8", "c8", "c16")


def lapack_matrices(a: Array, square: bool, name: str) -> None:
    require(a.dtype.str[1:] in NUMBERS, lambda: f"{name}: needs f32, f64, c64 or c128, got {a}")
    require(a.ndim >= 2, lambda: f"{name}: needs matrices, got {a}")
    require(not square or a.dims[-1] == a.dims[-2], lambda: f"{name}: needs square matrices, got {a}")


def _flag(a: Array) -> Array:
    return Array(np.dtype(bool), a.dims[:-2])


def _each(function: Any, outs: int, *arrays: Any) -> tuple:
    """`function` on each matrix of stacks that NumPy refuses as a whole."""
    lead = arrays[0].shape[:-2]
    made = [function(*(x[index] for x in arrays)) for index in np.ndindex(*lead)]
    return tuple(np.asarray([m[k] for m in made]).reshape((*lead, *np.shape(made[0][k])))[()] for k in range(outs))


def _tried(function: Any, failed: Any) -> Any:
    """`function(*arrays)` with a flag of False, or `failed(*arrays)` with True, for each matrix."""

    def run(*arrays: Any) -> tuple:
        try:
            made = function(*arrays)
            return (*made, np.zeros(arrays[0].shape[:-2], bool)[()])
        except np.linalg.LinAlgError:
            if arrays[0].ndim == 2:
                return (*failed(*arrays), np.True_)
        return _each(run, 1 + len(failed(*(x[(0,) * (x.ndim - 2)] for x in arrays))), *arrays)

    return run


def _stacked(*ranks: int) -> Dims:
    """How dims relate in stacks: matrices are needed whole. `ranks`: of what each result has for a matrix."""

    def relation(*types: Array, **attributes: Any) -> Relation:
        lead = range(types[0].ndim - 2)
        return ((*lead, None, None),) * len(types), [(*lead, *[None] * rank) for rank in ranks]

    return Dims(relation)


# --- systems of equations ----------------------------------------------------------------------------------


def _solve_type(a: Array, b: Array, *, transposed: bool) -> tuple:
    lapack_matrices(a, True, "solve")
    require(
        a.dtype == b.dtype and b.ndim == a.ndim and b.dims[:-1] == a.dims[:-1], lambda: f"solve: {a} and {b} do not fit"
    )
    return b.plain, _flag(a)


def _solve_numpy(a: Any, b: Any, *, transposed: bool) -> tuple:
    matrix = np.swapaxes(a, -1, -2) if transposed else a
    return _tried(lambda m, r: (np.linalg.solve(m, r),), lambda m, r: (np.full_like(r, np.nan),))(matrix, b)


def _solve_jvp(args: tuple, dots: tuple, *, transposed: bool) -> tuple:
    (a, b), (a_dot, b_dot) = args, dots
    x, singular = solve(a, b, transposed=transposed)
    side = b_dot
    if a_dot is not None:
        moved = product(turned(a_dot) if transposed else a_dot, x)
        side = neg(moved) if side is None else sub(side, moved)
    return (x, singular), (solve(a, side, transposed=transposed)[0], None)


def _solve_transpose(out_bars: tuple, accs: dict, args: tuple, *, transposed: bool) -> dict:
    made = solve(args[0], out_bars[0], transposed=not transposed)[0]
    return {1: made if accs[1] is None else add(accs[1], made)}


solve: Primitive = Primitive(
    "solve",
    type=_solve_type,
    numpy=_solve_numpy,
    jvp=Joint(_solve_jvp),
    transpose=Accumulate(_solve_transpose),
    dims=_stacked(2, 0),
    native=Lib("solve"),
    multiple=True,
    doc="x with a @ x == b (a transposed if `transposed`), and whether a is singular.",
)


def _triangular_type(a: Array, b: Array, *, lower: bool, transposed: bool) -> Array:
    return _solve_type(a, b, transposed=transposed)[0]


def _triangular_numpy(a: Any, b: Any, *, lower: bool, transposed: bool) -> Any:
    matrix = np.tril(a) if lower else np.triu(a)
    return _solve_numpy(matrix, b, transposed=transposed)[0]


def _triangular_jvp(args: tuple, dots: tuple, *, lower: bool, transposed: bool) -> tuple:
    (a, b), (a_dot, side) = args, dots
    how = {"lower": lower, "transposed": transposed}
    x = triangular_solve(a, b, **how)
    if a_dot is not None:
        part = lower_part(a_dot) if lower else upper_part(a_dot)
        moved = product(turned(part) if transposed else part, x)
        side = neg(moved) if side is None else sub(side, moved)
    return (x,), (triangular_solve(a, side, **how),)


def _triangular_transpose(out_bars: tuple, accs: dict, args: tuple, *, lower: bool, transposed: bool) -> dict:
    made = triangular_solve(args[0], out_bars[0], lower=lower, transposed=not transposed)
    return {1: made if accs[1] is None else add(accs[1], made)}


triangular_solve: Primitive = Primitive(
    "triangular_solve",
    type=_triangular_type,
    numpy=_triangular_numpy,
    jvp=Joint(_triangular_jvp),
    transpose=Accumulate(_triangular_transpose),
    dims=_stacked(2),
    native=Lib("triangular_solve"),
    doc="x with tril(a) @ x == b, or triu(a), or these transposed.",
)


def _inverse_type(a: Array) -> Array:
    lapack_matrices(a, True, "inverse")
    return a.plain


def _inverse_written(a: Any) -> Any:
    size = a.type.dims[-1]
    unit = eye(rows=size, columns=size, diagonal=0, dtype=a.type.dtype)
    return solve(a, spread(unit, a, tuple(range(a.type.ndim - 2))), transposed=False)[0]


def _inverse_numpy(a: Any) -> Any:
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        singular = np.linalg.slogdet(a)[0] == 0
        return np.linalg.inv(np.where(singular[..., None, None], np.nan, a).astype(a.dtype, copy=False))


inverse: Primitive = Primitive(
    "inverse",
    type=_inverse_type,
    numpy=_inverse_numpy,
    jvp=(lambda a_dot, y, a: neg(product(y, product(a_dot, y))),),
    transpose=NotLinear,
    dims=_stacked(2),
    native=Composite(_inverse_written),
    doc="The inverse matrices; NaN where there is none, without an error.",
)


# --- determinants ------------------------------------------------------------------------------------------


def _slogdet_type(a: Array) -> tuple:
    lapack_matrices(a, True, "slogdet")
    return Array(a.dtype, a.dims[:-2]), Array(real_dtype(a.dtype), a.dims[:-2])


def _slogdet_jvp(args: tuple, dots: tuple) -> tuple:
    """d log|det a| = trace(a^-1 a_dot); the sign of a complex determinant turns by the imaginary part."""
    (a,), (a_dot,) = args, dots
    sign, logarithm = slogdet(a)
    trace = reduce_sum(mul(turned(inverse(a)), a_dot), axes=(a.type.ndim - 2, a.type.ndim - 1))
    if a.type.dtype.kind != "c":
        return (sign, logarithm), (None, trace)
    still = zero_like(real(trace))
    return (sign, logarithm), (mul(sign, complex_(still, imag(trace))), real(trace))


slogdet: Primitive = Primitive(
    "slogdet",
    type=_slogdet_type,
    numpy=lambda a: tuple(np.linalg.slogdet(a)),
    jvp=Joint(_slogdet_jvp),
    transpose=NotLinear,
    dims=_stacked(0, 0),
    native=Lib("slogdet"),
    multiple=True,
    doc="The sign of the determinant and the logarithm of its absolute value.",
)


# --- factors -----------------------------------------------------------------------------------------------


def _cholesky_type(a: Array) -> tuple:
    lapack_matrices(a, True, "cholesky")
    return a.plain, _flag(a)


def _cholesky_jvp(args: tuple, dots: tuple) -> tuple:
    """L_dot = L Phi(L^-1 a_dot L^-H), Phi: the lower triangle with half the diagonal."""
    low, failed = cholesky(args[0])
    a_dot = hermitian_from_lower(dots[0])

    def divided(b: Any) -> Any:
        """L^-1 b"""
        return triangular_solve(low, b, lower=True, transposed=False)

    middle = adjoint(divided(adjoint(divided(a_dot))))
    half = add(lower_part(middle, strict=True), mul(diagonal_part(middle), like(middle, 0.5)))
    return (low, failed), (product(low, half), None)


cholesky: Primitive = Primitive(
    "cholesky",
    type=_cholesky_type,
    numpy=_tried(lambda a: (np.linalg.cholesky(a),), lambda a: (np.full_like(a, np.nan),)),
    jvp=Joint(_cholesky_jvp),
    transpose=NotLinear,
    dims=_stacked(2, 0),
    native=Lib("cholesky"),
    multiple=True,
    doc="The lower L with L L^H == a, of which the lower triangle is read; whether there is none.",
)


def _qr_type(a: Array, *, full: bool) -> tuple:
    lapack_matrices(a, False, "qr")
    m, n = a.dims[-2:]
    require(isinstance(m, int) and isinstance(n, int), lambda: f"qr: needs known sizes, got {a}")
    k = m if full else min(m, n)  # type: ignore[type-var]
    lead = a.dims[:-2]
    return Array(a.dtype, (*lead, m, k)), Array(a.dtype, (*lead, k, n))


def _qr_jvp(args: tuple, dots: tuple, *, full: bool) -> tuple:
    (a,), (a_dot,) = args, dots
    m, n = a.type.dims[-2:]
    if m < n or full and m != n:
        raise UnsupportedError(
            "the derivative of a complete QR decomposition is not known here",
            remedy="use mode='reduced'",
            code="derivative",
        )
    q, r = qr(a, full=full)
    corner = diagonal_of(r)
    missing = reduce_any(eq(corner, zero_like(corner)), axes=(corner.type.ndim - 1,))  # no derivative, and no error
    divisor = select(spread(missing, r, (r.type.ndim - 2, r.type.ndim - 1)), like(r, np.nan), r)
    scaled = turned(triangular_solve(divisor, turned(a_dot), lower=False, transposed=True))  # a_dot r^-1
    inside = product(adjoint(q), scaled)
    low = lower_part(inside, strict=True)
    spin = sub(low, adjoint(low))
    if a.type.dtype.kind == "c":
        diagonal = diagonal_part(inside)
        spin = add(spin, complex_(zero_like(real(diagonal)), imag(diagonal)))
    return (q, r), (add(product(q, sub(spin, inside)), scaled), product(sub(inside, spin), r))


qr: Primitive = Primitive(
    "qr",
    type=_qr_type,
    numpy=lambda a, *, full: tuple(np.linalg.qr(a, "complete" if full else "reduced")),
    jvp=Joint(_qr_jvp),
    transpose=NotLinear,
    dims=_stacked(2, 2),
    native=Lib("qr"),
    multiple=True,
    doc="q and r with a == q @ r; q is square if `full`.",
)


# --- eigenvalues and singular values -----------------------------------------------------------------------


def _eigh_type(a: Array) -> tuple:
    lapack_matrices(a, True, "eigh")
    return Array(real_dtype(a.dtype), a.dims[:-1]), a.plain, _flag(a)


def _reciprocal_gaps(values: Any, matrix: Any) -> Any:
    """1 / (values[j] - values[i]) at [i, j], 0 on the diagonal."""
    gap = sub(along_columns(values, matrix), along_rows(values, matrix))
    on = eq(*places(matrix))
    return select(on, zero_like(gap), div(like(gap, 1), select(on, like(gap, 1), gap)))


def _eigh_jvp(args: tuple, dots: tuple) -> tuple:
    values, vectors, failed = eigh(args[0])
    inside = product(adjoint(vectors), product(hermitian_from_lower(dots[0]), vectors))
    values_dot = diagonal_of(inside)
    values_dot = real(values_dot) if inside.type.dtype.kind == "c" else values_dot
    real_part = real(inside) if inside.type.dtype.kind == "c" else inside
    weights = as_dtype(_reciprocal_gaps(values, real_part), inside)
    return (values, vectors, failed), (values_dot, product(vectors, mul(weights, inside)), None)


def _eigh_failed(a: Any) -> tuple:
    return np.full(a.shape[0], np.nan, a.real.dtype), np.full_like(a, np.nan)


eigh: Primitive = Primitive(
    "eigh",
    type=_eigh_type,
    numpy=_tried(lambda a: tuple(np.linalg.eigh(a)), _eigh_failed),
    jvp=Joint(_eigh_jvp),
    transpose=NotLinear,
    dims=_stacked(1, 2, 0),
    native=Lib("eigh"),
    multiple=True,
    doc="Eigenvalues in rising order and eigenvectors of the Hermitian lower triangle.",
)


def _svd_type(a: Array, *, full: bool) -> tuple:
    lapack_matrices(a, False, "svd")
    m, n = a.dims[-2:]
    require(m == n or isinstance(m, int) and isinstance(n, int), lambda: f"svd: needs known sizes, got {a}")
    k, lead = m if m == n else min(m, n), a.dims[:-2]  # type: ignore[type-var]
    return (
        Array(a.dtype, (*lead, m, m if full else k)),
        Array(real_dtype(a.dtype), (*lead, k)),
        Array(a.dtype, (*lead, n if full else k, n)),
        _flag(a),
    )


def _svd_jvp(args: tuple, dots: tuple, *, full: bool) -> tuple:
    (a,), (a_dot,) = args, dots
    m, n = a.type.dims[-2:]
    if full and m != n:
        raise UnsupportedError(
            "the derivative of an SVD with full_matrices=True is not known",
            remedy="pass full_matrices=False",
            code="derivative",
        )
    u, s, vh, failed = svd(a, full=full)
    v = adjoint(vh)
    inside = product(adjoint(u), product(a_dot, v))  # U^H a_dot V
    s_dot = diagonal_of(inside)
    real_inside = real(inside) if a.type.dtype.kind == "c" else inside
    s_dot = real(s_dot) if a.type.dtype.kind == "c" else s_dot
    weights = as_dtype(_reciprocal_gaps(mul(s, s), real_inside), inside)
    by_columns = mul(as_dtype(along_columns(s, real_inside), inside), inside)
    by_rows = mul(as_dtype(along_rows(s, real_inside), inside), inside)
    zero = eq(s, zero_like(s))
    inverse = select(zero, zero_like(s), div(like(s, 1), select(zero, like(s, 1), s)))
    phase = mul(
        as_dtype(along_columns(mul(inverse, like(s, 0.5)), real_inside), inside),
        diagonal_part(sub(inside, adjoint(inside))),
    )
    u_dot = product(u, add(mul(weights, add(by_columns, adjoint(by_columns))), phase))
    v_dot = product(v, mul(weights, add(by_rows, adjoint(by_rows))))
    if m != n and m > n:
        u_dot = add(u_dot, _outside(product(a_dot, v), u, inverse))
    if m != n and n > m:
        v_dot = add(v_dot, _outside(product(adjoint(a_dot), u), v, inverse))
    return (u, s, vh, failed), (u_dot, s_dot, adjoint(v_dot), None)


def _outside(moved: Any, basis: Any, inverse: Any) -> Any:
    """The part of `moved` that the orthonormal columns of `basis` do not span, by 1/s."""
    rest = sub(moved, product(basis, product(adjoint(basis), moved)))
    real_rest = real(rest) if rest.type.dtype.kind == "c" else rest
    return mul(rest, as_dtype(along_columns(inverse, real_rest), rest))


def _svd_failed(full: bool) -> Any:
    def failed(a: Any) -> tuple:
        types = _svd_type(Array(a.dtype, a.shape), full=full)
        return tuple(np.full(t.dims, np.nan, t.dtype) for t in types[:3])

    return failed


svd: Primitive = Primitive(
    "svd",
    type=_svd_type,
    numpy=lambda a, *, full: _tried(lambda x: tuple(np.linalg.svd(x, full)), _svd_failed(full))(a),
    jvp=Joint(_svd_jvp),
    transpose=NotLinear,
    dims=_stacked(2, 1, 2, 0),
    native=Lib("svd"),
    multiple=True,
    doc="u, s, vh with a == u @ diag(s) @ vh; u and vh are square if `full`.",
)


def _eig_type(a: Array) -> tuple:
    lapack_matrices(a, True, "eig")
    wide = np.dtype("complex64") if a.dtype in (np.float32, np.complex64) else np.dtype("complex128")
    return Array(wide, a.dims[:-1]), Array(wide, a.dims), _flag(a)


def _eig_numpy(a: Any) -> tuple:
    wide = _eig_type(Array(a.dtype, a.shape))[0].dtype

    def found(x: Any) -> tuple:
        values, vectors = np.linalg.eig(x)
        return values.astype(wide), vectors.astype(wide)

    return _tried(found, lambda x: (np.full(x.shape[0], np.nan, wide), np.full(x.shape, np.nan, wide)))(a)


def _eig_jvp(args: tuple, dots: tuple) -> tuple:
    """The values' part; the vectors' length and phase are conventions: each stays of length 1, and orthogonal
    to its own change."""
    values, vectors, failed = eig(args[0])
    a_dot = dots[0] if dots[0].type.dtype.kind == "c" else complex_(dots[0], zero_like(dots[0]))
    inside = solve(vectors, product(a_dot, vectors), transposed=False)[0]
    on = eq(*places(inside))
    gap = sub(along_columns(values, inside), along_rows(values, inside))
    weights = select(on, zero_like(gap), div(like(gap, 1), select(on, like(gap, 1), gap)))
    change = product(vectors, mul(weights, inside))
    along = reduce_sum(mul(conj(vectors), change), axes=(change.type.ndim - 2,))
    change = sub(change, mul(vectors, along_columns(along, vectors)))
    return (values, vectors, failed), (diagonal_of(inside), change, None)


eig: Primitive = Primitive(
    "eig",
    type=_eig_type,
    numpy=_eig_numpy,
    jvp=Joint(_eig_jvp),
    transpose=NotLinear,
    dims=_stacked(1, 2, 0),
    native=Lib("eig"),
    multiple=True,
    doc="Eigenvalues and eigenvectors of square matrices, complex.",
)
