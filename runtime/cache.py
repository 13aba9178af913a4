"""The disk cache of compiled libraries, found by content.

In: a key (`key_of` of everything the library depends on) and, when it is missing, the files. Out: the path of
a library that is exactly what was stored. Example:

    cache = Cache(cache_directory())
    path = cache.find(key)                        # None when absent, damaged, or not ours
    path = path or cache.store(key, library, {"kernel.pyx": text})

An entry is a directory named by its key. It is written beside its place and renamed into it, so it is whole
or absent, and a library that some process has mapped is never written to. The directory is 0700 and owned by
the user, and so are the files that are read; the library's digest is compared before each load, because
loading a library is running it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..digests import sha256
from ..late import log, module
from ..locks import lock

if TYPE_CHECKING:
    import pathlib
    import shutil
    import tempfile
    from pathlib import Path
else:
    pathlib, shutil, tempfile = map(module, ("pathlib", "shutil", "tempfile"))


DEFAULT_LIMIT = 512 << 20
LIBRARY, RECORD, TEXTS = "library.so", "record", "texts-"
TALLY, RECOUNT = ".tally", 256  # bytes and stores since they were counted; how many at most


class CacheUnusable(RuntimeError):
    """The directory can't be trusted or written; the caller builds without a cache."""


def enabled() -> bool:
    """False under METAPHRASE_CACHE=0."""
    return os.environ.get("METAPHRASE_CACHE", "1").lower() not in ("0", "false", "off", "no")


def cache_directory() -> str:
    """METAPHRASE_CACHE_DIR, or metaphrase/ in the user's cache directory."""
    named = os.environ.get("METAPHRASE_CACHE_DIR")
    base = named or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "metaphrase")
    place = os.path.expanduser(base)
    if place.startswith("~"):
        raise CacheUnusable(f"the cache {base} has no place: nobody knows the home directory")
    return place


def size_limit() -> int:
    """Bytes kept at most: METAPHRASE_CACHE_SIZE in MiB, 512 when unset."""
    value = os.environ.get("METAPHRASE_CACHE_SIZE", "")
    try:
        return int(float(value) * (1 << 20)) if value else DEFAULT_LIMIT
    except (ValueError, OverflowError):
        raise ValueError(f"METAPHRASE_CACHE_SIZE={value!r} is not a number of MiB") from None


