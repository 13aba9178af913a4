"""The pool: every part of a shared loop is done once, by whichever thread; failures, signals and forks in the midst."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from metaphrase.runtime import dispatch, threads

# Part k: fills scratch of its own in so many rounds (one, if it is one of the first), fails where x is negative.
HEAD = """
cdef int one(mp_ctx* c, void** buffers, const int64_t* sizes, int64_t k) noexcept nogil:
    cdef double* x = <double*>buffers[0]
    cdef double* y = <double*>buffers[1]
    cdef int64_t* counts = <int64_t*>buffers[2]
    cdef int64_t i, round, n = sizes[1]
    cdef char* mark = c.mark(c)
    cdef double* piece = <double*>mp_scratch(c, n * 8)
    if piece == NULL:
        return MP_NO_MEMORY
    for round in range(sizes[2] if k >= sizes[3] else 1):
        if mp_poll(c, n):
            return MP_INTERRUPTED
        for i in range(n):
            piece[i] = x[k] + i
        for i in range(n):
            if piece[i] != x[k] + i:
                return mp_fail(c, 99, k, 0, 0, 0, 0)
    c.release(c, mark)
    if x[k] < 0:
        return mp_fail(c, 7, k, k, 2 * k, 0, 0)
    y[k] = 2 * x[k]
    counts[k] += 1
    return 0

cdef int nested(mp_ctx* c, void** buffers, const int64_t* sizes, int64_t k) noexcept nogil:
    cdef void* parts[3]
    parts[0] = <double*>buffers[0] + 3 * k
    parts[1] = <double*>buffers[1] + 3 * k
    parts[2] = <int64_t*>buffers[2] + 3 * k
    return mp_share(c, one, parts, sizes, 3)
"""
ALL = "return mp_share(c, one, buffers, sizes, sizes[0])"
NESTED = "return mp_share(c, nested, buffers, sizes, sizes[0] // 3)"


@pytest.fixture
def run(program):
    """run(x, n=100, rounds=1, short=0, body=ALL): 2*x by parts; how often each part was done is looked at"""

    def call(x, n=100, rounds=1, short=0, body=ALL):
        library = program(FILL + body, HEAD)
        y, counts = dispatch.run_entry(
            library.address, [x], [("f8", x.shape), ("i8", x.shape)], (len(x), n, rounds, short), raise_site=raise_site
        )
        np.testing.assert_array_equal(counts, np.ones(len(x), int))
        return y

    before = threads.count()
    yield call
    threads.use(before)


FILL = """
cdef int64_t k
for k in range(sizes[0]):
    (<int64_t*>buffers[2])[k] = 0
