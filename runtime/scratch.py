"""Directories for what is in the making, in a folder that this process alone uses.

In: nothing. Out: a directory, removed at the end of a `with`; and one that lasts as long as the process.
Example:

    with scratch.directory() as place:
        (place / "kernel.c").write_text(text)
    library = scratch.lasting() / "kernel.so"

The folder lies where temporary files do and is removed at exit. A process holds a lock on a file in its own:
folders whose lock nobody holds were left by processes that were killed, and the next process removes them. A
forked child makes a folder of its own and leaves its parent's alone.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..late import module
from ..locks import lock

if TYPE_CHECKING:
    import shutil
    import tempfile
else:
    shutil, tempfile = map(module, ("shutil", "tempfile"))

PREFIX, LOCK = "metaphrase-run-", "lock"
GRACE = 60  # seconds: a folder without a lock may still get one

_lock = lock()
_folder: Path | None = None
_descriptor: int | None = None
_over = False


def folder() -> Path:
    """This process's folder; OSError where there is no room."""
    global _folder, _descriptor
    with _lock:
        while _folder is None or not _folder.is_dir():
            parent = Path(tempfile.gettempdir())
            sweep(parent)
            made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            descriptor = os.open(made / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with contextlib.suppress(OSError):  # unless a sweep came between the two
                if os.stat(made / LOCK).st_ino == os.fstat(descriptor).st_ino:
                    _folder, _descriptor = made, descriptor
        return _folder


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """A directory for the length of a `with`. A child forked meanwhile does not remove it."""
    made, process = Path(tempfile.mkdtemp(dir=folder())), os.getpid()
    try:
        yield made
    finally:
        if os.getpid() == process:
            shutil.rmtree(made, ignore_errors=True)


def lasting() -> Path:
    """A new directory that lasts as long as the process."""
    return Path(tempfile.mkdtemp(dir=folder()))


def sweep(parent: Path) -> int:
    """Remove the folders of processes that are gone; how many."""
    removed = 0
    for path in parent.glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            if status.st_uid != os.getuid():
                continue
            try:
                descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            except FileNotFoundError:
                if time.time() - status.st_mtime < GRACE:
                    continue
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
                removed += 1
            finally:
                os.close(descriptor)
    return removed


def _forget() -> None:
    """In a forked child: the folder and its lock are the parent's."""
    global _folder, _descriptor
    if _descriptor is not None:
        os.close(_descriptor)
    _folder, _descriptor = None, None


def is_over() -> bool:
    """Whether the process ends, and what was in the making is removed: what a thread still makes fails then."""
    return _over


def _remove() -> None:
    global _over
    _over = True
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)


os.register_at_fork(after_in_child=_forget)
atexit.register(_remove)
