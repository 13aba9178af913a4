"""The one product of arrays: `dot_general`, with any axes contracted and any axes in common.

In: two arrays of one dtype. Out: dims in common, then the free dims of a, then those of b.

    c: f64[m, n] = dot_general(a, b, contract=((1,), (0,)), batch=((), ()))
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dims import DimLike
from ..core.native import Lib
from ..core.primitive import Primitive
from ..core.relation import Dims
from ..core.types import Array
from .families import require
from .shape import lanes_first, permute


def free(rank: int, contract: tuple, batch: tuple) -> tuple:
    """The axes that are neither contracted nor in common."""
    return tuple(k for k in range(rank) if k not in contract and k not in batch)


def _dot_type(a: Array, b: Array, *, contract: tuple, batch: tuple) -> Array:
    require(a.dtype == b.dtype, lambda: f"dot_general: operands differ: {a}, {b}")
    for x, summed, common in ((a, contract[0], batch[0]), (b, contract[1], batch[1])):
        axes = (*summed, *common)
        require(
            len(set(axes)) == len(axes) and all(0 <= k < x.ndim for k in axes),
            f"dot_general: axes {axes} do not fit {x}",
        )
    for what, (left, right) in (("contract", contract), ("batch", batch)):
        require(
            len(left) == len(right) and all(a.dims[i] == b.dims[j] for i, j in zip(left, right)),
            f"dot_general: {what} {left}, {right} do not fit {a} and {b}",
        )
    _, (out,) = _dot_dims(a, b, contract=contract, batch=batch)
    return a.with_dims(tuple((*a.dims, *b.dims)[k] for k in out))


@functools.cache
def _plan(a_rank: int, b_rank: int, contract: tuple, batch: tuple) -> tuple:
    """Transpositions to (common, free, summed) and (common, summed, free), None where they change nothing;
    whether
    `matmul` then needs no reshaping."""
    a_free, b_free = free(a_rank, contract[0], batch[0]), free(b_rank, contract[1], batch[1])
    a_order, b_order = (*batch[0], *a_free, *contract[0]), (*batch[1], *contract[1], *b_free)
    plain = len(contract[0]) == 1 and (
        (len(a_free) == 1 and len(b_free) == 1) or (not batch[0] and len(a_free) <= 1 and len(b_free) <= 1)
    )
    return (
        None if a_order == tuple(range(a_rank)) else a_order,
        None if b_order == tuple(range(b_rank)) else b_order,
        plain,
        len(batch[0]),
        len(a_free),
        len(contract[0]),
    )


def _dot_numpy(a: Any, b: Any, *, contract: tuple, batch: tuple) -> Any:
    a_order, b_order, plain, common, rows, summed = _plan(np.ndim(a), np.ndim(b), contract, batch)
    if a_order is not None:
        a = a.transpose(a_order)
    if b_order is not None:
        b = b.transpose(b_order)
    if plain:
        return np.matmul(a, b)
    a, b = np.asarray(a), np.asarray(b)
    lead, a_dims, b_dims = a.shape[:common], a.shape[common : common + rows], b.shape[common + summed :]
    inner = a.shape[common + rows :]
    count = int(np.prod(inner, dtype=np.int64))
    a = a.reshape((*lead, int(np.prod(a_dims, dtype=np.int64)), count))
    b = b.reshape((*lead, count, int(np.prod(b_dims, dtype=np.int64))))
    return np.matmul(a, b).reshape((*lead, *a_dims, *b_dims))[()]


def _dot_dims(a: Array, b: Array, *, contract: tuple, batch: tuple) -> Any:
    """Factors: the axes of a, then the free axes of b."""
    left, right = range(a.ndim), [a.ndim + k for k in range(b.ndim)]
    for mine, other in ((contract[0], contract[1]), (batch[0], batch[1])):
        for i, j in zip(mine, other):
            right[j] = i
    rest = [right[k] for k in free(b.ndim, contract[1], batch[1])]
    return (left, right), ([*batch[0], *free(a.ndim, contract[0], batch[0]), *rest],)


def _by_factors(left: Any, mine: Sequence, right: Any, others: Sequence, wanted: Sequence) -> Any:
    """The product of which the dims run over the factors `wanted`; the others are summed up."""
    shared = [f for f in mine if f in others]
    contract, batch = (
        (tuple(map(mine.index, some)), tuple(map(others.index, some)))
        for some in ([f for f in shared if f not in wanted], [f for f in shared if f in wanted])
    )
    out = dot_general(left, right, contract=contract, batch=batch)
    have = [mine[i] for i in (*batch[0], *free(len(mine), contract[0], batch[0]))]
    have += [others[j] for j in free(len(others), contract[1], batch[1])]
    axes = tuple(map(have.index, wanted))
    return out if axes == tuple(range(len(axes))) else permute(out, axes=axes)


def _adjoint(y_bar: Any, a: Any, b: Any, operand: int, how: dict) -> Any:
    """The cotangent of an operand: y_bar times the other one, its axes in place."""
    (left, right), (out,) = _dot_dims(a.type, b.type, **how)
    return _by_factors(a, left, y_bar, out, right) if operand else _by_factors(y_bar, out, b, right, left)


def _dot_axes(common: bool) -> Any:
    """Pairs of axes with lanes in front; where both operands have them, lanes are in common."""

    def moved(pair: tuple, size: DimLike, lanes: Sequence[bool]) -> tuple:
        lead = (0,) * (common and all(lanes))
        return tuple((*lead, *(k + has for k in axes)) for axes, has in zip(pair, lanes))

    return moved


def _dot_batch(size: DimLike, args: Any, batched: Any, *, contract: tuple, batch: tuple) -> tuple | None:
    """Where b has lanes and no other free axis: the product the other way round has them in front at once."""
    a, b = args
    rows, common = len(free(a.type.ndim, contract[0], batch[0])), len(batch[0])
    if batched[0] or b.type.ndim - 1 != len(contract[1]) + common or rows and common:
        return None
    up = [tuple(k + 1 for k in pair[1]) for pair in (contract, batch)]
    out = dot_general(b, a, contract=(up[0], contract[0]), batch=(up[1], batch[0]))
    return lanes_first(out, common), True


dot_general: Primitive = Primitive(
    "dot_general",
    type=_dot_type,
    numpy=_dot_numpy,
    jvp=(
        lambda a_dot, y, a, b, **how: dot_general(a_dot, b, **how),
        lambda b_dot, y, a, b, **how: dot_general(a, b_dot, **how),
    ),
    transpose=(
        lambda y_bar, a, b, **how: _adjoint(y_bar, a, b, 0, how),
        lambda y_bar, a, b, **how: _adjoint(y_bar, a, b, 1, how),
    ),
    dims=Dims(_dot_dims, alone=True, contract=_dot_axes(False), batch=_dot_axes(True)),
    batch=_dot_batch,
    native=Lib("dot_general"),
    doc="Sum over the paired axes `contract`, elementwise over the paired axes `batch`, outer over the rest.",
)

__all__ = ["dot_general", "free"]
