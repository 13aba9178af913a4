"""Every corpus function batched, in native code: what a Python loop over the lanes gives.

Once with the floating-point arguments in lanes, and once with all of them, so that lanes part: other
branches, trip counts, indices, and errors. Of several lanes' errors that of the program's first
failing check is raised. Each day one of the two ways is native code, at -O1, and the other the evaluated
program: the next day they change; one group in sixteen is compiled at -O3.
"""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np
import pytest
from grouped import build
from stages import CASES, CHUNKS, SAMPLE, chunks, core, primal, staged
from ways import Outcome, assert_same, caught, failures, is_exact

from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.transforms.batch import batch
from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.core.read import read
from metaphrase.core.show import same, show
from metaphrase.core.types import has_tangent
from metaphrase.source import SourceError

LANES = 3
BOUND = 64  # units in the last place: a product with a batch sums in another order than one of a lane


def batched_function(name: str, only_floats: bool) -> tuple[Function, list[bool], list[bool]] | None:
    """(batched program, batched parameters, batched results); None where there is nothing to batch."""
    function = primal(name)
    wanted = [p.type.value is None and (has_tangent(p.type) or not only_floats) for p in function.params]
    others = [p.type.value is None and has_tangent(p.type) for p in function.params]
    if not any(wanted) or not only_floats and wanted == others:
        return None
    made, results = batch(function, LANES, wanted)
    return optimize(made, before_transform=False), wanted, results


def lanes_of(name: str, values: list[Any], wanted: list[bool]) -> list[list[Any]]:
    """Arguments for each lane: the case's own, and two others where they are batched."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    rows: list[list[Any]] = [[], [], []]
    for value, mark in zip(values, wanted, strict=True):
        value = np.array(value)
        if not mark:
            others = value, value
        elif value.dtype.kind in "fcV":
            step = random.uniform(0.5, 1.5, value.shape)
            others = (value + 0.3 * step).astype(value.dtype), (value - 0.7 * step).astype(value.dtype)
        elif value.dtype.kind == "b":
            others = ~value, value
        else:
            others = value, np.where(value > 1, value - 1, value).astype(value.dtype)
        for row, lane in zip(rows, (value, *others)):
            row.append(np.asarray(lane)[()])
    return rows


def failures_of_lanes(name: str, rows: list[list[Any]]) -> dict[tuple, Outcome]:
    """The errors that lanes raise."""
    found = [caught(lambda *a: evaluate(core(name), *a), tuple(row)) for row in rows]
    return {(o.error, o.said): o for o in found if o.error is not None}


def loop_over_lanes(name: str, rows: list[list[Any]], results: list[bool]) -> list[np.ndarray]:
    """What Python gives: the lanes one after the other."""
    outs = [evaluate(core(name), *row) for row in rows]
    return [np.stack(column) if mark else np.asarray(column[0]) for column, mark in zip(zip(*outs), results)]


def cases_of(names: list[str], only_floats: bool) -> tuple[dict[str, tuple], dict[str, SourceError]]:
    """What can be batched, and what is refused."""
    found, refused = {}, {}
    for name in names:
        try:
            made = batched_function(name, only_floats)
        except SourceError as problem:
            refused[name] = problem
            continue
        if made is not None:
            found[name] = made
    return found, refused


def outcomes(name: str, function: Function, wanted: list[bool], results: list[bool], run: Any) -> tuple:
    """(of the loop over lanes, of the batched program)."""
    flat = staged(name).arguments(CASES[name][1])
    rows = lanes_of(name, [np.array(a)[()] for a in flat], wanted)
    stacked = [np.stack(column) if mark else column[0] for column, mark in zip(zip(*rows), wanted)]
    want = caught(lambda: loop_over_lanes(name, rows, results), ())
    got = caught(lambda: [np.asarray(r) for r in run(stacked)], ())
    if got.error is not None and not want.printed:
        want = failures_of_lanes(name, rows).get((got.error, got.said), want)
    return want, got


@pytest.mark.parametrize("only_floats", [True, False], ids=["floats", "all"])
@chunks
def test_batched_native_code(chunk, only_floats):
    found, refused = cases_of(CHUNKS[chunk], only_floats)
    turn = int(os.environ["METAPHRASE_TESTS_DAY"]) + list(CHUNKS).index(chunk)
    functions = {name: function for name, (function, *_) in found.items() if turn % 2 == only_floats}
    compiled = build(functions, level="-O3" if turn // 2 % 16 == 0 else "-O1") if functions else {}

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


def test_few_functions_are_refused():
    refused = {
        f"{name} {only}": str(problem) for only in (True, False) for name, problem in cases_of(SAMPLE, only)[1].items()
    }
    assert len(refused) < 0.1 * 2 * len(SAMPLE), refused


def test_a_wrong_lane_is_seen():
    want = Outcome([np.array([1.0, 2.0, 3.0])])
    with pytest.raises(AssertionError, match="apart"):
        assert_same(want, Outcome([np.array([1.0, 2.0, 2.0])]), BOUND, "batched")
