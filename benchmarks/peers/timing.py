"""One row of a benchmark: every tool's candidates checked, then timed in turn, in one process.

In: a `Row` (the NumPy program, its arguments, and the forms each tool may choose from). Out: `Result`s by
tool: the best form, its median and its first call. Example:

    results = measure(Row("gemm", gemm, make_arguments, tools={"numpy": [Form("numpy", gemm)]}))
    results["numpy"].median
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ROUNDS, SECONDS = 5, 0.25  # blocks of calls a form, and the time all blocks of a form may take
PAUSE = 0.2  # between blocks: OpenBLAS's threads spin for a tenth of a second, on a core that the next tool wants


@dataclass
class Form:
    """One way to run a program. `prepare` makes a call's arguments (not timed), `wait` ends it (timed)."""

    label: str
    function: Callable[..., Any]
    prepare: Callable[[tuple], tuple] | None = None
    wait: Callable[[Any], Any] | None = None
    pure: bool = False  # returns the changed arrays instead of changing its arguments


@dataclass
class Row:
    """A program and the forms each tool may choose from; `changes` numbers the arrays that it changes."""

    name: str
    reference: Callable[..., Any]
    arguments: tuple
    tools: dict[str, list[Form]] = field(default_factory=dict)
    rtol: float = 1e-9

    @property
    def changes(self) -> list[int]:
        given = fresh(self.arguments)
        self.reference(*given)
        return [k for k, (a, b) in enumerate(zip(given, self.arguments)) if is_array(a) and not same(a, b)]


@dataclass
class Result:
    label: str
    median: float
    first: float
    failures: list[str]


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def fresh(arguments: tuple) -> tuple:
    """The same arguments in arrays of their own."""
    return each_array(np.copy, arguments)


def each_array(change: Callable[[np.ndarray], Any], arguments: tuple) -> tuple:
    """The arguments, tuples of arrays among them, with each array changed."""

    def changed(a: Any) -> Any:
        return each_array(change, a) if isinstance(a, tuple) else change(a) if is_array(a) else a

    return tuple(map(changed, arguments))


def leaves(value: Any) -> list:
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves(value[key])]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [] if value is None else [value]


def run_once(row: Row, form: Form) -> tuple[float, list]:
    """One call: its seconds, and its results followed by the arrays it changed."""
    given = fresh(row.arguments)
    if form.prepare is not None:
        given = form.prepare(given)
    start = time.perf_counter()
    out = form.function(*given)
    if form.wait is not None:
        form.wait(out)
    took = time.perf_counter() - start
    found = leaves(out)
    return took, found if form.pure else found + [given[k] for k in row.changes_once]


def measure(row: Row) -> dict[str, Result]:
    """Check and time every form of every tool; the best form of each tool stays in for the medians."""
    row.changes_once = row.changes
    expected = run_once(row, Form("reference", row.reference))[1]
    chosen: dict[str, tuple[Form, float, list[str]]] = {}
    for tool, forms in row.tools.items():
        best, failures = None, []
        for form in forms:
            try:
                first, found = run_once(row, form)
                assert len(found) == len(expected), f"{len(found)} results, not {len(expected)}"
                for mine, theirs in zip(found, expected):
                    np.testing.assert_allclose(np.asarray(mine), theirs, rtol=row.rtol, atol=row.rtol)
            except Exception as error:  # a form that is refused, or wrong, is out: and is named
                failures.append(f"{form.label}: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
                continue
            quick = min(run_once(row, form)[0] for _ in range(4))
            if best is None or quick < best[2]:
                best = (form, first, quick)
        if best is not None:
            chosen[tool] = (best[0], best[1], failures)
        elif failures:
            chosen[tool] = (Form("none", row.reference), float("nan"), failures)
    times: dict[str, list[float]] = {tool: [] for tool in chosen}
    for _ in range(ROUNDS):
        for tool, (form, first, _failures) in chosen.items():
            if first != first:
                continue
            time.sleep(PAUSE)
            run_once(row, form)  # not counted: it finds the tool's threads asleep
            end = time.perf_counter() + SECONDS / ROUNDS
            for _ in range(40):
                times[tool].append(run_once(row, form)[0])
                if time.perf_counter() > end:
                    break
    medians = {tool: statistics.median(taken) if taken else float("nan") for tool, taken in times.items()}
    return {
        tool: Result(form.label, medians[tool], first, failures) for tool, (form, first, failures) in chosen.items()
    }
