"""A primitive on a GPU, real or emulated, beside what its NumPy rule gives.

In: its name, the target, and CuPy or what stands in for it. Out: nothing, or an AssertionError that says which sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import stand_in
from emulated import run
from ways import caught, distance

from metaphrase import ops  # noqa: F401
from metaphrase.astpasses.schedule.target import Target
from metaphrase.core.build import trace
from metaphrase.core.evaluate import evaluate
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import type_of
from metaphrase.ops.samples import SAMPLES

NAMES = sorted(name for name in set(REGISTRY) & set(SAMPLES) if not REGISTRY[name].transient)
BOUND = {"eigh": 2**14, "svd": 2**14, "eig": 2**14, "irfft": 2**9}  # in units in the last place


def check_primitive(name: str, target: Target, xp: Any = stand_in, bound: int = 16) -> None:
    """`bound`: of units in the last place, where BOUND says nothing of the primitive."""
    for sample in SAMPLES[name]:
        args = tuple(np.asarray(a)[()] for a in sample.args)
        function = trace(
            f"try_{name}",
            lambda *xs, attributes=sample.attributes: REGISTRY[name](*xs, **attributes),
            [(f"x{k}", type_of(a)) for k, a in enumerate(args)],
        )
        with np.errstate(all="ignore"):
            want = caught(lambda *a, f=function: tuple(np.asarray(r)[()] for r in evaluate(f, *a)), args)
        got = caught(lambda *a, f=function: tuple(run(f, a, target, xp)), args)
        assert got.error == want.error and got.printed == want.printed, (sample, got, want)
        if want.error is None:
            apart = distance(got.result, want.result)
            assert apart <= BOUND.get(name, bound), (sample, apart, got.result, want.result)
        else:
            assert got.said == want.said
