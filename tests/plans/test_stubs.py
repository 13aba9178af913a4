"""Types of packages for editors: overloads that type checkers can tell apart."""

from __future__ import annotations

import subprocess
import sys

import pytest
from plans.project import module_of

from metaphrase.aot import compile_module

pytestmark = pytest.mark.turns(3)

SOURCE = """
import numpy as np

import metaphrase as mp


@mp.export("f64[n]", "f64[n], 'sum'", "f64[n], 'both', 2.0")
def reduced(x, how="mean", by=1.0):
    if how == "both":
        return x.mean() / by, x.sum() / by
    return (x.mean() if how == "mean" else x.sum()) / by


@mp.export("f64[n]", "f64[n, 3]", "f32[n]")
def total(x):
    return x.sum()


@mp.export("f64, f64", "f64, i64")
def shifted(x, by):
    return x + by
"""
USE = """
import numpy as np
from readings import reduced, shifted, total

x = np.zeros(3)
reveal_type(reduced(x))
reveal_type(reduced(x, "sum"))
reveal_type(reduced(x, how="both", by=2.0))
reveal_type(total(x))
reveal_type(shifted(1.0, 2))
"""


def test_overloads_differ_and_mypy_takes_them(tmp_path):
    (tmp_path / "readings.py").write_text(SOURCE)
    compile_module(module_of(tmp_path / "readings.py"), tmp_path / "out", to="numpy")
    text = (tmp_path / "out/readings/__init__.pyi").read_text()
    assert text.count("def reduced") == 3 and text.count("def total") == 2 and text.count("def shifted") == 2
    assert (
        "how: Literal['sum'], by: float" in text
        and "how: Literal['mean'] = ..." in text
        and "by: int | np.int64)" in text
    )
    (tmp_path / "out/use.py").write_text(USE)
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--strict", "use.py", "readings/__init__.pyi"]
    ran = subprocess.run(command, cwd=tmp_path / "out", capture_output=True, text=True)
    told = [line.partition("note: ")[2] for line in ran.stdout.splitlines() if "Revealed type" in line]
    errors = [line for line in ran.stdout.splitlines() if ": error: " in line]
    lines = text.splitlines()  # mypy takes arrays of two types for the same, maybe
    assert all("def total" in lines[int(error.split(":")[1]) - 1] for error in errors), ran.stdout
    assert len(told) == 5 and "tuple[" in told[2], told
