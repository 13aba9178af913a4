"""What programs read of the command: JSON, exit statuses, several targets at once, completions of shells."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from metaphrase.cli.main import main
from metaphrase.pipeline import STAGES

pytestmark = pytest.mark.turns(3)

GOOD = """import numpy as np

import metaphrase as mp


@mp.export("f64[n]", "f32[n]")
def total(x):
    return np.sin(x).sum()


def plain(x):
    return x + 1
"""
BAD = GOOD + "\n\n@mp.export('f64[3]')\ndef wrong(x):\n    return x @ x[:2]\n"


def told(capsys, *arguments: str) -> tuple[int, dict]:
    """(status, what is printed as JSON)."""
    status = main([*arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file that exports, one that exports something wrong, one that fails, and some that export nothing."""
    (tmp_path / "inner").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name, text in {
        "good.py": GOOD,
        "inner/bad.py": BAD,
        "inner/broken.py": "import metaphrase as mp\n\nmp.export('f64')(1 / 0)\n",
        "unread.py": "import metaphrase\n\ndef f(:\n",
        "plain.py": "raise SystemExit('nobody imports this')\n",
        ".hidden/bad.py": BAD,
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_show_explain_build(capsys, folder):
    target = f"{folder / 'good.py'}:plain"
    status, found = told(capsys, "show", target, "--args", "f64[n]")
    assert status == 0 and found["stage"] == "numpy" and "return x + 1" in found["text"]
    status, found = told(capsys, "explain", target, "--args", "f64[n]")
    assert status == 0 and found["name"] == "plain" and found["arguments"] == ["x: f64[n]"]
    assert found["loops"]["for"] == 1 and found["operations"]["add"] == 1 and found["milliseconds"]["core"] > 0
    status, found = told(capsys, "build", target, "--args", "f64[n]")
    assert status == 0 and Path(found["path"]).is_file() and isinstance(found["cached"], bool)


def test_several_are_shown_and_built(capsys, folder):
    file = folder / "good.py"
    for command in ("show", "build"):
        for targets in ([str(file)], [f"{file}:total"]):  # a function that exports is for the types that it exports
            status, found = told(capsys, command, *targets)
            names = [one["target"] for one in found["functions"]]
            assert status == 0 and names == [f"{file}:total(f64[n])", f"{file}:total(f32[n])"]
        status, found = told(capsys, command, f"{file}:plain", f"{file}:plain", "--args", "float")
        assert status == 0 and len(found["functions"]) == 2
    assert main(["show", str(file)]) == 0
    assert capsys.readouterr().out.count("def total(x)") == 2


FIRST_CALLS = """
import sys
import numpy as np
from orbits import halves, period

assert abs(period(0.3, 1.0) - 1.2880911) < 1e-6
assert halves(np.arange(5.0), 2).tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
print("gast" in sys.modules, len(halves.signatures))
"""
ORBITS = """
import numpy as np

import metaphrase as mp


@mp.jit
def period(e, M):
    E = M
    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


@mp.jit
def halves(x, by):
    return x / by
"""


def test_a_call_that_was_built_translates_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("METAPHRASE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("METAPHRASE_PLANS", "1")
    (tmp_path / "orbits.py").write_text(ORBITS)
    for name, types in (("period", "float, float"), ("halves", "f64[n], int")):
        command = [
            sys.executable,
            "-P",
            "-m",
            "metaphrase",
            "build",
            f"{tmp_path / 'orbits.py'}:{name}",
            "--args",
            types,
        ]
        assert subprocess.run(command, capture_output=True).returncode == 0
    (tmp_path / "first.py").write_text(FIRST_CALLS)
    ran = subprocess.run([sys.executable, str(tmp_path / "first.py")], capture_output=True, text=True)
    assert ran.stdout.split() == ["False", "1"], ran.stderr


def test_cache_doctor_compile(capsys, folder, monkeypatch):
    status, found = told(capsys, "compile", str(folder / "good.py"), "--to", "numpy", "--out", str(folder / "out"))
    assert status == 0 and found["packages"][0]["functions"] == {"total": ["(f64[n])", "(f32[n])"]}
    assert Path(found["packages"][0]["folder"], "__init__.py").is_file() and found["packages"][0]["wheel"] is None
    status, found = told(capsys, "doctor")
    assert status == 0 and found["ok"] and {"cache", "native code"} <= {check["name"] for check in found["checks"]}
    assert {"node", "status"} <= told(capsys, "doctor", "--support")[1][0].keys()
    monkeypatch.setenv("METAPHRASE_CACHE_DIR", str(folder / "cache"))
    assert told(capsys, "cache", "clear")[1]["removed"] == 0
    assert told(capsys, "cache")[1]["programs"] == 0


def test_check_of_functions_files_and_folders(capsys, folder):
    good = str(folder / "good.py")
    status, found = told(capsys, "check", f"{good}:plain", f"{good}:total", "--args", "f64[n]")
    assert status == 0 and [row["target"] for row in found["functions"]] == [f"{good}:plain", f"{good}:total"]
    assert [stage["stage"] for stage in found["functions"][0]["stages"]] == [stage.name for stage in STAGES]
    assert main(["check", good]) == 0
    assert capsys.readouterr().out.splitlines() == [f"ok  {good}:total(f64[n])", f"ok  {good}:total(f32[n])"]
    status, found = told(capsys, "check", str(folder))
    rows = {Path(row["target"]).name: row for row in found["functions"]}
    assert status == 1 and not found["ok"]
    assert {name: row["ok"] for name, row in rows.items()} == {
        "good.py:total(f64[n])": True,
        "good.py:total(f32[n])": True,
        "bad.py:total(f64[n])": True,
        "bad.py:total(f32[n])": True,
        "bad.py:wrong(f64[3])": False,
        "broken.py": False,
        "unread.py": False,
    }
    wrong = rows["bad.py:wrong(f64[3])"]
    assert wrong["error"]["line"] == 17 and wrong["error"]["file"].endswith("bad.py") and wrong["error"]["remedy"]
    assert rows["broken.py"]["error"]["line"] == 3 and "SyntaxError" in rows["unread.py"]["error"]["message"]


def test_check_says_all_errors_and_then_which(capsys, folder):
    assert main(["check", str(folder)]) == 1
    said = capsys.readouterr()
    assert "bad.py:17:" in said.err and "broken.py:3:" in said.err and "Traceback" not in said.err
    assert f"FAILED  {folder / 'inner' / 'bad.py'}:wrong(f64[3])" in said.out
    (folder / "empty").mkdir()
    for arguments, message in (
        ([str(folder / "empty")], "exports no function"),
        ([str(folder), "--args", "f64"], "is all that it exports; --args"),
        ([str(folder / "good.py"), "none.py:f"], "there is no file none.py"),
    ):
        assert main(["check", *arguments]) == 2 and message in capsys.readouterr().err


def test_errors_are_json_too(capsys, folder):
    status, found = told(capsys, "show", "nowhere.py:f")
    assert status == 2 and found == {"error": {"message": "there is no file nowhere.py"}}
    status, found = told(capsys, "show", f"{folder / 'inner' / 'bad.py'}:wrong", "--args", "f64[3]")
    assert status == 1 and found["error"]["line"] == 17 and found["error"]["code"]
    status, found = told(capsys, "compile", str(folder / "inner" / "broken.py"), "--out", str(folder / "out"))
    assert status == 1 and found["error"]["line"] == 3 and "ZeroDivisionError" in found["error"]["message"]


def completed(text: str, words: str) -> set[str]:
    """What bash completes after these words."""
    parts = words.split(" ")
    ask = f"COMP_WORDS=({' '.join(repr(part) for part in parts)}); COMP_CWORD={len(parts) - 1}; _metaphrase"
    script = f'{text}\n{ask}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr
    return {*done.stdout.split()}


def test_bash_completes(capsys, tmp_path, monkeypatch):
    assert main(["completion", "bash"]) == 0
    text = capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orbits.py").touch()
    assert completed(text, "metaphrase co") == {"compile", "completion"}
    assert {"--wheel", "--json", "--to"} <= completed(text, "metaphrase compile --")
    assert completed(text, "metaphrase compile --to n") == {"native", "numpy"}
    assert completed(text, "metaphrase show x.py:f --stage co") == {"control", "core"}
    assert completed(text, "metaphrase cache c") == {"clear"} and completed(text, "metaphrase compile --out o") == {
        "orbits.py"
    }


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_reads_its_text(capsys, shell):
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("compile", "doctor", "native numpy", "clear"))
    if shutil.which(shell):
        done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    with pytest.raises(SystemExit):
        main(["completion", "tcsh"])


def test_explain_of_files_and_folders(capsys, folder):
    good, page = folder / "good.py", folder / "page.html"
    status, found = told(capsys, "explain", str(good))
    assert status == 0 and [row["arguments"] for row in found["functions"]] == [["x: f64[n]"], ["x: f32[n]"]]
    status, found = told(capsys, "explain", str(folder), "--html", str(page))
    assert status == 1 and found["html"] == str(page) and "error" in {key for row in found["functions"] for key in row}
    text = page.read_text()
    assert text.count("<article") == len(found["functions"]) and "ZeroDivisionError" in text
    assert main(["explain", str(good), f"{good}:plain", "--args", "f64[n]"]) == 2  # --args are for one function
    capsys.readouterr()
    assert main(["explain", str(good)]) == 0
    out = capsys.readouterr().out
    assert f"# {good}:total(f32[n])\ntotal\n" in out and "cost of each line" in out


def test_explain_measures_times(capsys, folder):
    target, page = f"{folder / 'good.py'}:plain", folder / "page.html"
    for types in ([], ["--args", "f64[n]"]):
        status, found = told(capsys, "explain", target, *types, "--time", "np.linspace(0.0, 1.0, 1000)")
        parts = found["measured"]["parts"]
        assert status == 0 and parts and abs(sum(part["share"] for part in parts) - 100) < 1e-6
        assert found["assumed"] == ({"n": 1000} if types else {})
    assert main(["explain", target, "--time", "np.ones(10)", "--html", str(page)]) == 0
    assert "class=timed" in page.read_text()
    capsys.readouterr()
    for arguments, message in (
        (["--time", "np.ones(nowhere)"], "NameError: name 'nowhere' is not defined"),
        (["--time", "np.ones(3"], "SyntaxError"),
        (["--args", "f64[n]", "--time", "np.ones(3, int)"], "is explained for (x: f64[n]), and timed with (i64[3])"),
        (["--args", "f64[4]", "--time", "np.ones(3)"], "made for other sizes"),
    ):
        assert main(["explain", target, *arguments]) == 2
        assert message in capsys.readouterr().err
    assert main(["explain", str(folder / "good.py"), "--time", "np.ones(3)"]) == 2
    assert "--time is for one function" in capsys.readouterr().err


def test_explain_writes_a_page(capsys, folder):
    target, page = f"{folder / 'good.py'}:plain", folder / "page.html"
    assert main(["explain", target, "--args", "f64[n]", "--html", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}\n" and page.read_text().startswith("<!DOCTYPE html>")
    status, found = told(capsys, "explain", target, "--args", "f64[n]", "--html", str(page))
    assert status == 0 and found["name"] == "plain" and found["html"] == str(page) and found["loop nests"][0]["vectors"]
    page.unlink()
    for place, message in (
        (folder, "this is a folder"),
        (folder / "none" / "page.html", f"there is no folder {folder / 'none'}"),
        (folder / "good.py" / "page.html", "there is no folder"),
        (folder / ("n" * 300), "name too long"),
    ):
        assert main(["explain", target, "--args", "f64[n]", "--html", str(place)]) == 2
        said = capsys.readouterr()
        assert f"--html {place}: " in said.err and message in said.err.lower() and not said.out
    assert main(["explain", f"{folder / 'good.py'}:none", "--html", str(page)]) == 2 and not page.exists()
    assert main(["explain", f"{folder / 'inner' / 'bad.py'}:wrong", "--args", "f64[3]", "--html", str(page)]) == 1
    assert not page.exists()


RAISES = """import metaphrase as mp


@mp.export("f64[n]", "f64[n, n]")
def total(x):
    if x.ndim == 2:
        raise ValueError("no matrices")
    return x.sum()


def steps(x, n):
    for _ in range(n):
        x = 2.0 * x
    return x
"""


@pytest.mark.parametrize("command", ["show", "check", "explain", "build"])
def test_what_a_function_raises_is_one_error_at_its_line(capsys, tmp_path, command):
    file = tmp_path / "raises.py"
    file.write_text(RAISES)
    assert main([command, f"{file}:steps", "--args", "f64, 'many'"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"{file}:12: TypeError: 'str' object cannot be interpreted as an integer"
    assert lines[1].split() == ["for", "_", "in", "range(n):"] and len(lines) == 3


@pytest.mark.parametrize("command", ["show", "check", "explain", "build"])
def test_what_one_signature_raises_leaves_the_others(capsys, tmp_path, command):
    file = tmp_path / "raises.py"
    file.write_text(RAISES)
    status, found = told(capsys, command, str(file))
    good, bad = found["functions"]
    assert status == 1 and "error" not in good
    assert bad["error"] == {"message": "ValueError: no matrices", "file": str(file), "line": 7, "column": 9}


def test_a_module_with_a_signature_that_raises_is_not_compiled(capsys, tmp_path):
    file = tmp_path / "raises.py"
    file.write_text(RAISES)
    status, found = told(capsys, "compile", str(file), "--out", str(tmp_path / "out"), "--quiet")
    assert status == 1 and found["error"]["message"] == "ValueError: no matrices"
    assert not [*(tmp_path / "out").iterdir()]


def test_our_own_faults_keep_their_traceback(monkeypatch, tmp_path):
    file = tmp_path / "good.py"
    file.write_text(GOOD)
    monkeypatch.setattr("metaphrase.cli.explain.explained", {}.__getitem__)
    with pytest.raises(TypeError):
        main(["explain", f"{file}:plain", "--args", "f64[n]"])
