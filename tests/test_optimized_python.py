"""`python -O` and `python -OO`, which leave out asserts and docstrings: the same answers, and none of the
users' asserts.

In: fresh processes. Out: what they print, and how many tests passed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.turns(6)

HERE = Path(__file__).resolve().parent
PART = ("api/test_captured_results.py", "api/test_jit.py", "api/test_outer_values.py", "frontend/test_joined_lists.py")
PROGRAM = """
import numpy as np
import metaphrase as mp


def checked(x):
    assert x[0] > 0, "not positive"
    if x[0] > 5.0:
        assert (y := x[0]) < 6.0
    for v in x:
        assert v != 2.0
    if __debug__:
        return x.sum() * 0
    return x.sum()


x = np.array([-1.0, 2.0, 7.0])
for function in (checked, mp.jit(checked), mp.vmap(checked, in_axes=None, axis_size=1)):
    print(np.ravel(function(x))[0])
with mp.config(native=False):
    print(mp.jit(checked)(x), mp.jit(mp.grad(checked))(x)[0])
print(mp.jit(lambda a: np.linalg.inv(a) @ a.T[::2, ::-1].T)(np.eye(3) * 2).sum())
print(mp.jit(lambda a: np.einsum("ijk,jli->kl", a, a))(np.ones((2, 2, 2))).sum())
scope = {}
exec(mp.source(checked, x), scope)
print(scope["checked"](x))
"""


def test_a_part_of_the_suite():
    """pytest keeps the asserts of test files under -O; those of the product are gone."""
    command = [sys.executable, "-O", "-P", "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *(str(HERE / file) for file in PART)], capture_output=True, text=True, cwd=HERE.parent
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout and " failed" not in done.stdout


@pytest.mark.parametrize("flag", ["-O", "-OO"])
def test_asserts_of_the_users_are_left_out_as_python_leaves_them_out(flag, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = subprocess.run([sys.executable, flag, "-P", str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["8.0"] * 4 + ["1.0", "2.0", "16.0", "8.0"]


@pytest.mark.parametrize("command", ["cache", "doctor", "show", "check", "explain", "build"])
def test_the_command_line_explains_itself_without_docstrings(command):
    arguments = [sys.executable, "-OO", "-P", "-m", "metaphrase.cli.main", command, "--help"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert "usage:" in done.stdout
