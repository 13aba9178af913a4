"""With a GPU: the corpus, derivatives, batches and every primitive, by kernels that CuPy launches (`make gpu`)."""

import numpy as np
import pytest
from batches import cases_of, outcomes
from derivatives import derive, programs
from emulated import TARGETS, run
from primitives import NAMES, check_primitive
from stages import CASES, CHUNKS, core
from ways import assert_same, caught, distance, evaluated, failures, python

from metaphrase.core.evaluate import evaluate

pytestmark = pytest.mark.gpu
BOUND = 64  # units in the last place: CUDA's functions have some of their own
DERIVED = 2**12


@pytest.fixture(scope="module")
def cupy():
    import cupy

    assert cupy.cuda.is_available()
    return cupy


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("chunk", CHUNKS)
def test_values(cupy, chunk, target):
    def test(name):
        got = evaluated(name, lambda arrays: run(core(name), arrays, TARGETS[target], cupy))
        assert_same(python(*CASES[name]), got, BOUND, "on the device")

    assert not (wrong := failures(CHUNKS[chunk], test)), wrong


@pytest.mark.parametrize("chunk", list(CHUNKS)[::4])
def test_derivatives(cupy, chunk):
    def test(name):
        for mode, (function, args) in programs(derive(name)).items():
            with np.errstate(all="ignore"):
                want = caught(lambda *a, f=function: tuple(evaluate(f, *a)), tuple(args))
            got = caught(lambda *a, f=function: tuple(run(f, a, xp=cupy)), tuple(args))
            assert got.error == want.error, f"{mode}: {got.error} {got.said}, not {want.error} {want.said}"
            if want.error is None:
                assert distance(got.result, tuple(np.asarray(r)[()] for r in want.result)) <= DERIVED, mode

    assert not (wrong := failures(CHUNKS[chunk], test)), wrong


@pytest.mark.parametrize("chunk", list(CHUNKS)[1::4])
def test_batches(cupy, chunk):
    programs_of, _ = cases_of(CHUNKS[chunk], True)

    def test(name):
        want, got = outcomes(name, *programs_of[name], lambda arrays: run(programs_of[name][0], arrays, xp=cupy))
        if want.error is not None:  # several lanes fail, of which any may be told
            assert got.error is not None, want
        else:
            assert_same(want, got, DERIVED, "batched")

    assert not (wrong := failures(programs_of, test)), wrong


@pytest.mark.parametrize("name", NAMES)
def test_primitive(cupy, name):
    check_primitive(name, TARGETS["large"], cupy, BOUND)
