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

_SETUP = '''"""The package holds native code: its wheel is for this Python and platform."""

from setuptools import Distribution, setup


class Native(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(distclass=Native)
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
packages = ["{name}"]

[tool.setuptools.package-data]
"{name}" = ["**/*"]
"""


def wheel(folder: Path, version: str, needs: Sequence[str], pure: bool) -> Path:
    """A wheel of the package in a folder: for this Python and platform, or for all if it is `pure`."""
    dist, name = folder.parent.resolve() / "dist", folder.name
    dist.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="metaphrase-wheel-") as place:
        project = Path(place)
        shutil.copytree(folder, project / name, ignore=shutil.ignore_patterns("__pycache__"))
        if not pure:
            (project / "setup.py").write_text(_SETUP)
        (project / "pyproject.toml").write_text(_PROJECT.format(name=name, version=version, needs=[*needs]))
        options = ["--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "wheel", place, *options, "--wheel-dir", str(project / "dist")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"pip could not make a wheel of {name}:\n{done.stdout}{done.stderr}")
        (made,) = (project / "dist").glob("*.whl")
        pending = dist / f".{made.name}.{os.getpid()}"
        try:
            shutil.copyfile(made, pending)
            os.replace(pending, dist / made.name)
        finally:
            pending.unlink(missing_ok=True)
        return dist / made.name


__all__ = ["wheel"]