"""


class Failed(Exception):
    pass


def raise_site(site, iteration, values):
    raise Failed(site, iteration, *values[:2])


@pytest.mark.turns(3)
@pytest.mark.parametrize("body", [ALL, NESTED], ids=["parts", "parts of parts"])
@pytest.mark.parametrize("count", [1, 2, 3, 8, 64, 100])
def test_every_part_is_done_once(run, count, body):
    threads.use(count)
    for size in (3, 6, 30, 999):
        x = np.random.default_rng(size).random(size)
        for _ in range(20):
            np.testing.assert_array_equal(run(x, body=body), 2 * x)


def test_no_parts(run):
    threads.use(4)
    assert run(np.zeros(0)).shape == (0,)


@pytest.mark.turns(3)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_first_part_that_fails_is_the_one_that_is_told(run, count):
    threads.use(count)
    rng = np.random.default_rng(count)
    for _ in range(200):
        x = rng.random(50)
        wrong = rng.choice(50, size=rng.integers(1, 5), replace=False)
        x[wrong] = -1
        first = int(wrong.min())
        with pytest.raises(Failed) as caught:
            run(x, n=int(rng.integers(1, 3000)))
        assert caught.value.args == (7, first, first, 2 * first)
        np.testing.assert_array_equal(run(abs(x)), 2 * abs(x))


@pytest.mark.parametrize("count", [1, 3])
def test_a_part_without_memory(run, count):
    threads.use(count)
    with pytest.raises(MemoryError):
        run(np.ones(20), n=1 << 55)
    np.testing.assert_array_equal(run(np.ones(20)), 2 * np.ones(20))


def test_many_callers_at_once(run):
    threads.use(3)
    failures = []

    def work(seed):
        try:
            x = np.random.default_rng(seed).random(200)
            for _ in range(100):
                np.testing.assert_array_equal(run(x, n=50), 2 * x)
        except BaseException as error:
            failures.append(error)

    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert failures == []


class Stop(Exception):
    pass


@pytest.fixture
def alarm():
    """alarm(seconds, raises): a signal with a handler of Python's after that time"""
    came = []

    def start(seconds, raises):
        def handler(number, frame):
            came.append(number)
            if raises:
                raise Stop

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return came

    before = signal.getsignal(signal.SIGALRM)
    yield start
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.turns(3)
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("parts", [2, 5000], ids=["few long parts", "many short ones"])
def test_a_handler_that_raises_ends_all_parts(run, alarm, count, parts):
    threads.use(count)
    for k in range(5):
        rounds = 40_000_000 // (100 * parts) * 100  # a minute, unless it is ended
        alarm(0.05 + 0.01 * k, True)
        begin = time.perf_counter()
        with pytest.raises(Stop):
            run(np.ones(parts), n=1000, rounds=rounds)
        assert time.perf_counter() - begin < 1.0
        np.testing.assert_array_equal(run(np.ones(100)), 2 * np.ones(100))


