"""What a running program may ask of its context: memory, growing stacks, results, callbacks, BLAS,
failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from metaphrase.runtime import abi, dispatch
from metaphrase.runtime.entry import ArrayLeaf, CallbackSite, Entry, Position, Root


def test_parameters_results_and_sizes(program):
    library = program("""
        cdef int64_t i
        for i in range(sizes[1]):
            (<double*>buffers[1])[i] = (<double*>buffers[0])[i] * sizes[0]
        return 0
    """)
    (out,) = dispatch.run_entry(library.address, [np.arange(3.0)], [("f8", (3,))], [10, 3])
    assert out.tolist() == [0.0, 10.0, 20.0]


def test_rank_0_parameters_are_pointers_to_one_element(program):
    library = program("""
        (<double*>buffers[2])[0] = (<double*>buffers[0])[0] + (<int64_t*>buffers[1])[0]
        return 0
    """)
    (out,) = dispatch.run_entry(library.address, [np.float64(1.5), np.int64(2)], [("f8", ())])
    assert out.shape == () and out == 3.5


RUN_TIME_RESULT = """
    cdef int64_t i, count = 0
    cdef int64_t dims[2]
    cdef double* x = <double*>buffers[0]
    cdef double* out
    for i in range(sizes[0]):
        count += x[i] > 0
    out = <double*>c.alloc(c, 1, count * 2 * 8)
    if out == NULL:
        return MP_NO_MEMORY
    dims[0] = count
    dims[1] = 2
    c.set_dims(c, 1, 2, dims)
    count = 0
    for i in range(sizes[0]):
        if x[i] > 0:
            out[2 * count] = i
            out[2 * count + 1] = x[i]
            count += 1
    return 0
"""


@pytest.mark.parametrize("n", [0, 1, 7, 100_000])
def test_a_result_of_run_time_size_owns_its_memory(program, n):
    x = np.random.default_rng(n).normal(size=n)
    (out,) = dispatch.run_entry(program(RUN_TIME_RESULT).address, [x], [("f8", 2)], [n])
    where = np.nonzero(x > 0)[0]
    assert np.array_equal(out, np.stack([where.astype(float), x[where]], axis=1))
    assert out.flags.owndata and out.flags.writeable and out.base is None
    out.resize((3, 5), refcheck=False)  # NumPy itself reallocates the memory that the program allocated
    assert out.shape == (3, 5)


def test_a_program_that_does_not_make_its_result_is_an_error(program):
    with pytest.raises(SystemError, match="did not make its result 0"):
        dispatch.run_entry(program("return 0").address, [], [("f8", 1)])


def test_a_result_larger_than_its_memory_is_an_error(program):
    library = program("""
        cdef int64_t dims[1]
        c.alloc(c, 0, 8)
        dims[0] = 1000
        c.set_dims(c, 0, 1, dims)
        return 0
    """)
    with pytest.raises(SystemError, match="larger than the memory"):
        dispatch.run_entry(library.address, [], [("f8", 1)])


def test_alloc_twice_keeps_the_second(program):
    library = program("""
        cdef int64_t dims[1]
        c.alloc(c, 0, 1 << 20)
        (<int64_t*>c.alloc(c, 0, 8))[0] = 42
        dims[0] = 1
        c.set_dims(c, 0, 1, dims)
        return 0
    """)
    (out,) = dispatch.run_entry(library.address, [], [("i8", 1)])
    assert out.tolist() == [42]


def test_alloc_of_what_is_no_result_gives_null(program):
    library = program("""
        if c.alloc(c, 0, 8) != NULL or c.alloc(c, 7, 8) != NULL or c.alloc(c, 1, -1) != NULL:
            return 1
        return MP_NO_MEMORY
    """)
    with pytest.raises(MemoryError):
        dispatch.run_entry(library.address, [np.zeros(1)], [("f8", 1)])


SCRATCH = """
    # Take `sizes[0]` pieces of growing size, fill each with its number, then see that none has overwritten
    # another.
    cdef int64_t i, j, n, total = 0
    cdef int64_t* pieces[64]
    for i in range(sizes[0]):
        n = sizes[1] * (i + 1)
        pieces[i] = <int64_t*>mp_scratch(c, n * 8)
        if pieces[i] == NULL:
            return MP_NO_MEMORY
        if (<size_t>pieces[i]) % 64 != 0:
            return 1
        for j in range(n):
            pieces[i][j] = i
    for i in range(sizes[0]):
        for j in range(sizes[1] * (i + 1)):
            if pieces[i][j] != i:
                return 2
        total += i
    (<int64_t*>buffers[0])[0] = total
    return 0
