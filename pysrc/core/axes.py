"""Names of mapped axes: which there are where a function is staged.

In: the name and the size of the axis that `vmap(f, axis_name=...)` maps over. Out: for what is staged inside, the axis
that a name means. Programs say the axis' `label`, which no other axis around them has. Example:

    vmap(vmap(f, axis_name="j"), axis_name="i")     # while f is staged: (NamedAxis("i", ...), NamedAxis("j", ...))
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..late import dataclass
from .dims import DimLike, symbols


@dataclass(frozen=True)
class NamedAxis:
    name: Hashable
    label: str
    size: DimLike


_around: ContextVar[tuple[NamedAxis, ...]] = ContextVar("metaphrase_axes", default=())


@contextmanager
def under_axes(axes: tuple[NamedAxis, ...]) -> Iterator[None]:
    """What is staged inside is mapped over these axes."""
    before = _around.set(axes)
    try:
        yield
    finally:
        _around.reset(before)


@contextmanager
def named_axis(name: Hashable, size: DimLike) -> Iterator[str | None]:
    """What is staged inside is mapped over an axis of this name, None for no name. Gives the label of the axis."""
    if name is None:
        yield None
        return
    around = _around.get()
    taken, label = {axis.label for axis in around}, str(name)
    while label in taken:
        label += "_"
    with under_axes((*around, NamedAxis(name, label, size))):
        yield label


def named_axes() -> tuple[NamedAxis, ...]:
    """The axes around what is being staged, outermost first."""
    return _around.get()


def sizes_of_axes() -> frozenset[str]:
    """The size symbols that the sizes of these axes mention: whoever maps over them binds them."""
    return frozenset(symbol for axis in named_axes() for symbol in symbols(axis.size))


__all__ = ["NamedAxis", "named_axes", "named_axis", "sizes_of_axes", "under_axes"]
