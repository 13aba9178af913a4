"""How many derivatives will be taken of what is being staged, and whether it is mapped over an axis.

In: the transformations that do it. Out: for a function with rules of its own, whether these are staged at all, and how
deep: a rule may call the very function that it is the rule of.

    grad(grad(f))(x)      # f is staged with 2 to come, its rule with 1, that rule's own with 0: plain functions
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..core.axes import NamedAxis, named_axes, under_axes
from ..core.dims import DimLike
from ..late import dataclass, field

_to_come: ContextVar[int] = ContextVar("metaphrase_derivatives", default=0)
_transposed: ContextVar[bool] = ContextVar("metaphrase_transposed", default=False)


@dataclass(frozen=True)
class Lanes:
    """That what is staged is one lane of `size`. `axes`, `outer`: the named axes and the lanes around these lanes.
    `guards`: what rules read that are staged while the lanes are put together."""

    size: DimLike
    axes: tuple[NamedAxis, ...]
    outer: Lanes | None
    guards: list[Any] = field(default_factory=list)


_lanes: ContextVar[Lanes | None] = ContextVar("metaphrase_lanes", default=None)


@contextmanager
def for_lanes(size: DimLike) -> Iterator[Lanes]:
    """What is staged inside is one lane among many, to be batched: the loops of derivatives save no segments (see
    `split`), so that native code runs the lanes side by side."""
    lanes = Lanes(size, named_axes(), _lanes.get())
    before = _lanes.set(lanes)
    try:
        yield lanes
    finally:
        _lanes.reset(before)


@contextmanager
def around_lanes(lanes: Lanes) -> Iterator[None]:
    """What is staged inside is of all these lanes together."""
    before = _lanes.set(lanes.outer)
    try:
        with under_axes(lanes.axes):
            yield
    finally:
        _lanes.reset(before)


def lanes_to_come() -> Lanes | None:
    """See `for_lanes`."""
    return _lanes.get()


@contextmanager
def taking_derivatives(count: int, transposed: bool = False) -> Iterator[None]:
    """What is staged inside will have `count` derivatives taken of it. `transposed`: it is a rule for tangents, which
    reverse mode transposes."""
    before, rule = _to_come.set(count), _transposed.set(transposed)
    try:
        yield
    finally:
        _to_come.reset(before)
        _transposed.reset(rule)


def derivatives_to_come() -> int:
    """See `taking_derivatives`."""
    return _to_come.get()


def will_be_transposed() -> bool:
    """Whether what is being staged may be transposed: it is differentiated, or the rule of a derivative."""
    return derivatives_to_come() > 0 or _transposed.get()


_without: ContextVar[tuple[Any, ...]] = ContextVar("metaphrase_without", default=())


@contextmanager
def without_rule(function: Any) -> Iterator[None]:
    """What is staged inside calls the function as if `derivative_of` had given it no rule."""
    before = _without.set((*_without.get(), function))
    try:
        yield
    finally:
        _without.reset(before)


def goes_without_rule(function: Any) -> bool:
    """See `without_rule`."""
    return any(function is one for one in _without.get())


__all__ = [
    "Lanes",
    "around_lanes",
    "derivatives_to_come",
    "for_lanes",
    "goes_without_rule",
    "lanes_to_come",
    "taking_derivatives",
    "will_be_transposed",
    "without_rule",
]
