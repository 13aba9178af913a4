"""Names that mean nothing else, neither in the loops as Python nor in a target's text, each given once.

In: what something would be called, and the words that the target's text has. Out: `Names`.

    names.fresh("x"), names.fresh("x"), names.fresh("for") == "x", "x_1", "for_"
"""

from __future__ import annotations

import keyword

from metaphrase.core.primitive import REGISTRY

# Words of the loops as Python; a target has more.
_TAKEN = set(keyword.kwlist) | set(
    """
    i64 i32 i16 i8 u64 u32 u16 u8 f64 f32 f16 bf16 c128 c64 b1 bool nan inf np range len abs min max round sum pow print
    floordiv mod select failed empty grow view library halves effect Failed""".split()
)

_TYPES = set("f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8 b1 c128 c64".split())


class Names:
    """Gives every Buf and symbol of one program a name of its own."""

    def __init__(self, words: frozenset[str] = frozenset()) -> None:
        self.words = words | _TAKEN
        self.used: dict[str, int] = {}

    def fresh(self, base: str) -> str:
        base = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in base).strip("_") or "t"
        if base[0].isdigit() or base.startswith(("mp_", "MP_", "pyx")) or base.split("_")[0] in _TYPES and "_" in base:
            base = "v" + base
        if base in REGISTRY or base + "_" in REGISTRY or base.rstrip("_") in REGISTRY:
            base = "t"  # nobody chose this name: it is that of the operation
        if base in self.words:
            base += "_"
        name, count = base, self.used.get(base, 0)
        while count and name in self.used or name in self.used:
            name = f"{base}_{count}" if not base.endswith("_") else f"{base}{count}"
            count += 1
        self.used[base] = max(count, 1)
        self.used.setdefault(name, 1)
        return name