def key_of(*parts: str) -> str:
    """A name for the sequence of parts; each part's length goes in, so ("ab", "c") is not ("a", "bc")."""
    digest = sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def read_own(path: str | Path) -> bytes:
    """A file of ours. OSError for what is none: a link, a pipe (which would be waited for), a file that
    another user owns or may write."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise OSError(f"{os.path.basename(path)} is not a file of ours")
        return file.read()


def write_own(path: Path, text: str) -> None:
    """Put a new file in a place, whatever is there."""
    descriptor, pending = tempfile.mkstemp(prefix=".pending-", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(pending, path)
    except BaseException:
        os.unlink(pending)
        raise


def _heading(key: str, body: bytes) -> str:
    """The first line of a text, which is of no other key."""
    return f"# sha256 {sha256(key.encode() + body).hexdigest()}"


def _record(key: str, library: str | Path) -> bytes:
    """What stands beside a library: its key and its digest."""
    return f"{key} {sha256(read_own(library)).hexdigest()}".encode()


def _size(path: Path) -> int:
    """Bytes of an entry."""
    return sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))


class Cache:
    """The entries under one directory, shared by all processes of one user."""

    def __init__(self, directory: str | Path, limit: int | None = None):
        self.place = os.fspath(directory)
        self.limit = size_limit() if limit is None else limit
        self._prepare()

    @property
    def directory(self) -> Path:
        return pathlib.Path(self.place)

    def _prepare(self) -> None:
        try:
            if not os.path.isdir(self.place):
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = os.lstat(self.place)
            if not stat.S_ISDIR(status.st_mode):
                raise CacheUnusable(f"the cache {self.place} is not a directory")
            if status.st_uid != os.getuid():
                raise CacheUnusable(f"the cache {self.place} belongs to another user")
            if status.st_mode & 0o077:
                os.chmod(self.place, 0o700)
        except OSError as error:
            raise CacheUnusable(f"the cache {self.place} can't be used: {error}") from error

    def find(self, key: str) -> Path | None:
        """The library stored under `key`; an entry that is not whole and ours is removed."""
        library = self.file_of(key)
        return None if library is None else pathlib.Path(library)

    def file_of(self, key: str) -> str | None:
        """Like `find`, by its name."""
        entry = os.path.join(self.place, key)
        try:
            status = os.lstat(entry)
        except FileNotFoundError:
            return None
        try:
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
                raise ValueError("it is not a directory of ours")
            library = os.path.join(entry, LIBRARY)
            if read_own(os.path.join(entry, RECORD)) != _record(key, library):
                raise ValueError("its digest differs")
        except (OSError, ValueError) as error:
            self.discard(key, str(error))
            return None
        with contextlib.suppress(OSError):
            os.utime(entry)
        return library

    def discard(self, key: str, why: str) -> None:
        """Remove an entry that is of no use, where the directory may be written to."""
        log.warning("cache entry %s is rebuilt: %s", self.directory / key, why)
        with contextlib.suppress(OSError), self._locked():
            self._remove(self.directory / key)

    def store(self, key: str, library: Path, texts: dict[str, str]) -> Path:
        """Copy `library` in, with the texts it was made from; the first of several writers wins."""
        entry = self.directory / key
        try:
            pending = pathlib.Path(tempfile.mkdtemp(prefix=".pending-", dir=self.directory))
            try:
                shutil.copyfile(library, pending / LIBRARY)
                os.chmod(pending / LIBRARY, 0o700)
                for name, text in texts.items():
                    (pending / name).write_text(text)
                (pending / RECORD).write_bytes(_record(key, pending / LIBRARY))
                with self._locked():
                    if self.find_quietly(key) is None:
                        self._remove(entry)
                        os.rename(pending, entry)
                    self._account(entry)
            finally:
                shutil.rmtree(pending, ignore_errors=True)
        except OSError as error:
            raise CacheUnusable(f"the cache {self.directory} can't be written: {error}") from error
        return entry / LIBRARY

    def find_quietly(self, key: str) -> Path | None:
        """Like `find`, without removing, logging or marking as used."""
        entry = self.directory / key
        try:
            whole = read_own(entry / RECORD) == _record(key, entry / LIBRARY)
        except OSError:
            return None
        return entry / LIBRARY if whole else None

    # Several texts under one key: an entry that holds no library.

    def texts(self, key: str) -> Iterator[tuple[str, str]]:
        """(path, text) of each, the last used first; one that is not whole and ours is removed."""
        files = []
        with contextlib.suppress(OSError):
            for entry in os.scandir(os.path.join(self.place, TEXTS + key)):
                with contextlib.suppress(OSError):  # another process may have removed it
                    files.append((entry.stat().st_mtime_ns, entry.path))
        for _, path in sorted(files, reverse=True):
            try:
                head, _, body = read_own(path).partition(b"\n")
                if head.decode() != _heading(key, body):
                    raise ValueError("its digest differs")
                text = body.decode()
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                log.warning("cache entry %s is left out: %s", path, error)
                with contextlib.suppress(OSError):
                    os.unlink(path)
                continue
            yield path, text

    def used(self, path: str) -> None:
        """Note that a text is of use."""
        with contextlib.suppress(OSError):
            os.utime(path)
            os.utime(os.path.dirname(path))

    def keep_text(self, key: str, text: str, most: int) -> None:
        """Add a text to those under a key; of more than `most` the one that was not used for longest goes."""
        shelf, body = self.directory / (TEXTS + key), text.encode()
        shelf.mkdir(mode=0o700, exist_ok=True)
        write_own(shelf / f"{sha256(body).hexdigest()[:16]}.py", f"{_heading(key, body)}\n{text}")
        with self._locked():
            files = sorted(shelf.glob("*.py"), key=lambda path: path.stat().st_mtime_ns)
            for path in files[: max(len(files) - most, 0)]:
                path.unlink(missing_ok=True)
            self._account(shelf)

    def entries(self) -> list[tuple[float, int, Path]]:
        """(time of last use, bytes, path) of each entry, oldest first."""
        found = []
        for path in self.directory.iterdir():
            if path.name.startswith(".") or path.name == "failed":
                continue
            with contextlib.suppress(OSError):
                found.append((path.stat().st_mtime, _size(path), path))
        return sorted(found)

    def clear(self) -> int:
        """Remove every entry and every kept failure; the number of libraries removed."""
        with self._locked():
            found = self.entries()
            for _, _, path in found:
                self._remove(path)
            shutil.rmtree(self.directory / "failed", ignore_errors=True)
            self._sweep()
            (self.directory / TALLY).unlink(missing_ok=True)
        return sum(not path.name.startswith(TEXTS) for _, _, path in found)

    def keep_failure(self, key: str, texts: dict[str, str]) -> Path:
        """Keep the files of a failed build where a person can read them; the path of the first."""
        place = self.directory / "failed" / key[:16]
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in texts.items():
            write_own(place / name, text)
        return place / next(iter(texts))

    def _account(self, entry: Path) -> None:
        """Add an entry to the sum of sizes that stands in a file, and prune by it. The lock is held.

        Looking at every entry costs more than compiling one, so that is done when the sum says so, when it
        can't be read, and every so often, because other writers may not have counted."""
        place = self.directory / TALLY
        try:
            total, stores = map(int, read_own(place).split())
        except (OSError, ValueError):
            total, stores = 0, RECOUNT
        total, stores = total + _size(entry), stores + 1
        if total > self.limit or stores >= RECOUNT:
            total, stores = self._prune(keep=entry), 0
        write_own(place, f"{total} {stores}")

    def _prune(self, keep: Path) -> int:
        """Least recently used entries go until three quarters of the limit are left; the bytes left. The lock
        is held."""
        self._sweep()
        found = self.entries()
        total = sum(size for _, size, _ in found)
        if total <= self.limit:
            return total
        for _, size, path in found:
            if path != keep:
                self._remove(path)
                total -= size
            if total <= self.limit * 3 // 4:
                break
        return total

    def _sweep(self, age: float = 600.0) -> None:
        """Remove what processes that were killed have left in the making."""
        for path in (*self.directory.glob(".pending-*"), *self.directory.glob(".doomed-*")):
            with contextlib.suppress(OSError):
                if time.time() - path.lstat().st_mtime > age:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def _remove(self, entry: Path) -> None:
        if entry.is_symlink() or entry.is_file():
            entry.unlink(missing_ok=True)
        elif entry.exists():
            # Renamed first: a reader sees the entry whole or not at all.
            doomed = pathlib.Path(tempfile.mkdtemp(prefix=".doomed-", dir=self.directory))
            with contextlib.suppress(OSError):
                os.rename(entry, doomed / "entry")
            shutil.rmtree(doomed, ignore_errors=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with _opening:
            descriptor = os.open(self.directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            _held.add(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            if descriptor in _held:  # not in a child that was forked meanwhile
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                with _opening:
                    _held.discard(descriptor)
                    os.close(descriptor)


# A child shares the locks that its parent holds when it is forked, and would wait for itself: it closes them.
# No process forks between opening a lock's file and saying so.
_held: set[int] = set()
_opening = lock()


def _after_fork_in_child() -> None:
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()
    _opening.release()


os.register_at_fork(
    before=lambda: _opening.acquire(), after_in_parent=lambda: _opening.release(), after_in_child=_after_fork_in_child
)
