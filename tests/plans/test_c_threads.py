"""The threads of C libraries: results, errors and children are those of one thread.

In: a module with long loops. Out: what a program of C (threads.c) says of its library, as it is and under gcc's
sanitizer of threads.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from plans.project import module_of

from metaphrase.aot import compile_module
from metaphrase.runtime.compiler import find_compiler
from metaphrase.source import SourceError

SHARED = '''"""Loops that threads share."""

import numpy as np

import metaphrase as mp


@mp.export("f64[n]")
def spread(x):
    """A sweep over elements, a loop in order, and a sum."""
    y = np.sin(x) * np.exp(-x * x)
    s = 0.0
    for i in range(len(x)):
        s += y[i] * x[i]
    return y * s, s, np.sum(y)


@mp.export("f64[n]")
def roots(x):
    """Square roots, each by a loop of its own, which does not end for negative numbers."""
    out = np.empty_like(x)
    for i in range(len(x)):
        if x[i] > 9.0:
            raise ValueError(f"too large: {x[i]} at {i}")
        z = 1.0
        while abs(z * z - x[i]) > 1e-12:
            z = 0.5 * (z + x[i] / z) if x[i] > 0.0 else 1.0
        out[i] = z
    return out
'''
CLOSED = """
import _ctypes, ctypes, sys, time
import numpy as np
library = ctypes.CDLL(sys.argv[1])
library.shared_set_num_threads(3)
x, out, s = np.linspace(0.0, 1.0, 100_000), np.empty(100_000), np.empty(2)
at = [ctypes.c_void_p(a.ctypes.data) for a in (x, out, s, s[1:])]
for _ in range(3):
    assert library.shared_spread(at[0], ctypes.c_int64(len(x)), *at[1:], None) == 0
_ctypes.dlclose(library._handle)
time.sleep(0.02)
print("still here")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("threads")
    (place / "shared.py").write_text(SHARED)
    package = compile_module(module_of(place / "shared.py"), place / "out", levels=["x86-64"], to="c")
    for function in ("spread", "roots"):
        assert "mp_share(" in (package.folder / "kernels" / f"shared_{function}_0.pyx").read_text()
    return package.folder


@pytest.fixture(scope="module")
def programs(folder: Path) -> dict[str, Path]:
    """The program of C, and that under the sanitizer of threads."""
    source, compiler = Path(__file__).with_name("threads.c"), find_compiler().command
    kernels = [str(path) for path in (folder / "kernels").glob("*.c")]
    sources = {
        "plain": [str(folder / "libshared.a")],
        "sanitized": ["-g", "-fsanitize=thread", str(folder / "shared.c"), *kernels],
    }
    for name, parts in sources.items():
        command = [*compiler, "-O1", "-w", f"-I{folder}", "-o", str(folder / name), str(source), *parts]
        subprocess.run([*command, "-lmvec", "-lm", "-lpthread"], check=True)
    return {name: folder / name for name in sources}


@pytest.mark.turns(3)
@pytest.mark.parametrize("what", ["equal", "failing", "callers", "forked"])
def test_all_is_as_with_one_thread(programs, what):
    ran = subprocess.run([programs["plain"], what], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("as with one thread\n", "")


@pytest.mark.parametrize("what", ["failing", "callers"])
def test_threads_do_not_touch_what_another_writes(programs, what):
    ran = subprocess.run([programs["sanitized"], what], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("as with one thread\n", "")


def test_a_library_that_is_closed_keeps_the_code_of_its_threads(folder):
    command = [sys.executable, "-c", CLOSED, str(folder / "libshared.so")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, "still here\n"), ran.stderr


def test_a_function_of_the_name_of_the_librarys_own_is_refused(tmp_path):
    text = "import metaphrase as mp\n\n\n@mp.export('i64')\ndef set_num_threads(n):\n    return n\n"
    (tmp_path / "own.py").write_text(text)
    with pytest.raises(SourceError, match="own_set_num_threads can't be compiled .*has a function of that name"):
        compile_module(module_of(tmp_path / "own.py"), tmp_path / "out", to="c")