"""


@pytest.mark.parametrize("piece", [0, 1, 8, 1000, 100_000])
def test_scratch_is_aligned_and_disjoint_across_chunks_and_calls(program, piece):
    library = program(SCRATCH)
    for _ in range(5):  # later calls find the arena that earlier ones left
        (out,) = dispatch.run_entry(library.address, [], [("i8", ())], [40, piece])
        assert out == sum(range(40))


def test_impossible_scratch_gives_null(program):
    library = program("""
        if mp_scratch(c, 1 << 60) != NULL or mp_scratch(c, -1) != NULL:
            return 1
        return 0
    """)
    assert dispatch.run_entry(library.address, [], []) == []


def test_release_makes_scratch_of_a_loop_free_again(program):
    library = program("""
        cdef int64_t i, j
        cdef char* mark
        cdef char* before = <char*>mp_scratch(c, 100)
        cdef char* piece
        for j in range(100):
            before[j] = 7
        for i in range(sizes[0]):
            mark = c.mark(c)
            piece = <char*>mp_scratch(c, 1 << 20)
            piece[0] = piece[(1 << 20) - 1] = 1
            piece = <char*>mp_scratch(c, 1 << 21)
            piece[0] = piece[(1 << 21) - 1] = 1
            c.release(c, mark)
        for j in range(100):
            if before[j] != 7:
                return 1
        return 0
    """)
    before = peak_memory()
    dispatch.run_entry(library.address, [], [], [20_000])  # 60 GB if it were not released
    assert peak_memory() - before < 200 << 20


def test_release_of_everything(program):
    library = program("""
        cdef int64_t i
        cdef char* mark = c.mark(c)
        cdef char* piece
        for i in range(1000):
            piece = <char*>mp_scratch(c, 1 << 19)
            piece[0] = piece[(1 << 19) - 1] = 1
            c.release(c, mark)
        return 0
    """)
    for _ in range(3):
        assert dispatch.run_entry(library.address, [], []) == []


def peak_memory() -> int:
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


def test_growing_stacks_keep_their_contents(program):
    library = program("""
        # Two stacks that grow in turn; the number of items is known only at the end.
        cdef int64_t i, capacity_a = 0, capacity_b = 0, total = 0
        cdef int64_t* a = NULL
        cdef int64_t* b = NULL
        for i in range(sizes[0]):
            if capacity_a < (i + 1) * 8:
                a = <int64_t*>c.grow(c, a, &capacity_a, (i + 1) * 8)
                if a == NULL:
                    return MP_NO_MEMORY
            a[i] = i
            if capacity_b < (i + 1) * 8:
                b = <int64_t*>c.grow(c, b, &capacity_b, (i + 1) * 8)
                if b == NULL:
                    return MP_NO_MEMORY
            b[i] = -i
        for i in range(sizes[0]):
            if a[i] != i or b[i] != -i:
                return 1
            total += 1
        (<int64_t*>buffers[0])[0] = total
        return 0
    """)
    for count in (0, 1, 1000, 1_000_000):
        (out,) = dispatch.run_entry(library.address, [], [("i8", ())], [count])
        assert out == count


def test_a_stack_of_an_earlier_call_need_not_grow(program):
    library = program("""
        # How often a stack moves or is made larger on the way to sizes[0] bytes.
        cdef int64_t i, capacity = 0, times = 0
        cdef char* a = NULL
        for i in range(sizes[0]):
            if capacity < i + 1:
                a = <char*>c.grow(c, a, &capacity, i + 1)
                if a == NULL:
                    return MP_NO_MEMORY
                times += 1
            a[i] = <char>i
        for i in range(sizes[0]):
            if a[i] != <char>i:
                return 1
        (<int64_t*>buffers[0])[0] = times
        return 0
    """)

    def times(size):
        return dispatch.run_entry(library.address, [], [("i8", ())], [size])[0]

    assert times(30_000_000) > 1  # other calls of this process left less
    assert [times(30_000_000), times(10), times(0), times(30_000_000)] == [1, 1, 0, 1]


def test_failure_carries_site_iteration_and_values(program):
    library = program("return mp_fail(c, 4, 17, 1, -2, 3, 4)")
    seen = []

    def raise_site(site, iteration, values):
        seen.append((site, iteration, values[:4]))
        raise IndexError("from the site")

    with pytest.raises(IndexError, match="from the site"):
        dispatch.run_entry(library.address, [], [], raise_site=raise_site)
    assert seen == [(4, 17, (1, -2, 3, 4))]
    with pytest.raises(RuntimeError, match="failed at site 4"):
        dispatch.run_entry(library.address, [], [])


CALLBACK = """
    cdef void* args[4]
    cdef int64_t dims[1]
    dims[0] = sizes[0]
    args[0] = buffers[0]
    args[1] = dims
    args[2] = buffers[1]
    args[3] = NULL
    if c.callback(c, 0, args):
        return MP_RAISED
    return 0
