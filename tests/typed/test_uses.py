"""What type checkers make of the public names: tests/typed/uses.py, by mypy and by pyright.

In: the package as it is installed, by links; the uses. Out: errors at the lines that say so, and at no other.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USES = Path(__file__).parent / "uses.py"
ROOMS = ("astpasses", "runtime", "cli")


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """A folder in which `metaphrase` lies as it is installed."""
    place = tmp_path_factory.mktemp("typed")
    folder = place / "metaphrase"
    folder.mkdir()
    for item in [*(ROOT / "pysrc").iterdir(), *(ROOT / room for room in ROOMS)]:
        (folder / item.name).symlink_to(item)
    (place / "uses.py").write_text(USES.read_text())
    return place


def marked(*endings: str) -> set[int]:
    lines = USES.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith(endings)}


def check(package: Path, *command: str) -> str:
    done = subprocess.run([sys.executable, "-m", *command], cwd=package, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def mypys(package: Path) -> Iterator[tuple[int, str, str]]:
    """(line, severity, message) of what mypy says."""
    options = ("--follow-imports=silent", "--cache-dir", str(package / "cache"))
    for row in check(package, "mypy", *options, "uses.py").splitlines():
        if found := re.match(r"uses.py:(\d+): (\w+): (.*)", row):
            yield int(found[1]), found[2], found[3]
        else:
            assert row.startswith("Found "), row


def pyrights(package: Path) -> Iterator[tuple[int, str, str]]:
    settings = {"include": ["uses.py"], "extraPaths": ["."], "typeCheckingMode": "standard"}
    (package / "pyrightconfig.json").write_text(json.dumps(settings))
    said = check(package, "pyright", "--pythonpath", sys.executable, "--outputjson")
    for one in json.loads(said[said.index("{") :])["generalDiagnostics"]:
        yield one["range"]["start"]["line"] + 1, one["severity"], one["message"]


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    ("checker", "endings", "shown"),
    [
        (mypys, ("# an error", "# Any for mypy"), "Jitted[[radius: float, *, half: bool =], float]"),
        (pyrights, ("# an error",), "Jitted[(radius: float, *, half: bool = False), float]"),
    ],
    ids=["mypy", "pyright"],
)
def test_typical_uses(package, checker, endings, shown):
    said = list(checker(package))
    assert {line for line, severity, _ in said if severity == "error"} == marked(*endings)
    messages = [message.replace("builtins.", "") for _, _, message in said]
    revealed = [message for message in messages if message.startswith(("Revealed type", "Type of"))]
    assert len(revealed) == 2 and shown in revealed[0] and "Params" in revealed[1], revealed
