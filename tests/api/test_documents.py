"""The documents say what the code does: every error code is explained, README's commands and programs run."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

import metaphrase as mp
from metaphrase.astpasses.frontend.rewrite.refusals import NAMES, STATEMENTS
from metaphrase.cli.main import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def codes() -> set[str]:
    """Every code that an error may have, from the text of the sources."""
    found = {code for code, *_ in (*STATEMENTS.values(), *NAMES.values())}
    for folder in ("pysrc", "astpasses"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            found |= set(re.findall(r'\bcode(?:: str)? ?= ?"([a-z0-9-]+)"', text))
            found |= set(re.findall(r'\brefuse\(\s*\w+,\s*"([a-z0-9-]+)"', text))
    return found


def test_readme_program_runs(capsys, tmp_path):
    program = re.search(r"```python\n(.*?)```", README, re.S).group(1)
    path = tmp_path / "readme.py"
    path.write_text(program)
    namespace = runpy.run_path(str(path))
    assert abs(namespace["slope"] - 1.048008) < 1e-6 and namespace["slopes"].shape == (1000,)
    assert "while" in capsys.readouterr().out


@pytest.mark.turns(3)
def test_the_programs_of_the_page_on_equations_run(tmp_path):
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "implicit.md").read_text(), re.S)
    path = tmp_path / "equations.py"
    path.write_text("\n".join(programs))
    found = runpy.run_path(str(path))
    swing = found["swing"]
    difference = (swing(9.82, "discrete") - swing(9.80, "discrete"))[-1] / 0.02
    assert len(programs) == 4 and found["many"].shape == (8,) and abs(found["slope"] - difference) < 1e-5


@pytest.mark.turns(3)
def test_the_programs_of_the_page_on_memory_run(tmp_path, capsys):
    page = (ROOT / "docs" / "memory.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", page, re.S)
    path = tmp_path / "swing.py"
    path.write_text("".join(programs))
    found = runpy.run_path(str(path))
    printed = capsys.readouterr().out.replace(f"{tmp_path}/", "")
    report, source = re.findall(r"```text\n(.*?)```", page, re.S)
    assert printed.startswith(report) and source in printed
    assert len(programs) == 5 and "hidden (51,200 a step)" in printed and found["slopes"].shape == (8, 100, 100)


def test_the_programs_of_the_page_on_rules_run(tmp_path, monkeypatch, capsys):
    """The file looks as the page shows it; the edit that the page shows is put into it, and used."""
    page = (ROOT / "docs" / "derivative-rules.md").read_text()
    module, write, shown, edit, use, by_hand = re.findall(r"```python\n(.*?)```", page, re.S)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "orbit.py").write_text(module)
    (tmp_path / "write.py").write_text(write)
    runpy.run_path("write.py")
    text = (tmp_path / "anomaly_grad.py").read_text()
    assert shown in text
    (tmp_path / "anomaly_grad.py").write_text(text.replace(shown, edit))
    (tmp_path / "use.py").write_text(f"import numpy as np\n{write.rpartition('mp.')[0]}{use}")
    found = runpy.run_path("use.py")
    assert abs(found["slope"] - 1.048008) < 1e-6 and found["slopes"].shape == (5,)
    assert "slope" in capsys.readouterr().out
    (tmp_path / "by_hand.py").write_text(f"import numpy as np\nimport metaphrase as mp\n{by_hand}")
    runpy.run_path("by_hand.py")
    orbit = sys.modules.pop("orbit")
    assert abs(mp.grad(orbit.anomaly)(0.3, 1.0) - 1.048008) < 1e-6
    sys.modules.pop("anomaly_grad")


COMMANDS = [line.split("#")[0].strip() for line in README.splitlines() if line.startswith("metaphrase ")]


@pytest.mark.turns(3)
@pytest.mark.parametrize("command", COMMANDS)
def test_readme_commands_run(command, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command.replace("--html ", f"--html {tmp_path}/"))[1:]) == 0
    assert capsys.readouterr().out.strip()


def test_readme_names_files_that_exist():
    for name in re.findall(r"\]\(([\w/.]+)\)", README):
        assert (ROOT / name).exists(), name
    assert len(COMMANDS) >= 4
