"""`metaphrase compile`, killed at random moments: there is the package that was there before, or the new one, whole.

In: how often, a folder. Out: how many were old, new or absent after a kill, and what was wrong. Example:

    kinds, bad = packages(20, folder)                       # Counter({"old": 13, "new": 6, "none": 1}), []
"""

from __future__ import annotations

import collections
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from .processes import settings

MODULE = """import numpy as np

import metaphrase as mp


@mp.export("f64")
def number(x):
    return x * {number}


@mp.export("f64[n]")
def total(x):
    return np.sin(x * {number}).sum()


slope = mp.export("f64[n]")(mp.grad(total))
"""
LOOK = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, made
k = made.number(1.0)
x = np.arange(3.0)
np.testing.assert_allclose(made.total(x), np.sin(x * k).sum(), rtol=1e-12)
np.testing.assert_allclose(made.slope(x), np.cos(x * k) * k, rtol=1e-12)
print(int(k))
"""


def packages(count: int, folder: Path) -> tuple[collections.Counter[str], list[str]]:
    """Builds that are killed, each on what the one before has left; then one that is not."""
    kinds: collections.Counter[str] = collections.Counter()
    bad: list[str] = []
    environment, draw = settings(folder), random.Random(4)
    begun, longest = time.monotonic(), 0.0
    before = None
    for number in range(1, count + 1):
        process = _start(folder, number, environment, "native" if number % 3 else "numpy")
        if number > 1:  # the first says how long a build takes
            time.sleep(draw.uniform(0.2, 1.1) * longest)
            os.killpg(process.pid, signal.SIGKILL)
        said = process.communicate()[1]
        if number == 1:
            longest = time.monotonic() - begun
        found = _look(folder)
        if found not in (before, number) or process.returncode not in (0, -signal.SIGKILL):
            bad.append(f"build {number} left {found}, and {before} was there: {said}")
        kinds["none" if found is None else "new" if found == number else "old"] += 1
        before = found
    last = _start(folder, count + 1, environment, "native")
    said = last.communicate()[1]
    left = sorted(path.name for path in (folder / "out").iterdir())
    if last.returncode or _look(folder) != count + 1 or left != ["made"]:
        bad.append(f"the last build: {said}, {_look(folder)}, {left}")
    return kinds, bad


def _start(folder: Path, number: int, environment: dict[str, str], to: str) -> subprocess.Popen:
    source = folder / "sources" / "made.py"
    source.write_text(MODULE.format(number=number))
    command = ["-P", "-m", "metaphrase", "compile", str(source), "--to", to, "--out", str(folder / "out"), "--quiet"]
    return subprocess.Popen(
        [sys.executable, *command],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _look(folder: Path) -> int | str | None:
    """The number in the package that is there; what is wrong with it; None where there is none."""
    if not (folder / "out" / "made").exists():
        return None
    command = [sys.executable, "-P", "-B", "-c", LOOK, str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stderr if done.returncode else int(done.stdout)
