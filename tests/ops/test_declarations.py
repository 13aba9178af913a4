"""What is known of an operation stands once, at its declaration: one file adds one, native code included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import metaphrase.ops  # noqa: F401  (declares the operations)
from metaphrase.core.scalars import MONOIDS, Scalar, declare, facts, monoid, number

HERE = Path(__file__).parent


def test_one_file_adds_an_operation_and_a_reduction():
    program = HERE / "declared_in_one_file.py"
    paths = os.pathsep.join([str(HERE), str(HERE.parent)])
    run = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0 and run.stdout == "declared\n", run.stdout + run.stderr


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u2", "i1", "?"])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_an_identity_changes_nothing(name, dtype):
    combine = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[name]
    values = np.array([1, 0, 1], dtype)
    assert np.array_equal(combine(values, MONOIDS[name].identity(np.dtype(dtype))), values)
    assert np.array_equal(combine(values, MONOIDS[name].before_first(np.dtype(dtype))), values)


def test_a_running_sum_keeps_the_sign_of_a_first_zero():
    assert np.signbit(MONOIDS["sum"].before_first(np.dtype("f8")) + -0.0)
    assert not np.signbit(MONOIDS["sum"].identity(np.dtype("f8")) + -0.0)


def test_nothing_is_declared_twice():
    with pytest.raises(TypeError, match="declared twice"):
        declare("sin", Scalar())
    with pytest.raises(TypeError, match="declared twice"):
        monoid("sum", "add", number(0))


def test_what_is_not_declared_is_dear():
    assert facts("an operation of nobody") == Scalar() and not facts("an operation of nobody").safe
