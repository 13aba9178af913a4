"""The derivatives of twenty functions as texts that people read: goldens, beside adjoints written by hand.

In: `derivatives/functions.py`. Out: each text gives what its hand-written adjoint and finite differences
give, and has at most 1.6 times its lines; the goldens hold what a person reads.
"""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.emit.numpy_source import compile_numpy

HERE = Path(__file__).parent / "derivatives"
RATIO = 1.6
STEP = 1e-6


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"derivatives_{name}", HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CASES = loaded("functions").CASES
ADJOINTS = loaded("adjoints")


def text_of(name: str) -> str:
    function, transform, types, _ = CASES[name]
    return mp.source(transform(function), types)


def copies(args: tuple) -> list:
    return [np.array(a) if isinstance(a, np.ndarray) else a for a in args]


def lines(text: str) -> int:
    """Lines of code: neither blank ones nor comments nor docstrings."""
    rows, inside = 0, False
    for row in map(str.strip, text.splitlines()):
        quotes = row.count('"""')
        if inside or quotes and row.startswith('"""'):
            inside ^= quotes == 1
        elif row and not row.startswith("#"):
            rows += 1
    return rows


def emitted(text: str) -> str:
    """A module's last function; what stands above it, imports and helpers, is no part of the adjoint."""
    return text[text.rindex("\ndef ") :]


@pytest.mark.parametrize("name", CASES)
def test_a_person_wrote_hardly_less(name):
    by_hand = lines(inspect.getsource(getattr(ADJOINTS, name)))
    by_us = lines(emitted(text_of(name)))
    assert by_us <= RATIO * by_hand, f"{by_us} lines, {by_hand} by hand\n{text_of(name)}"


def test_many_lanes_compute_what_one_does():
    """The batched form saves what the form for one saves, and computes nothing twice."""
    function, transform, _, (place, speed, mass, steps, dt) = CASES["nbody"]
    lanes = mp.vmap(transform(function), in_axes=(0, 0, None, None, None))
    text = mp.source(lanes, "f64[b, n, 3], f64[b, n, 3], f64[n], i64, f64")
    assert lines(emitted(text)) == lines(emitted(text_of("nbody"))) + 1  # b = len(place)
    args = np.stack([place, 2.0 * place]), np.stack([speed, -speed]), mass, steps, dt
    want = [ADJOINTS.nbody(*copies((p, s, mass, steps, dt))) for p, s in zip(*args[:2])]
    for got, bars in zip(compile_numpy(text)(*copies(args)), zip(*want), strict=True):
        np.testing.assert_allclose(got, np.stack(bars), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_the_text_gives_what_the_adjoint_by_hand_gives(name):
    args = CASES[name][3]
    got, want = compile_numpy(text_of(name))(*copies(args)), getattr(ADJOINTS, name)(*copies(args))
    got, want = (x if isinstance(x, tuple) else (x,) for x in (got, want))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", sorted(set(CASES) - {"mixture", "rosenbrock"}))
def test_adjoints_by_hand_are_finite_differences(name):
    function, transform, _, args = CASES[name]
    numbers = getattr(transform(function), "argnums", None)
    want = getattr(ADJOINTS, name)(*copies(args))
    want = want if isinstance(want, tuple) else (want,)
    assert numbers is None or len(want) == len(np.atleast_1d(numbers))
    rng = np.random.default_rng(3)
    for position, bar in enumerate(want):
        direction = rng.standard_normal(np.shape(args[position]))
        ends = []
        for sign in (1.0, -1.0):
            moved = copies(args)
            moved[position] = moved[position] + sign * STEP * direction
            ends.append(function(*moved))
        slope = (ends[0] - ends[1]) / (2.0 * STEP)
        np.testing.assert_allclose(np.sum(bar * direction), slope, rtol=2e-5, atol=1e-6)


def test_second_derivatives_and_batches_by_hand_are_finite_differences():
    function, _, _, (x,) = CASES["rosenbrock"]
    units = STEP * 100 * np.eye(len(x))
    slopes = [
        [
            (function(x + a + b) - function(x + a - b) - function(x - a + b) + function(x - a - b))
            / (4.0 * (STEP * 100) ** 2)
            for b in units
        ]
        for a in units
    ]
    np.testing.assert_allclose(ADJOINTS.rosenbrock(x), slopes, rtol=1e-4, atol=1e-2)
    function, _, _, (x, centre, width) = CASES["mixture"]
    slope = (function(x, centre + STEP, width) - function(x, centre - STEP, width)) / (2.0 * STEP)
    np.testing.assert_allclose(ADJOINTS.mixture(x, centre, width), slope, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_what_a_person_reads(name, update_golden):
    text, golden = text_of(name), HERE / f"{name}.py.txt"
    if update_golden:
        golden.write_text(text)
    assert text == golden.read_text()
