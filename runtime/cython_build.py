"""Emitted Cython text -> a loaded library and the address of its entry.

In: the text of one module with `cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept
nogil`. Out: a `Library`. Example:

    library = build(text, name="softmax")
    y, = dispatch.run_entry(library.address, [x], [("float64", x.shape)], [])

The text is translated by a worker process, which Cython's slow start and its patches belong to (`warm()`
starts it early, beside the staging); the functions are cut out of the C and compiled alone, or the whole
extension is where that fails. What is built is kept on disk (runtime/cache.py). Raises CompilerMissing, or
BuildError with the path of the kept text.
"""

from __future__ import annotations

import _ctypes
import atexit
import ctypes
import errno
import functools
import importlib.util
import os
import platform
import re
import sys
import time
import weakref
from typing import TYPE_CHECKING, Any

from .._version import VERSION
from ..late import dataclass, field, log, module
from ..locks import lock
from . import cache as disk
from . import compiler
from .abi import ABI_VERSION, HEADER_DIRECTORY, HEADERS, SYMBOL
from .compiler import (
    CompileError,
    CompilerMissing,
    Toolchain,
    compile_shared,
    find_compiler,
    flags,
    is_full,
    machine_identity,
)
from .load import load

if TYPE_CHECKING:
    import json
    import pathlib
    import subprocess
    import tempfile
    from pathlib import Path

    from . import cython_translate, miscompilations, scratch
else:
    json, pathlib, subprocess, tempfile = map(module, ("json", "pathlib", "subprocess", "tempfile"))
    names = ("cython_translate", "miscompilations", "scratch")
    cython_translate, miscompilations, scratch = (module(f"{__package__}.{name}") for name in names)

__all__ = ["BuildError", "CompilerMissing", "Library", "build", "find", "open_cache", "warm"]
_TRANSLATOR = os.path.join(HEADER_DIRECTORY, "cython_translate.py")


class BuildError(RuntimeError):
    """The text did not become a library. `message` is Cython's or the compiler's; `path` the kept text, if
    there is room for it."""

    def __init__(self, name: str, message: str, path: Path | None):
        where = "could not be kept" if path is None else f"is kept in {path}"
        super().__init__(f"the native code of {name} did not compile:\n{message.rstrip()}\nThe emitted text {where}")
        self.name, self.message, self.path = name, message, path


@dataclass(frozen=True)
class Library:
    """A loaded program. `address` is its entry's, as long as the library is held: then it is unloaded."""

    name: str
    address: int
    file: str | Path
    text: str
    cached: bool  # True: found on disk, nothing was compiled
    form: str  # "kernel", or "extension": the whole module, the fall-back
    seconds: dict[str, float] = field(default_factory=dict)
    handle: ctypes.CDLL | None = field(default=None, repr=False, compare=False)

    @property
    def path(self) -> Path:
        return pathlib.Path(self.file)

    def __post_init__(self) -> None:
        if self.handle is not None:
            weakref.finalize(self, _ctypes.dlclose, self.handle._handle).atexit = False


# ------------------------------------------------------------------------------------------------ translating


class _Worker:
    """The process that translates; one request at a time."""

    def __init__(self) -> None:
        self.process_of = os.getpid()
        self.lock, self.is_asked = lock(), False
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-P", _TRANSLATOR],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        try:
            self._write({"path": sys.path, "scratch": str(scratch.folder())})
        except BaseException:
            self.stop()
            raise

    # The pipes have no buffers: a buffer has a lock, which a child that is forked meanwhile would wait for.

    def _write(self, message: dict) -> None:
        assert self.process.stdin is not None
        rest = memoryview(json.dumps(message).encode() + b"\n")
        while rest:
            rest = rest[self.process.stdin.write(rest) :]

    def _read(self) -> bytes:
        assert self.process.stdout is not None
        line = b""
        while not line.endswith(b"\n") and (piece := self.process.stdout.read(1 << 16)):
            line += piece
        return line

    def ask(self, text: str, whole: bool, name: str) -> dict[str, str]:
        """The worker's answer; OSError or ValueError when it is gone."""
        with self.lock:
            if (
                self.is_asked
            ):  # by this thread, in whose midst a signal handler asks: the next answer is not the handler's
                raise OSError("the translating process is at work for the call that a signal interrupts")
            self.is_asked = True
            try:
                self._write({"text": text, "whole": whole, "name": name})
                line = self._read()
            except BaseException:
                self.process.kill()  # after Ctrl-C the next answer would be this one
                raise
            finally:
                self.is_asked = False
        if not line:
            raise OSError("the translating process ended")
        return json.loads(line)

    def forget(self) -> None:
        """In a forked child: close the parent's pipes, so that the process still ends with the parent."""
        self.process.returncode = 0  # it is no child of ours: nothing to wait for
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def stop(self) -> None:
        """End the process now."""
        self.process.kill()
        self.process.communicate()

    def alive(self) -> bool:
        """False in a forked child, which must not share the parent's pipe."""
        return self.process_of == os.getpid() and self.process.poll() is None


