"""Which tests run in the same worker of pytest-xdist: a theme of the corpus, or a file.

In: the tests' names. Out: a scheduler. The tests of a theme share what tests/stages.py makes of its
functions, those of a file their fixtures; the large units are given out first, the tests of SINGLE one by one
at the end.
"""

from __future__ import annotations

import re

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

THEME = re.compile(r"\[(?:[a-z]+-)?([a-z_]+)\.\w+(?:-\w+)?\]$")
SINGLE = ("fuzz/", "programs/", "test_sizes.py", "test_registry.py", "kernels/", "pairs/")  # long ones


class ByTheme(LoadScopeScheduling):
    """Units of tests, whose names say where they belong."""

    def _split_scope(self, nodeid: str) -> str:
        theme = THEME.search(nodeid)
        file = nodeid.partition("::")[0]
        if theme and "/" in file and "doctest" not in file:
            return f"corpus {theme[1]}"
        return nodeid if any(name in file for name in SINGLE) else file

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """As there, but what is done is forgotten: it would be counted after each test."""
        nodeid = self.registered_collections[node][item_index]
        scope = self._split_scope(nodeid)
        unit = self.assigned_work[node][scope]
        del unit[nodeid]
        if not unit:
            del self.assigned_work[node][scope]
        self._reschedule(node)
