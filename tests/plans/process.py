"""A program in a process of its own: what its last line says, which is JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def report(program: Path, *flags: str, arguments: Iterable[str] = (), **environment: str) -> dict:
    environment = {**os.environ, "METAPHRASE_PLANS": "1", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, *flags, str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
