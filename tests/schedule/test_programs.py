"""Programs with regions and updates: evaluate = Python loops = native, fused and unfused."""

from __future__ import annotations

import pytest
from differential import check
from programs import PROGRAMS


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    function, arguments = PROGRAMS[name]
    for arrays in arguments:
        check(function, *arrays, ulps=64 if name == "layernorm" else 8)  # a difference of nearly equal numbers
