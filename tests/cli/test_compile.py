"""`metaphrase compile` as a person meets it: what it says while it works, and where a module is wrong."""

from __future__ import annotations

import io
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.api import execute
from metaphrase.cli import compile as compile_command
from metaphrase.cli.main import main
from metaphrase.cli.progress import Progress

pytestmark = pytest.mark.turns(5)

HEAD = "import metaphrase as mp\n\n\n"
SMALL = HEAD + "@mp.export('f64', 'f32')\ndef f(x):\n    return 2 * x\n"


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    out = capsys.readouterr()
    return status, out.out, out.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


BROKEN = {
    "it fails": (HEAD + "def g():\n    return 1 / 0\n\n\nx = g()\n", 5, "ZeroDivisionError: division by zero", "1 / 0"),
    "it does not read": (HEAD + "def g(:\n    pass\n", 4, "SyntaxError: invalid syntax", "def g(:"),
    "it needs a module": ("import no_such_module_here\n", 1, "No module named 'no_such_module_here'", "import no_such"),
    "it ends": ("import sys\n\nsys.exit(3)\n", 3, "it ends the process (SystemExit)", "sys.exit(3)"),
    "its library fails": ("import json\n\njson.loads('{')\n", 3, "JSONDecodeError", "json.loads('{')"),
    "its types do not read": (HEAD + "@mp.export('f6')\ndef f(x):\n    return x\n", 4, "f6 is not a dtype", "f6"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_module_that_fails_is_one_error_at_its_line(capsys, tmp_path, what):
    text, line, message, shown = BROKEN[what]
    (tmp_path / "broken.py").write_text(text)
    status, _, err = run(capsys, "compile", str(tmp_path / "broken.py"), "--out", str(tmp_path / "out"))
    assert status == 1 and f"broken.py:{line}: " in err and message in err and shown in err
    assert "Traceback" not in err and "__metaphrase" not in err and "broken" not in sys.modules
    assert "metaphrase.api" not in err


def test_a_forgotten_ending_gets_a_hint(capsys, tmp_path, monkeypatch):
    (tmp_path / "small.py").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    status, _, err = run(capsys, "compile", f"{tmp_path}/small", "--out", "out")
    assert status == 2 and "small.py?" in err
    assert run(capsys, "compile", "small", "--out", "out")[0] == 0  # it is in the folder that one is in
    assert run(capsys, "show", "none:f")[2].strip() == "the module none can't be imported: there is none of this name"


def test_a_file_has_its_own_name_and_that_of_its_package(capsys, tmp_path):
    package = tmp_path / "outer" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "outer" / "__init__.py").write_text("RATE = 3.0\n")
    (package / "__init__.py").touch()
    (package / "part.py").write_text("from .. import RATE\n\n\ndef f(x):\n    assert x > RATE\n    return __name__\n")
    path, before = [*sys.path], {*sys.modules}
    status, out, _ = run(capsys, "show", f"{package / 'part.py'}:f", "--args", "f64")
    assert status == 0 and "'outer.inner.part'" in out and "3.0" in out
    assert sys.path == path and not [name for name in {*sys.modules} - before if name.startswith("outer")]
    (tmp_path / "numpy.py").write_text("import numpy\n\n\ndef f(x):\n    return numpy.sin(x)\n")
    assert run(capsys, "show", f"{tmp_path / 'numpy.py'}:f", "--args", "f64")[0] == 0 and sys.modules["numpy"] is np


def test_two_modules_of_one_name_are_refused(capsys, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.py").write_text(SMALL)
    a, b = (str(tmp_path / folder / "m.py") for folder in ("a", "b"))
    for given in ((a, b), (str(tmp_path),)):
        status, out, err = run(capsys, "compile", *given, "--out", str(tmp_path / "out"))
        assert status == 2 and f"{a} and {b} would both be {tmp_path / 'out' / 'm'}" in err and not out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["native", "numpy"])
def test_a_package_in_the_place_of_its_module_is_refused(capsys, tmp_path, to):
    (tmp_path / "small.py").write_text(SMALL)
    status, _, err = run(capsys, "compile", str(tmp_path / "small.py"), "--to", to, "--out", str(tmp_path))
    assert status == 2 and f"would be imported in the place of {tmp_path / 'small.py'}" in err
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["small.py"]


def test_a_folder_stands_for_its_modules_that_export(capsys, tmp_path):
    place = tmp_path / "source"
    (place / "inner").mkdir(parents=True)
    (place / "small.py").write_text(SMALL)
    (place / "inner" / "more.py").write_text(SMALL)
    (place / "other.py").write_text("raise RuntimeError('this exports nothing')\n")
    status, _, err = run(capsys, "compile", str(place), "--to", "numpy", "--out", str(tmp_path / "out"), "--quiet")
    assert status == 0 and not err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["more", "small"]
    (tmp_path / "nothing").mkdir()
    status, _, err = run(capsys, "compile", str(tmp_path / "nothing"), "--out", str(tmp_path / "out"))
    assert status == 2 and f"{tmp_path / 'nothing'} exports no function" in err


def test_quiet_prints_nothing(capsys, tmp_path):
    (tmp_path / "small.py").write_text(SMALL)
    command = ["compile", str(tmp_path / "small.py"), "--to", "numpy", "--out", str(tmp_path / "out")]
    assert run(capsys, *command, "--quiet") == (0, "", "")
    assert "package:" in run(capsys, *command)[1] and (tmp_path / "out" / "small").is_dir()


def test_a_terminal_has_one_line_that_changes():
    said = Terminal()
    with Progress(False, said, patience=0.0) as progress:
        progress.timer.join()
        progress("f(f64) for x86-64", 0, 2)
        progress("g(f64) for x86-64", 1, 2)
    assert said.getvalue() == "\r\x1b[K[1/2] f(f64) for x86-64\r\x1b[K[2/2] g(f64) for x86-64\r\x1b[K"


def test_what_is_short_or_quiet_says_nothing():
    for quiet, patience in ((False, 60.0), (True, 0.0)):
        said = Terminal()
        with Progress(quiet, said, patience) as progress:
            progress("f(f64)", 0, 1)
        assert said.getvalue() == "" and not progress.timer.is_alive()


def test_elsewhere_there_are_log_lines_at_level_info(tmp_path, monkeypatch, capsys, caplog):
    (tmp_path / "small.py").write_text(SMALL)

    def at_once(quiet: bool) -> Progress:
        made = Progress(quiet, patience=0.0)
        monkeypatch.setattr(made, "is_late", True)
        return made

    monkeypatch.setattr(compile_command, "Progress", at_once)
    command = ["compile", str(tmp_path / "small.py"), "--out", str(tmp_path / "out"), "--cpu", "x86-64"]
    status, _, err = run(capsys, *command)
    assert (
        status == 0
        and "metaphrase: [1/2] f(f64) for x86-64\n" in err
        and "metaphrase: [2/2] f(f32) for x86-64\n" in err
    )
    assert {(record.name, record.levelno) for record in caplog.records} >= {("metaphrase.compile", logging.INFO)}
    assert not logging.getLogger("metaphrase.compile").handlers


def test_a_first_call_that_is_long_is_logged(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "metaphrase")
    mp.jit(lambda x: x + 1.5)(2.0)
    assert not [record for record in caplog.records if "to be ready" in record.message]
    monkeypatch.setattr(execute, "LONG", 0.0)
    mp.jit(lambda x: x + 2.5)(2.0)
    (record,) = [record for record in caplog.records if "to be ready" in record.message]
    assert (
        record.levelno == logging.INFO and "s to be ready; metaphrase build and compile do that ahead" in record.message
    )


def _on_a_disk(option: str, place: Path, environment: dict[str, str], *command: str) -> subprocess.CompletedProcess:
    """`metaphrase`, with a file system of its own mounted at a place; without an `option` files may have 250 kB."""
    mount = f'mount -t tmpfs -o {option},mode=700 none {place} && exec "$0" -P -m metaphrase "$@"'
    short = 'ulimit -f 500 && exec "$0" -P -m metaphrase "$@"'
    shell = ["unshare", "--mount", "sh", "-c", mount] if option else ["sh", "-c", short]
    return subprocess.run(
        [*shell, sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


FULL = {
    "a full disk": ("size=300k", False, "small can't be written: No space left on device"),
    "a read-only one": ("ro", False, "small can't be written: Read-only file system"),
    "no room for a wheel": ("size=740k", False, "linux_x86_64.whl can't be written: No space left on device"),
    "no room for what is in the making": ("size=300k", True, "a wheel of small can't be made in"),
    "no room for pip": ("size=900k", True, "pip could not make a wheel of small: "),
}


@pytest.mark.parametrize("what", FULL)
def test_a_disk_without_room_is_one_error(tmp_path, what):
    option, is_temporary, message = FULL[what]
    (tmp_path / "small.py").write_text(SMALL)
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", disk]
    if not shutil.which("unshare") or subprocess.run(mounted, capture_output=True).returncode:
        option, is_temporary, message = "", False, "small can't be written: File too large"
    out = tmp_path / "out" if is_temporary else disk
    command = ["compile", str(tmp_path / "small.py"), "--out", str(out), "--wheel"]
    done = _on_a_disk(option, disk, {"TMPDIR": str(disk)} if is_temporary else {}, *command)
    assert done.returncode == 2 and message in done.stderr and len(done.stderr.splitlines()) == 1
    assert not out.exists() or not [path for path in out.iterdir() if path.name.startswith(".")]


def test_a_target_that_is_a_file_or_nobodys(capsys, tmp_path):
    (tmp_path / "small.py").write_text(SMALL)
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", Path("/proc/none")):
        status, _, err = run(capsys, "compile", str(tmp_path / "small.py"), "--to", "numpy", "--out", str(out))
        assert status == 2 and "small can't be written: " in err and len(err.splitlines()) == 1


def test_setuptools_that_makes_no_wheels(capsys, tmp_path, monkeypatch):
    (tmp_path / "small.py").write_text(SMALL)
    real = subprocess.run

    def refused(command, **options):
        if "wheel" in command:
            return subprocess.CompletedProcess(command, 1, "", "error: invalid command 'bdist_wheel'\n")
        return real(command, **options)

    monkeypatch.setattr(subprocess, "run", refused)
    out = tmp_path / "out"
    status, _, said = run(capsys, "compile", str(tmp_path / "small.py"), "--out", str(out), "--wheel", "--to", "numpy")
    assert status == 2 and "run pip install --upgrade setuptools" in said
