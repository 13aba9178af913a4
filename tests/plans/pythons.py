"""Pythons of other versions on this machine, and packages of PyPI for them.

In: nothing; a requirement. Out: interpreters by their versions; a folder with what is required. Example: `others()`
gives `{"3.12": Path(".../bin/python3.12")}`, `library("numpy", "3.12")` a folder with NumPy's wheel for that, unpacked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

OLDEST = (3, 11)
SAYS = "import sys; print('%d.%d' % sys.version_info[:2], sys.implementation.name + sys.abiflags)"


def others() -> dict[str, Path]:
    """One interpreter of each version that a package is for, but for this one's: from PATH, and from pyenv's folder."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    named = (shutil.which(f"python{OLDEST[0]}.{minor}") for minor in range(OLDEST[1], 20))
    found: dict[str, Path] = {}
    for python in [*filter(None, named), *sorted(pyenv.glob("versions/3.*/bin/python"))]:
        done = subprocess.run([python, "-I", "-S", "-c", SAYS], capture_output=True, text=True)
        version, _, kind = done.stdout.strip().partition(" ")  # of a shim that leads nowhere: nothing
        if kind == "cpython" and tuple(map(int, version.split("."))) >= OLDEST:
            found.setdefault(version, Path(python))
    found.pop(f"{sys.version_info[0]}.{sys.version_info[1]}", None)
    return found


def unpacked(requirement: str, version: str, folder: Path) -> Path:
    """What pip installs of a requirement, without what that requires, for a version of Python. A failure is pip's."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-compile", "--only-binary", ":all:", "--python-version", version, "--target", str(folder)]
    done = subprocess.run([*command, requirement], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{requirement} for Python {version} is wanted here, and pip says: {done.stderr}"
    return folder


def library(requirement: str, version: str) -> Path:
    """The same of a library, kept beside compiled programs for the next run."""
    kept = Path(os.environ["METAPHRASE_CACHE_DIR"]) / ".libraries" / f"{requirement}-{version}"
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        pending = Path(tempfile.mkdtemp(dir=kept.parent))
        unpacked(requirement, version, pending)
        try:
            pending.rename(kept)
        except OSError:  # another run was as quick
            shutil.rmtree(pending)
    return kept
