"""A folder put in its place: what is there is the whole of it, or what was there before, or nothing.

In: a folder that is done, and where it belongs. Out: it is there. Example: `put(pending / "orbits", out / "orbits")`.

It is copied beside its place and then renamed, which no kill comes between. What a killed process has left there the
next one removes: a copy is locked by the process that makes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


def put(folder: Path, place: Path) -> None:
    """Raises OSError where there is no room, or no right to write; the place is then as it was."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _sweep(place)
        with _beside(place) as beside:
            shutil.copytree(folder, beside / "new")
            _exchange(beside / "new", place, beside)
    except OSError as problem:
        raise OSError(f"{place} can't be written: {_reason(problem)}") from problem


def _exchange(new: Path, place: Path, beside: Path) -> None:
    for k in itertools.count():
        try:
            os.rename(new, place)
            return
        except OSError as problem:  # what is there makes room; another process may be first
            if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        with contextlib.suppress(FileNotFoundError):
            os.rename(place, beside / f"old-{k}")


def _reason(problem: OSError) -> str:
    """In words: `shutil` says of each file what is wrong."""
    first = problem.args[0] if problem.args else ""
    if isinstance(problem, shutil.Error) and isinstance(first, list) and first:
        return str(first[0][-1]).partition("] ")[2].partition(": ")[0] or str(first[0][-1])
    return problem.strerror or str(problem)


def _prefix(place: Path) -> str:
    return f".{place.name}.pending-"


@contextlib.contextmanager
def _beside(place: Path) -> Iterator[Path]:
    """A folder beside a place for what is in the making, locked, and removed at the end."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=_prefix(place), dir=place.parent))
        descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if made.exists():  # no sweep came between the two
                yield made
                return
        finally:
            shutil.rmtree(made, ignore_errors=True)
            os.close(descriptor)


def _sweep(place: Path) -> None:
    """Remove what processes that are gone have left."""
    for path in place.parent.glob(_prefix(place) + "*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


__all__ = ["put"]
