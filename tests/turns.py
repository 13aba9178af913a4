"""Which part of a wide family of cases is tested: each day another one by `make test`, and all by `make test-all`.

In: cases in a fixed order, or a mark on tests. Out: those whose turn it is. The day is METAPHRASE_TESTS_DAY, so that
all workers take the same part and a day can be repeated; `make test` sets METAPHRASE_TESTS=quick. Example:

    @pytest.mark.parametrize("chunk", turn(CHUNKS, 4))                # a quarter by `make test`
    @pytest.mark.parametrize("name", turn(NAMES, 16, thorough=4))     # a sixteenth, and a quarter by `make test-all`

    @pytest.mark.turns(4)                                             # of cases that are alike
    pytestmark = pytest.mark.turns(4, together=True)                  # of tests that share what costs much
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from datetime import date
from typing import TypeVar

import pytest

Case = TypeVar("Case")
DAY = int(os.environ.setdefault("METAPHRASE_TESTS_DAY", str(date.today().toordinal())))
QUICK = "quick" in os.environ.get("METAPHRASE_TESTS", "").split()


def turn(cases: Iterable[Case], quick: int, *, thorough: int = 1, first: int = 0, day: int = DAY) -> list[Case]:
    """Every `quick`th of the cases, or every `thorough`th. `first` has another family of the same cases take others."""
    parts = quick if QUICK else thorough
    return list(cases)[(day + first) % parts :: parts]


def part(cases: Iterable[Case], parts: int, *, of: int, first: int = 0, day: int = DAY) -> list[Case]:
    """A part of what a turn of `of` days gave, another one when its turn comes again."""
    return turn(cases, parts, thorough=parts, first=first, day=day // of if QUICK else day)


def takes(item: pytest.Item, day: int = DAY) -> bool:
    """Whether it is a marked test's turn; a test without a mark is always taken. With `together` the tests of a file
    have one day: they share what is dear."""
    mark = item.get_closest_marker("turns")
    if mark is None or not QUICK:
        return True
    name = item.nodeid.partition("::")[0] if mark.kwargs.get("together") else item.name
    return (zlib.crc32(name.encode()) + day) % mark.args[0] == 0
