"""Which tests run in the same worker of pytest-xdist: a theme of the corpus, or a file; and how little is said of each.

In: the tests' names. Out: a scheduler. The tests of a theme share what tests/stages.py makes of its
functions, those of a file their fixtures; the large units are given out first, the tests of SINGLE one by one
at the end. What a worker says of a test costs more than most tests do: of six messages `Quiet` leaves three.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

THEME = re.compile(r"\[(?:[a-z]+-)?([a-z_]+)\.\w+(?:-\w+)?\]$")
SINGLE = ("fuzz/", "programs/", "test_sizes.py", "test_registry.py", "kernels/", "pairs/")  # long ones
LONG = 1.0  # seconds: of a fixture that takes less nothing is said
UNSAID = "unsaid"


class ByTheme(LoadScopeScheduling):
    """Units of tests, whose names say where they belong."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Numbered(collection)

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

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        """All that was not forgotten."""
        return sum(map(len, workload.values()))


class Numbered(list):
    """A list of different names that knows where each is: the scheduler asks for every one of twenty thousand."""

    def __init__(self, names: Sequence[str]):
        super().__init__(names)
        self.places = {name: k for k, name in enumerate(self)}

    def index(self, name: str, *_: Any) -> int:
        return self.places[name]


class Quiet:
    """In a worker: what its messages leave out."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        (interactor,) = (p for p in session.config.pluginmanager.get_plugins() if hasattr(p, "sendevent"))
        interactor.sendevent = said(interactor.sendevent)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_to_serializable(self, report: pytest.CollectReport | pytest.TestReport) -> dict | None:
        """In place of pytest's own of tests that passed and printed nothing, which has all names of each."""
        if not isinstance(report, pytest.TestReport) or not report.passed or report.sections or report.user_properties:
            return None
        if report.when != "call" and report.duration < LONG:
            return {UNSAID: True}
        fields = ("nodeid", "location", "outcome", "longrepr", "when", "duration", "start", "stop")
        return {"$report_type": "TestReport", "keywords": {}} | {name: getattr(report, name) for name in fields}


def said(send: Callable[..., None]) -> Callable[..., None]:
    """The messages that are needed."""

    def sendevent(name: str, **content: Any) -> None:
        if name != "logstart" and UNSAID not in content.get("data", ()):
            send(name, **content)

    return sendevent
