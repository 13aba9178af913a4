"""What tests cost: CPU seconds of this process, of processes that ended, and of the one that translates.

In: a pytest session with `--times FILE`. Out: a JSON file of {test file: [CPU seconds, tests]}, the dearest
first, of all workers together. A fixture, and what tests keep for one another, count for the test that first
asks. Example:

    pytest -n 2 tests --times build/times.json
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metaphrase.runtime import cython_build

TICKS = os.sysconf("SC_CLK_TCK")


def spent() -> float:
    """CPU seconds until now."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + translating()


def translating() -> float:
    """CPU seconds of the process that translates, while it lives: then it is one that ended."""
    worker = cython_build._worker
    if worker is None or not worker.alive():
        return 0.0
    try:
        fields = Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


class Times:
    """CPU seconds and how many tests, by file."""

    def __init__(self, file: Path):
        self.file = file
        self.costs: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        start = spent()
        try:
            return (yield)
        finally:
            self.add({item.nodeid.partition("::")[0]: (spent() - start, 1)})

    def add(self, costs: dict[str, Any]) -> None:
        for file, (seconds, count) in costs.items():
            self.costs[file][0] += seconds
            self.costs[file][1] += count

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.add(getattr(node, "workeroutput", {}).get("times", {}))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["times"] = dict(self.costs)
            return
        ordered = sorted(self.costs.items(), key=lambda cost: -cost[1][0])
        self.file.parent.mkdir(parents=True, exist_ok=True)
        rows = [f"{json.dumps(file)}: [{seconds:.2f}, {count}]" for file, (seconds, count) in ordered]
        self.file.write_text("{\n" + ",\n".join(rows) + "\n}\n")
