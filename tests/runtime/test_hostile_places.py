"""Caches and temporary directories that are full, read-only, not to run from: an answer each.

In: one small function in processes of their own. Out: its value, and at most one line of warning.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from metaphrase.runtime import cache, compiler, cython_build, dispatch, scratch

from .test_cache import entry_of, stored

pytestmark = pytest.mark.turns(3)

SCRIPT = """
import logging, os, pathlib, sys
logging.basicConfig(format="%(message)s")
import numpy as np
from metaphrase.runtime import cache, cython_build, dispatch, load
BEFORE
library = cython_build.build(pathlib.Path(sys.argv[1]).read_text(), name="small")
print(library.cached, float(dispatch.run_entry(library.address, [], [("f8", ())])[0]))
"""


@pytest.fixture
def small(tmp_path, text_of):
    """small(before, **environment): (words that the process printed, lines that it logged)."""
    (tmp_path / "kernel.pyx").write_text(text_of("(<double*>buffers[0])[0] = 2.5\nreturn 0"))
    (tmp_path / "temporary").mkdir()

    def run(before: str = "", **settings: str) -> tuple[list[str], list[str]]:
        (tmp_path / "small.py").write_text(SCRIPT.replace("BEFORE", before))
        done = subprocess.run(
            [sys.executable, "-P", str(tmp_path / "small.py"), str(tmp_path / "kernel.pyx")],
            env={
                **os.environ,
                "METAPHRASE_CACHE_DIR": str(run.directory),
                "TMPDIR": str(tmp_path / "temporary"),
                **settings,
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split(), done.stderr.splitlines()

    run.directory = tmp_path / "cache"
    run.temporary = tmp_path / "temporary"
    return run


# What a file system that nothing may be run from does: the loader refuses, and the mount says so.
NOTHING_RUNS_HERE = """
import ctypes, types
really = ctypes.CDLL
def refuse(path):
    if not path.startswith("/proc"):
        raise OSError("failed to map segment from shared object")
    return really(path)
load.ctypes = types.SimpleNamespace(CDLL=refuse)
noexec = types.SimpleNamespace(f_flag=os.ST_NOEXEC)
load.os = types.SimpleNamespace(**{**vars(os), "statvfs": lambda path: noexec})
"""


def test_libraries_on_a_disk_that_nothing_may_be_run_from(small):
    assert small(NOTHING_RUNS_HERE) == (["False", "2.5"], [])
    assert small(NOTHING_RUNS_HERE) == (["True", "2.5"], [])
    assert small(NOTHING_RUNS_HERE, METAPHRASE_CACHE="0") == (["False", "2.5"], [])


def test_an_entry_that_matches_its_digest_and_does_not_load(small):
    small()
    entry = entry_of(small.directory)
    (entry / "library.so").write_bytes(b"no library")
    (entry / "record").write_bytes(cache._record(entry.name, entry / "library.so"))
    words, lines = small()
    assert words == ["False", "2.5"] and len(lines) == 1 and "it does not load" in lines[0]
    assert small() == (["True", "2.5"], [])


@pytest.mark.parametrize("when", ["store", "file_of"])
def test_another_process_removes_the_entry_before_it_is_loaded(small, when):
    before = f"""
import shutil
before = cache.Cache.{when}
def then_gone(self, *args):
    path = before(self, *args)
    if path:
        shutil.rmtree(os.path.dirname(path))
    return path
cache.Cache.{when} = then_gone
"""
    small()
    assert small(before if when == "file_of" else before + "cache.Cache.file_of = lambda self, key: None") == (
        ["False", "2.5"],
        [],
    )


def test_a_damaged_entry_of_a_cache_that_can_only_be_read(small):
    small()
    (entry_of(small.directory) / "record").write_text("{")
    refusing = """
import contextlib, errno
def refuse(*args, **more):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))
cache.Cache._locked = refuse
cache.tempfile.mkdtemp = refuse
"""
    words, lines = small(
        refusing.replace(
            "cache.tempfile.mkdtemp = refuse",
            """
make = cache.tempfile.mkdtemp
cache.tempfile.mkdtemp = lambda *a, dir=None, **k: refuse() if "cache" in str(dir) else make(*a, dir=dir, **k)
""",
        )
    )
    assert words == ["False", "2.5"]
    assert len(lines) == 2 and "is rebuilt" in lines[0] and "can't be written" in lines[1]


@pytest.mark.parametrize("name", ["record", "library.so"])
def test_a_pipe_in_a_files_place_is_not_waited_for(small, name):
    small()
    place = entry_of(small.directory) / name
    place.unlink()
    os.mkfifo(place)
    words, lines = small()
    assert words == ["False", "2.5"] and len(lines) == 1 and "is not a file of ours" in lines[0]


def test_pipes_in_the_place_of_what_the_cache_keeps_of_itself(small):
    small()
    for place in (small.directory / ".tally", *small.directory.glob(".probe-*")):
        place.unlink()
        os.mkfifo(place)
    (small.directory / "failed" / "kept").mkdir(parents=True)
    store = cache.Cache(small.directory)
    stored(store, "a" * 64)
    os.mkfifo(small.directory / "failed" / "kept" / "kernel.pyx")
    assert store.keep_failure("kept", {"kernel.pyx": "text"}).read_text() == "text"
    assert small() == (["True", "2.5"], [])


def test_files_of_another_owner_are_refused(tmp_path, monkeypatch):
    store = cache.Cache(tmp_path)
    stored(store, "a" * 64)
    for damage in (lambda file: file.chmod(0o666), lambda file: os.chown(file, 12345, -1)):
        file = tmp_path / ("a" * 64) / "library.so"
        try:
            damage(file)
        except PermissionError:  # only root gives files away
            monkeypatch.setattr(os, "getuid", lambda: 12345)
        with pytest.raises(OSError, match="is not a file of ours"):
            cache.read_own(file)
    assert store.find("a" * 64) is None


def test_a_full_disk_for_what_is_in_the_making(small):
    """No room at all: the caller is told in one sentence, and runs NumPy's text instead."""
    refuse = """
import errno
from metaphrase.runtime import scratch
def refuse(*args, **more):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
scratch.tempfile.mkdtemp = refuse
try:
    cython_build.build(pathlib.Path(sys.argv[1]).read_text(), name="small")
except cython_build.CompilerMissing as error:
    print(error)
sys.exit()
"""
    words, lines = small(refuse)
    assert lines == [] and "No space left on device" in " ".join(words) and "TMPDIR" in words


