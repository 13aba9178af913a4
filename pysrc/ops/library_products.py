"""NumPy's products of arrays, all in terms of `dot_general`: matmul, dot, einsum, tensordot, outer, kron,
cross.

In: operands. Out: core atoms.

    y = einsum("bij,bjk->bik", a, b)
    z = matmul(a, v)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dims import DimLike
from ..core.ir import Atom
from ..source import ShapeError, UnsupportedError
from .arithmetic import mul, sub
from .complex_numbers import conj
from .dot import dot_general
from .library_creation import diagonal
from .library_reductions import sum_
from .library_shapes import expand_dims, moveaxis, part, permuted, ravel, reshape, stack
from .promotion import (
    Operand,
    axis_of,
    broadcast_dims,
    broadcast_to,
    lift,
    promote,
    sized,
    surely_differ,
    to_dtype,
    ufunc,
)
from .reduce import reduce_sum

NO_BATCH: tuple = ((), ())


def _summed_alike(a: Atom, b: Atom, axis: int, other: int, what: str) -> Atom:
    """b, whose axis `other` has the size of a's `axis`: refused, known or checked at run time."""
    left, right = a.type.dims[axis], b.type.dims[other]
    if surely_differ(left, right):
        raise ShapeError(
            f"{what} of shapes {a.type.dims} and {b.type.dims}: {left} against {right} along the axis that is summed",
            code="product",
        )
    return sized(b, other % b.type.ndim, left, f"{what}: the axes that are summed have sizes {{}} and {{}}")


def matmul(x1: Operand, x2: Operand, dtype: Any = None) -> Atom:
    a, b = promote(x1, x2)
    if dtype is not None:
        a, b = to_dtype(a, dtype), to_dtype(b, dtype)
    if not a.type.dims or not b.type.dims:
        raise ShapeError("matmul takes arrays, not numbers", remedy="use * or numpy.multiply", code="product")
    rows, columns = a.type.ndim, b.type.ndim
    b = _summed_alike(a, b, -1, max(columns - 2, 0), "matmul")
    if rows <= 2 and columns <= 2:
        return dot_general(a, b, contract=((rows - 1,), (max(columns - 2, 0),)), batch=NO_BATCH)
    if columns == 1:
        return dot_general(a, b, contract=((rows - 1,), (0,)), batch=NO_BATCH)
    if columns == 2:  # no dims in common: one product of a long matrix
        return dot_general(a, b, contract=((rows - 1,), (0,)), batch=NO_BATCH)
    if rows == 1:
        out = dot_general(b, a, contract=((columns - 2,), (0,)), batch=NO_BATCH)
        return out
    lead = broadcast_dims(a.type.dims[:-2], b.type.dims[:-2])
    if rows == 2:
        out = dot_general(a, b, contract=((1,), (columns - 2,)), batch=NO_BATCH)  # rows, lead, columns
        return moveaxis(out, 0, -2)
    a, b = broadcast_to(a, (*lead, *a.type.dims[-2:])), broadcast_to(b, (*lead, *b.type.dims[-2:]))
    common, k = tuple(range(len(lead))), len(lead)
    return dot_general(a, b, contract=((k + 1,), (k,)), batch=(common, common))


def _as_arrays(*values: Operand) -> tuple[Atom, ...]:
    """In their common dtype; NumPy makes arrays of numbers here, so that none of them is weak."""
    return promote(*map(lift, values))


def dot(a: Operand, b: Operand) -> Atom:
    a, b = _as_arrays(a, b)
    if not a.type.dims or not b.type.dims:
        return ufunc(np.multiply, a, b)
    at = max(b.type.ndim - 2, 0)
    b = _summed_alike(a, b, -1, at, "dot")
    return dot_general(a, b, contract=((a.type.ndim - 1,), (at,)), batch=NO_BATCH)


def vdot(a: Operand, b: Operand) -> Atom:
    a, b = promote(ravel(a), ravel(b))
    return dot(conj(a) if a.type.dtype.kind == "c" else a, b)


