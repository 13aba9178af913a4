"""Every error code has a page in docs/errors: its first program raises the text it shows, its last one runs.

In: docs/errors/CODE.md with the blocks python (the mistake), text (what is printed), python (mended). Out:
each page is true. `pytest --update-golden` writes the text anew.
"""

from __future__ import annotations

import linecache
import re
import sys
from pathlib import Path

import pytest

from .test_documents import codes

FOLDER = Path(__file__).parents[2] / "docs" / "errors"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")
WITHOUT_PROGRAM = {"restarts"}  # takes a function of hundreds of arguments
SHOWN = sorted(set(PAGES) - WITHOUT_PROGRAM)
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.S | re.M)
HEADER = "import numpy as np\nimport metaphrase as mp\n"


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    """The pages are written where CuPy is not installed."""
    monkeypatch.setitem(sys.modules, "cupy", None)


def run(program: str, name: str) -> None:
    """Run a page's program as the file NAME.py, whose first line is the page's first line."""
    scope: dict = {"__name__": "page"}
    exec(HEADER, scope)
    file = f"{name}.py"
    linecache.cache[file] = (len(program), None, program.splitlines(keepends=True), file)
    exec(compile(program, file, "exec"), scope)


def blocks(name: str) -> list[tuple[str, str]]:
    return BLOCK.findall((FOLDER / f"{name}.md").read_text())


@pytest.mark.parametrize("name", SHOWN)
def test_the_mistake_raises_what_the_page_shows(name, update_golden):
    (kind, program), (shown, text), *_ = blocks(name)
    assert (kind, shown) == ("python", "text")
    with pytest.raises(Exception) as caught:
        run(program, name)
    raised = f"{type(caught.value).__name__}: {caught.value}\n"
    if update_golden:
        path = FOLDER / f"{name}.md"
        path.write_text(path.read_text().replace(f"```text\n{text}```", f"```text\n{raised}```", 1))
        text = raised
    assert raised == text
    assert f"[{name}]" in text


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", SHOWN)
def test_the_remedy_runs(name):
    kind, program = blocks(name)[-1]
    assert kind == "python" and len(blocks(name)) == 3
    run(program, f"{name}_mended")


def test_every_code_has_a_page_and_every_page_a_row():
    index = (FOLDER / "README.md").read_text()
    assert codes() - set(PAGES) == set()
    assert set(re.findall(r"\]\(([a-z0-9-]+)\.md\)", index)) == set(PAGES)
