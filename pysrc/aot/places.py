"""A folder that is made beside its place: what is there is the whole of it, or what was there before, or nothing.

In: where a folder belongs. Out: a folder to fill, which is renamed when it is full. Example:

    with making(out / "orbits") as folder:
        (folder / "__init__.py").write_text(text)
    # out/orbits/__init__.py is there

No kill comes between a rename. What a killed process has left beside the place the next one removes: a folder in the
making is locked by the process that makes it.
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


class Unwritable(OSError):
    """A place that can't be written."""


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EFBIG)


@contextlib.contextmanager
def making(place: Path) -> Iterator[Path]:
    """Raises Unwritable where there is no room, or no right to write; the place is then as it was."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _sweep(place)
        made, descriptor = _beside(place)
    except OSError as problem:
        raise Unwritable(f"{place} can't be written: {reason(problem)}") from problem
    try:
        (made / "new").mkdir()
        yield made / "new"
        _exchange(made / "new", place, made)
    except OSError as problem:
        if problem.errno not in _FULL:
            raise
        raise Unwritable(f"{place} can't be written: {reason(problem)}") from problem
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(descriptor)


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


def reason(problem: OSError) -> str:
    """What is wrong, in words. `shutil` says it of each file."""
    if isinstance(problem, shutil.Error) and isinstance(problem.args[0], list):
        return str(problem.args[0][0][-1]).partition(": ")[0]
    return problem.strerror or str(problem)


def _prefix(place: Path) -> str:
    return f".{place.name}.pending-"


def _beside(place: Path) -> tuple[Path, int]:
    """A folder beside a place, and the descriptor that locks it."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=_prefix(place), dir=place.parent))
        made.chmod(0o755)
        descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if made.exists():  # no sweep came between the two
            return made, descriptor
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


__all__ = ["Unwritable", "making", "reason"]
