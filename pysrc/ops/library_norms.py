"""Norms, and sums of exponentials: norm, logsumexp, softmax, log_softmax.

In: operands and static `axis`, `keepdims`. Out: core atoms.

    p = softmax(scores, axis=-1)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.build import known_facts
from ..core.ir import Atom
from ..source import ShapeError, UnsupportedError
from . import reduce
from .arithmetic import abs_ as absolute
from .arithmetic import add, div, integer_pow, mul, sub
from .compare import eq, select
from .complex_numbers import conj, real
from .elementary import exp, isfinite, stop_gradient
from .families import like
from .library_reductions import amax, amin, kept, respread, sum_, to_bool
from .library_shapes import squeeze
from .promotion import Operand, axes_of, axis_of, broadcast_to, folded_axes, inexact_dtype, lift, to_dtype, ufunc
from .sums import log_of_sum, root_of_sum


def logsumexp(a: Operand, axis: Any = None, b: Any = None, keepdims: Any = False, return_sign: bool = False) -> Atom:
    """log(sum(b exp(a))) without overflow; the largest element is held constant, so derivatives are exact."""
    if return_sign:
        raise UnsupportedError("logsumexp with return_sign is not supported", code="numpy-function")
    x = lift(a)
    x = to_dtype(x, inexact_dtype(x.type.dtype))
    axes = folded_axes(axis, x.type.ndim)
    some = all(known_facts().less(0, x.type.dims[k]) for k in axes)
    top = amax(stop_gradient(x), axes, initial=None if some else -np.inf)
    top = select(isfinite(top), top, like(top, 0))
    terms = exp(sub(x, respread(top, x, axes)))
    terms = terms if b is None else mul(terms, broadcast_to(to_dtype(b, x.type.dtype), x.type.dims))
    y = add(log_of_sum(reduce.reduce_sum(terms, axes=axes) if axes else terms), top)
    return kept(y, x, axes, keepdims)


def softmax(x: Operand, axis: Any = None) -> Atom:
    """By SciPy's steps: of int8 it is one of float16."""
    x = lift(x)
    axes = folded_axes(axis, x.type.ndim)
    terms = ufunc(np.exp, ufunc(np.subtract, x, respread(amax(_held(x), axes), x, axes)))
    return div(terms, respread(sum_(terms, axes), x, axes))


def log_softmax(x: Operand, axis: Any = None) -> Atom:
    x = lift(x)
    axes = folded_axes(axis, x.type.ndim)
    top = amax(_held(x), axes)
    top = select(isfinite(top), top, like(top, 0)) if x.type.dtype.kind == "f" else top
    below = ufunc(np.subtract, x, respread(top, x, axes))
    total = log_of_sum(sum_(ufunc(np.exp, below), axes))
    return ufunc(np.subtract, below, respread(total, x, axes))


def _held(x: Atom) -> Atom:
    """x as a constant for derivatives."""
    return stop_gradient(x) if x.type.dtype.kind == "f" else x


def norm(x: Operand, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Atom:
    """numpy.linalg.norm, but for the matrix norms that need singular values."""
    x = lift(x)
    x = to_dtype(x, inexact_dtype(x.type.dtype))
    if axis is None and ord is None:
        flat = axes_of(None, x.type.ndim)
        return _two_norm(x, flat, keepdims)
    axes = axes_of(axis, x.type.ndim)
    given = axes if not isinstance(axis, (list, tuple)) else tuple(axis_of(a, x.type.ndim) for a in axis)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) != 2:
        raise ShapeError("norm takes one or two axes", code="axis")
    if ord in (None, "fro"):
        return _two_norm(x, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        rows, columns = given
        inner, outer = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = sum_(absolute(x), inner, keepdims=True)
        y = amax(sums, outer, True, initial=0) if ord > 0 else amin(sums, outer, keepdims=True)
        return y if keepdims else squeeze(y, axes)
    raise ShapeError(f"Invalid norm order for matrices: {ord!r}", code="norm")


def _two_norm(x: Atom, axes: tuple, keepdims: Any) -> Atom:
    square = real(mul(x, conj(x))) if x.type.dtype.kind == "c" else integer_pow(x, exponent=2)
    return kept(root_of_sum(reduce.reduce_sum(square, axes=axes) if axes else square), x, axes, keepdims)


def _vector_norm(x: Atom, ord: Any, axes: tuple, keepdims: Any) -> Atom:
    if ord in (None, 2):
        return _two_norm(x, axes, keepdims)
    size = absolute(x)
    if ord in (np.inf, -np.inf):
        return amax(size, axes, keepdims, initial=0) if ord > 0 else amin(size, axes, keepdims)
    if ord == 0:
        return sum_(to_dtype(to_bool(x), size.type.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return sum_(size, axes, keepdims=keepdims)
    total = sum_(ufunc(np.power, size, ord), axes, keepdims=keepdims)
    nothing = eq(total, like(total, 0 if ord > 0 else np.inf))  # flat there, as `root_of_sum`
    return select(nothing, like(total, 0), ufunc(np.power, select(nothing, like(total, 1), total), 1.0 / ord))
