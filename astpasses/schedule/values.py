"""What a core value is while its program is lowered: a function from an index to a scalar expression.

In: dims and Bufs. Out: `Value` (may have no storage), `Place` (a storage, or a part of one), `Names`.

    transposed = Value(f64, (m, n), lambda index: x.at((index[1], index[0])))
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metaphrase.core.dims import DimLike
from metaphrase.core.primitive import REGISTRY

from .nest import Buf, E, Load

Indices = tuple[DimLike, ...]

# Words that mean something in Python, Cython, C or the emitted prelude.
_TAKEN = set(keyword.kwlist) | set(
    """
    c
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile
    while cdef cpdef ctypedef cimport include cppclass readonly public api gil nogil noexcept object bint
    range len abs min max round sum pow print entry buffers sizes context np main exit erf gamma signgam y0
    y1 yn j0 j1 jn environ stdin stdout i64 i32 i16 i8 u64 u32 u16 u8 f64 f32 f16 bf16 c128 c64 b1 bool nan
    inf floordiv mod NULL True False None sin cos tan exp log sqrt floor ceil trunc select failed asm typeof
    linux unix index DEF IF ELIF ELSE operator staticmethod empty grow view effect Failed""".split()
)

_TYPES = set("f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8 b1 c128 c64".split())


class Names:
    """Gives every Buf and symbol of one program a name of its own."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}

    def fresh(self, base: str) -> str:
        base = (
            "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in base).strip("_") or "t"
        )
        if (
            base[0].isdigit()
            or base.startswith(("mp_", "MP_", "pyx"))
            or base.split("_")[0] in _TYPES
            and "_" in base
        ):
            base = "v" + base
        if base in REGISTRY or base + "_" in REGISTRY or base.rstrip("_") in REGISTRY:
            base = "t"  # nobody chose this name: it is that of the operation
        if base in _TAKEN:
            base += "_"
        name, count = base, self.used.get(base, 0)
        while count and name in self.used or name in self.used:
            name = f"{base}_{count}" if not base.endswith("_") else f"{base}{count}"
            count += 1
        self.used[base] = max(count, 1)
        self.used.setdefault(name, 1)
        return name


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
    """An array (or, with no dims, a scalar) as the lowering sees it; `place` is its storage if it has one."""

    dtype: np.dtype
    dims: Indices
    at: Callable[[Indices], E]
    place: Place | None = None
    undefined: bool = False

    @property
    def scalar(self) -> E:
        return self.at(())


def stored(place: Place) -> Value:
    return Value(place.buf.dtype, place.dims, place.load, place)


def scalar(e: E) -> Value:
    return Value(e.dtype, (), lambda index: e)
