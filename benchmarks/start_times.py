"""From `python script.py` to its first result: ours beside NumPy's import and a module compiled by Cython.

In: nothing. Out: a table of wall milliseconds to the first result and of CPU milliseconds of the whole process, medians
and least, and medians of the ratios to the Cython module's, taken round by round: scripts run in turn, so that a busy
machine weighs on all alike.
`--rounds N` (15). Where metaphrase is installed by links (`pip install -e`) finding its modules takes longer.

    numpy         imports NumPy and adds up an array
    cython        imports NumPy and an extension that was compiled by hand, and calls it
    import        imports NumPy and metaphrase
    warm          the same function by metaphrase, found on disk
    cold          the same with an empty cache and the tier "background"
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETUP = """
import numpy
from setuptools import Extension, setup
from Cython.Build import cythonize

setup(ext_modules=cythonize([Extension("by_hand", ["by_hand.pyx"], include_dirs=[numpy.get_include()])]))
"""
BY_HAND = """
# cython: language_level=3, boundscheck=False, wraparound=False
from libc.math cimport sin

def waves(double[::1] x, double k):
    cdef double s = 0.0
    cdef Py_ssize_t i
    for i in range(x.shape[0]):
        s += sin(x[i]) * k
    return s
"""
JITTED = """
import numpy as np
import metaphrase as mp

@mp.jit
def waves(x, k):
    s = 0.0
    for i in range(len(x)):
        s += np.sin(x[i]) * k
    return s

print(waves(np.arange(5.0), 2.0))
"""
SCRIPTS = {
    "numpy": "import numpy as np\nprint(np.arange(5.0).sum())\n",
    "cython": "import numpy as np\nfrom by_hand import waves\nprint(waves(np.arange(5.0), 2.0))\n",
    "import": "import numpy as np\nimport metaphrase\nprint(np.arange(5.0).sum())\n",
    "warm": JITTED,
    "cold": JITTED,
}


def run(script: str, folder: Path) -> tuple[float, float]:
    """Milliseconds of one process: wall to the first result, CPU of all it did, in the background, too."""
    environment = os.environ | {"METAPHRASE_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": ""}
    if script == "cold":
        place = tempfile.mkdtemp(dir=folder)
        environment |= {"METAPHRASE_CACHE_DIR": place, "METAPHRASE_TIER": "background"}
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, str(folder / f"with_{script}.py")], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    process.stdout.readline()
    wall = time.perf_counter() - start
    process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{script} ended with {status}")
    return 1e3 * wall, 1e3 * (used.ru_utime + used.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(description="Start times beside NumPy's import and a module compiled by Cython.")
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="start-times-") as place:
        folder = Path(place)
        (folder / "by_hand.pyx").write_text(BY_HAND)
        (folder / "setup.py").write_text(SETUP)
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(build, cwd=folder, check=True, capture_output=True)
        for name, text in SCRIPTS.items():
            (folder / f"with_{name}.py").write_text(text.replace("))\n", "), flush=True)\n"))
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in SCRIPTS}
        for number in range(rounds + 1):  # the first one fills caches
            for name in SCRIPTS:
                seconds = run(name, folder)
                if number:
                    found[name].append(seconds)
    print(f"{'':8} {'wall':>7} {'least':>7} {'CPU':>7} {'least':>7} {'wall / cython':>14} {'CPU / cython':>13}")
    for name, rows in found.items():
        wall, cpu = zip(*rows)
        ratios = [statistics.median(mine[k] / theirs[k] for mine, theirs in zip(rows, found["cython"])) for k in (0, 1)]
        print(
            f"{name:8} {statistics.median(wall):7.0f} {min(wall):7.0f} {statistics.median(cpu):7.0f} {min(cpu):7.0f}"
            f" {ratios[0]:14.2f} {ratios[1]:13.2f}"
        )


if __name__ == "__main__":
    main()
