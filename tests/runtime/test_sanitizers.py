"""`make sanitize` sees what it is to see: faults that are planted beside arrays in each kind of memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent


def test_planted_faults_are_reported_and_a_theme_is_not(tmp_path):
    """The planted faults run first. The sanitizers belong to gcc."""
    paths = os.pathsep.join([str(TESTS), str(TESTS / "native")])
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sanitize", "--folder", str(tmp_path), "clocks"],
        env=dict(os.environ, PYTHONPATH=paths),
        capture_output=True,
        text=True,
        timeout=300,
    )
    if "gcc has no sanitizers here" in done.stderr:
        assert done.returncode == 1 and "install libasan" in done.stderr
    else:
        *_, last = done.stdout.splitlines()
        assert done.returncode == 0 and last.endswith(" programs ran, 0 were reported"), done.stdout
        assert int(last.split()[0]) > 10
