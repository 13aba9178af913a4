"""What starting costs: modules that `import metaphrase`, a decorator and a small call must not need.

In: fresh processes. Out: the modules that they imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.turns(3)

REPORT = "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"


def modules_after(program: str, tmp_path, **environment: str) -> set[str]:
    """The modules of a fresh process that ran `program`, which stands in a file of its own."""
    path = tmp_path / "program.py"
    if not path.exists() or path.read_text() != program + REPORT:
        path.write_text(program + REPORT)
    done = subprocess.run(
        [sys.executable, "-P", str(path)], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


DEAR = {"_hashlib", "ml_dtypes", "pathlib", "shlex", "shutil"}  # milliseconds each, with what they import
CORE_OF_PASSES = ("metaphrase.core.ir", "metaphrase.core.primitive", "metaphrase.core.build")
# What only a compilation needs.
FOR_LATER = {"subprocess", "tempfile", "logging", "Cython", "scipy", "gast"}


def test_the_import_brings_neither_scipy_nor_any_pass(tmp_path):
    found = modules_after("import metaphrase", tmp_path)
    assert "numpy" in found
    assert not {"scipy", "gast", "astor", "Cython", "metaphrase.ops"} & found
    assert not {
        name
        for name in found
        if name.startswith("metaphrase.astpasses.")
        and name.split(".")[2] in ("schedule", "optimize", "emit", "transforms")
    }


def test_a_known_function_runs_without_what_compiles(tmp_path):
    program = """
import numpy as np
import metaphrase as mp

@mp.jit
def f(x, k):
    return np.sum(np.sin(x) * k)

assert abs(f(np.arange(4.0), 2.0) - 2 * np.sum(np.sin(np.arange(4.0)))) < 1e-12
"""
    cache = {"METAPHRASE_CACHE_DIR": str(tmp_path / "cache"), "METAPHRASE_PLANS": "1"}
    assert "subprocess" in modules_after(program, tmp_path, **cache)
    found = modules_after(program, tmp_path, **cache)
    assert not FOR_LATER & found
    assert not {name for name in found if name.startswith(("metaphrase.ops", "metaphrase.astpasses.schedule"))}
    without = modules_after("import numpy", tmp_path)
    assert not (found - without) & DEAR and not {name for name in found if name.startswith(CORE_OF_PASSES)}


def test_products_bring_two_modules_of_scipy_linalg(tmp_path):
    program = """
import sys
import numpy as np
import metaphrase as mp

@mp.jit
def f(a, b):
    return np.linalg.solve(a, b) + a @ b

a, b = 2 * np.eye(30), np.ones(30)
assert np.allclose(f(a, b), 2.5)
assert "scipy.linalg" not in sys.modules and not any(name.startswith("scipy.linalg") for name in sys.modules)
import scipy.linalg.cython_blas, scipy.linalg.cython_lapack

assert scipy.linalg.cython_blas is sys.modules["scipy.linalg.cython_blas"]
assert "dgemm" in scipy.linalg.cython_blas.__pyx_capi__ and "dgesv" in scipy.linalg.cython_lapack.__pyx_capi__
assert np.allclose(scipy.linalg.solve(a, b), 0.5) and np.allclose(f(a, b), 2.5)
"""
    assert "scipy.linalg" in modules_after(program, tmp_path)
    first = program.replace("assert np.allclose(f", "import scipy.linalg.cython_blas\nassert np.allclose(f", 1)
    first = first.replace('assert "scipy.linalg" not in', 'assert "scipy.linalg" in').replace(
        " and not any(", " or any("
    )
    (tmp_path / "program.py").unlink()
    assert "scipy.linalg" in modules_after(first, tmp_path)


def test_a_result_in_the_background_tier_waits_for_nothing_that_builds(tmp_path):
    program = """
import metaphrase as mp
from metaphrase.api import jit

class Waiting:
    def __init__(self, name, build):
        self.build = build

jit.background.Background = Waiting

@mp.jit
def f(x, k):
    return (x * k).sum()

import numpy as np
assert f(np.arange(4.0), 2.0) == 12.0
"""
    environment = {"METAPHRASE_CACHE_DIR": str(tmp_path / "cache"), "METAPHRASE_TIER": "background"}
    found = modules_after(program, tmp_path, **environment)
    assert not {"subprocess", "tempfile", "Cython", "numpy.fft", "metaphrase.astpasses.schedule"} & found
    themes = {name for name in found if name.startswith("metaphrase.ops.library_")}
    assert themes <= {f"metaphrase.ops.library_{theme}" for theme in ("reductions", "shapes", "elementwise")}
    assert not {name for name in found if name.endswith((".calls.statistics", ".calls.callbacks", ".in_step"))}


def test_decorating_imports_no_pass(tmp_path):
    program = "import metaphrase as mp\n\n\n@mp.jit\ndef f(x):\n    return x * 2\n\n\ng = mp.vmap(mp.grad(f))\n"
    found = modules_after(program, tmp_path)
    session = "metaphrase.astpasses.frontend.staging.session"
    assert not {"scipy", "gast", "astor", "metaphrase.ops", session} & found


def test_a_small_function_needs_no_scipy(tmp_path):
    program = """
import numpy as np
import metaphrase as mp

@mp.jit
def f(x):
    return np.sum(np.sin(x) * x)

assert abs(f(np.arange(4.0)) - np.sum(np.sin(np.arange(4.0)) * np.arange(4.0))) < 1e-12
"""
    assert "scipy" not in modules_after(program, tmp_path)


def test_nothing_is_deprecated(tmp_path):
    """A project whose tests turn warnings into errors can use it: Python 3.12 and 3.13 warn of uses of `ast`."""
    program = """
import numpy as np
import metaphrase as mp

assert mp.grad(lambda x: np.sum(x * x) if x[0] > 0.0 else 0.0)(np.ones(2)).tolist() == [2.0, 2.0]
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    done = subprocess.run([sys.executable, "-W", "error", "-P", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_functions_of_scipy_are_known_whenever_it_is_imported(tmp_path):
    program = """
import numpy as np
import metaphrase as mp

assert mp.grad(lambda x: np.sum(x * x))(np.ones(2)).tolist() == [2.0, 2.0]
from scipy import special
assert abs(mp.grad(lambda x: special.erf(x))(0.5) - 0.8787825789354448) < 1e-12
assert abs(mp.grad(lambda x: special.expit(x))(0.5) - special.expit(0.5) * special.expit(-0.5)) < 1e-12
"""
    assert "scipy.special" in modules_after(program, tmp_path)
