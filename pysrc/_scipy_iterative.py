"""Linear equations by iteration, by the names of `scipy.sparse.linalg`: what its functions are in translated code.

In: a matrix as an array, a function of vectors or a LinearOperator, and a right side. Out: the solution and SciPy's
`info`, by SciPy's algorithms and tolerances. Its derivative is that of A x = b (`lax.custom_linear_solve`), solved by
the same iteration; it reaches b and all that A is made of.

    x, info = scipy.sparse.linalg.cg(lambda v: A @ (A.T @ v) + v, b)

(Saad, Iterative Methods for Sparse Linear Systems, ch. 6, 7 and 9; SciPy's `_isolve/iterative.py`.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._implicit import custom_linear_solve
from .api.implicit import refuse
from .api.public import vjp


class LinearOperator:
    """A matrix that is known by its products with vectors."""

    def __init__(
        self,
        shape: tuple,
        matvec: Callable,
        rmatvec: Any = None,
        matmat: Any = None,
        dtype: Any = None,
        rmatmat: Any = None,
    ):
        self.shape, self.matvec = shape, matvec

    def dot(self, x: Any) -> Any:
        return self.matvec(x)

    def __matmul__(self, x: Any) -> Any:
        return self.matvec(x)


def _product(A: Any, what: str) -> Callable:
    """What multiplies a vector by A."""
    if hasattr(A, "matvec"):
        return getattr(A, "_CustomLinearOperator__matvec_impl", A.matvec)
    if callable(A):
        return A
    if hasattr(A, "tocsr"):
        refuse(f"scipy.sparse.linalg.{what} of a sparse matrix", "give its product with a vector as a function")
    matrix = np.asarray(A)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"expected square matrix, but got shape={matrix.shape}")
    return lambda v: matrix @ v


def aslinearoperator(A: Any) -> LinearOperator:
    return LinearOperator(np.shape(A), _product(A, "aslinearoperator"))


def _solved(
    what: str, search: Callable, A: Any, b: Any, x0: Any, tolerances: tuple, M: Any, callback: Any, symmetric: bool
) -> tuple:
    """The solution, and how the search ended: `search(matvec, psolve, b, atol) -> x, info`."""
    if callback is not None:
        refuse(f"scipy.sparse.linalg.{what} with callback=", "leave it out")
    rtol, atol = tolerances
    if atol < 0:
        raise ValueError(
            f"'scipy.sparse.linalg.{what}' called with invalid `atol`={atol}; if set, `atol` must be a real, "
            "non-negative number."
        )
    product, psolve = _product(A, what), (lambda v: v) if M is None else _product(M, what)
    b = np.reshape(np.asarray(b), -1)
    dtype = np.result_type(b.dtype, product(b).dtype, np.float32)
    if dtype.kind == "c" and what == "gmres":
        refuse("scipy.sparse.linalg.gmres of complex numbers", "use bicgstab")
    right = b.astype(dtype)
    guess = None if x0 is None else np.reshape(np.asarray(x0), -1).astype(dtype)
    side = right if guess is None else right - product(guess)

    def matvec(v: Any) -> Any:
        return product(v).astype(dtype)

    def solve(matvec: Callable, b: Any) -> tuple:
        return search(matvec, psolve, b, max(atol, rtol * float(np.linalg.norm(b))))

    def back(vecmat: Callable, b: Any) -> tuple:
        transposed = psolve if M is None else lambda v: vjp(psolve, np.zeros_like(v))[1](v)[0]
        return search(vecmat, transposed, b, max(atol, rtol * float(np.linalg.norm(b))))

    x, info = custom_linear_solve(
        matvec, side, solve, None if symmetric and dtype.kind == "f" else back, symmetric and dtype.kind == "f", True
    )
    return (x if guess is None else guess + x), info


def _dot(x: Any, y: Any) -> Any:
    return np.vdot(x, y) if x.dtype.kind == "c" else np.dot(x, y)


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
) -> tuple:
    def search(matvec: Callable, psolve: Callable, b: Any, atol: float) -> tuple:
        x, r, p = np.zeros_like(b), b, np.zeros_like(b)
        limit = 10 * b.shape[0] if maxiter is None else maxiter
        rho, count = _dot(b, b) * 0 + 1, 0
        while count < limit and np.linalg.norm(r) >= atol and np.linalg.norm(r) > 0:
            z = psolve(r)
            before, rho = rho, _dot(r, z)
            p = z + (rho / before) * p
            q = matvec(p)
            alpha = rho / _dot(p, q)
            x = x + alpha * p
            r = r - alpha * q
            count += 1
        return x, _ended(count, limit)

    return _solved("cg", search, A, b, x0, (rtol, atol), M, callback, True)


def _ended(count: Any, limit: Any) -> Any:
    """SciPy asks before each step whether it is done, and not behind the last."""
    return limit if count >= limit else 0


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
) -> tuple:
    def search(matvec: Callable, psolve: Callable, b: Any, atol: float) -> tuple:
        x, r, p, v = np.zeros_like(b), b, np.zeros_like(b), np.zeros_like(b)
        tiny = float(np.finfo(b.dtype).eps) ** 2
        limit = 10 * b.shape[0] if maxiter is None else maxiter
        one = _dot(b, b) * 0 + 1
        rho, alpha, omega = one, one, one
        count, info, going = 0, limit, limit > 0
        while going:
            before, rho = rho, _dot(b, r)
            if np.linalg.norm(r) < atol or np.linalg.norm(r) == 0:
                info, going = 0, False
            elif np.abs(rho) < tiny:
                info, going = -10, False
            elif np.abs(omega) < tiny:
                info, going = -11, False
            else:
                p = r + (rho / before) * (alpha / omega) * (p - omega * v)
                ahead = psolve(p)
                v = matvec(ahead)
                along = _dot(b, v)
                if along == 0:
                    info, going = -11, False
                else:
                    alpha = rho / along
                    s = r - alpha * v
                    x = x + alpha * ahead
                    if np.linalg.norm(s) < atol:
                        info, going = 0, False
                    else:
                        beside = psolve(s)
                        t = matvec(beside)
                        omega = _dot(t, s) / _dot(t, t)
                        x = x + omega * beside
                        r = s - omega * t
                        count += 1
                        going = count < limit
        return x, info

    return _solved("bicgstab", search, A, b, x0, (rtol, atol), M, callback, False)


def _rotation(f: Any, g: Any) -> tuple:
    """Givens's rotation that takes (f, g) to (r, 0), as LAPACK's lartg."""
    if g == 0:
        return f * 0 + 1, g * 0, f
    if f == 0:
        return f * 0, np.sign(g), np.abs(g)
    r = np.copysign(np.sqrt(f * f + g * g), f)
    return f / r, g / r, r


def _cycle(matvec: Callable, psolve: Callable, r: Any, restart: Any, ptol: Any) -> tuple:
    """One cycle of GMRES: what it adds to x, the size of what is left, and whether no more can be found."""
    n, eps = r.shape[0], float(np.finfo(r.dtype).eps)
    basis, h = np.zeros((restart + 1, n), r.dtype), np.zeros((restart, restart + 1), r.dtype)
    turns, side = np.zeros((restart, 2), r.dtype), np.zeros(restart + 1, r.dtype)
    start = psolve(r)
    size = np.linalg.norm(start)
    basis[0] = start / size
    side[0] = size
    count, broken, left = 0, False, size
    going = True
    while going:
        w = psolve(matvec(basis[count]))
        whole = np.linalg.norm(w)
        for k in range(count + 1):
            h[count, k] = basis[k] @ w
            w = w - h[count, k] * basis[k]
        rest = np.linalg.norm(w)
        broken = bool(rest <= eps * whole)
        h[count, count + 1] = 0.0 if broken else rest
        basis[count + 1] = w if broken else w / rest
        for k in range(count):
            first, second = h[count, k], h[count, k + 1]
            h[count, k] = turns[k, 0] * first + turns[k, 1] * second
            h[count, k + 1] = turns[k, 0] * second - turns[k, 1] * first
        c, s, r_ = _rotation(h[count, count], h[count, count + 1])
        turns[count, 0], turns[count, 1] = c, s
        h[count, count], h[count, count + 1] = r_, 0.0
        side[count + 1] = -s * side[count]
        side[count] = c * side[count]
        left = np.abs(side[count + 1])
        count += 1
        going = count < restart and left > ptol and not broken
    y = np.zeros(restart, r.dtype)
    for k in range(count - 1, -1, -1):
        y[k] = 0.0 if h[k, k] == 0 else (side[k] - h[:, k] @ y) / h[k, k]
    return y @ basis[:restart], left, broken


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    callback_type: Any = None,
) -> tuple:
    def search(matvec: Callable, psolve: Callable, b: Any, atol: float) -> tuple:
        n, eps = b.shape[0], float(np.finfo(b.dtype).eps)
        limit = 10 * n if maxiter is None else maxiter
        width = min(20 if restart is None else restart, n)
        x, r, size = np.zeros_like(b), b, np.linalg.norm(b)
        share, count, going = 1.0, 0, bool(size >= atol) and bool(size > 0)
        ptol = np.linalg.norm(psolve(b)) * min(1.0, atol / (size if size > 0 else 1.0))
        while going and count < limit:
            step, left, broken = _cycle(matvec, psolve, r, width, ptol)
            x = x + step
            r = b - matvec(x)
            size = np.linalg.norm(r)
            count += 1
            going = bool(size > atol) and not broken
            share = max(eps, 0.25 * share) if left <= ptol else min(1.0, 1.5 * share)
            ptol = left * min(share, atol / (size if size > 0 else 1.0))
        return x, 0 if size <= atol else limit

    return _solved("gmres", search, A, b, x0, (rtol, atol), M, callback, False)
