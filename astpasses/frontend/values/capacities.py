"""Arrays whose size depends on the path: a buffer of the largest size, and how much of it is used.

In: arrays of several sizes, known inside a branch or loop. Out: sizes that types outside may mention
(capacities); the array put at the start of such a buffer, and cut out of it again.

    y = x[x > 0] if t else x        # buffer: f64[n], used: i64;   y = buffer[:used]
"""

from __future__ import annotations

from collections.abc import Sequence

from metaphrase.core.build import literal
from metaphrase.core.dims import DimLike, dim_max
from metaphrase.core.ir import Atom
from metaphrase.ops.indexing import slice as core_slice
from metaphrase.ops.indexing import slice_update
from metaphrase.ops.shape import broadcast

from ..staging.session import Session
from .staged_values import Number, StagedArray


def capacity(here: Session, dims: Sequence[DimLike]) -> DimLike | None:
    """A size that is known here and is not less than any of `dims`; None where there is none."""
    known = here.known_symbols()
    largest: DimLike | None = None
    for dim in dims:
        bound = here.facts.upper(dim, known)
        if bound is None:
            return None
        largest = bound if largest is None else _larger(here, largest, bound)
    return largest


def _larger(here: Session, a: DimLike, b: DimLike) -> DimLike:
    if here.facts.less_equal(b, a):
        return a
    return b if here.facts.less_equal(a, b) else dim_max(a, b)


def put(here: Session, atom: Atom, dims: tuple, buffer: Atom | None = None) -> Atom:
    """The array at the start of a buffer of `dims`; what lies behind it is never read."""
    if atom.type.dims == dims:
        return atom
    if buffer is None:
        buffer = here.emit(broadcast, literal(0, atom.type.dtype), shape=dims, axes=())
    zeros = [literal(0)] * len(dims)
    return here.emit(slice_update, buffer, atom, *zeros, step=(1,) * len(dims))


def cut(here: Session, buffer: Atom, dims: tuple) -> Atom:
    """The start of a buffer."""
    if buffer.type.dims == dims:
        return buffer
    zeros = [literal(0)] * len(dims)
    return here.emit(core_slice, buffer, *zeros, shape=dims, step=(1,) * len(dims))


def used(here: Session, count: Atom, most: DimLike, base: str) -> DimLike:
    """A number of elements as a size between 0 and `most`."""
    size = here.as_dim(Number(here, count, int), base=base)
    if not isinstance(size, int) and size.is_sym:
        here.facts.learn(size.name, 0, most)
    return size


def same_rank(a: StagedArray, b: StagedArray) -> bool:
    return a.ndim == b.ndim and a.ndim > 0
