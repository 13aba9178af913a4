"""The corpus on a GPU that the CPU emulates: what the kernels of every function give is what Python gives.

So do those of its derivatives, and of its batches. A GPU of small blocks takes the ways of large arrays; the real one's
sizes take those of small ones. Each day another part of the corpus goes each way, with the threads in another order,
and a part of it is watched for races. A part is compiled for a real GPU by NVRTC, which must not run out of registers.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import stand_in
from batches import cases_of, outcomes
from census import of_function, programs_of, told
from corpus import alike, fresh
from derivatives import derive, programs
from emulated import SMALL, TARGETS, emitted, run
from resized import has_lengths, runs_of
from stages import CASES, CHUNKS, core, staged
from turns import DAY, turn
from ways import assert_same, caught, distance, evaluated, failures, python

import metaphrase as mp
from metaphrase import tree_util
from metaphrase.astpasses.schedule.target import CUDA
from metaphrase.core.evaluate import evaluate
from metaphrase.runtime import nvrtc
from metaphrase.source import SourceError

ORDER = ("fwd", "rev", "rand")[DAY % 3]  # the numbers of parts are powers of 2, so that each case meets each order
BOUND = 16  # units in the last place: sums go in another order
DERIVED = 256  # of derivatives and batches, as for native code
REGISTERS = 255  # that a thread can have
# Their results depend on the last bits of a sum that a loop carries, which keeps its order then.
IN_ORDER = {"swept.best_tour": "of tours that are equally long the one with the least sum is found"}


def share(parts: int, first: int = 0) -> list[str]:
    """The cases that are looked at today: one of so many parts, and a sixteenth of it in a quick run."""
    return turn(CASES, 16 * parts, thorough=parts, first=first)


def groups(names: list[str], size: int = 16) -> dict[str, list[str]]:
    """By the first of each group, so that a name says what runs."""
    return {names[k]: names[k : k + size] for k in range(0, len(names), size)}


VALUES = [
    *(pytest.param(found, "small", id=f"small-{name}") for name, found in groups(share(4)).items()),
    *(pytest.param(found, "large", id=f"large-{name}") for name, found in groups(share(16, 1)).items()),
]


@pytest.fixture(autouse=True)
def order(monkeypatch):
    monkeypatch.setenv("CUEMU_ORDER", ORDER)


def sums_of(name: str, target):
    return replace(target, regroups=name not in IN_ORDER)


def of_corpus(name: str, target, again: bool = False) -> None:
    target = sums_of(name, target)
    got = evaluated(name, lambda arrays: run(core(name), arrays, target, again=again))
    assert_same(python(*CASES[name]), got, BOUND, "emulated")


@pytest.mark.parametrize("found, target", VALUES)
def test_values(found, target):
    assert not (wrong := failures(found, lambda name: of_corpus(name, TARGETS[target], again=target == "small"))), wrong


@pytest.mark.parametrize("found", groups(share(32, 2)).values(), ids=groups(share(32, 2)))
def test_no_thread_races(found, monkeypatch):
    monkeypatch.setenv("CUEMU_RACES", "1")
    assert not (wrong := failures(found, lambda name: of_corpus(name, SMALL))), wrong


@pytest.mark.parametrize("found", groups(share(16, 3)).values(), ids=groups(share(16, 3)))
def test_derivatives(found):
    def test(name):
        for mode, (function, args) in programs(derive(name)).items():
            with np.errstate(all="ignore"):
                want = caught(lambda *a, f=function: tuple(evaluate(f, *a)), tuple(args))
            got = caught(lambda *a, f=function: tuple(run(f, a, sums_of(name, SMALL))), tuple(args))
            assert got.error == want.error, f"{mode}: {got.error} {got.said}, not {want.error} {want.said}"
            if want.error is None:
                wanted = tuple(np.asarray(r)[()] for r in want.result)
                assert distance(got.result, wanted) <= DERIVED, f"{mode}: {got.result}, not {wanted}"

    assert not (wrong := failures(found, test)), wrong


@pytest.mark.parametrize("only_floats", [True, False], ids=["floats", "all"])
@pytest.mark.parametrize("found", groups(share(32, 5)).values(), ids=groups(share(32, 5)))
def test_batches(found, only_floats):
    programs_of, _ = cases_of(found, only_floats)

    def test(name):
        function, wanted, results = programs_of[name]
        target = sums_of(name, SMALL)
        want, got = outcomes(name, function, wanted, results, lambda arrays: run(function, arrays, target))
        if want.error is not None:  # several lanes fail, of which any may be told
            assert got.error is not None, want
        else:
            assert_same(want, got, DERIVED, "batched")

    assert not (wrong := failures(programs_of, test)), wrong


@pytest.mark.parametrize("found", groups(share(32, 7)).values(), ids=groups(share(32, 7)))
def test_kernels_compile_for_a_gpu(found):
    """By NVRTC for compute capability 9.0; no thread of the real sizes' writes registers to memory for want of more."""

    def test(name):
        for target in (CUDA, SMALL):
            _, made = emitted(core(name), target, checked=True)
            for kernel, report in nvrtc.report(made.kernels, arch="90").items() if made.kernels else ():
                assert report.spill_stores == report.spill_loads == 0 or target is SMALL, (kernel, report)
                assert report.registers <= REGISTERS, (kernel, report)

    assert not (wrong := failures(found, test)), wrong


