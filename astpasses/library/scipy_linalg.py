"""Functions of `scipy.linalg` in plain NumPy: they are staged as a user's own functions are.

In: the arguments of the call, by SciPy's names. Out: what SciPy gives, in its dtypes. What a program has no
parameter for, `scipy_calls` refuses or passes over.

    scipy.linalg.cholesky(a)    is   np.linalg.cholesky(a, upper=True), of numbers that are finite
"""

from __future__ import annotations

import numpy as np


def lapack_dtype(*dtypes):
    """The least of LAPACK's dtypes that holds these."""
    return next(np.dtype(char) for char in "fdFD" if all(np.can_cast(dtype, char) for dtype in dtypes))


def refuse(what):
    """Stands for the refusal of what has no translation (`scipy_calls.refuse_what`)."""


def finite(a, check_finite):
    """a as an array, which must not hold what LAPACK can't compute with."""
    a = np.asarray(a)
    if check_finite and a.dtype.kind in "fc" and not np.isfinite(a).all():
        raise ValueError("array must not contain infs or NaNs")
    return a


def matrices(a, check_finite, square=False):
    """a as stacks of matrices in a dtype of LAPACK's."""
    a = finite(a, check_finite)
    if a.ndim < 2:
        raise ValueError(f"Expected at least ndim=2, got a1.ndim={a.ndim}")
    if square and a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Expected square matrix, got a1.shape={a.shape}")
    return a.astype(lapack_dtype(a.dtype))


# --- systems of equations ---


def mirrored(a, lower, conjugate):
    """What one triangle of a symmetric or Hermitian matrix says."""
    one = np.tril(a, -1) if lower else np.triu(a, 1)
    other = np.swapaxes(one, -1, -2)
    middle = np.tril(np.triu(a))
    return one + np.real(middle) + np.conj(other) if conjugate else one + middle + other


def as_assumed(a, structure, lower):
    """The matrix of which SciPy reads only what it is told to."""
    if structure in (None, "gen", "general", "banded"):
        return a
    if structure in ("sym", "symmetric"):
        return mirrored(a, lower, False)
    if structure in ("her", "hermitian"):
        return mirrored(a, lower, True)
    if structure in ("pos", "positive definite"):
        a = mirrored(a, lower, True)
        np.linalg.cholesky(a)
        return a
    if structure == "upper triangular":
        return np.triu(a)
    if structure == "lower triangular":
        return np.tril(a)
    if structure == "tridiagonal":
        return np.tril(np.triu(a, -1), 1)
    if structure == "diagonal":
        return np.tril(np.triu(a))
    raise ValueError(f"{structure} is not a recognized matrix structure")


def solve(a, b, lower=False, check_finite=True, assume_a=None, transposed=False):
    a, b = np.atleast_2d(finite(a, check_finite)), np.atleast_1d(finite(b, check_finite))
    whole = np.result_type(a.dtype, b.dtype)
    dtype = lapack_dtype(whole) if whole.kind in "fc" else np.dtype(float)
    a, b = matrices(a, False, True).astype(dtype), b.astype(dtype)
    a = as_assumed(a, assume_a, lower)
    if transposed:
        if dtype.kind == "c":
            raise NotImplementedError(
                "scipy.linalg.solve can currently not solve a^T x = b or a^H x = b for complex matrices."
            )
        a = np.swapaxes(a, -1, -2)
    return np.linalg.solve(a, b)


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, check_finite=True):
    a, b = matrices(a, check_finite, True), finite(b, check_finite)
    dtype = lapack_dtype(a.dtype, b.dtype)
    a = (np.tril(a) if lower else np.triu(a)).astype(dtype)
    if unit_diagonal:
        ones = np.eye(a.shape[-1], dtype=bool)
        a = np.where(ones, np.ones((), dtype), a)
    if trans in (1, "T"):
        a = np.swapaxes(a, -1, -2)
    elif trans in (2, "C"):
        a = np.conj(np.swapaxes(a, -1, -2))
    elif trans not in (0, "N"):
        raise ValueError(f"{trans} is no way to transpose a matrix")
    return np.linalg.solve(a, b.astype(dtype))


