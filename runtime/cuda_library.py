"""What a program on the GPU asks of a library: products, linear algebra, order, Fourier transforms, by CuPy.

In: the module `cupy`, the name of a primitive, device arrays that it reads and device arrays that it fills (views of
any strides, one matrix or line or stacks of them), and the primitive's attributes. Out: 0; or 1 + which of the sites of
the call failed, as calls of the CPU's libraries return it (`told` gives the numbers of the message). Example:

    library(cupy, "solve", (a, b), (x, singular), transposed=False)     # fills x; singular[...] = whether a is

The meaning of each is the primitive's NumPy rule. CuPy has NumPy's names, so `xp` may be NumPy itself, and is in the
tests; where CuPy differs it says so here. A matrix that has no factors or solution is no failure of the call: NaN goes
into its results and True into its flag, which the program turns into LinAlgError.

CuPy looks at cuSOLVER's own flag only under `cupyx.errstate(linalg="raise")`, else it gives garbage for a singular
matrix. Looking waits for the GPU, once for a call. Matrix products take TF32 only where CUPY_TF32=1 says so.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MOST = 2147483647  # the libraries count rows and columns in ints of 32 bits
TOO_LARGE = 1  # the first site of every call that has one


def library(xp: Any, operation: str, reads: Sequence[Any], writes: Sequence[Any], **attributes: Any) -> int:
    """Compute a primitive of `reads` into `writes`."""
    if operation not in OPERATIONS:
        raise NotImplementedError(f"no library of the GPU computes {operation}")
    if max(told(operation, reads, **attributes), default=0) > MOST:
        return TOO_LARGE
    OPERATIONS[operation](xp, tuple(reads), tuple(writes), **attributes)
    return 0


def told(operation: str, reads: Sequence[Any], **attributes: Any) -> tuple[int, ...]:
    """The sizes that a library counts; they stand in the message of a call whose sizes are too large."""
    if operation == "dot_general":
        m, n, count = _sizes(reads, *_free(reads, **attributes), **attributes)
        return m, count, n
    return tuple(reads[0].shape[-2:]) if operation in COUNTED else ()


# --- products ------------------------------------------------------------------------------------------------


def _free(reads: Sequence[Any], *, contract: tuple, batch: tuple) -> list[list[int]]:
    """The axes of each operand that are neither summed up nor in common."""
    return [
        [k for k in range(x.ndim) if k not in summed and k not in common]
        for x, summed, common in zip(reads, contract, batch)
    ]


def _sizes(reads: Sequence[Any], rows: list, columns: list, *, contract: tuple, batch: tuple) -> list[int]:
    """The rows and columns of the product, and how many products are added up."""
    a, b = reads
    return [math.prod(x.shape[k] for k in axes) for x, axes in ((a, rows), (b, columns), (a, contract[0]))]


def _dot_general(xp: Any, reads: tuple, writes: tuple, **how: Any) -> None:
    (a, b), (out,), contract, batch = reads, writes, how["contract"], how["batch"]
    rows, columns = _free(reads, **how)
    m, n, count = _sizes(reads, rows, columns, **how)
    lead = tuple(a.shape[k] for k in batch[0])
    left = a.transpose((*batch[0], *rows, *contract[0])).reshape((*lead, m, count))
    right = b.transpose((*batch[1], *contract[1], *columns)).reshape((*lead, count, n))
    if a.dtype.kind == "V":  # bfloat16, of which no library multiplies: a sum of products is rounded once
        left, right = left.astype(np.float32), right.astype(np.float32)
    if a.dtype.kind == "b":  # whether any product is True; CuPy's matmul is of numbers
        left, right = left.astype(np.int32), right.astype(np.int32)
        out[...] = (xp.matmul(left, right) != 0).reshape(out.shape)
    elif out.shape == (*lead, m, n) and out.dtype == left.dtype and out.flags.c_contiguous:
        xp.matmul(left, right, out=out)
    else:
        out[...] = xp.matmul(left, right).reshape(out.shape)


# --- order, Fourier transforms --------------------------------------------------------------------------------


def _ordered(x: Any) -> Any:
    """x, of a dtype that CuPy sorts: bfloat16 as float32, which has all of its numbers."""
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def _sort(xp: Any, reads: tuple, writes: tuple, *, axis: int) -> None:
    if reads[0].size:
        writes[0][...] = xp.sort(_ordered(reads[0]), axis=axis)


def _argsort(xp: Any, reads: tuple, writes: tuple, *, axis: int) -> None:
    if reads[0].size:  # CuPy has this kind of argsort only, and takes this word for it
        writes[0][...] = xp.argsort(_ordered(reads[0]), axis=axis, kind="stable")


def _nonzero(xp: Any, reads: tuple, writes: tuple, *, axis: int, length: int | None = None) -> None:
    (mask,), (out,) = reads, writes
    if not out.size:
        return
    count = out.shape[axis]
    if mask.ndim == 1:  # xp.flatnonzero would wait for the GPU to say how many there are
        out[...] = xp.searchsorted(xp.cumsum(mask, dtype=np.int64), xp.arange(1, count + 1), side="left")
    else:
        out[...] = xp.argsort(~mask, axis=axis, kind="stable").take(xp.arange(count), axis)


def _searchsorted(xp: Any, reads: tuple, writes: tuple, *, right: bool) -> None:
    if writes[0].size:
        a, v = map(_ordered, reads)
        writes[0][...] = xp.searchsorted(a, v, side="right" if right else "left")


def _fft(xp: Any, reads: tuple, writes: tuple, *, axis: int, inverse: bool) -> None:
    (x,), (out,) = reads, writes
    if x.size:  # cuFFT has no plan for nothing
        out[...] = xp.fft.ifft(x, axis=axis, norm="forward") if inverse else xp.fft.fft(x, axis=axis)


# --- linear algebra -------------------------------------------------------------------------------------------


def _told_of_failures(xp: Any) -> contextlib.AbstractContextManager:
    """Where a matrix without factors raises LinAlgError. NumPy's functions always do; CuPy's if they are asked to."""
    return _cupyx().errstate(linalg="raise") if _is_cupy(xp) else np.errstate(all="ignore")


def _is_cupy(xp: Any) -> bool:
    return getattr(xp, "__name__", None) == "cupy"


def _cupyx() -> Any:
    """The one place that imports cupyx: its linear algebra loads cuBLAS."""
    import cupyx
    import cupyx.scipy.linalg

    return cupyx


def _fill(views: Sequence[Any], values: Sequence[Any]) -> None:
    for view, value in zip(views, values, strict=True):
        view[...] = value


def _tried(xp: Any, find: Callable[..., tuple], reads: tuple, writes: tuple) -> None:
    """Fill `writes`, of which the last is a flag, with what `find` gives: of all matrices at once, and if one of them
    fails, of each for itself. A failed one has NaN in its results; NaN in it is no failure, as in NumPy."""
    *results, flag = writes
    try:
        with _told_of_failures(xp):
            found = find(*reads)
    except np.linalg.LinAlgError:
        if reads[0].ndim > 2:
            for index in np.ndindex(*reads[0].shape[:-2]):
                _tried(xp, find, *(tuple(x[(*index, ...)] for x in arrays) for arrays in (reads, writes)))
        else:
            _fill(results, [np.nan] * len(results))
            flag[...] = ~xp.isnan(reads[0]).any()
        return
    _fill(results, found)
    flag[...] = False


def _apart(xp: Any, find: Callable[..., tuple], a: Any, writes: tuple, odd: Any, failed: Any) -> None:
    """`_tried`, for what is found by iteration, which NaN or infinity may keep from ending: matrices that are `odd` are
    left out, and have NaN in their results; those `failed` are said to have."""
    _tried(xp, find, (xp.where(odd[..., None, None], xp.eye(*a.shape[-2:], dtype=a.dtype), a),), writes)
    *results, flag = writes
    for view in results:
        view[...] = xp.where(odd.reshape(odd.shape + (1,) * (view.ndim - odd.ndim)), view.dtype.type(np.nan), view)
    flag[...] = xp.where(odd, failed, flag)


def _has(xp: Any, what: Callable, a: Any) -> Any:
    """Which matrices have an element that is `what`."""
    return what(a).any(axis=(-2, -1))


def _nothing(xp: Any, reads: tuple, writes: tuple) -> bool:
    """Whether there are no elements to work on; the results are then what factors of nothing are: units."""
    if reads[0].size:
        return False
    for view in writes:
        view[...] = xp.eye(*view.shape[-2:], dtype=view.dtype) if view.ndim >= reads[0].ndim else False
    return True


def _solve(xp: Any, reads: tuple, writes: tuple, *, transposed: bool) -> None:
    (a, b), (x, flag) = reads, writes
    if not a.size:
        flag[...] = False
    elif not x.size:  # whether a is singular is asked all the same
        flag[...] = xp.linalg.slogdet(a)[0] == 0
    else:
        _tried(xp, lambda m, r: (xp.linalg.solve(m, r),), (xp.swapaxes(a, -1, -2) if transposed else a, b), writes)


def _triangular_solve(xp: Any, reads: tuple, writes: tuple, *, lower: bool, transposed: bool) -> None:
    (a, b), (x,) = reads, writes
    if not x.size:
        return
    if _is_cupy(xp) and a.ndim == 2:
        solve = _cupyx().scipy.linalg.solve_triangular
        x[...] = solve(a, b, lower=lower, trans="T" if transposed else "N", check_finite=False)
        return
    half = xp.tril(a) if lower else xp.triu(a)
    flag = np.zeros(a.shape[:-2], bool)
    _tried(xp, lambda m, r: (xp.linalg.solve(m, r),), (xp.swapaxes(half, -1, -2) if transposed else half, b), (x, flag))


def _slogdet(xp: Any, reads: tuple, writes: tuple) -> None:
    if not reads[0].size:
        _fill(writes, (1, 0))
        return
    with np.errstate(all="ignore"):  # CuPy needs no flag of a singular matrix: it gives 0 and -inf by itself
        _fill(writes, xp.linalg.slogdet(reads[0]))


def _cholesky(xp: Any, reads: tuple, writes: tuple) -> None:
    if not _nothing(xp, reads, writes):
        _tried(xp, lambda a: (xp.linalg.cholesky(a),), reads, writes)


def _qr(xp: Any, reads: tuple, writes: tuple, *, full: bool) -> None:
    if not _nothing(xp, reads, writes):
        _fill(writes, xp.linalg.qr(reads[0], "complete" if full else "reduced"))


def _eigh(xp: Any, reads: tuple, writes: tuple) -> None:
    if not _nothing(xp, reads, writes):
        odd = _has(xp, lambda a: ~xp.isfinite(a), xp.tril(reads[0]))
        _apart(xp, lambda a: tuple(xp.linalg.eigh(a)), reads[0], writes, odd, False)


def _svd(xp: Any, reads: tuple, writes: tuple, *, full: bool) -> None:
    if not _nothing(xp, reads, writes):
        odd, failed = (_has(xp, what, reads[0]) for what in (lambda a: ~xp.isfinite(a), xp.isnan))
        _apart(xp, lambda a: tuple(xp.linalg.svd(a, full)), reads[0], writes, odd, failed)


def _eig(xp: Any, reads: tuple, writes: tuple) -> None:
    if _nothing(xp, reads, writes):
        return
    odd = _has(xp, lambda a: ~xp.isfinite(a), reads[0])
    try:
        # CuPy works on one matrix after another and looks at the flag of the last one only.
        for index in np.ndindex(*odd.shape):
            a, *views = (x[(*index, ...)] for x in (*reads, *writes))
            _apart(xp, lambda a: tuple(xp.linalg.eig(a)), a, tuple(views), odd[(*index, ...)], True)
    except RuntimeError as error:
        if "geev" not in str(error):
            raise
        raise NotImplementedError("this cuSOLVER has no eig: it came with CUDA 12.6") from error


OPERATIONS: dict[str, Callable[..., None]] = {
    "dot_general": _dot_general,
    "sort": _sort,
    "argsort": _argsort,
    "nonzero": _nonzero,
    "searchsorted": _searchsorted,
    "fft": _fft,
    "solve": _solve,
    "triangular_solve": _triangular_solve,
    "slogdet": _slogdet,
    "cholesky": _cholesky,
    "qr": _qr,
    "eigh": _eigh,
    "svd": _svd,
    "eig": _eig,
}
COUNTED = frozenset({"solve", "triangular_solve", "slogdet", "cholesky", "qr", "eigh", "svd", "eig"})

__all__ = ["OPERATIONS", "library", "told"]
