"""vmap of a case against a Python loop over its lanes.

In: a module with `program` and `ARGUMENTS` of one size: each set is a lane. `AXES` says which parameters are
batched. Out: nothing, or AssertionError.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import metaphrase as mp

from .outcomes import Outcome, difference, outcome

TOLD = re.compile(r"in lane (\d+) of vmap$")


class Lanes:
    """The lanes of a module. An error is that of a lane that raises one. `tolerance`: None where results are
    not compared."""

    def __init__(self, module: Any, tolerance: float | None):
        axes, sets = module.AXES, module.ARGUMENTS
        self.tolerance = tolerance
        self.stacked = tuple(
            sets[0][k] if axis is None else np.stack([np.asarray(lane[k]) for lane in sets], axis=axis)
            for k, axis in enumerate(axes)
        )
        self.wanted = [outcome(module.program, lane(self.stacked, axes, number)) for number in range(len(sets))]
        self.batched = mp.vmap(module.program, axes)
        self.jitted = mp.jit(self.batched)

    def python(self) -> None:
        self.compare("vmap", self.batched)

    def calls(self) -> list[tuple[Callable, tuple]]:
        return [(self.jitted, self.stacked)]

    def native(self) -> None:
        self.compare("jit(vmap)", self.jitted)

    def compare(self, name: str, function: Callable) -> None:
        got = outcome(function, self.stacked)
        if got.error or any(w.error for w in self.wanted):
            failed = next((w for w in self.wanted if w.error), None)
            told = TOLD.search(got.message)
            lanes = self.wanted if told is None else [self.wanted[int(told[1])]]
            if got.error not in [w.error for w in lanes if w.error]:
                raise AssertionError(f"{name}: {failed!r} is not {got!r}")
        elif self.tolerance is not None:
            for number, want in enumerate(self.wanted):
                one = Outcome(take(got.result, number), ())
                found = difference(Outcome(want.result, ()), one, self.tolerance)
                if found:
                    raise AssertionError(f"{name}, lane {number}: {found}\nfor {self.stacked!r}")


def lane(stacked: tuple, axes: tuple, number: int) -> tuple:
    return tuple(s if axis is None else np.take(s, number, axis=axis) for s, axis in zip(stacked, axes))


def take(tree: Any, number: int) -> Any:
    if isinstance(tree, dict):
        return {key: take(value, number) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(take(value, number) for value in tree)
    return tree[number]
