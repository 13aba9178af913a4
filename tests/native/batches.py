"""The corpus batched: a program for several lanes of a case, and what a Python loop over the lanes gives.

In: a case's name. Out: its batched program, lanes of arguments, and outcomes to compare. Example:

    found, refused = cases_of(["kernels.softmax"], only_floats=True)
    want, got = outcomes("kernels.softmax", *found["kernels.softmax"], run)
"""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
from stages import CASES, core, primal, staged
from ways import Outcome, caught

from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.transforms.batch import batch
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.core.types import has_tangent
from metaphrase.source import SourceError

LANES = 3


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


TOLD = re.compile(r"(?:, |^)in lane (\d+) of vmap$")


def without_lane(outcome: Outcome) -> tuple[Outcome, int | None]:
    """What a program did, without the lane that its message tells; and that lane."""
    told = TOLD.search(outcome.said)
    return (outcome, None) if told is None else (replace(outcome, said=outcome.said[: told.start()]), int(told[1]))


def failure_of_a_lane(name: str, rows: list[list[Any]], got: Outcome, lane: int | None) -> Outcome | None:
    """The same error, of a lane that raises it: of the one that was told, if one was."""
    lanes = rows if lane is None else rows[lane : lane + 1]
    found = [caught(lambda *a: evaluate(core(name), *a), tuple(row)) for row in lanes]
    return next((o for o in found if (o.error, o.said) == (got.error, got.said)), None)


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
    got, lane = without_lane(got)
    if got.error is not None and (lane is not None or not want.printed):
        found = failure_of_a_lane(name, rows, got, lane)
        want = found if found is not None and not want.printed else want
        assert found is not None or lane is None, f"{got.said!r} is not what lane {lane} says"
    return want, got
