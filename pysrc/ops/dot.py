"""The one product of arrays: `dot_general`, with any axes contracted and any axes in common.

In: two arrays of one dtype. Out: dims in common, then the free dims of a, then those of b.

    c: f64[m, n] = dot_general(a, b, contract=((1,), (0,)), batch=((), ()))
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..core.dims import DimLike
from ..core.native import Lib
from ..core.primitive import Primitive
from ..core.types import Array
from .families import require
from .shape import permute


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
    return a.with_dims(
        (
            *(a.dims[k] for k in batch[0]),
            *(a.dims[k] for k in free(a.ndim, contract[0], batch[0])),
            *(b.dims[k] for k in free(b.ndim, contract[1], batch[1])),
        )
    )


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


def _to_left(y_bar: Any, a: Any, b: Any, contract: tuple, batch: tuple) -> Any:
    """The cotangent of the left operand: y_bar times b over b's free axes, its axes put back in place."""
    a_free, b_free = free(a.type.ndim, contract[0], batch[0]), free(b.type.ndim, contract[1], batch[1])
    common = tuple(range(len(batch[0])))
    over = tuple(range(len(common) + len(a_free), len(common) + len(a_free) + len(b_free)))
    out = dot_general(y_bar, b, contract=(over, b_free), batch=(common, batch[1]))
    by_b = sorted(range(len(contract[1])), key=contract[1].__getitem__)
    have = (*batch[0], *a_free, *(contract[0][k] for k in by_b))
    return _ordered(out, have)


def _to_right(y_bar: Any, a: Any, b: Any, contract: tuple, batch: tuple) -> Any:
    """The cotangent of the right operand: y_bar times a over a's free axes."""
    a_free, b_free = free(a.type.ndim, contract[0], batch[0]), free(b.type.ndim, contract[1], batch[1])
    common = tuple(range(len(batch[0])))
    over = tuple(range(len(common), len(common) + len(a_free)))
    out = dot_general(a, y_bar, contract=(a_free, over), batch=(batch[0], common))
    # dims of out: common, summed axes of b in the order of a's, free axes of b
    by_a = sorted(range(len(contract[0])), key=contract[0].__getitem__)
    have = (*batch[1], *(contract[1][k] for k in by_a), *b_free)
    return _ordered(out, have)


def _ordered(x: Any, have: tuple) -> Any:
    """Permute x, whose dim k is axis have[k], so that the axes stand in order."""
    axes = tuple(sorted(range(len(have)), key=have.__getitem__))
    return x if axes == tuple(range(len(axes))) else permute(x, axes=axes)


def _dot_batch(size: DimLike, args: Any, batched: Any, *, contract: tuple, batch: tuple) -> tuple:
    a, b = args
    up = tuple(tuple(k + 1 for k in axes) for axes in (contract[0], contract[1], batch[0], batch[1]))
    if all(batched):
        return dot_general(a, b, contract=up[:2], batch=((0, *up[2]), (0, *up[3]))), True
    common = len(batch[0])
    if batched[0]:  # the lanes are the first free axis of a
        out = dot_general(a, b, contract=(up[0], contract[1]), batch=(up[2], batch[1]))
        return _lanes_first(out, common), True
    rows = len(free(a.type.ndim, contract[0], batch[0]))
    if b.type.ndim - 1 == len(contract[1]) + common and (rows == 0 or common == 0):
        # b without lanes has no free axis: the product the other way round has them in front at once
        out = dot_general(b, a, contract=(up[1], contract[0]), batch=(up[3], batch[0]))
        return _lanes_first(out, common), True
    out = dot_general(a, b, contract=(contract[0], up[1]), batch=(batch[0], up[3]))
    return _lanes_first(out, common + rows), True


def _lanes_first(x: Any, at: int) -> Any:
    return permute(x, axes=(at, *range(at), *range(at + 1, x.type.ndim))) if at else x


dot_general: Primitive = Primitive(
    "dot_general",
    type=_dot_type,
    numpy=_dot_numpy,
    jvp=(
        lambda a_dot, y, a, b, *, contract, batch: dot_general(a_dot, b, contract=contract, batch=batch),
        lambda b_dot, y, a, b, *, contract, batch: dot_general(a, b_dot, contract=contract, batch=batch),
    ),
    transpose=(
        lambda y_bar, a, b, *, contract, batch: _to_left(y_bar, a, b, contract, batch),
        lambda y_bar, a, b, *, contract, batch: _to_right(y_bar, a, b, contract, batch),
    ),
    batch=_dot_batch,
    native=Lib("dot_general"),
    doc="Sum over the paired axes `contract`, elementwise over the paired axes `batch`, outer over the rest.",
)

__all__ = ["dot_general", "free"]
