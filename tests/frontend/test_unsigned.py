"""Unsigned integers of 64 bits as Python ints: what has more bits than those raises, and never wraps."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp

MADE = [
    lambda p: int(p[1]),
    lambda p: p.item(1),
    lambda p: p[1].item(),
    lambda p: round(p[1]),
    lambda p: p.tolist(),
    lambda p: sum(p.tolist()),
    lambda p: divmod(int(p[1]), 7),
    lambda p: p[p > 0].tolist(),
]


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("k", range(len(MADE)))
def test_too_large_for_64_bits(k, native):
    with mp.config(native=native):
        jitted = mp.jit(MADE[k])
        small = np.array([3, 2**63 - 1, 0], np.uint64)
        if k != 5:
            assert jitted(small) == MADE[k](small)
        with pytest.raises(OverflowError, match="64 bits"):
            jitted(np.array([3, 2**63, 1], np.uint64))
