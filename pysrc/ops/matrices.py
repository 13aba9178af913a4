"""Matrices in stacks: products, transposes, triangles and diagonals of arrays [..., m, n], as core atoms.

symmetric = add(lower_part(a, strict=True), upper_part(turned(a)))
"""

from __future__ import annotations

from typing import Any

from ..core.types import i64
from .arithmetic import add
from .arrays import iota
from .compare import eq, ge, gt, select
from .complex_numbers import complex_, conj, real
from .dot import dot_general
from .families import like
from .reduce import reduce_sum
from .shape import broadcast, permute


def product(a: Any, b: Any) -> Any:
    """a @ b of stacks of matrices of equal leading dims."""
    rank = a.type.ndim
    lead = tuple(range(rank - 2))
    return dot_general(a, b, contract=((rank - 1,), (rank - 2,)), batch=(lead, lead))


def turned(a: Any) -> Any:
    """The transposed matrices."""
    rank = a.type.ndim
    return permute(a, axes=(*range(rank - 2), rank - 1, rank - 2))


def adjoint(a: Any) -> Any:
    """The conjugate transposed matrices."""
    return turned(conj(a) if a.type.dtype.kind == "c" else a)


def places(a: Any) -> tuple:
    """Row and column of each element, as i64 arrays of a's shape."""
    dims = a.type.dims
    rank = len(dims)
    return tuple(broadcast(iota(length=dims[k], dtype=i64), shape=dims, axes=(k,)) for k in (rank - 2, rank - 1))


def zero_like(a: Any) -> Any:
    return like(a, 0)


def lower_part(a: Any, strict: bool = False) -> Any:
    row, column = places(a)
    return select((gt if strict else ge)(row, column), a, zero_like(a))


def upper_part(a: Any) -> Any:
    row, column = places(a)
    return select(ge(column, row), a, zero_like(a))


def diagonal_part(a: Any) -> Any:
    """a with zeros off its diagonal."""
    return select(eq(*places(a)), a, zero_like(a))


def diagonal_of(a: Any) -> Any:
    """The diagonals of square matrices."""
    return reduce_sum(diagonal_part(a), axes=(a.type.ndim - 1,))


def along_columns(v: Any, a: Any) -> Any:
    """v[..., j] at each element [..., i, j] of a."""
    rank = a.type.ndim
    return broadcast(v, shape=a.type.dims, axes=(*range(rank - 2), rank - 1))


def along_rows(v: Any, a: Any) -> Any:
    """v[..., i] at each element [..., i, j] of a."""
    return broadcast(v, shape=a.type.dims, axes=tuple(range(a.type.ndim - 1)))


def hermitian_from_lower(a: Any) -> Any:
    """The Hermitian matrix of which NumPy's functions read the lower triangle."""
    low = lower_part(a, strict=True)
    diagonal = diagonal_part(a)
    if a.type.dtype.kind == "c":
        diagonal = complex_(real(diagonal), zero_like(real(diagonal)))
    return add(add(low, adjoint(low)), diagonal)


def as_dtype(x: Any, like_: Any) -> Any:
    """A real array in the dtype of another, which may be complex."""
    return complex_(x, zero_like(x)) if like_.type.dtype.kind == "c" else x
