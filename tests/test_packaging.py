"""The package as it is installed: complete, typed, with its one extension and its command.

In: the repository. Out: a wheel built from a copy of it, unpacked and imported. The slow part is one build,
shared.
"""

from __future__ import annotations

import email
import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from metaphrase.runtime.dispatch import ABI_VERSION

ROOT = Path(__file__).resolve().parent.parent
ROOMS = {
    "pysrc": "metaphrase",
    "astpasses": "metaphrase/astpasses",
    "runtime": "metaphrase/runtime",
    "cli": "metaphrase/cli",
}


of_a_wheel = pytest.mark.turns(3, together=True)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """A wheel of the repository as it stands, built in a copy so that nothing here changes."""
    place = tmp_path_factory.mktemp("wheel")
    built = shutil.ignore_patterns("*.so", "dispatch.c", "__pycache__", "*.egg-info")
    for room in ROOMS:
        shutil.copytree(ROOT / room, place / "copy" / room, ignore=built)
    for name in ("setup.py", "metaphrase_setuptools.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place / "copy" / name)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        ".",
        "--no-build-isolation",
        "--no-deps",
        "--quiet",
        "--disable-pip-version-check",
        "--wheel-dir",
        str(place / "out"),
    ]
    # Whether the extension builds is the question here, not how fast it runs.
    done = subprocess.run(
        command, cwd=place / "copy", capture_output=True, text=True, timeout=300, env=dict(os.environ, CFLAGS="-O0")
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = (place / "out").glob("metaphrase-*.whl")
    return found


@of_a_wheel
def test_the_wheel_holds_every_source_file(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        f"{package}/{path.relative_to(ROOT / room).as_posix()}"
        for room, package in ROOMS.items()
        for path in (ROOT / room).rglob("*")
        if path.suffix in (".py", ".pyi", ".h", ".pyx", ".pxi", ".css", ".js") or path.name == "py.typed"
    }
    assert expected - names == set() and "metaphrase_setuptools.py" in names
    for place in ("metaphrase/runtime/dispatch.", "metaphrase/runtime/abi3/dispatch."):
        assert any(name.startswith(place) and name.endswith(".so") for name in names)


@of_a_wheel
def test_the_unpacked_wheel_imports_from_anywhere(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    script = (
        "import metaphrase, metaphrase.runtime.dispatch as d, metaphrase.runtime.cython_build as b, sys;"
        "print(metaphrase.__file__, d.ABI_VERSION, b.build(open(sys.argv[1]).read(), name='f').form)"
    )
    kernel = tmp_path / "kernel.pyx"
    kernel.write_text(
        'cdef extern from "abi.h" nogil:\n    ctypedef long long int64_t\n    ctypedef struct mp_ctx:\n'
        "        int64_t fuel\n"
        "cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:\n    return 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, str(kernel)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ, PYTHONPATH=str(tmp_path / "site")),
    )
    file, version, form = done.stdout.split() or pytest.fail(done.stderr)
    assert Path(file).is_relative_to(tmp_path / "site") and version == str(ABI_VERSION) and form == "kernel"


def test_every_folder_with_modules_is_a_package():
    folders = {path.parent for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_the_command_is_installed():
    (entry,) = (
        entry
        for entry in importlib.metadata.distribution("metaphrase").entry_points
        if entry.group == "console_scripts"
    )
    assert (entry.name, entry.value) == ("metaphrase", "metaphrase.cli.main:main")
    assert callable(entry.load())


@of_a_wheel
def test_metadata(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(archive.read(name))
    assert metadata["License-Expression"] == "Apache-2.0" and metadata["Requires-Python"] == ">=3.11"
    needed = {
        requirement.split(">")[0].split("=")[0].strip().lower().replace("-", "_")
        for requirement in metadata.get_all("Requires-Dist")
        if "extra" not in requirement
    }
    assert needed == {"gast", "beniget", "astor", "cython", "numpy", "scipy", "ml_dtypes"}
    assert {"test", "bench", "examples", "lint"} <= set(metadata.get_all("Provides-Extra"))


def test_importing_leaves_the_heavy_alone():
    """Neither Cython's compiler nor SciPy's linear algebra is imported before something needs them.

    (SciPy itself imports Cython's shadow module and version.)
    """
    heavy = ("Cython.Compiler.Main", "scipy.linalg", "jax")
    script = f"import metaphrase, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_ci_says_what_is_missing():
    done = subprocess.run(
        [str(ROOT / ".ci" / "run")],
        env=dict(os.environ, CC="no-such-compiler"),
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "no C compiler: 'no-such-compiler' is not on PATH" in done.stderr


@pytest.mark.parametrize("target", ["demo", "test", "bench", "lint"])
def test_make_knows_its_targets_and_builds_the_environment_first(target, tmp_path):
    done = subprocess.run(
        ["make", "--dry-run", f"VENV={tmp_path / 'env'}", target], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and f"-m venv {tmp_path / 'env'}" in done.stdout, done.stderr
