"""Derivatives and batches of derivatives, for every primitive: the rules are made of primitives too."""

import numpy as np
import pytest

import metaphrase.ops  # noqa: F401  (registers the primitives)
from metaphrase.astpasses.transforms.batch import batch
from metaphrase.astpasses.transforms.jvp import jvp
from metaphrase.astpasses.transforms.reverse import vjp
from metaphrase.core.check import check
from metaphrase.core.primitive import REGISTRY
from metaphrase.ops.samples import SAMPLES

from .rule_checks import batch_holds, differentiable, jvp_holds, program, transpose_holds


def direction(operand):
    return np.cos(np.arange(np.size(operand))).reshape(np.shape(operand)).astype(operand.dtype)[()]


def tangent_program(name):
    """The first differentiable sample of a primitive with its jvp: program, operands, places of floats."""
    for sample in SAMPLES[name]:
        along = differentiable(sample)
        if along and all(np.size(a) for a in sample.args):
            marks = [k in along for k in range(len(sample.args))]
            forward, nonzero = jvp(program(REGISTRY[name], sample), marks)
            if any(nonzero):
                dots = tuple(direction(sample.args[k]) for k in along)
                args = (*sample.args, *dots)
                return forward, args, [*along, *range(len(sample.args), len(args))]
    return None


NAMES = [name for name in sorted(REGISTRY) if tangent_program(name) is not None]


@pytest.mark.parametrize("name", NAMES)
def test_tangents_have_tangents(name):
    function, args, along = tangent_program(name)
    jvp_holds(function, args, along)


@pytest.mark.parametrize("name", NAMES)
def test_tangents_transpose(name):
    function, args, along = tangent_program(name)
    transpose_holds(function, args, along)


@pytest.mark.parametrize("name", NAMES)
def test_tangents_batch(name):
    function, args, along = tangent_program(name)
    lanes = [
        tuple(np.roll(a, k) if k and np.ndim(a) and j in along else a for j, a in enumerate(args)) for k in range(2)
    ]
    batch_holds(function, lanes, along)


@pytest.mark.parametrize("name", NAMES)
def test_adjoints_batch_and_are_differentiated(name):
    for sample in SAMPLES[name]:
        along = differentiable(sample)
        if along and all(np.size(a) for a in sample.args):
            break
    function = program(REGISTRY[name], sample)
    marks = [k in along for k in range(len(sample.args))]
    backward = check(vjp(function, marks))
    check(batch(backward, 3, [True] * len(backward.params))[0])
    floats = [p.type.dtype.kind in "fc" for p in backward.params]
    check(jvp(backward, floats)[0])


def test_most_primitives_are_differentiable():
    assert len(NAMES) > 70 and {"sort", "cumprod", "scatter", "loop"} < set(NAMES)
