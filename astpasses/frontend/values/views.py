"""Steps from an array to a view of it. Each reads the view out of the base, and puts a new view back into
the base.

In: the base's atom. Out: the view's atom; or the base with the view replaced. Indices are in bounds:
whoever makes the step has checked them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metaphrase.core.dims import DimLike
from metaphrase.core.ir import Atom
from metaphrase.core.types import Array
from metaphrase.late import dataclass, field, module
from metaphrase.ops.complex_numbers import complex_, imag, real
from metaphrase.ops.indexing import gather, scatter, slice_update
from metaphrase.ops.indexing import slice as core_slice
from metaphrase.ops.shape import bitcast, broadcast, inverse, permute, reshape

from ..staging.outer import adopted
from ..staging.under_way import current_session
from .staged_values import StagedArray

if TYPE_CHECKING:
    from ..staging.session import Session

library_creation: Any = module("metaphrase.ops.library_creation")


class Step:
    """A view that a step does not say how to write is read-only; one of which it says no type has its `shape`."""

    shape: tuple

    def write(self, here: Session, base: Atom, value: Atom) -> Atom:
        raise AssertionError("a read-only view")

    def type(self, base: Array) -> Array:
        return base.with_dims(self.shape)


@dataclass(frozen=True)
class Rectangle(Step):
    """`x[a:b:s, ...]`: starts are atoms, one a dim."""

    starts: tuple[Atom, ...]
    shape: tuple
    step: tuple[int, ...]

    def read(self, here: Session, base: Atom) -> Atom:
        return here.emit(core_slice, base, *self.starts, shape=self.shape, step=self.step)

    def write(self, here: Session, base: Atom, value: Atom) -> Atom:
        return here.emit(slice_update, base, value, *self.starts, step=self.step)


@dataclass(frozen=True)
class Pick(Step):
    """`x[i, :, j]`: rank-0 indices along `axes`, which disappear."""

    indices: tuple[Atom, ...]
    axes: tuple[int, ...]

    def read(self, here: Session, base: Atom) -> Atom:
        return here.emit(gather, base, *self.indices, axes=self.axes)

    def write(self, here: Session, base: Atom, value: Atom) -> Atom:
        return here.emit(scatter, base, value, *self.indices, axes=self.axes, unique=True)

    def type(self, base: Array) -> Array:
        return base.with_dims(tuple(d for k, d in enumerate(base.dims) if k not in self.axes))


@dataclass(frozen=True)
class Spaced(Step):
    """`x[a:b:s]` along one axis where only the run knows s: the indices it picks. `stride` stands for s."""

    indices: tuple[Atom]
    axis: int
    stride: DimLike

    def read(self, here: Session, base: Atom) -> Atom:
        k = self.axis
        out = here.emit(gather, base, *self.indices, axes=(k,))
        axes = (*range(1, k + 1), 0, *range(k + 1, base.type.ndim))
        return here.emit(permute, out, axes=axes) if k else out

    def write(self, here: Session, base: Atom, value: Atom) -> Atom:
        k = self.axis
        axes = (k, *range(k), *range(k + 1, base.type.ndim))
        value = here.emit(permute, value, axes=axes) if k else value
        return here.emit(scatter, base, value, *self.indices, axes=(k,), unique=True)

    def type(self, base: Array) -> Array:
        (count,), k = self.indices[0].type.dims, self.axis
        return base.with_dims((*base.dims[:k], count, *base.dims[k + 1 :]))


@dataclass(frozen=True)
class Reshape(Step):
    """The same elements in order under another shape; `relies`: a copy, if the base does not lie row after row."""

    shape: tuple
    relies: bool = field(default=False, compare=False)

    def read(self, here: Session, base: Atom) -> Atom:
        return here.emit(reshape, base, shape=self.shape)

    def write(self, here: Session, base: Atom, value: Atom) -> Atom:
        return here.emit(reshape, value, shape=base.type.dims)


@dataclass(frozen=True)
class Permute(Step):
    """Transposition: dim k of the view is dim axes[k] of the base."""

    axes: tuple[int, ...]

    def read(self, here: Session, base: Atom) -> Atom:
        return here.emit(permute, base, axes=self.axes)

    def write(self, here: Session, base: Atom, value: Atom) -> Atom:
        return here.emit(permute, value, axes=inverse(self.axes))

    def type(self, base: Array) -> Array:
        return base.with_dims(tuple(base.dims[a] for a in self.axes))


@dataclass(frozen=True)
class Broadcast(Step):
    """Elements repeated; such a view is read-only."""

    shape: tuple
    axes: tuple[int, ...]

    def read(self, here: Session, base: Atom) -> Atom:
        return here.emit(broadcast, base, shape=self.shape, axes=self.axes)


@dataclass(frozen=True)
class Part(Step):
    """`x.real` or `x.imag` of a complex array."""

    name: str

    def read(self, here: Session, base: Atom) -> Atom:
        return here.emit(real if self.name == "real" else imag, base)

    def write(self, here: Session, base: Atom, value: Atom) -> Atom:
        if self.name == "real":
            return here.emit(complex_, value, here.emit(imag, base))
        return here.emit(complex_, here.emit(real, base), value)

    def type(self, base: Array) -> Array:
        return Array(np.zeros(0, base.dtype).real.dtype, base.dims)


@dataclass(frozen=True)
class Bits(Step):
    """`x.view(dtype)`: the same bits as another dtype of the same width."""

    dtype: np.dtype

    def read(self, here: Session, base: Atom) -> Atom:
        return here.emit(bitcast, base, dtype=self.dtype)

    def write(self, here: Session, base: Atom, value: Atom) -> Atom:
        return here.emit(bitcast, value, dtype=base.type.dtype)

    def type(self, base: Array) -> Array:
        return Array(self.dtype, base.dims)


@dataclass(frozen=True)
class Diagonal(Step):
    """`x.diagonal(offset, *axes)`: its dim is the last; such a view is read-only."""

    offset: int
    axes: tuple[int, int]
    length: DimLike

    def read(self, here: Session, base: Atom) -> Atom:
        with here.stamped():
            return library_creation.diagonal(base, self.offset, *self.axes)

    def type(self, base: Array) -> Array:
        rest = (d for k, d in enumerate(base.dims) if k not in self.axes)
        return base.with_dims((*rest, self.length))


def view(array: StagedArray, step: Any) -> StagedArray:
    """A view one step further."""
    if (here := current_session()) is not None and array.session is not here:
        array = adopted(here, array)
    writeable = array.writeable and not isinstance(step, (Broadcast, Diagonal))
    return StagedArray(array.box, (*array.chain, step), step.type(array.type), writeable)
