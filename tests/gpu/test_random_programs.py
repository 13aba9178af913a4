"""Random Python programs as kernels, emulated: what Python and the CPU give, lanes and derivatives among them.

In: a few seeds, others each day. Out: agreement, or the smallest program that shows the fault. Programs whose float32
sums are made in another order (the plan "precision") are not among them: docs/gpu.md says how sums differ.
"""

from __future__ import annotations

import pytest
from fuzz.campaign import Search
from fuzz.programs import PLANS
from turns import turn

COUNT, SEEDS = 8, range(9000, 9032)


@pytest.mark.parametrize("seed", turn(SEEDS, 32, thorough=8))
def test_kernels_agree(seed):
    search = Search(seed, COUNT, plans=tuple(plan for plan in PLANS if plan != "precision"), gpu=True)
    search.run()
    faults = [f"{verdict.detail}\n{case.text}" for case, verdict in search.faults()]
    assert not faults, "\n\n".join(faults)
    assert len(search.verdicts) == COUNT