def inner(a: Operand, b: Operand) -> Atom:
    a, b = _as_arrays(a, b)
    if not a.type.dims or not b.type.dims:
        return ufunc(np.multiply, a, b)
    b = _summed_alike(a, b, -1, -1, "inner")
    return dot_general(a, b, contract=((a.type.ndim - 1,), (b.type.ndim - 1,)), batch=NO_BATCH)


def vecdot(x1: Operand, x2: Operand, axis: int = -1) -> Atom:
    a, b = promote(x1, x2)
    total = sum_(ufunc(np.multiply, conj(a) if a.type.dtype.kind == "c" else a, b), axis)
    return to_dtype(total, a.type.dtype)


def outer(a: Operand, b: Operand) -> Atom:
    return ufunc(np.multiply, expand_dims(ravel(a), 1), expand_dims(ravel(b), 0))


def ufunc_outer(function: np.ufunc) -> Any:
    """`np.subtract.outer` and its like."""

    def call(a: Operand, b: Operand) -> Atom:
        a, b = lift(a), lift(b)
        rank = a.type.ndim
        return ufunc(function, expand_dims(a, tuple(range(rank, rank + b.type.ndim))) if b.type.ndim else a, b)

    return call


def tensordot(a: Operand, b: Operand, axes: Any = 2) -> Atom:
    a, b = _as_arrays(a, b)
    if isinstance(axes, (int, np.integer)):
        count = int(axes)
        left, right = tuple(range(a.type.ndim - count, a.type.ndim)), tuple(range(count))
    else:
        left, right = (
            tuple(axis_of(k, x.type.ndim) for k in (given if isinstance(given, (list, tuple)) else [given]))
            for x, given in zip((a, b), axes)
        )
    if len(left) != len(right):
        raise ShapeError(f"tensordot needs as many axes of either operand, got {left} and {right}", code="product")
    for i, j in zip(left, right):
        b = _summed_alike(a, b, i, j, "tensordot")
    return dot_general(a, b, contract=(left, right), batch=NO_BATCH)


def multi_dot(arrays: Sequence[Operand]) -> Atom:
    return functools.reduce(dot, arrays)