@pytest.mark.parametrize("said", ["error writing to x.s: No space left on device", "warning: unused"])
def test_a_disk_that_fills_while_the_compiler_runs(small, tmp_path, monkeypatch, said):
    """It says so, or it fails where there is hardly any room."""
    script = tmp_path / "full-cc"
    script.write_text(f"#!/bin/sh\necho '{said}' >&2; exit 1\n")
    script.chmod(0o700)
    if "No space" not in said:
        monkeypatch.setattr(os, "statvfs", lambda place: os.statvfs_result((4096, 4096, 50, 9, 9, 50, 9, 9, 0, 255)))
    monkeypatch.setenv("METAPHRASE_CC", str(script))
    with pytest.raises(cython_build.CompilerMissing, match=r"can't be compiled in .*: .*no room.*TMPDIR"):
        cython_build.build((tmp_path / "kernel.pyx").read_text(), name="small")


def test_a_compiler_that_is_no_command(monkeypatch):
    monkeypatch.setenv("METAPHRASE_CC", "gcc '")
    with pytest.raises(compiler.CompilerMissing, match="gcc '.* is not a command: No closing"):
        compiler.find_compiler()


def test_a_size_that_is_no_number(monkeypatch):
    monkeypatch.setenv("METAPHRASE_CACHE_SIZE", "much")
    with pytest.raises(ValueError, match="METAPHRASE_CACHE_SIZE='much' is not a number of MiB"):
        cache.size_limit()


KILLED = """
import os, signal, sys
from metaphrase.runtime import scratch
(scratch.lasting() / "library.so").touch()
print(scratch.folder(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_killed_processes_left_is_swept(small):
    environment = {**os.environ, "TMPDIR": str(small.temporary)}
    command = [sys.executable, "-P", "-c", KILLED]
    killed = subprocess.run(command, env=environment, capture_output=True, text=True)
    left = Path(killed.stdout.strip())
    assert left.is_dir() and left.parent == small.temporary
    new = small.temporary / (scratch.PREFIX + "new")
    new.mkdir()  # of a process that is about to lock it
    assert small() == (["False", "2.5"], [])
    assert [path.name for path in small.temporary.iterdir()] == [new.name]
    os.utime(new, (time.time() - 100,) * 2)
    assert scratch.sweep(small.temporary) == 1 and list(small.temporary.iterdir()) == []


def test_what_killed_processes_left_in_the_cache_is_swept(tmp_path):
    store = cache.Cache(tmp_path, limit=0)
    old, new = tmp_path / ".pending-old", tmp_path / ".doomed-new"
    for place in (old, new):
        place.mkdir()
    os.utime(old, (time.time() - 1000,) * 2)
    stored(store, "a" * 64)
    assert not old.exists() and new.exists()


def test_a_child_forked_under_the_caches_lock_does_not_wait_for_itself(tmp_path):
    store = cache.Cache(tmp_path)
    taken, go = threading.Event(), threading.Event()

    def hold():
        with store._locked():
            taken.set()
            go.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(60)
    child = os.fork()
    if child == 0:
        ended = 1
        try:
            assert not cache._held  # the parent's is not the child's
            with open(tmp_path / ".lock") as file, pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ended = 0
        finally:
            os._exit(ended)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    child = os.fork()
    if child == 0:  # lives on while the parent lets go: the lock is free then
        time.sleep(1)
        os._exit(0)
    go.set()
    thread.join(60)
    with open(tmp_path / ".lock") as file:
        assert fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB) is None
    os.waitpid(child, 0)


def test_a_forked_child_leaves_its_parents_directories_alone(small):
    with scratch.directory() as place:
        child = os.fork()
        if child == 0:
            os._exit(0 if scratch.folder() != place.parent and place.is_dir() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert place.is_dir()
    assert not place.exists()


def test_a_child_forked_while_a_thread_talks_to_the_translator(text_of):
    """The pipe to the translator has no buffer, whose lock the child would wait for."""
    worker = cython_build._start_worker()
    text = text_of("(<double*>buffers[0])[0] = 4.5\nreturn 0")
    for _ in range(5):
        thread = threading.Thread(target=worker.ask, args=(text, False, "asked"))
        thread.start()
        child = os.fork()
        if child == 0:
            threading.Timer(30, os._exit, (2,)).start()
            library = cython_build.build(text, name="child")
            os._exit(0 if float(dispatch.run_entry(library.address, [], [("f8", ())])[0]) == 4.5 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        thread.join(60)
