"""The hash that random numbers are made with: Threefry-2x32, elementwise, one primitive.

In: words of 64 bits, u64: a key and a counter, the high half first. Out: the hashed words. Its twenty rounds
are one operation, so that a program which draws numbers has one Let for each draw and not a hundred.

    y: u64[n] = threefry(key, counter)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.scalars import Scalar, Text
from ..core.types import Array
from .families import elementwise, require, same_type

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def _threefry_type(key: Array, counter: Array) -> Array:
    require(key.dtype == np.uint64, lambda: f"threefry: needs u64, got {key}")
    return same_type(key, counter)


def _threefry_numpy(key: Any, counter: Any) -> Any:
    u32 = np.uint32
    low = np.uint64(0xFFFFFFFF)
    with np.errstate(over="ignore"):  # sums wrap around, and NumPy warns of it on scalars
        keys = [(key >> np.uint64(32)).astype(u32), (key & low).astype(u32)]
        keys.append(keys[0] ^ keys[1] ^ u32(PARITY))
        x0, x1 = (counter >> np.uint64(32)).astype(u32) + keys[0], (counter & low).astype(u32) + keys[1]
        for step in range(5):
            for rotation in ROTATIONS[step % 2]:
                x0 = x0 + x1
                x1 = (x1 << u32(rotation) | x1 >> u32(32 - rotation)) ^ x0
            x0 = x0 + keys[(step + 1) % 3]
            x1 = x1 + keys[(step + 2) % 3] + u32(step + 1)
        return x0.astype(np.uint64) << np.uint64(32) | x1.astype(np.uint64)


def _threefry_text() -> Text:
    """Twenty rounds in five groups of four; after each the key's words go in, in turn."""
    rows = [f"u32 k0 = a >> 32, k1 = a, k2 = k0 ^ k1 ^ {PARITY}u, x = (b >> 32) + k0, y = b + k1;"]
    for step in range(5):
        rows += [f"x += y; y = (y << {n} | y >> {32 - n}) ^ x;" for n in ROTATIONS[step % 2]]
        rows.append(f"x += k{(step + 1) % 3}; y += k{(step + 2) % 3} + {step + 1};")
    return Text("u64", "\n".join([*rows, "return (T)x << 32 | y;"]), "a, b")


threefry = elementwise(
    "threefry",
    _threefry_numpy,
    type=_threefry_type,
    jvp=(None, None),
    scalar=Scalar(texts=(_threefry_text(),)),
    doc="Twenty rounds of Threefry-2x32 on a counter, under a key.",
)

__all__ = ["threefry", "ROTATIONS", "PARITY"]
