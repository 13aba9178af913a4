"""Every corpus function batched, in native code: what a Python loop over the lanes gives.

Once with the floating-point arguments in lanes, and once with all of them, so that lanes part: other
branches, trip counts, indices, and errors. Of several lanes' errors that of the program's first
failing check is raised. Each day other groups are tested (tests/turns.py), one of the two ways as native code, at the
levels of tests/levels.py, and the other as the evaluated program: the next time they change; one group in sixteen is
compiled at -O3.
"""

from __future__ import annotations

import numpy as np
import pytest
from batches import cases_of, outcomes
from grouped import build
from stages import CHUNKS, SAMPLE, TODAY, TURNS
from turns import DAY
from ways import Outcome, assert_same, failures, is_exact

from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.core.read import read
from metaphrase.core.show import same, show

BOUND = 64  # units in the last place: a product with a batch sums in another order than one of a lane


@pytest.mark.parametrize("only_floats", [True, False], ids=["floats", "all"])
@pytest.mark.parametrize("chunk", TODAY)
def test_batched_native_code(chunk, only_floats):
    found, refused = cases_of(CHUNKS[chunk], only_floats)
    turn = DAY // TURNS + TODAY.index(chunk)
    functions = {name: function for name, (function, *_) in found.items() if turn % 2 == only_floats}
    compiled = build(functions, level="-O3" if turn // 2 % 16 == 0 else "") if functions else {}

    def test(name):
        function, wanted, results = found[name]
        check(function)
        assert same(read(show(function)), function)
        run = compiled[name].run if name in compiled else lambda arrays: evaluate(function, *arrays)
        want, got = outcomes(name, function, wanted, results, run)
        assert_same(want, got, 0 if is_exact(function) else BOUND, "batched")

    assert not (wrong := failures(found, test)), wrong
    for name, problem in refused.items():
        assert problem.remedy, f"{name}: {problem}"


@pytest.mark.turns(3)
def test_few_functions_are_refused():
    refused = {
        f"{name} {only}": str(problem) for only in (True, False) for name, problem in cases_of(SAMPLE, only)[1].items()
    }
    assert len(refused) < 0.1 * 2 * len(SAMPLE), refused


def test_a_wrong_lane_is_seen():
    want = Outcome([np.array([1.0, 2.0, 3.0])])
    with pytest.raises(AssertionError, match="apart"):
        assert_same(want, Outcome([np.array([1.0, 2.0, 2.0])]), BOUND, "batched")
