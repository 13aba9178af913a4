"""A program has the same native text in every process: the cache on disk finds it by its text."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.turns(3)


def digests(seed: str) -> dict[str, str]:
    program = Path(__file__).parent / "digests.py"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    run = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_texts_do_not_depend_on_hashes():
    one, other = digests("1"), digests("2")
    assert len(one) > 40
    assert one == other, [name for name in one if one[name] != other[name]]
