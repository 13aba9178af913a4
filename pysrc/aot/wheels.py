"""Wheels of compiled packages.

In: the folder of a package. Out: a wheel in `dist` beside it. Example:

    wheel(Path("build/orbits"), "0.1", ["numpy>=2.0"], pure=True)    # build/dist/orbits-0.1-py3-none-any.whl
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..runtime.abi3 import FIRST
from .places import Unwritable, reason

_SETUP = f'''"""The package holds native code: its wheel is for this platform, and for Pythons from one version on."""

from setuptools import Distribution, setup


class Native(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(distclass=Native, options={{"bdist_wheel": {{"py_limited_api": "{FIRST}"}}}})
'''
_PROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "{version}"
requires-python = ">=3.11"
dependencies = {needs}

[tool.setuptools]
packages = {packages}

[tool.setuptools.package-data]
"*" = ["*"]
"""


def wheel(folder: Path, version: str, needs: Sequence[str], pure: bool) -> Path:
    """A wheel of the package in a folder: for this platform, or for all if it is `pure`."""
    dist, name = folder.parent.resolve() / "dist", folder.name
    with tempfile.TemporaryDirectory(prefix="metaphrase-wheel-") as place:
        try:
            made = _made(Path(place), folder, version, needs, pure)
        except OSError as problem:
            raise RuntimeError(
                f"a wheel of {name} can't be made in {tempfile.gettempdir()}: {reason(problem)}; TMPDIR names another "
                "place for what is in the making"
            ) from problem
        pending = dist / f".{made.name}.{os.getpid()}"
        try:
            dist.mkdir(exist_ok=True)
            shutil.copyfile(made, pending)
            os.replace(pending, dist / made.name)
        except OSError as problem:
            raise Unwritable(f"{dist / made.name} can't be written: {reason(problem)}") from problem
        finally:
            pending.unlink(missing_ok=True)
        return dist / made.name


def _made(project: Path, folder: Path, version: str, needs: Sequence[str], pure: bool) -> Path:
    """The wheel that pip makes in a folder of its own."""
    name = folder.name
    shutil.copytree(folder, project / name, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copyfile)
    inner = [path.relative_to(project) for path in (project / name).rglob("*") if path.is_dir()]
    packages = [name, *sorted(".".join(path.parts) for path in inner)]
    if not pure:
        (project / "setup.py").write_text(_SETUP)
    text = _PROJECT.format(name=name, version=version, needs=[*needs], packages=packages)
    (project / "pyproject.toml").write_text(text)
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "wheel", str(project), *options, "--wheel-dir", str(project / "dist")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"pip could not make a wheel of {name}: {_cause(done.stdout + done.stderr)}")
    (made,) = (project / "dist").glob("*.whl")
    return made


def _cause(said: str) -> str:
    """The error among the lines of a build; all lines, where none is one."""
    lines = [line.strip() for line in said.splitlines()]
    errors = [line for line in lines if line.startswith("error: ") and "subprocess" not in line]
    if "invalid command 'bdist_wheel'" in said:
        return "the setuptools that is installed here makes none; run pip install --upgrade setuptools"
    return errors[0].removeprefix("error: ") if errors else "\n" + said


__all__ = ["wheel"]
