"""Jitted functions under threads, forks, signals, and a cache or a compiler that fails.

In: small functions, most of them in processes of their own. Out: the right results, and at most one warning.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.runtime import cache, cython_build, threads

pytestmark = pytest.mark.turns(5)


def program(tmp_path: Path, text: str) -> list[str]:
    """The command that runs a program which stands in a file, as users' programs do."""
    path = tmp_path / "program.py"
    head = "import os, signal, sys, threading, time\nimport numpy as np\nimport metaphrase as mp\n"
    head += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in the background
    path.write_text(head + textwrap.dedent(text))
    return [sys.executable, "-P", str(path)]


def environment(tmp_path: Path, **settings: str) -> dict[str, str]:
    return {**os.environ, "METAPHRASE_CACHE_DIR": str(tmp_path / "cache"), **settings}


def run(tmp_path: Path, text: str, **settings: str) -> str:
    """The output of a program that must end well and in time."""
    done = subprocess.run(
        program(tmp_path, text), env=environment(tmp_path, **settings), timeout=120, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def slow_compiler(tmp_path):
    """A compiler that takes eight seconds as long as the file `slow` is there."""
    script = tmp_path / "slow-cc"
    script.write_text(
        f"#!/bin/sh\nif [ -e {tmp_path}/slow ]; then touch {tmp_path}/begun; sleep 8; fi\n"
        f'exec {shutil.which("gcc") or "cc"} "$@"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "slow").touch()
    return {"METAPHRASE_CC": str(script), "FOLDER": str(tmp_path)}


SLOW_AND_FAST = """
folder = os.environ["FOLDER"]

@mp.jit
def slow(x):
    return x * 2 + 1

@mp.jit
def fast(x):
    return x * 3 - 1

thread = threading.Thread(target=slow, args=(np.ones(3),), daemon=True)
thread.start()
while not os.path.exists(folder + "/begun"):
    time.sleep(0.01)
os.remove(folder + "/slow")
"""


def test_a_slow_compile_blocks_no_other_function(tmp_path, slow_compiler):
    out = run(
        tmp_path,
        SLOW_AND_FAST
        + """
assert fast(np.ones(2)).tolist() == [2.0, 2.0]
print("slow is still compiling:", thread.is_alive())
thread.join()
assert slow(np.ones(3)).tolist() == [3.0, 3.0, 3.0]
""",
        **slow_compiler,
    )
    assert "slow is still compiling: True" in out


def test_a_fork_during_a_compile_of_another_thread(tmp_path, slow_compiler):
    """The child has no such thread: what it held must not be waited for."""
    run(
        tmp_path,
        SLOW_AND_FAST
        + """
child = os.fork()
if child == 0:
    signal.alarm(60)
    assert slow(np.ones(3)).tolist() == [3.0, 3.0, 3.0]
    assert fast(np.ones(2)).tolist() == [2.0, 2.0]
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
thread.join()
""",
        **slow_compiler,
    )


def test_ctrl_c_during_a_compile(tmp_path, slow_compiler):
    """The call ends at once; the next one compiles."""
    run(
        tmp_path,
        """
folder = os.environ["FOLDER"]

@mp.jit
def f(x):
    return x * 2 + 1

def interrupt():
    while not os.path.exists(folder + "/begun"):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
start = time.perf_counter()
try:
    f(np.ones(3))
except KeyboardInterrupt:
    assert time.perf_counter() - start < 7.5
else:
    raise AssertionError("the call was not interrupted")
os.remove(folder + "/slow")
assert f(np.ones(3)).tolist() == [3.0, 3.0, 3.0]
""",
        **slow_compiler,
    )


def test_ctrl_c_in_a_long_native_loop(tmp_path):
    run(
        tmp_path,
        """
@mp.jit
def endless(x, n):
    i = 0
    while i < n:
        x = x + np.sin(x) * 1e-9
        i += 1
    return x

endless(1.0, 3)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.perf_counter()
try:
    endless(1.0, 10 ** 15)
except KeyboardInterrupt:
    assert time.perf_counter() - start < 20
else:
    raise AssertionError("the loop was not interrupted")
assert endless(0.0, 3) == 0.0
""",
    )


def test_many_threads_make_the_same_first_call():
    @mp.jit
    def f(x):
        return np.sum(x * x) + 0.5

    results: list[float] = []
    workers = [threading.Thread(target=lambda: results.append(float(f(np.arange(4.0))))) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [14.5] * 8 and len(f.signatures) == 1


@mp.jit
def squared_sum(x):
    return np.sum(x**2)


def _in_worker(n: int) -> float:
    return float(squared_sum(np.arange(float(n))))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pools_of_processes(method):
    assert squared_sum(np.arange(3.0)) == 5.0
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_in_worker, [3, 4, 5, 6]) == [5.0, 14.0, 30.0, 55.0]


def test_processes_that_compile_the_same_at_once(tmp_path):
    command = program(
        tmp_path,
        """
@mp.jit
def f(x):
    return np.cumsum(x)[-1] * 0.25

print(f(np.arange(5.0)))
""",
    )
    running = [
        subprocess.Popen(command, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = [one.communicate(timeout=120) for one in running]
    assert outputs == [("2.5\n", "")] * 3
    assert len(cache.Cache(tmp_path / "cache").entries()) == 1


# ---- a cache that fails ------------------------------------------------------------------------------------


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("METAPHRASE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cython_build, "_loaded", {})
    monkeypatch.setattr(cython_build, "_warned", set())
    return tmp_path / "cache"


@pytest.mark.parametrize("problem", ["full", "read only", "no folder", "a file"])
def test_a_cache_that_cannot_be_written(own_cache, problem, monkeypatch, caplog):
    def refuse(*_, **__):
        code = errno.ENOSPC if problem == "full" else errno.EROFS
        raise OSError(code, os.strerror(code))

    if problem == "full":
        monkeypatch.setattr(shutil, "copyfile", refuse)
    elif problem == "read only":
        monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    elif problem == "no folder":
        monkeypatch.setenv("METAPHRASE_CACHE_DIR", "/dev/null/cache")
    else:
        own_cache.write_text("not a directory")
    if problem == "read only":
        with pytest.raises(cache.CacheUnusable, match="Read-only"):
            cache.Cache(own_cache).store("key", Path(__file__), {})
        return
    with caplog.at_level("WARNING", "metaphrase"):
        assert mp.jit(lambda x: x * 7 + 1)(np.ones(2)).tolist() == [8.0, 8.0]
        assert mp.jit(lambda x: x * 9 + 1)(np.ones(2)).tolist() == [10.0, 10.0]
    assert sum("are not kept" in message for message in caplog.messages) == 1
    assert not list(own_cache.glob(".pending-*")) if own_cache.is_dir() else True


def test_a_cache_that_is_removed_meanwhile(own_cache):
    @mp.jit
    def f(x):
        return x * 11 + 1

    assert f(np.ones(2)).tolist() == [12.0, 12.0]
    shutil.rmtree(own_cache)
    assert f(np.ones(2)).tolist() == [12.0, 12.0]  # what is loaded stays
    assert f(1.0) == 12.0  # and the folder is made anew
    assert len(cache.Cache(own_cache).entries()) == 1


def test_the_tally_of_bytes_is_only_a_hint(tmp_path):
    made = tmp_path / "made.so"
    made.write_bytes(b"x" * 1000)
    store = cache.Cache(tmp_path / "cache", limit=10_000)
    for tally in ("nonsense", "999999999 3", "0 0", None):
        place = store.directory / cache.TALLY
        place.unlink(missing_ok=True) if tally is None else place.write_text(tally)
        store.store(f"key-{tally}", made, {})
        assert store.find(f"key-{tally}") is not None
    assert len(store.entries()) == 4
    for index in range(20):
        store.store(f"more-{index}", made, {})
    assert sum(size for _, size, _ in store.entries()) <= 10_000
    assert int(place.read_text().split()[0]) <= 10_000


# ---- the compiler, the threads -----------------------------------------------------------------------------


def test_no_compiler_at_all_costs_one_warning(tmp_path):
    done = subprocess.run(
        program(
            tmp_path,
            """
import logging
logging.basicConfig(level=logging.WARNING)
for k in (2, 3):
    assert mp.jit(lambda x: x * k)(np.ones(2)).tolist() == [k, k]
""",
        ),
        env=environment(tmp_path, METAPHRASE_CC="/no/such"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the generated NumPy source runs instead") == 1


def test_the_number_of_threads_is_set_after_import():
    threads.use(threads.requested())  # whatever another test has left
    before = threads.count()
    with mp.config(num_threads=before + 2):
        assert threads.count() == before + 2
    assert threads.count() == before


def test_an_interrupted_translation_leaves_a_working_translator():
    worker = cython_build._start_worker()
    assert worker.process is not None
    worker.process.send_signal(signal.SIGKILL)
    time.sleep(0.05)
    assert mp.jit(lambda x: x * 13 + 2)(1.0) == 15.0
