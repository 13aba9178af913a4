"""Random programs of names and arrays agree with Python, by NumPy source; `make fuzz` runs native ones."""

from __future__ import annotations

import pytest
from turns import turn

from fuzz.kept import Writer, check

COUNT = 12


@pytest.mark.parametrize("seed", turn(range(0, 8 * COUNT, COUNT), 8))
def test_results_attributes_and_what_is_shared(seed):
    verdicts = {s: check(s, native=False) for s in range(seed, seed + COUNT)}
    faults = [f"{v}\n{Writer(s).text()}" for s, v in verdicts.items() if v != "agrees" and "refused" not in v]
    assert not faults, "\n\n".join(faults)
    assert sum(v == "agrees" for v in verdicts.values()) >= COUNT // 4, verdicts
