"""Many threads, and forks: one dispatcher serves them all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from metaphrase.core.dims import Sym
from metaphrase.runtime import cython_build, dispatch, threads
from metaphrase.runtime import entry as E

n = Sym("n")

# Fills an arena piece with the argument's value, waits a little, and checks that no other call has touched
# it.
PRIVATE = """
cdef int64_t i, round
cdef double* x = <double*>buffers[0]
cdef double* piece = <double*>mp_scratch(c, sizes[0] * 8)
cdef int64_t capacity = 0
cdef double* stack = <double*>c.grow(c, NULL, &capacity, sizes[0] * 8)
for round in range(20):
    for i in range(sizes[0]):
        piece[i] = x[i]
        stack[i] = -x[i]
    for i in range(sizes[0]):
        if piece[i] != x[0] or stack[i] != -x[0]:
            return 1
(<double*>buffers[1])[0] = piece[sizes[0] - 1]
return 0
"""


def in_threads(work, count=8):
    failures = []

    def guarded(index):
        try:
            work(index)
        except BaseException as error:
            failures.append(error)

    started = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("work", [0, 1_000_000], ids=["GIL held", "GIL released"])
def test_many_threads_call_one_dispatcher(program, work):
    leaf = E.ArrayLeaf("f8", (n,))
    call = dispatch.Dispatcher(None, ("x",))
    call.add(
        E.Entry(
            program(PRIVATE).address,
            (E.Root(E.Position(0), leaf),),
            (leaf,),
            ("n",),
            (E.Fresh("f8"),),
            E.Result(0),
            work=work,
        )
    )

    def many_calls(index):
        for size in (2, 100, 30_000):
            x = np.full(size, float(index))
            for _ in range(20):
                assert call(x) == float(index)

    in_threads(many_calls)
    assert call.hits == 8 * 60 and call.misses == 0


def test_entries_may_be_added_while_others_call(program):
    address = program("return 0").address
    call = dispatch.Dispatcher(None, ("x",))
    lock = threading.Lock()

    def miss(args):
        with lock:
            leaf = E.StaticLeaf(args[0])
            return call.run(call.add(E.Entry(address, (E.Root(E.Position(0), leaf),), output=E.Argument(leaf))), args)

    call.miss = miss
    in_threads(lambda index: [call(value) == value or pytest.fail() for value in range(index, 120)])
    assert {entry.entry.roots[0].tree.value for entry in call.entries} == set(range(120))


def test_threads_that_want_the_same_text_build_it_once(text_of):
    text = text_of("(<double*>buffers[0])[0] = 123.25\nreturn 0")
    libraries = []
    in_threads(lambda index: libraries.append(cython_build.build(text, name="shared")))
    assert len(libraries) == 8 and len({id(library) for library in libraries}) == 1


def test_threads_that_want_different_texts(text_of):
    def build_and_run(index):
        library = cython_build.build(text_of(f"(<int64_t*>buffers[0])[0] = {index}\nreturn 0"), name=f"n{index}")
        (out,) = dispatch.run_entry(library.address, [], [("i8", ())])
        assert out == index

    in_threads(build_and_run, count=4)


FORK = """
import os, pathlib, sys
import numpy as np
from metaphrase.runtime import cython_build, dispatch
first, second = (pathlib.Path(path).read_text() for path in sys.argv[1:])
def run(text):
    library = cython_build.build(text, name="f")
    return float(dispatch.run_entry(library.address, [], [("f8", ())])[0])
assert run(first) == 1.0
child = os.fork()
if child == 0:
    ok = run(first) == 1.0 and run(second) == 2.0      # the child has to start a translator of its own
    sys.exit(0 if ok else 1)                           # with everything that runs at exit
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert run(second) == 2.0 and cython_build._worker.alive()
print("both")
"""


@pytest.mark.parametrize("cached", ["1", "0"])
def test_a_forked_child_builds_and_runs(tmp_path, text_of, cached):
    paths = []
    for index, value in enumerate(("1.0", "2.0")):
        paths.append(tmp_path / f"{index}.pyx")
        paths[-1].write_text(text_of(f"(<double*>buffers[0])[0] = {value}\nreturn 0"))
    (tmp_path / "fork.py").write_text(FORK)
    done = subprocess.run(
        [sys.executable, "-X", "dev", str(tmp_path / "fork.py"), *map(str, paths)],
        capture_output=True,
        text=True,
        env=dict(os.environ, METAPHRASE_CACHE_DIR=str(tmp_path / "cache"), METAPHRASE_CACHE=cached),
        timeout=60,
    )
    assert done.stdout == "both\n" and done.stderr == "", done.stderr


def test_the_number_of_threads(program, monkeypatch):
    library = program("(<int64_t*>buffers[0])[0] = c.threads\nreturn 0")

    def seen():
        return int(dispatch.run_entry(library.address, [], [("i8", ())])[0])

    before = threads.use(3)
    try:
        assert seen() == 3 and threads.count() == 3
        with pytest.raises(ValueError, match="must be positive"):
            threads.use(0)
    finally:
        threads.use(before)
    assert seen() == before
    monkeypatch.setenv("METAPHRASE_NUM_THREADS", "5")
    assert threads.requested() == 5
    for wrong in ("-1", "two", "1.5"):
        monkeypatch.setenv("METAPHRASE_NUM_THREADS", wrong)
        with pytest.raises(ValueError, match="METAPHRASE_NUM_THREADS"):
            threads.requested()
    monkeypatch.setenv("METAPHRASE_NUM_THREADS", "0")
    assert threads.requested() == threads.available()
    monkeypatch.delenv("METAPHRASE_NUM_THREADS")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads.requested() == threads.available() >= 1
    for text, count in (("3", 3), ("4, 2", 4), ("0", threads.available()), ("many", threads.available())):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert threads.requested() == count


def test_importing_the_runtime_starts_no_thread_and_no_process():
    script = (
        "import threading, metaphrase.runtime.dispatch, metaphrase.runtime.threads\n"
        "import metaphrase.runtime.cython_build as b\n"
        "print(threading.active_count(), b._worker)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "1 None\n", done.stderr


HALF_IMPORTED = """
import os, pathlib, signal, sys, threading, time
import metaphrase
metaphrase.__path__.append(sys.argv[1])
pathlib.Path(sys.argv[1], "slow_part.py").write_text("import time; time.sleep(1); value = 7")
thread = threading.Thread(target=lambda: __import__("metaphrase.slow_part"))
thread.start()
time.sleep(0.3)
child = os.fork()
if child == 0:
    signal.alarm(20)
    from metaphrase.slow_part import value
    os._exit(value)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""


def test_a_fork_waits_for_another_threads_imports(tmp_path):
    done = subprocess.run(
        [sys.executable, "-P", "-c", HALF_IMPORTED, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "7\n", done.stderr