_worker: _Worker | None = None
_worker_lock = lock()


def _start_worker() -> _Worker:
    global _worker
    with _worker_lock:
        if _worker is None or not _worker.alive():
            _worker = _Worker()
        return _worker


def warm() -> None:
    """Start the translating process now, so that it is ready when staging is. Never waits, never raises."""
    try:
        find_compiler()
        _start_worker()
    except (OSError, ValueError, CompilerMissing) as error:
        log.debug("the translating process was not started: %s", error)


def translate(text: str, name: str, whole: bool = False) -> dict[str, str]:
    """`{"c", "form", "note"?}` or `{"error"}`; by the worker, or in this process where none can run."""
    for _ in range(2):  # a worker that has died is replaced once
        try:
            return _start_worker().ask(text, whole, name)
        except (OSError, ValueError) as error:
            log.debug("the translating process failed: %s", error)
    return cython_translate.request(text, whole, name)


def _after_fork() -> None:
    global _worker
    if _worker is not None:
        _worker.forget()
    _worker = None
    _building.clear()


def _at_exit() -> None:
    if _worker is not None and _worker.alive():
        _worker.stop()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)


# --------------------------------------------------------------------------------------------------- building

_loaded: weakref.WeakValueDictionary[str, Library] = weakref.WeakValueDictionary()
_building: dict[str, Any] = {}  # locks
_building_lock = lock()


def build(
    text: str,
    *,
    name: str,
    contract: bool = True,
    fastmath: bool = False,
    extra_flags: tuple[str, ...] = (),
    whole: bool = False,
) -> Library:
    """Compile and load `text`, or find it compiled. `name`: of the program, for messages and for debuggers; programs of
    one text and two names are two libraries. `whole`: a full extension."""
    toolchain, cache = find_compiler(), open_cache()
    options = flags(contract, fastmath, (*extra_flags, *compiler.for_long_functions(text)))
    options += miscompilations.remedies(toolchain, text, cache.directory if cache is not None else None)
    key = _key(text, name, toolchain, options, whole)
    library = _loaded.get(key)
    if library is not None:
        return library
    with _building_lock:
        its_lock = _building.setdefault(key, lock())
    with its_lock:  # a second thread that wants this text waits for the first
        library = _loaded.get(key)
        if library is None:
            library = _loaded[key] = _find_or_build(key, text, name, toolchain, options, whole, cache)
    with _building_lock:
        _building.pop(key, None)
    return library


def _key(text: str, name: str, toolchain: Toolchain, options: tuple[str, ...], whole: bool) -> str:
    headers = "".join(pathlib.Path(HEADER_DIRECTORY, header).read_text() for header in HEADERS)
    form = f"extension {platform.python_implementation()} {sys.version}" if whole else "kernel"
    return disk.key_of(
        text,
        name,
        " ".join(options),
        toolchain.identity,
        machine_identity(),
        str(ABI_VERSION),
        headers,
        form,
        *compiler.LINK_FLAGS,
        *compiler.LINK_FLAGS_PLAIN,
        *_makers(),
    )


@functools.cache
def _makers() -> tuple[str, ...]:
    """What makes a library of a text, beside the compiler: our version and code, and Cython's version."""
    code = (pathlib.Path(file).read_text() for file in (__file__, compiler.__file__, _TRANSLATOR))
    return (VERSION, *code, cython_version())


def cython_version() -> str:
    """Cython's version, without importing it: its own file says it. Size and time of change of that file tell
    one patched by hand."""
    found = importlib.util.find_spec("Cython")
    if found is None or found.origin is None:
        return "none"
    place = pathlib.Path(found.origin).with_name("Shadow.py")
    try:
        status, stated = place.stat(), re.search(r"^__version__ = .*", place.read_text(), re.MULTILINE)
    except OSError:
        return found.origin
    return f"{stated and stated[0]}:{status.st_size}:{status.st_mtime_ns}"


def open_cache() -> disk.Cache | None:
    if not disk.enabled():
        return None
    try:
        return disk.Cache(disk.cache_directory())
    except disk.CacheUnusable as error:
        _warn_once(str(error))
        return None


_warned: set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _warned and not scratch.is_over():
        _warned.add(message)
        log.warning("%s; compiled programs are not kept", message)


def find(key: str, name: str) -> Library | None:
    """The library that was kept under a key, loaded."""
    library, cache = _loaded.get(key), open_cache()
    if library is None and cache is not None and (kept := cache.file_of(key)) is not None:
        start = time.perf_counter()
        try:
            text = disk.read_own(_beside(kept, "kernel.pyx")).decode()
            library = _loaded[key] = _loaded_from(kept, name, text, start)
        except (OSError, AttributeError, ValueError) as error:
            if os.path.exists(kept):
                cache.discard(key, f"it does not load: {error}")
    return library


