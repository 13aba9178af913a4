"""A few of each of `make stress`."""

from __future__ import annotations

import pytest

from .campaign import builds, crowd, forks, kills, loops
from .processes import COMPILE, run

pytestmark = pytest.mark.turns(8)


@pytest.mark.parametrize(("work", "count"), [(kills, 4), (builds, 3), (forks, 5), (crowd, 3), (loops, 4)])
def test_none_hangs_and_each_answers(tmp_path, work, count):
    tally = work(count, tmp_path)
    assert tally.bad == [] and sum(tally.kinds.values()) >= count


def test_an_error_that_is_not_clear_is_found(tmp_path):
    assert run("raise SystemExit(3)", tmp_path, SEED="1").kind == "wrong"
    assert run(COMPILE.replace("*k + k, rtol", "*k, rtol"), tmp_path, SEED="1").kind == "wrong"