def inv(a, check_finite=True):
    return np.linalg.inv(matrices(a, check_finite, True))


def det(a, check_finite=True):
    a = matrices(a, check_finite, True)
    return np.linalg.det(a.astype(np.result_type(a.dtype, np.float64)))


def lstsq(a, b, cond=None, check_finite=True):
    a, b = matrices(a, check_finite), finite(b, check_finite)
    if a.ndim != 2 or b.ndim not in (1, 2):
        refuse("scipy.linalg.lstsq of stacks of matrices")
    m, n = a.shape
    if m != b.shape[0]:
        raise ValueError(f"Shape mismatch: a and b should have the same number of rows ({m} != {b.shape[0]}).")
    dtype = lapack_dtype(a.dtype, b.dtype)
    x, _, rank, s = np.linalg.lstsq(a.astype(dtype), b.astype(dtype), np.finfo(dtype).eps if cond is None else cond)
    if m <= n:
        return x, np.zeros((0,), dtype), int(rank), s
    residues = np.sum(np.abs(b - a @ x) ** 2, axis=0)
    if rank < n:
        residues = np.zeros((0,), dtype)
    return x, residues, int(rank), s


def pinv(a, *, atol=None, rtol=None, return_rank=False, check_finite=True):
    a = matrices(a, check_finite)
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    share = max(a.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else rtol
    large = s > (0.0 if atol is None else atol) + np.max(s, -1, keepdims=True, initial=0.0) * share
    inverse = np.where(large, 1 / np.where(large, s, 1), 0)
    made = np.conj(np.swapaxes((u * inverse[..., None, :]) @ vh, -1, -2))
    return (made, np.sum(large, -1)) if return_rank else made


# --- factors, eigenvalues, singular values ---


def cholesky(a, lower=False, check_finite=True):
    return np.linalg.cholesky(matrices(a, check_finite, True), upper=not lower)


def cho_factor(a, lower=False, check_finite=True):
    """The triangle that is not asked for holds what a holds there."""
    a = matrices(a, check_finite, True)
    made = np.linalg.cholesky(a, upper=not lower)
    return made + (np.triu(a, 1) if lower else np.tril(a, -1)), lower


def cho_solve(c_and_lower, b, check_finite=True):
    c, lower = c_and_lower
    c, b = matrices(c, check_finite, True), finite(b, check_finite)
    inner = solve_triangular(c, b, 0 if lower else 2, lower, False, False)
    return solve_triangular(c, inner, 2 if lower else 0, lower, False, False)


def svd(a, full_matrices=True, compute_uv=True, check_finite=True):
    a = matrices(a, check_finite)
    if not compute_uv:
        return np.linalg.svd(a, compute_uv=False)
    u, s, vh = np.linalg.svd(a, full_matrices=full_matrices)
    return u, s, vh


def svdvals(a, check_finite=True):
    return np.linalg.svd(matrices(a, check_finite), compute_uv=False)


def eigh(a, *, lower=True, eigvals_only=False, check_finite=True):
    a = matrices(a, check_finite, True)
    if eigvals_only:
        return np.linalg.eigvalsh(a, "L" if lower else "U")
    values, vectors = np.linalg.eigh(a, "L" if lower else "U")
    return values, vectors


def eigvalsh(a, *, lower=True, check_finite=True):
    return np.linalg.eigvalsh(matrices(a, check_finite, True), "L" if lower else "U")


def eigvals(a, check_finite=True):
    return np.linalg.eigvals(matrices(a, check_finite, True))


def norm(a, ord=None, axis=None, keepdims=False, check_finite=True):
    """BLAS gives a Python float, and so does LAPACK of a matrix that lies without gaps."""
    a = finite(a, check_finite)
    made = np.linalg.norm(a, ord, axis, keepdims)
    if a.dtype.char not in "fdFD" or axis is not None or keepdims or a.ndim not in (1, 2) or 0 in a.shape:
        return made
    if a.ndim == 1:
        return float(made) if ord is None or ord == 2 else made
    return float(made) if (ord == 1 or ord == np.inf) and a.shape[0] > 1 and a.shape[1] > 1 else made


# --- matrices of a form ---


def block_diag(*arrs):
    blocks = [np.atleast_2d(block) for block in arrs] or [np.zeros((1, 0))]
    if any(block.ndim > 2 for block in blocks):
        refuse("scipy.linalg.block_diag of stacks of matrices")
    dtype = np.result_type(*[block.dtype for block in blocks])
    rows, columns = [block.shape[0] for block in blocks], [block.shape[1] for block in blocks]
    made = np.zeros((sum(rows), sum(columns)), dtype)
    row, column = 0, 0
    for k in range(len(blocks)):
        made[row : row + rows[k], column : column + columns[k]] = blocks[k]
        row, column = row + rows[k], column + columns[k]
    return made


def vector(a, name):
    a = np.atleast_1d(a)
    if a.ndim > 1:
        refuse(f"scipy.linalg.{name} of an array of {a.ndim} dimensions")
    return a


def toeplitz(c, r=None):
    c = vector(c, "toeplitz")
    r = np.conj(c) if r is None else vector(r, "toeplitz")
    values = np.concatenate((c[::-1], r[1:]))
    return values[len(c) - 1 - np.arange(len(c))[:, None] + np.arange(len(r))]


def hankel(c, r=None):
    c = vector(c, "hankel")
    r = np.zeros_like(c) if r is None else vector(r, "hankel")
    values = np.concatenate((c, r[1:]))
    return values[np.arange(len(c))[:, None] + np.arange(len(r))]


def circulant(c):
    c = vector(c, "circulant")
    return c[(np.arange(len(c))[:, None] - np.arange(len(c))) % len(c)]


PADE = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)


