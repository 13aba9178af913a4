"""Determinants, whose derivative is finite at singular matrices too, where no inverse is.

In: arrays [..., n, n] of f32, f64, c64 or c128. Out: the determinants, and the cofactors, which are their derivative.

    y = det(a)                # a: f64[..., n, n], y: f64[...]
    c = cofactors(a, y)       # the derivative of y by each element of a: det(a) inv(a).T where there is an inverse

Where the determinant is 0, or too large or small for a float, cofactors are those of the singular value decomposition
a = u diag(s) vh: det(u) det(vh) conj(u diag(p) vh), of which p has the product of all singular values but one. So is
the second derivative of matrices that are nearly singular, with products of all but two (G. W. Stewart, "On the
adjugate matrix", Linear Algebra and its Applications 283, 1998).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.build import trace
from ..core.native import Composite
from ..core.primitive import NotLinear, Primitive, Zero
from ..core.relation import Dims, Relation
from ..core.types import Array
from .arithmetic import abs_, div, mul, sub
from .compare import eq, le, not_, or_, select
from .complex_numbers import conj
from .elementary import exp, isfinite
from .families import like, require
from .linear_algebra import inverse, lapack_matrices, slogdet, svd
from .matrices import (
    adjoint,
    along_columns,
    along_rows,
    as_dtype,
    diagonal_of,
    diagonal_part,
    places,
    product,
    turned,
    zero_like,
)
from .reduce import product_of_others, reduce_any, reduce_sum, spread
from .regions import cond


def _det_type(a: Array) -> Array:
    lapack_matrices(a, True, "det")
    return Array(a.dtype, a.dims[:-2])


def _det_written(a: Any) -> Any:
    sign, logarithm = slogdet(a)
    return mul(sign, as_dtype(exp(logarithm), sign))


def _both(a: Any) -> tuple[int, int]:
    """The axes of rows and columns."""
    return a.type.ndim - 2, a.type.ndim - 1


def _over(y: Any, a: Any) -> Any:
    """A number of each matrix, at each of its elements."""
    return spread(y, a, _both(a))


det: Primitive = Primitive(
    "det",
    type=_det_type,
    numpy=np.linalg.det,
    jvp=(lambda a_dot, y, a: reduce_sum(mul(a_dot, cofactors(a, y)), axes=_both(a)),),
    transpose=NotLinear,
    dims=Dims(lambda a, **_: (((*range(a.ndim - 2), None, None),), [tuple(range(a.ndim - 2))])),
    native=Composite(_det_written),
    doc="The determinant of each matrix.",
)


def _cofactors_type(a: Array, y: Array) -> Array:
    require(y.plain == _det_type(a), lambda: f"cofactors: {y} are no determinants of {a}")
    return a.plain


def _cofactors_dims(a: Array, y: Array, **_: Any) -> Relation:
    lead = tuple(range(a.ndim - 2))
    return ((*lead, None, None), lead), [(*lead, None, None)]


def _cofactors_numpy(a: Any, y: Any) -> Any:
    y = np.asarray(y)
    if np.all(np.isfinite(y) & (y != 0)):
        return y[..., None, None] * np.swapaxes(np.linalg.inv(a), -1, -2)
    finite = np.isfinite(a).all((-2, -1), keepdims=True)
    u, s, vh = np.linalg.svd(np.where(finite, a, 0))
    others = np.prod(np.where(np.eye(a.shape[-1], dtype=bool), 1, s[..., None, :]), axis=-1)
    turn = np.linalg.slogdet(u)[0] * np.linalg.slogdet(vh)[0]
    made = turn[..., None, None] * np.conj(u * others[..., None, :] @ vh)
    return np.where(finite, made, np.nan).astype(a.dtype, copy=False)


def _decomposed(a: Any) -> tuple:
    """u, s, vh, and the determinant of u vh at each element."""
    u, s, vh, _ = svd(a, full=False)
    return u, s, vh, _over(mul(slogdet(u)[0], slogdet(vh)[0]), a)


def _by_singular_values(a: Any, y: Any) -> Any:
    u, s, vh, turn = _decomposed(a)
    others = product_of_others(s, (s.type.ndim - 1,))
    made = product(mul(u, as_dtype(along_columns(others, u), u)), vh)
    return mul(turn, conj(made) if a.type.dtype.kind == "c" else made)


def _by_inverse(a: Any, y: Any) -> Any:
    return mul(_over(y, a), turned(inverse(a)))


def _either(doubtful: Any, otherwise: Any, ordinary: Any, *args: Any) -> Any:
    """`otherwise(*args)` if any matrix of the stack is doubtful, `ordinary(*args)` if none is."""
    any_of_them = reduce_any(doubtful, axes=tuple(range(doubtful.type.ndim))) if doubtful.type.ndim else doubtful
    params = [(f"x{k}", x.type.plain) for k, x in enumerate(args)]
    branches = trace("ordinary", ordinary, params), trace("singular", otherwise, params)
    return cond(any_of_them, *args, branches=branches)[0]


def _cofactors_written(a: Any, y: Any) -> Any:
    doubtful = or_(eq(y, zero_like(y)), not_(isfinite(y)))
    return _either(doubtful, _by_singular_values, _by_inverse, a, y)


def _cofactors_jvp(a_dot: Any, c: Any, a: Any, y: Any) -> Any:
    """By the rule of products where half of the digits or more come out right."""
    size = [reduce_sum(abs_(x), axes=_both(x)) for x in (a, c)]
    enough = float(np.sqrt(np.finfo(a.type.dtype).eps))
    least = mul(mul(*size), like(size[0], enough))
    return _either(le(abs_(y), least), _second_by_singular_values, _second_by_inverse, a_dot, c, a, y)


def _second_by_inverse(a_dot: Any, c: Any, a: Any, y: Any) -> Any:
    y_dot = reduce_sum(mul(a_dot, c), axes=_both(a))
    return div(sub(mul(_over(y_dot, a), c), product(c, product(turned(a_dot), c))), _over(y, a))


def _second_by_singular_values(a_dot: Any, c: Any, a: Any, y: Any) -> Any:
    u, s, vh, turn = _decomposed(a)
    inside = product(adjoint(u), product(a_dot, adjoint(vh)))
    on, columns = eq(*places(inside)), along_columns(s, inside)
    pairs = product_of_others(select(on, like(columns, 1), columns), (columns.type.ndim - 1,))
    pairs = as_dtype(select(on, zero_like(pairs), pairs), inside)
    along = reduce_sum(mul(pairs, along_columns(diagonal_of(inside), inside)), axes=(inside.type.ndim - 1,))
    change = sub(diagonal_part(along_rows(along, inside)), mul(pairs, turned(inside)))
    u, vh = (conj(x) if x.type.dtype.kind == "c" else x for x in (u, vh))
    return mul(turn, product(u, product(change, vh)))


cofactors: Primitive = Primitive(
    "cofactors",
    type=_cofactors_type,
    numpy=_cofactors_numpy,
    jvp=(_cofactors_jvp, Zero),
    transpose=NotLinear,
    dims=Dims(_cofactors_dims),
    native=Composite(_cofactors_written),
    doc="The cofactors of each matrix, of which the determinants are given.",
)

__all__ = ["det", "cofactors"]