"""


def test_callback_gets_copies_and_gives_results(program):
    kept = []

    def total(x):
        kept.append(x)
        return x.sum()

    x = np.arange(5.0)
    site = CallbackSite(total, [("f8", 1)], [("f8", 0)])
    (out,) = dispatch.run_entry(program(CALLBACK).address, [x], [("f8", ())], [5], callbacks=[site])
    assert out == 10.0
    x[:] = 0
    assert kept[0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_an_exception_in_a_callback_comes_out(program):
    def fails(x):
        raise KeyError("in the callback")

    site = CallbackSite(fails, [("f8", 1)], [("f8", 0)])
    for _ in range(3):
        with pytest.raises(KeyError, match="in the callback"):
            dispatch.run_entry(program(CALLBACK).address, [np.zeros(2)], [("f8", ())], [2], callbacks=[site])


def test_a_callback_with_the_wrong_result_is_refused(program):
    for wrong in (lambda x: x, lambda x: (1.0, 2.0)):
        site = CallbackSite(wrong, [("f8", 1)], [("f8", 0)])
        with pytest.raises(ValueError, match="a callback returned"):
            dispatch.run_entry(program(CALLBACK).address, [np.zeros(2)], [("f8", ())], [2], callbacks=[site])


def test_scalars_reach_a_callback_as_numpy_scalars(program):
    library = program("""
        cdef void* args[2]
        args[0] = buffers[0]
        args[1] = NULL
        return MP_RAISED if c.callback(c, 0, args) else 0
    """)
    seen = []
    dispatch.run_entry(library.address, [np.float32(2.5)], [], callbacks=[CallbackSite(seen.append, [("f4", 0)])])
    assert seen == [2.5] and type(seen[0]) is np.float32


def test_blas_by_value(program):
    library = program(
        """
        cdef int m = <int>sizes[0], k = <int>sizes[1], n = <int>sizes[2]
        cdef double* a = <double*>buffers[0]
        cdef double* b = <double*>buffers[1]
        mp_dgemm(c, b'N', b'N', n, m, k, 1.0, b, n, a, k, 0.0, <double*>buffers[2], n)
        return 0
    """,
        blas=True,
    )
    dispatch.load_blas()
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 5)), rng.normal(size=(5, 3))
    (out,) = dispatch.run_entry(library.address, [a, b], [("f8", (4, 3))], [4, 5, 3])
    np.testing.assert_allclose(out, a @ b, rtol=1e-14)


def test_complex_blas_and_the_order_of_the_table(program):
    library = program(
        """
        cdef double* a = <double*>buffers[0]
        cdef double* b = <double*>buffers[1]
        cdef double one[2]
        cdef double zero[2]
        one[0] = 1.0
        one[1] = zero[0] = zero[1] = 0.0
        mp_zgemm(c, b'N', b'N', 3, 3, 3, one, b, 3, a, 3, zero, <double*>buffers[2], 3)
        return 0
    """,
        blas=True,
    )
    dispatch.load_blas()
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) for _ in range(2))
    (out,) = dispatch.run_entry(library.address, [a, b], [("c16", (3, 3))])
    np.testing.assert_allclose(out, a @ b, rtol=1e-14)
    assert len(set(abi.BLAS_ROUTINES)) == len(abi.BLAS_ROUTINES) > 70


def test_versions_agree():
    assert dispatch.ABI_VERSION == abi.ABI_VERSION


ENDLESS = """
    cdef volatile int64_t i = 0
    while True:
        i += 1
        if mp_poll(c, 1):
            return MP_INTERRUPTED
"""
SCRIPT = """
import signal
import sys
from metaphrase.runtime import cython_build, dispatch
signal.signal(signal.SIGINT, signal.default_int_handler)   # ignored where tests run in the background
from metaphrase.runtime.entry import Entry
library = cython_build.build(open(sys.argv[1]).read(), name="endless")
entry = Entry(library.address, (), work=int(sys.argv[2]))
call = dispatch.Dispatcher(None, ())
call.add(entry)
try:
    print("ready", flush=True)
    call()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("work", [0, 1_000_000], ids=["GIL held", "GIL released"])
def test_ctrl_c_stops_a_native_loop(tmp_path, text_of, work):
    (tmp_path / "endless.pyx").write_text(text_of(ENDLESS))
    (tmp_path / "endless.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "endless.py"), str(tmp_path / "endless.pyx"), str(work)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        asked = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=20)
        assert out == "interrupted\n" and process.returncode == 0
        assert time.monotonic() - asked < 10
    finally:
        process.kill()


def test_other_threads_run_during_a_long_call_that_holds_the_gil(program):
    library = program("""
        cdef volatile int64_t i = 0
        while (<volatile int64_t*>buffers[0])[0] == 0:
            i += 1
            if mp_poll(c, 1):
                return MP_INTERRUPTED
        return 0
    """)
    flag = np.zeros(1, np.int64)
    entry = Entry(library.address, (Root(Position(0), leaf := ArrayLeaf("i8", (1,))),), (leaf,))
    call = dispatch.Dispatcher(None, ("flag",))
    call.add(entry)
    setter = threading.Timer(0.2, lambda: flag.__setitem__(0, 1))
    setter.start()
    assert call(flag) is None  # ends only when the other thread has run
    setter.join()