def exponential(a):
    """By scaling, a Padé approximant of degree 13, and squaring (Higham 2005)."""
    one = np.eye(a.shape[0])
    times = max(int(np.frexp(np.abs(a).sum(axis=0).max() / 5.371920351148152)[1]), 0)
    x = a * np.ldexp(1.0, -times)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x2 @ x4
    odd = x6 @ (PADE[13] * x6 + PADE[11] * x4 + PADE[9] * x2)
    odd = x @ (odd + PADE[7] * x6 + PADE[5] * x4 + PADE[3] * x2 + PADE[1] * one)
    even = x6 @ (PADE[12] * x6 + PADE[10] * x4 + PADE[8] * x2)
    even = even + PADE[6] * x6 + PADE[4] * x4 + PADE[2] * x2 + PADE[0] * one
    made = np.linalg.solve(even - odd, even + odd)
    for _ in range(times):
        made = made @ made
    return made


def expm(A):
    a = np.asarray(A)
    if a.ndim < 2 and a.size == 1:
        return np.reshape(np.exp(a.astype(np.result_type(a.dtype, np.float64))), (1, 1))
    if a.ndim < 2:
        raise np.linalg.LinAlgError("The input array must be at least two-dimensional")
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    if a.ndim > 2:
        refuse("scipy.linalg.expm of a stack of matrices")
    if a.shape[-1] == 1 and a.dtype.kind in "fc":
        return np.exp(a)
    dtype = np.dtype(np.float32) if a.dtype == np.float16 else np.result_type(a.dtype, np.float32)
    dtype = dtype if a.dtype.kind in "fc" else np.dtype(np.float64)
    if a.shape[-1] == 0:
        return a.astype(dtype)
    return exponential(a.astype(np.result_type(dtype, np.float64))).astype(dtype)
