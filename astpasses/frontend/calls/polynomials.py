"""NumPy's polynomials: highest power first, as `np.polyval` has them.

In: coefficients, staged or not. Out: staged arrays.

    np.polymul(a, b)      np.polyder(p)      np.polyfit(x, y, 2)
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.ops.compare import ne
from metaphrase.ops.effects import check

from ..staging.session import session
from .call import answers, call_value
from .numpy_shapes import as_array, refused


def _padded(a: Any, b: Any) -> tuple:
    """Both in the length of the longer one."""
    x, y = np.atleast_1d(as_array(a)), np.atleast_1d(as_array(b))
    longer = max(int(x.shape[0]), int(y.shape[0]))
    missing = [longer - int(v.shape[0]) for v in (x, y)]
    return tuple(np.concatenate([np.zeros(n, v.dtype), v]) if n else v for n, v in zip(missing, (x, y)))


@answers(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    x, y = _padded(a1, a2)
    return x + y


@answers(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    x, y = _padded(a1, a2)
    return x - y


@answers(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    return np.convolve(_trimmed(a1), _trimmed(a2))


def _trimmed(p: Any) -> Any:
    """Without the leading zeros, which NumPy drops: those that are known. There may be no others."""
    if isinstance(p, (list, tuple)):
        zeros = itertools.takewhile(lambda v: isinstance(v, (int, float, complex)) and v == 0, p)
        p = list(p)[min(len(list(zeros)), len(p) - 1) :]
        if isinstance(p[0], (int, float, complex)):
            return as_array(p)
    x: Any = np.atleast_1d(as_array(p))
    if x.shape[0] != 1:
        here = session()
        some = here.emit(ne, here.atom(x[0]), literal(0, x.dtype))
        message = "numpy.polymul drops leading zeros, whose number a translation does not know"
        here.emit(check, some, exception="ValueError", message=message)
    return x


@answers(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    x = as_array(p)
    for _ in range(m):
        x = x[:-1] * np.arange(int(x.shape[0]) - 1, 0, -1)
    return x


@answers(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    if k is not None:
        raise refused("np.polyint with constants is not translated", "add them to the last coefficient")
    x: Any = as_array(p)
    for _ in range(m):
        x = np.concatenate([x / np.arange(int(x.shape[0]), 0, -1), [0]])
    return x


@answers(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    """The polynomial that has these zeros."""
    zeros: Any = as_array(seq_of_zeros)
    if zeros.ndim != 1:
        raise refused(
            "np.poly of a matrix depends on whether its eigenvalues are real",
            "pass np.linalg.eigvalsh(a) or np.linalg.eigvals(a)",
        )
    zeros = zeros.astype(np.mintypecode(zeros.dtype.char))
    made: Any = np.ones(1, zeros.dtype)
    for k in range(int(zeros.shape[0])):
        made = np.convolve(made, np.stack([np.ones((), zeros.dtype), -zeros[k]]))
    return made


@answers(np.polyfit)
def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """Least squares with scaled columns, as NumPy's."""
    if full or cov:
        raise refused("np.polyfit with full= or cov= is not translated", "use np.linalg.lstsq")
    points, values = as_array(x) + 0.0, as_array(y) + 0.0
    columns = call_value(np.vander, (points, int(deg) + 1), {})
    if w is not None:
        weights = as_array(w) + 0.0
        columns = columns * weights[:, None]
        values = values * (weights[:, None] if values.ndim == 2 else weights)
    scale = np.sqrt(np.sum(columns * columns, axis=0))
    made = call_value(np.linalg.lstsq, (columns / scale, values, rcond), {})[0]
    return (made.T / scale).T


@answers(np.roots)
def roots(p: Any) -> Any:
    raise refused(
        "the number of roots that np.roots gives depends on values", "take np.linalg.eigvals of the companion matrix"
    )