def test_every_chunk_has_its_day():
    days = {name for day in range(64) for name in turn(CASES, 64, day=day)}
    assert days == set(CASES) and sum(map(len, CHUNKS.values())) == len(CASES)


def test_a_wrong_kernel_is_seen(monkeypatch):
    """The text is what runs: another operator in it gives another result."""
    import emulated

    name = "kernels.attention"
    flat = staged(name).arguments(CASES[name][1])
    want = run(core(name), flat, SMALL)
    whole = emulated.emit_cuda

    def spoilt(program):
        made = whole(program)
        text = made.kernels.replace("f64_exp(f64 x) { return exp(x); }", "f64_exp(f64 x) { return exp(x) + 1e-6; }")
        assert text != made.kernels
        return type(made)(**{**vars(made), "kernels": text})

    monkeypatch.setattr(emulated, "emit_cuda", spoilt)
    assert distance(run(core(name), flat, SMALL)[0], want[0]) > BOUND


# A matrix whose inverse has no right digits; an iteration that ends by its last bits when the matrix grows indefinite.
UNSTABLE = {"attempts.inverse_or_pseudo", "kernels.conjugate_gradient"}


@pytest.mark.parametrize("found", groups(share(24, 11)).values(), ids=groups(share(24, 11)))
def test_programs_of_any_size(found):
    """The whole way through `jit`, with arrays that grow: the second program serves sizes that are not known."""

    def test(name):
        function, args = CASES[name]
        runs = runs_of(function, args) if has_lengths(args) and name not in UNSTABLE else []
        jitted = mp.jit(function, device="gpu")
        for given, want, after in runs[:3]:
            mine = fresh(given)
            try:
                got = mp.device_get(jitted(*mine))
            except SourceError:  # of the exact sizes: a branch that fits these lengths no more, say
                return
            assert alike(numbers(got), numbers(want), 1e-9), f"{got!r} is not {want!r}"
            assert alike(numbers(mine), numbers(after), 1e-9), f"arguments: {mine!r} are not {after!r}"

    with stand_in.installed():
        assert not (wrong := failures(found, test)), wrong


def numbers(tree):
    """A result whose arrays of rank 0 are numbers, those in the attributes of objects too, which are the device's."""

    def of_leaf(x):
        x = x.get() if isinstance(x, stand_in.ndarray) else x
        if isinstance(x, np.ndarray):
            return x if x.ndim else x[()]
        if not hasattr(x, "__dict__") or isinstance(x, (type, np.generic)) or callable(x):
            return x
        shown = copy.copy(x)
        vars(shown).update({name: numbers(value) for name, value in vars(x).items()})
        return shown

    return tree_util.tree_map(of_leaf, tree)


@pytest.mark.parametrize("found", groups(share(32, 9)).values(), ids=groups(share(32, 9)))
def test_the_document_lists_what_is_refused_and_what_spills(found):
    programs = [program for name in found for program in programs_of(name)]
    refused = {of_function(program.name) for program in programs if program.refusal}
    spills = {program.name for program in programs if any(r.spill_stores for r in program.kernels.values())}
    all_refused, all_spill = told()
    asked = {of_function(name) for name in found}
    of_these = {name for name in all_refused if name.split()[-1] in asked}
    assert refused <= of_these and {name.split()[-1] for name in of_these} <= asked, "run tests/gpu/census.py"
    assert spills == {name for name in all_spill if name.split()[-1] in found}, "run tests/gpu/census.py"
