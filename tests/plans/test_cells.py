"""Plans of functions that IPython's cells define: they serve a session that has run the same cells, and no other.

In: cells, run in a process that is one session, and run again in another one with one thing changed. Out: Python's
results, and whether anything was translated.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from plans.process import report

import metaphrase as mp

pytestmark = pytest.mark.turns(8)

CELLS = [
    "import enum, os\nimport numpy as np\nimport metaphrase as mp\nimport extra",
    "GRAVITY = float(os.environ.get('GRAVITY', '9.5'))\nLIMIT = 100.0",
    "class Mode(enum.Enum):\n    SLOW = 1.0\n    FAST = 2.0",
    "class Base:\n    mass = 2.0",
    "def helper(v, rate=0.5):\n    if v[0] > LIMIT:\n        raise ValueError(f'large: {v[0]}')\n    return v * rate",
    """class Body(Base):
    def __init__(self, size):
        self.size = size

    def push(self, v):
        return helper(v) * self.mass * self.size * Mode.FAST.value + extra.bias()""",
    "@mp.jit\ndef f(v, k=1.0):\n    return Body(2.0).push(v) * GRAVITY + k",
    "got = f(np.arange(3.0)).tolist()",
]
EXTRA = "def bias():\n    return 0.25\n"
SESSION = """
import json, os, sys, traceback
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="nocolor")
# As a notebook's kernel names its cells: another process has other names.
shell.compile.get_code_name = lambda raw, code, number: f"/tmp/ipykernel_{{os.getpid()}}/{{number}}.py"
for cell in {cells!r}:
    shell.run_cell(cell, store_history=True)
said = ""
try:
    shell.user_ns["f"](shell.user_ns["np"].array([200.0, 1.0, 2.0]))
except ValueError as error:
    place = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{{error}} at {{place.line}}"
translated = "metaphrase.astpasses.frontend.staging.stage" in sys.modules
print(json.dumps({{"got": shell.user_ns["got"], "said": said, "translated": translated}}))
"""


def results(cells: list[str], extra: str, **environment: str) -> list[float]:
    """What plain Python gives."""
    names: dict = {"__name__": "cells"}
    with pytest.MonkeyPatch.context() as patch, mp.disable_jit():
        for name, value in environment.items():
            patch.setenv(name, value)
        module = type(np)("extra")
        exec(extra, vars(module))
        patch.setitem(sys.modules, "extra", module)
        for cell in cells:
            if not cell.startswith("%"):
                exec(cell, names)
    return names["got"]


def session(folder: Path, cells: list[str] = CELLS, extra: str = EXTRA, **environment: str) -> dict:
    """A process that runs the cells; whether its numbers are Python's is looked at here."""
    (folder / "extra.py").write_text(extra)
    (folder / "session.py").write_text(SESSION.format(cells=cells))
    environment = {"METAPHRASE_CACHE_DIR": str(folder / "cache"), "IPYTHONDIR": str(folder / "ipython"), **environment}
    said = report(folder / "session.py", **environment)
    assert said["got"] == results(cells, extra, **{k: v for k, v in environment.items() if k == "GRAVITY"})
    return said


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plans of a session."""
    folder = tmp_path_factory.mktemp("cells")
    assert session(folder)["translated"]
    return folder


def changed(number: int, before: str, after: str) -> list[str]:
    assert CELLS[number].count(before) == 1
    return [*CELLS[:number], CELLS[number].replace(before, after), *CELLS[number + 1 :]]


def test_a_session_of_the_same_cells_translates_nothing(kept):
    said = session(kept)
    assert not said["translated"]
    assert said["said"] == "large: 200.0 at raise ValueError(f'large: {v[0]}')"  # of another cell than the function's


CHANGES = {
    "a function that it calls": changed(4, "v * rate", "v + rate"),
    "a number of the module": changed(1, "LIMIT = 100.0", "LIMIT = 2.0**7"),
    "a default value": changed(6, "k=1.0", "k=3.0"),
    "a default value of a function that it calls": changed(4, "rate=0.5", "rate=0.75"),
    "a method": changed(5, "self.mass *", "self.mass /"),
    "an attribute of a base": changed(3, "2.0", "4.0"),
    "a member of an enum": changed(2, "FAST = 2.0", "FAST = 4.0"),
    "the function": changed(6, "+ k", "- k"),
    "a cell that is run twice": [*CELLS[:4], CELLS[3], *CELLS[4:]],
    "a cell between": [*CELLS[:7], "Base.mass = 8.0", *CELLS[7:]],
    "cells in another order": [*CELLS[:2], CELLS[3], CELLS[2], *CELLS[4:]],
}


@pytest.mark.parametrize("what", CHANGES)
def test_another_cell_is_noticed(kept, what):
    assert session(kept, CHANGES[what])["translated"]


def test_what_the_text_does_not_tell_is_noticed(kept):
    """Another number in the same text, and another file that a cell imports."""
    assert session(kept, GRAVITY="3.5")["translated"]
    assert session(kept, extra=EXTRA.replace("0.25", "0.5"))["translated"]


THREAD = (
    "import threading\nthread = threading.Thread(target=lambda: exec({!r}, globals()))\nthread.start(); thread.join()"
)
UNKNOWN = {
    "a magic that runs a file": [CELLS[0], "%run -n other.py", *CELLS[1:]],
    "another thread": [*CELLS[:7], THREAD.format(CELLS[7])],
    "cells that were forgotten": [*CELLS[:6], "%reset -f in", *CELLS[6:]],
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_of_what_else_ran_no_plan_is_kept(tmp_path, what):
    (tmp_path / "other.py").write_text("")
    cells = [cell.replace("other.py", str(tmp_path / "other.py")) for cell in UNKNOWN[what]]
    assert [session(tmp_path, cells)["translated"] for _ in range(2)] == [True, True]


def test_startup_files_are_text_too(tmp_path):
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    for text, translated in (("K = 1\n", True), ("K = 1\n", False), ("K = 2\n", True)):
        (startup / "00.py").write_text(text)
        assert session(tmp_path)["translated"] is translated
