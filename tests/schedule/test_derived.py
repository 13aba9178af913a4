"""What the transformations make of the programs runs natively too: derivatives forward and backward,
batches."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check
from programs import PROGRAMS

from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.transforms.batch import batch
from metaphrase.astpasses.transforms.jvp import jvp
from metaphrase.astpasses.transforms.reverse import vjp
from metaphrase.core.evaluate import evaluate
from metaphrase.core.types import has_tangent

# Those of integers alone have no derivative.
DIFFERENTIABLE = [n for n in PROGRAMS if n not in ("collatz", "counted")]
random = np.random.default_rng(1)


@pytest.fixture(autouse=True)
def _the_same_numbers_in_any_order():
    global random
    random = np.random.default_rng(1)


def like(value):
    value = np.asarray(value)
    return random.normal(size=value.shape).astype(value.dtype)[()]


def floats(function):
    return [has_tangent(p.type) for p in function.params]


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_forward(name):
    function, arguments = PROGRAMS[name]
    marks = floats(function)
    made, _ = jvp(function, marks)
    made = optimize(made, before_transform=False)
    arrays = arguments[0]
    check(made, *arrays, *(like(a) for a, mark in zip(arrays, marks) if mark), ulps=64)


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_backward(name, monkeypatch):
    monkeypatch.setenv("METAPHRASE_CHECK", "1")
    function, arguments = PROGRAMS[name]
    marks = floats(function)
    made = optimize(vjp(function, marks), before_transform=False)
    arrays = arguments[0]
    bars = [like(v) for v in evaluate(function, *arrays)]
    from metaphrase.astpasses.transforms.reverse import out_nonzero

    bars = [b for b, used in zip(bars, out_nonzero(function, marks)) if used]
    check(made, *arrays, *bars, ulps=256)


# Sizes that differ from lane to lane can't leave a batch: refused, as tests/transforms checks.
@pytest.mark.turns(4)
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ("counted", "doubling", "doubling_rows")])
def test_batched(name):
    function, arguments = PROGRAMS[name]
    made = batch(function, 3, [True] * len(function.params))[0]
    made = optimize(made, before_transform=False)
    arrays = arguments[0]
    stacked = [
        np.stack([a, a, a]) if np.asarray(a).dtype.kind in "ib" else np.stack([a, like(a) * 0.1 + a, a])
        for a in map(np.asarray, arrays)
    ]
    check(made, *stacked, ulps=64)