def _beside(file: str, name: str) -> str:
    return os.path.join(os.path.dirname(file), name)


def _loaded_from(kept: str, name: str, text: str, start: float) -> Library:
    handle, address = _load(kept)
    form = "extension" if os.path.exists(_beside(kept, "extension")) else "kernel"
    return Library(name, address, kept, text, True, form, {"load": time.perf_counter() - start}, handle)


def _find_or_build(
    key: str,
    text: str,
    name: str,
    toolchain: Toolchain,
    options: tuple[str, ...],
    whole: bool,
    cache: disk.Cache | None,
) -> Library:
    start = time.perf_counter()
    if cache is not None and (kept := cache.file_of(key)) is not None:
        try:
            return _loaded_from(kept, name, text, start)
        except (OSError, AttributeError) as error:
            if os.path.exists(kept):  # another process has not removed it meanwhile
                cache.discard(key, f"it does not load: {error}")
    try:
        with scratch.directory() as place:
            made, form, c_text, seconds = _compile(place, text, name, key, cache, toolchain, options, whole)
            texts = {"kernel.pyx": text, "kernel.c": c_text}
            start = time.perf_counter()
            kept_texts = texts | ({"extension": ""} if form == "extension" else {})
            path = _stored(key, made, cache, kept_texts)
            try:
                try:
                    handle, address = _load(path)
                except OSError:
                    if path.exists():
                        raise
                    path = _stored(key, made, None, {})  # another process has made room meanwhile
                    handle, address = _load(path)
            except (OSError, AttributeError) as error:
                raise _failure(name, str(error), key, texts, cache) from error
            seconds["load"] = time.perf_counter() - start
    except OSError as error:
        raise CompilerMissing(
            f"{name} can't be compiled in {tempfile.gettempdir()}: {error}; TMPDIR names "
            "another place for what is in the making"
        ) from error
    return Library(name, address, path, text, False, form, seconds, handle)


def _stored(key: str, made: Path, cache: disk.Cache | None, texts: dict[str, str]) -> Path:
    """The place where a library stays: in the cache, or else in this process's folder."""
    if cache is not None:
        try:
            return cache.store(key, made, texts)
        except disk.CacheUnusable as error:
            _warn_once(str(error))
    path = scratch.lasting() / f"{key[:32]}.so"  # a name of its own: a loaded file must not be written to
    os.replace(made, path)
    return path


def _compile(
    place: Path,
    text: str,
    name: str,
    key: str,
    cache: disk.Cache | None,
    toolchain: Toolchain,
    options: tuple[str, ...],
    whole: bool,
) -> tuple[Path, str, str, dict[str, float]]:
    """(library, form, C text, seconds): the cut kernel, and where that fails the whole extension."""
    source, library = place / "kernel.c", place / "library.so"
    message, c_text = "", ""
    seconds: dict[str, float] = {}
    for form in ("extension",) if whole else ("kernel", "extension"):
        start = time.perf_counter()
        answer = translate(text, name, form == "extension")
        seconds["translate"] = seconds.get("translate", 0.0) + time.perf_counter() - start
        if "error" in answer and is_full(answer["error"], place):
            raise OSError(errno.ENOSPC, "no room for the translator's files")
        if "error" in answer:
            raise _failure(name, answer["error"], key, {"kernel.pyx": text}, cache)
        if answer["form"] != form:
            log.debug("%s is built as a whole extension: %s", name, answer.get("note"))
        form, tried = answer["form"], answer["c"]
        source.write_text(tried)
        start = time.perf_counter()
        try:
            compile_shared(toolchain, source, library, options, python=form == "extension")
            seconds["compile"] = seconds.get("compile", 0.0) + time.perf_counter() - start
            return library, form, tried, seconds
        except CompileError as error:
            seconds["compile"] = seconds.get("compile", 0.0) + time.perf_counter() - start
            message, c_text = message or str(error), c_text or tried
            log.debug("%s as %s did not compile: %s", name, form, error)
            if form == "extension":
                break
    raise _failure(name, message, key, {"kernel.pyx": text, "kernel.c": c_text}, cache)


def _failure(name: str, message: str, key: str, texts: dict[str, str], cache: disk.Cache | None) -> BuildError:
    path: Path | None
    try:
        if cache is None:
            raise OSError("no cache")
        path = cache.keep_failure(key, texts)
    except OSError:
        try:
            place = pathlib.Path(tempfile.mkdtemp(prefix="metaphrase-failed-"))
            for file, content in texts.items():
                (place / file).write_text(content)
            path = place / "kernel.pyx"
        except OSError as error:
            path = None
            message += f"\n({error})"
    return BuildError(name, message, path)


def _load(path: str | Path) -> tuple[ctypes.CDLL, int]:
    handle = load(path)
    address = ctypes.c_void_p.in_dll(handle, SYMBOL).value
    assert address is not None
    return handle, address
