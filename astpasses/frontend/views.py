"""Steps from an array to a view of it. Each reads the view out of the base, and puts a new view back into
the base.

In: the base's atom. Out: the view's atom; or the base with the view replaced. Indices are in bounds:
whoever makes the step has checked them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metaphrase.core.build import literal
from metaphrase.core.ir import Atom
from metaphrase.core.types import Array
from metaphrase.ops.indexing import gather, scatter, slice_update
from metaphrase.ops.indexing import slice as core_slice
from metaphrase.ops.shape import broadcast, inverse, permute, reshape

from .values import StagedArray

if TYPE_CHECKING:
    from .session import Session


@dataclass(frozen=True)
class Rectangle:
    """`x[a:b:s, ...]`: starts are atoms, one a dim."""

    starts: tuple[Atom, ...]
    shape: tuple
    step: tuple[int, ...]

    def read(self, here: Session, base: Atom) -> Atom:
        return here.emit(core_slice, base, *self.starts, shape=self.shape, step=self.step)

    def write(self, here: Session, base: Atom, value: Atom) -> Atom:
        return here.emit(slice_update, base, value, *self.starts, step=self.step)

    def type(self, base: Array) -> Array:
        return base.with_dims(self.shape)


@dataclass(frozen=True)
class Pick:
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
class Reshape:
    """The same elements in the same order under another shape."""

    shape: tuple

    def read(self, here: Session, base: Atom) -> Atom:
        return here.emit(reshape, base, shape=self.shape)

    def write(self, here: Session, base: Atom, value: Atom) -> Atom:
        return here.emit(reshape, value, shape=base.type.dims)

    def type(self, base: Array) -> Array:
        return base.with_dims(self.shape)


@dataclass(frozen=True)
class Permute:
    """Transposition: dim k of the view is dim axes[k] of the base."""

    axes: tuple[int, ...]

    def read(self, here: Session, base: Atom) -> Atom:
        return here.emit(permute, base, axes=self.axes)

    def write(self, here: Session, base: Atom, value: Atom) -> Atom:
        return here.emit(permute, value, axes=inverse(self.axes))

    def type(self, base: Array) -> Array:
        return base.with_dims(tuple(base.dims[a] for a in self.axes))


@dataclass(frozen=True)
class Broadcast:
    """Elements repeated; such a view is read-only."""

    shape: tuple
    axes: tuple[int, ...]

    def read(self, here: Session, base: Atom) -> Atom:
        return here.emit(broadcast, base, shape=self.shape, axes=self.axes)

    def write(self, here: Session, base: Atom, value: Atom) -> Atom:
        raise AssertionError("a broadcast view is read-only")

    def type(self, base: Array) -> Array:
        return base.with_dims(self.shape)


def view(array: StagedArray, step: Any) -> StagedArray:
    """A view one step further."""
    writeable = array.writeable and not isinstance(step, Broadcast)
    return StagedArray(array.box, (*array.chain, step), step.type(array.type), writeable)


def whole(dims: tuple) -> Rectangle:
    """The rectangle that is everything."""
    return Rectangle((literal(0),) * len(dims), dims, (1,) * len(dims))