@pytest.mark.parametrize("n", [1000, 1_000_000], ids=["the caller takes both", "the caller only waits"])
def test_a_handler_that_raises_ends_the_parts_of_others_that_the_caller_waits_for(run, alarm, n):
    """The first part is over before the caller looks for signals; while it lasts, the other thread takes the second."""
    threads.use(2)
    run(np.ones(100))
    for k in range(5):
        alarm(0.05 + 0.01 * k, True)
        begin = time.perf_counter()
        with pytest.raises(Stop):
            run(np.ones(2), n=n, rounds=20_000_000_000 // n, short=1)
        assert time.perf_counter() - begin < 1.0
        np.testing.assert_array_equal(run(np.ones(100)), 2 * np.ones(100))


def test_other_threads_of_python_run_while_a_caller_only_waits(run):
    threads.use(2)
    run(np.ones(100))
    caller = threading.Thread(target=run, args=(np.ones(2), 1_000_000, 1000, 1))
    begin = time.perf_counter()
    caller.start()
    longest, before = 0, begin
    while caller.is_alive():
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    assert longest < 0.5 * (time.perf_counter() - begin)


@pytest.mark.parametrize("first", [0, 1])
def test_parts_behind_one_that_fails_end(run, first):
    """Whichever of the two threads has the part that fails, and whichever the one that takes for ever."""
    threads.use(2)
    for _ in range(5):
        x = np.ones(4)
        x[first] = -1
        begin = time.perf_counter()
        with pytest.raises(Failed) as caught:
            run(x, n=1000, rounds=20_000_000, short=first + 1)
        assert caught.value.args[:2] == (7, first) and time.perf_counter() - begin < 1.0


def test_a_child_that_a_handler_forks_in_the_midst_is_told(run):
    threads.use(2)
    run(np.ones(100))
    children = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: children.append(os.fork()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        try:
            run(np.ones(2), n=1000, rounds=200_000)
            outcome = 0
        except RuntimeError as error:
            outcome = 1 if "forked" in str(error) else 2
        if children == [0]:
            os._exit(outcome)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert outcome == 0 and len(children) == 1
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 1


@pytest.mark.parametrize("count", [1, 3])
def test_a_handler_that_does_not_raise_changes_nothing(run, alarm, count):
    threads.use(count)
    came = alarm(0.02, False)
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.2:
        np.testing.assert_array_equal(run(np.ones(64), n=1000, rounds=200), 2 * np.ones(64))
    assert came == [signal.SIGALRM]


FORK = """
import os, sys, threading, time
sys.path[:0] = [{tests!r}]
import numpy as np
from metaphrase.runtime import cython_build, dispatch, threads
library = cython_build.build(open({text!r}).read(), name="f")
threads.use(3)
dispatch.wake_from(0)
def run(rounds):
    x = np.arange(1.0, 41.0)
    y, counts = dispatch.run_entry(library.address, [x], [("f8", x.shape), ("i8", x.shape)], (40, 1000, rounds, 0))
    return bool((y == 2 * x).all() and (counts == 1).all())
assert run(1)
busy = threading.Thread(target=lambda: [run(2000) for _ in range(5)])     # in the midst of shared loops
busy.start()
for _ in range(20):
    time.sleep(0.005)
    child = os.fork()
    if child == 0:
        os._exit(0 if all(run(10) for _ in range(20)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
busy.join()
assert run(1)
print("both")
"""


def test_a_child_process_has_threads_of_its_own(tmp_path, text_of):
    (tmp_path / "kernel.pyx").write_text(text_of(FILL + ALL, HEAD))
    (tmp_path / "fork.py").write_text(FORK.format(tests=os.path.dirname(__file__), text=str(tmp_path / "kernel.pyx")))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "fork.py")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "both\n", done.stderr


STARTED = """
import threading, os
import numpy as np
from metaphrase.runtime import cython_build, dispatch, threads
library = cython_build.build(open({text!r}).read(), name="f")
def count():
    return len(os.listdir("/proc/self/task"))
threads.use(4)
before = count()
x = np.ones(40)
def run(parts):
    dispatch.run_entry(library.address, [x], [("f8", x.shape), ("i8", x.shape)], (parts, 10, 1, 0))
run(1)
assert count() == before
run(40)
assert count() == before    # microseconds of work
dispatch.wake_from(0)
run(40)
assert count() == before + 3 and threading.active_count() == 1
print("started")
"""


def test_threads_start_with_the_first_loop_that_is_worth_it(tmp_path, text_of):
    (tmp_path / "kernel.pyx").write_text(text_of(FILL + ALL, HEAD))
    (tmp_path / "started.py").write_text(STARTED.format(text=str(tmp_path / "kernel.pyx")))
    done = subprocess.run([sys.executable, str(tmp_path / "started.py")], capture_output=True, text=True, timeout=60)
    assert done.stdout == "started\n", done.stderr


def test_small_jobs_wake_threads_when_there_are_many(run):
    """Jobs of some microseconds are done alone, until they are as much work together as two that are worth it."""
    before = dispatch.wake_from(200_000)
    try:
        threads.use(3)
        for _ in range(300):
            run(np.arange(1.0, 20.0))
        run(np.arange(1.0, 20.0), n=20_000, rounds=50)  # and one that is worth it
    finally:
        dispatch.wake_from(before)


MEASURED = """
cdef int measured(mp_ctx* c, void** buffers, const int64_t* sizes, int64_t k) noexcept nogil:
    cdef double* y = <double*>buffers[1]
    cdef int64_t round, is_shared = c.threads == 1
    y[k] = is_shared
    for round in range(4000 if is_shared == sizes[1] else 400):
        y[k] += 1e-9
    return 0
"""


@pytest.mark.parametrize("slow", [0, 1], ids=["alone it takes longer", "shared it takes longer"])
def test_short_jobs_are_shared_where_that_is_faster(program, slow):
    """By the clock; one in 256 is done the other way."""
    library = program("return mp_share(c, measured, buffers, sizes, sizes[0])", MEASURED)
    before, count = dispatch.wake_from(1), threads.count()
    threads.use(2)
    shared = []
    try:
        for _ in range(400):
            (y,) = dispatch.run_entry(library.address, [np.zeros(1)], [("f8", (10,))], (10, slow))
            shared.append(y[-1] > 0.5)
    finally:
        dispatch.wake_from(before), threads.use(count)
    late = np.mean(shared[100:])
    assert late > 0.6 if slow == 0 else late < 0.4
