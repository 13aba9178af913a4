"""The command: every subcommand, its output, its exit status, its errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import metaphrase
from metaphrase.cli.main import main
from metaphrase.pipeline import STAGES

PROGRAM = """import numpy as np


def period(e, M):
    E = M
    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


def loss(params, x):
    return np.sum((x @ params["w"]) ** 2)


def broken(x):
    return x @ x[:2]


NUMBER = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "orbit.py"
    path.write_text(PROGRAM)
    return str(path)


def run(capsys, *arguments):
    status = main(arguments)
    out = capsys.readouterr()
    return status, out.out, out.err


@pytest.mark.parametrize("stage", [stage.name for stage in STAGES])
def test_show_prints_every_stage(capsys, file, stage):
    status, out, err = run(capsys, "show", f"{file}:period", "--args", "f64, f64", "--stage", stage)
    assert status == 0 and not err and ("def" in out)


def test_show_applies_transformations_in_order(capsys, file):
    status, out, _ = run(capsys, "show", f"{file}:period", "--args", "f64[n], f64", "--grad", "--vmap", "0,None")
    assert status == 0
    namespace = {}
    exec(out, namespace)
    last = [line[4 : line.index("(")] for line in out.splitlines() if line.startswith("def ")][-1]
    got = namespace[last](np.array([0.1, 0.5]), 1.0)
    E = np.array([1.0885977523978936, 1.4987011335178484])
    np.testing.assert_allclose(got, np.sin(E) / (1 - np.array([0.1, 0.5]) * np.cos(E)), rtol=1e-6)


def test_show_takes_trees_and_symbolic_sizes(capsys, file):
    status, out, _ = run(
        capsys, "show", f"{file}:loss", "--args", "{'w': f64[n]}, f64[m, n]", "--grad", "--stage", "core"
    )
    assert status == 0 and "f64[m, n]" in out


def test_check_reports_every_stage(capsys, file):
    status, out, _ = run(capsys, "check", f"{file}:period", "--args", "f64, f64")
    assert status == 0 and [line.split()[0] for line in out.splitlines()] == [stage.name for stage in STAGES]


def test_explain(capsys, file):
    status, out, _ = run(capsys, "explain", f"{file}:period", "--args", "f64, f64")
    assert status == 0 and "loops: 0 for, 1 while" in out and "e: f64" in out


def test_build_compiles_into_the_cache(capsys, file):
    status, out, _ = run(capsys, "build", f"{file}:period", "--args", "f64, f64")
    kind, _, path = out.strip().rpartition(", ")
    assert status == 0 and kind in ("period: compiled", "period: found in the cache")
    assert Path(path).is_file()


def test_the_package_run_as_a_module_is_the_command(file):
    command = [sys.executable, "-P", "-m", "metaphrase", "show", f"{file}:period", "--args", "f64, f64"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "def period(e, M):" in done.stdout and not done.stderr
    command[5:] = [f"{file}:broken", "--args", "f64[5]"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "orbit.py:16" in done.stderr and "__main__" not in done.stderr


def test_cache_shows_and_clears(capsys, file, monkeypatch, tmp_path):
    monkeypatch.setenv("METAPHRASE_CACHE_DIR", str(tmp_path / "cache"))
    assert run(capsys, "cache", "clear")[1].startswith("removed 0 compiled programs")
    status, out, _ = run(capsys, "cache")
    assert status == 0 and "programs        0" in out and "plans of calls  0" in out


def test_doctor(capsys):
    status, out, _ = run(capsys, "doctor")
    assert status == 0 and "native code" in out and "FAILED" not in out


def test_doctor_says_what_is_missing(capsys, monkeypatch):
    monkeypatch.setenv("METAPHRASE_CC", "no-such-compiler")
    status, out, _ = run(capsys, "doctor")
    assert status == 1 and "FAILED  C compiler" in out


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["show", "{file}:perod", "--args", "f64"], 2, "defines no perod; it defines broken, loss, period"),
        (
            ["show", "{file}", "--args", "f64"],
            2,
            "is all that it exports; --args, --grad and --vmap are for FILE.py:FUNCTION",
        ),
        (["show", "{file}"], 2, "exports no function; mark one by mp.export, or name FILE.py:FUNCTION"),
        (["show", "period"], 2, "the module period can't be imported: there is none of this name"),
        (["show", "nowhere.py:f"], 2, "there is no file nowhere.py"),
        (["show", "no_such_module_here:f"], 2, "can't be imported"),
        (["show", "{file}:NUMBER"], 2, "is a int, not a function"),
        (["show", "{file}:period"], 2, "missing a required argument: 'e'; --args gives the type of each"),
        (["show", "{file}:period", "--args", "f64, f64, f64"], 2, "too many positional arguments"),
        (["show", "{file}:period", "--args", "f64, g64"], 2, "g64 is not a dtype"),
        (["show", "{file}:period", "--args", "f64, f64", "--vmap", "first"], 2, "--vmap takes axes"),
        (["show", "{file}:broken", "--args", "f64[3]"], 1, "orbit.py:16:"),
    ],
)
def test_errors(capsys, file, arguments, status, message):
    got, _, err = run(capsys, *(a.format(file=file) for a in arguments))
    assert got == status and message in err and "Traceback" not in err


def test_the_command_is_installed(file):
    command = Path(sys.executable).with_name("metaphrase")
    arguments = [str(command)] if command.exists() else [sys.executable, "-m", "metaphrase.cli.main"]
    out = subprocess.run([*arguments, "show", f"{file}:period", "--args", "f64, f64"], capture_output=True, text=True)
    assert out.returncode == 0 and "def period(e, M):" in out.stdout


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"metaphrase {metaphrase.__version__}\n"


def test_names_are_looked_for_in_the_folder_one_is_in(tmp_path, monkeypatch, capsys):
    package = tmp_path / "planets_here"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "moons.py").write_text("def mass(x):\n    return 2.0 * x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(tmp_path))])
    assert main(["show", "planets_here.moons:mass", "--args", "f64"]) == 0
    assert "return 2.0 * x" in capsys.readouterr().out
    assert "planets_here" not in sys.modules and str(tmp_path) not in sys.path


@pytest.mark.parametrize("buffering", [1, -1], ids=["at once", "at the end"])
def test_output_that_can_not_be_written_is_one_error(capsys, tmp_path, monkeypatch, buffering):
    (tmp_path / "f.py").write_text("def f(x):\n    return 2.0 * x\n")
    with open("/dev/full", "w", buffering=buffering) as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["show", f"{tmp_path}/f.py:f", "--args", "f64"]) == 2
    assert capsys.readouterr().err == "the output can't be written: No space left on device\n"