def matrix_power(a: Operand, n: int) -> Atom:
    from .library_creation import eye

    a = lift(a)
    if n < 0:
        raise UnsupportedError("matrix_power with a negative power needs an inverse", code="numpy-function")
    if n == 0:
        return broadcast_to(eye(a.type.dims[-1], dtype=a.type.dtype), a.type.dims)
    half = matrix_power(a, n // 2) if n > 1 else None
    square = matmul(half, half) if half is not None else None
    return a if square is None else square if n % 2 == 0 else matmul(square, a)


def trace(a: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Atom:
    return sum_(diagonal(a, offset, axis1, axis2), -1, dtype)


def kron(a: Operand, b: Operand) -> Atom:
    a, b = _as_arrays(a, b)
    rank = max(a.type.ndim, b.type.ndim)
    a, b = (expand_dims(x, tuple(range(rank - x.type.ndim))) if x.type.ndim < rank else x for x in (a, b))
    wide = (
        ufunc(np.multiply, expand_dims(a, tuple(range(1, 2 * rank, 2))), expand_dims(b, tuple(range(0, 2 * rank, 2))))
        if rank
        else mul(a, b)
    )
    return reshape(wide, tuple(p * q for p, q in zip(a.type.dims, b.type.dims)))


def cross(a: Operand, b: Operand, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Atom:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote(moveaxis(a, axisa, -1), moveaxis(b, axisb, -1))
    sizes = (a.type.dims[-1], b.type.dims[-1])
    if any(s not in (2, 3) for s in sizes):
        raise ShapeError(f"cross takes vectors of 2 or 3 elements, got {sizes[0]} and {sizes[1]}", code="product")

    def element(x: Atom, k: int) -> Atom | None:
        size = x.type.dims[-1]
        return part(x, x.type.ndim - 1, k, 1, squeezed=True) if isinstance(size, int) and k < size else None

    def component(i: int, j: int) -> Atom:
        terms = [
            ufunc(np.multiply, p, q) if p is not None and q is not None else None
            for p, q in ((element(a, i), element(b, j)), (element(a, j), element(b, i)))
        ]
        if terms[0] is None or terms[1] is None:
            return ufunc(np.negative, terms[1]) if terms[0] is None else terms[0]
        return sub(terms[0], terms[1])

    if sizes == (2, 2):
        return component(0, 1)
    return moveaxis(stack([component(1, 2), component(2, 0), component(0, 1)], -1), -1, axisc)


# --- einsum ------------------------------------------------------------------------------------------------


def einsum(subscripts: Any, *operands: Operand, optimize: Any = False, dtype: Any = None, **kwargs: Any) -> Atom:
    """Operands are taken two at a time, those with the smallest product first."""
    if not isinstance(subscripts, str):
        subscripts, given = _from_lists((subscripts, *operands))
        operands = tuple(given)
    atoms = list(_as_arrays(*operands))
    if dtype is not None:
        atoms = [to_dtype(a, dtype) for a in atoms]
    inputs, output = _parse(subscripts, [a.type.ndim for a in atoms])
    sizes = _sizes(inputs, atoms)
    terms = [_without_repeats(_fitted(a, labels, sizes), labels) for a, labels in zip(atoms, inputs)]
    while len(terms) > 1:
        i, j = _cheapest(terms, output)
        second, first = terms.pop(j), terms.pop(i)
        needed = set(output).union(*(labels for _, labels in terms))
        terms.append(_pair(first, second, needed))
    x, labels = terms[0]
    x, labels = _summed(x, labels, set(output))
    return permuted(x, tuple(labels.index(label) for label in output))


def _from_lists(given: tuple) -> tuple[str, list]:
    """einsum(a, [0, 1], b, [1, 2], [0, 2]) as subscripts."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def spelled(labels: Sequence) -> str:
        return "".join("..." if k is Ellipsis else letters[k] for k in labels)

    operands, labels = list(given[: len(given) // 2 * 2 : 2]), [spelled(v) for v in given[1::2]]
    text = ",".join(labels)
    return (f"{text}->{spelled(given[-1])}" if len(given) % 2 else text), operands


def _parse(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """One letter an axis for each operand and for the result; "..." becomes letters of its own."""
    text = subscripts.replace(" ", "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise ShapeError(f"einsum {subscripts!r} names {len(inputs)} operands, {len(ranks)} were given", code="einsum")
    hidden = [rank - len(labels.replace("...", "")) for labels, rank in zip(inputs, ranks)]
    if any(h < 0 or (h > 0 and "..." not in labels) for h, labels in zip(hidden, inputs)):
        raise ShapeError(
            f"einsum {subscripts!r} does not fit operands of {', '.join(map(str, ranks))} dimensions", code="einsum"
        )
    most = max((h for h, labels in zip(hidden, inputs) if "..." in labels), default=0)
    dots = "".join(chr(0x3B1 + k) for k in range(most))
    inputs = [labels.replace("...", dots[most - h :]) for labels, h in zip(inputs, hidden)]
    if arrow:
        output = output.replace("...", dots)
    else:
        letters = "".join(inputs)
        output = dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c not in dots))
    if unknown := set(output) - set("".join(inputs)):
        raise ShapeError(f"einsum {subscripts!r}: {', '.join(sorted(unknown))} stands in no operand", code="einsum")
    if len(set(output)) != len(output):
        raise ShapeError(f"einsum {subscripts!r}: a letter occurs twice in the result", code="einsum")
    return inputs, output


def _sizes(inputs: Sequence[str], atoms: Sequence[Atom]) -> dict[str, DimLike]:
    sizes: dict[str, DimLike] = {}
    for labels, atom in zip(inputs, atoms):
        for label, dim in zip(labels, atom.type.dims):
            known = sizes.get(label, 1)
            if known != 1 and dim != 1 and surely_differ(dim, known):
                raise ShapeError(f"einsum: axis {label!r} has sizes {known} and {dim}", code="einsum")
            sizes[label] = dim if known == 1 or isinstance(dim, int) and dim != 1 else known
    return sizes


def _fitted(x: Atom, labels: str, sizes: dict[str, DimLike]) -> Atom:
    """Each axis in the size of its letter, by a check where that is not known; size 1 stays."""
    for k, (label, dim) in enumerate(zip(labels, x.type.dims)):
        if dim != 1:
            x = sized(x, k, sizes[label], f"einsum: axis {label} has sizes {{}} and {{}}")
    return x


def _without_repeats(x: Atom, labels: str) -> tuple[Atom, str]:
    """Diagonals where a letter occurs twice in one operand."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if surely_differ(x.type.dims[first], x.type.dims[second]):
                raise ShapeError(
                    f"einsum: axis {label!r} has sizes {x.type.dims[first]} and {x.type.dims[second]} in one operand",
                    code="einsum",
                )
            x = diagonal(x, 0, first, second)
            labels = "".join(c for k, c in enumerate(labels) if k not in (first, second)) + label
    return x, labels


def _summed(x: Atom, labels: str, needed: set[str]) -> tuple[Atom, str]:
    """Sum over axes that nobody else names."""
    axes = tuple(k for k, label in enumerate(labels) if label not in needed)
    return (reduce_sum(x, axes=axes), "".join(c for c in labels if c in needed)) if axes else (x, labels)


def _cheapest(terms: Sequence[tuple[Atom, str]], output: str) -> tuple[int, int]:
    """The pair whose product has the fewest elements; the first pair where a size is not known."""
    if len(terms) == 2:
        return 0, 1

    def cost(i: int, j: int) -> float:
        rest = set(output).union(*(labels for k, (_, labels) in enumerate(terms) if k not in (i, j)))
        total = 1.0
        for label in set(terms[i][1] + terms[j][1]) & rest:
            for x, labels in (terms[i], terms[j]):
                if label in labels:
                    dim = x.type.dims[labels.index(label)]
                    total *= dim if isinstance(dim, int) else 1000
                    break
        work = math.prod(d if isinstance(d, int) else 1000 for d in (*terms[i][0].type.dims, *terms[j][0].type.dims))
        return total - 1e-9 * min(work, 1e9)

    pairs = [(i, j) for j in range(len(terms)) for i in range(j)]
    return min(pairs, key=lambda pair: cost(*pair))


def _pair(left: tuple[Atom, str], right: tuple[Atom, str], needed: set[str]) -> tuple[Atom, str]:
    """The product of two operands, summed over letters that are not needed any more."""
    (a, a_labels), (b, b_labels) = left, right
    a, a_labels = _summed(a, a_labels, needed | set(b_labels))
    b, b_labels = _summed(b, b_labels, needed | set(a_labels))
    a, b = _stretched(a, a_labels, b, b_labels), _stretched(b, b_labels, a, a_labels)
    shared = [c for c in a_labels if c in b_labels]
    batch = [c for c in shared if c in needed]
    summed = [c for c in shared if c not in needed]

    def places(labels: str, letters: list[str]) -> tuple:
        return tuple(labels.index(c) for c in letters)

    out = dot_general(
        a,
        b,
        contract=(places(a_labels, summed), places(b_labels, summed)),
        batch=(places(a_labels, batch), places(b_labels, batch)),
    )
    rest = [c for c in a_labels if c not in shared] + [c for c in b_labels if c not in shared]
    return out, "".join(batch + rest)


def _stretched(x: Atom, labels: str, other: Atom, other_labels: str) -> Atom:
    """Size 1 meets a larger size under one letter: repeat."""
    dims = tuple(
        other.type.dims[other_labels.index(c)] if d == 1 and c in other_labels else d
        for c, d in zip(labels, x.type.dims)
    )
    return broadcast_to(x, dims)


__all__ = [
    "matmul",
    "dot",
    "vdot",
    "inner",
    "vecdot",
    "outer",
    "ufunc_outer",
    "tensordot",
    "multi_dot",
    "matrix_power",
    "trace",
    "kron",
    "cross",
    "einsum",
]
