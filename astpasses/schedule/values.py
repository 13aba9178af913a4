"""What a core value is while its program is lowered: a function from an index to a scalar expression.

In: dims and Bufs. Out: `Value` (may have no storage), `Place` (a storage, or a part of one).

    transposed = Value(f64, (m, n), lambda index: x.at((index[1], index[0])))
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from metaphrase.core.dims import DimLike
from metaphrase.late import dataclass
from metaphrase.source import Span

from .nest import Buf, E, Load

Indices = tuple[DimLike, ...]


@dataclass(eq=False)
class Place:
    """Where an array lives: element `index` is `buf[prefix + index]`."""

    buf: Buf
    prefix: Indices = ()

    @property
    def dims(self) -> Indices:
        return self.buf.dims[len(self.prefix) :]

    def load(self, index: Indices) -> E:
        return Load(self.buf, (*self.prefix, *index))


@dataclass(eq=False)
class Value:
    """An array (or, with no dims, a scalar) as the lowering sees it; `place` is its storage if it has one, `span` the
    user's line that says what it is, where it is stored only behind that."""

    dtype: np.dtype
    dims: Indices
    at: Callable[[Indices], E]
    place: Place | None = None
    undefined: bool = False
    span: Span | None = None

    @property
    def scalar(self) -> E:
        return self.at(())


def stored(place: Place) -> Value:
    return Value(place.buf.dtype, place.dims, place.load, place)


def scalar(e: E) -> Value:
    return Value(e.dtype, (), lambda index: e)
