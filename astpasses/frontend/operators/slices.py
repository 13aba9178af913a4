"""`a:b:s` against a dim: Python's clamping, with bounds that may be staged.

In: a slice and a dim. Out: (start atom, length, step). A length whose bounds are staged is a new size,
unless the difference of the bounds is known: x[i:i + 3] has 3 elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase.astpasses.library.arrays import spaced_places
from metaphrase.core.build import literal
from metaphrase.core.dims import DimLike, Sym, dim_max, floordiv, fresh_symbol
from metaphrase.core.ir import Atom
from metaphrase.ops.arithmetic import add, max_, min_
from metaphrase.ops.compare import lt, select

from ..staging.demand import need_concrete
from ..staging.session import Session
from ..staging.signals import NeedConcrete
from ..values.staged_values import Number, Staged, StagedArray
from ..values.views import Spaced
from .arithmetic import dim_of

_LONGEST = 2**60  # no array has as many elements, and sums with a size stay within 64 bits


def resolve_slice(here: Session, index: slice, dim: DimLike) -> tuple[Atom, DimLike, int]:
    """The start, the number of elements and the step."""
    step = 1 if index.step is None else index.step
    if not isinstance(step, (int, np.integer)):
        step = need_concrete(step, "the step of a slice", int)
    step = max(-_LONGEST, min(int(step), _LONGEST))
    if step == 0:
        raise ValueError("slice step cannot be zero")
    start, stop = _bound(here, index.start), _bound(here, index.stop)
    if isinstance(dim, int) and all(b is None or isinstance(b, int) for b in (start, stop)):
        picked = range(dim)[slice(start, stop, step)]
        return literal(picked.start if len(picked) else 0), len(picked), step
    backwards = step < 0
    if backwards:  # from `high - 1` down to `low`: what is counted is the gap after an element
        start, stop = stop, start
    low, low_value = _position(here, start, dim, 0, backwards)
    high, high_value = _position(here, stop, dim, dim, backwards)
    low = _bind(here, None, low_value, dim) if low is None else low
    high = _bind(here, None, high_value, dim) if high is None else high
    if not here.is_bound(high - low) or backwards and not here.is_bound(high):
        low, high = _bind(here, low, low_value, dim), _bind(here, high, high_value, dim)
    length = high - low
    if not here.facts.less_equal(low, high):
        length = dim_max(length, 0)
    if abs(step) != 1:
        length = floordiv(length + abs(step) - 1, abs(step))
    if backwards:
        low, low_value = high - 1, None
    first = here.dim_atom(low) if low_value is None else here.atom(low_value, np.dtype("int64"))
    return first, length, step


def unknown_step(index: Any) -> bool:
    """Whether only the run knows the step of a slice: not where it is a number that is given."""
    if not isinstance(index, slice) or not isinstance(index.step, Staged):
        return False
    try:
        need_concrete(index.step, "the step of a slice", int)
    except NeedConcrete as need:
        return any(root[0] not in ("argument", "captured") for root in need.roots)
    return False


def spaced(here: Session, index: slice, axis: int, dim: DimLike) -> Spaced:
    """The step to the view that a slice of unknown step picks."""
    from ..calls.call import call_value

    places = call_value(spaced_places, (index.start, index.stop, index.step, here.size(dim)), {})
    (count,) = places.type.dims
    if not isinstance(count, int) and count.is_sym:
        here.facts.learn(count.name, 0, dim)
    stride = fresh_symbol("step#")
    here.facts.learn(stride, None, None)
    return Spaced((places.read(),), axis, Sym(stride))


def _bound(here: Session, bound: Any) -> Any:
    if bound is None:
        return None
    if isinstance(bound, (int, np.integer)):
        return int(bound)
    if isinstance(bound, StagedArray) and bound.ndim == 0:
        bound = here.wrap(bound.read())
    if isinstance(bound, Number) and bound.dtype.kind in "iu":
        return bound
    raise TypeError("slice indices must be integers or None or have an __index__ method")


def _position(here: Session, bound: Any, dim: DimLike, default: DimLike, after: bool) -> tuple[DimLike | None, Any]:
    """A bound between 0 and `dim`: as an expression if it is known, and as a staged value if it needs one.
    `after`: one more than the bound, as backwards the bound's own element is on the other side of it."""
    if bound is None:
        return default, None
    known, facts = dim_of(bound), here.facts
    from_end = known is not None and facts.less(known, 0)
    if known is None or not from_end and not facts.less_equal(0, known):
        return None, _clipped(here, bound, dim, after)
    clamped = facts.clamp(0, known + (dim if from_end else 0) + after, dim)
    if clamped == known and isinstance(bound, Number) and bound._atom is not None and not after:
        return known, bound
    return clamped, None if here.is_bound(clamped) else _clipped(here, bound, dim, after)


def _clipped(here: Session, bound: Number, dim: DimLike, after: bool) -> Number:
    """min(max(bound, counted from the end if negative, 0), dim), computed when the program runs."""
    atom, size = here.atom(bound, np.dtype("int64")), here.dim_atom(dim)
    wrapped = here.emit(select, here.emit(lt, atom, literal(0)), here.emit(add, atom, size), atom)
    low, high = (-1, here.dim_atom(dim - 1)) if after else (0, size)  # 1 is added to what 64 bits hold for sure
    place = here.emit(min_, here.emit(max_, wrapped, literal(low)), high)
    return Number(here, here.emit(add, place, literal(1)) if after else place, int)


def _bind(here: Session, known: DimLike | None, value: Any, dim: DimLike) -> DimLike:
    """A bound as an expression that types may mention."""
    if known is not None and here.is_bound(known):
        return known
    symbol: Any = here.as_dim(Number(here, here.atom(value), int))
    if known is None:
        here.facts.learn(symbol.name, 0, dim)
    else:
        here.facts.learn(symbol.name, known, known)
    return symbol
