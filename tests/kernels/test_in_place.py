"""Arguments that a function stores into are changed where they are: no copy in, no copy out, and no trap in
it."""

import numpy as np
import pytest
from kernels.test_kernels import KERNELS, assert_same_outcome

import metaphrase as mp
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.astpasses.schedule import python_loops, schedule, target
from metaphrase.pipeline import finished

# All that these need besides their arguments is a row of scratch.
NO_COPY = ("cholesky", "fdtd_2d", "heat_3d", "jacobi_1d", "jacobi_2d", "lu", "seidel_2d", "symm")


@pytest.fixture
def whole_loops(monkeypatch):
    """Loops stand in the entry, and not in functions that threads share."""
    monkeypatch.setattr(target, "CPU", target.ONE_THREAD)


@pytest.mark.parametrize("name", NO_COPY)
def test_a_kernel_works_in_its_arguments(whole_loops, name):
    kernel = KERNELS[name]
    arguments = kernel.arguments(kernel.large)
    text = mp.source(kernel.function, *arguments, stage="cython")
    entry = text[text.index("cdef int entry") :]
    assert entry.count("buffers[") == len(arguments)
    assert "mp_scratch" not in entry


def test_what_is_only_read_by_columns_is_transposed_once(whole_loops):
    kernel = KERNELS["syrk"]
    arguments = kernel.arguments(kernel.large)
    text = mp.source(kernel.function, *arguments, stage="cython")
    entry = text[text.index("cdef int entry") :]
    assert entry.count("buffers[") == len(arguments)
    assert entry.count("mp_scratch") == 1 and "a_columns = <f64_p>mp_memory" in entry
    assert (
        entry.count("a_columns[") == 6
    )  # made in strips and what is left, read by four rounds at a time; what is changed is changed where it is
    before = entry[: entry.index("a_columns[")]
    assert "c_[" not in before and before.count("for ") == 3


@pytest.mark.turns(3)
@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("name", [n for n in KERNELS if n not in ("mandelbrot", "mlp", "spmv")])
def test_in_place_loops_run_as_python(name, fuse):
    kernel = KERNELS[name]
    arguments = kernel.arguments(kernel.small)
    call = take_apart(arguments, {}, ())
    program = program_of(kernel.function, call.structure, call.specs)
    nests = schedule(finished(program.function), fuse=fuse, writes=program.new_values)
    found = python_loops.run(nests, *call.dynamic_leaves())
    results = iter(found)
    assert_same_outcome(
        kernel, lambda *given: _leave(given, results, len(found) - len(program.writes), program), arguments
    )


def _leave(given, results, count, program):
    """Put what the program computed where the kernel would have put it."""
    made = [next(results) for _ in range(count)]
    for write, value in zip(program.writes, results):
        given[write.target][...] = value
    return tuple(made)


def shift(a, b):
    a[0] = 5.0
    for i in range(2, len(a)):
        a[i] += b[i - 1]
    b[:] = b * a[0]
    return a.sum()


def halfway(a, at):
    a[0] = 7.0
    for i in range(len(at)):
        a[at[i]] += 1.0


@pytest.mark.parametrize("layout", ["plain", "strided", "reversed", "transposed"])
def test_layouts(layout):
    def arrays():
        a, b = np.arange(12.0), np.arange(12.0) * 2
        if layout == "strided":
            return a[::2], b[1::2]
        if layout == "reversed":
            return a[::-1], b[::-1]
        if layout == "transposed":
            return a.reshape(3, 4).T, b.reshape(3, 4).T
        return a, b

    jitted = mp.jit(shift)
    for _ in range(2):
        mine, theirs = arrays(), arrays()
        np.testing.assert_allclose(jitted(*mine), shift(*theirs), rtol=1e-14)
        np.testing.assert_array_equal(mine, theirs)


def test_a_read_only_array_is_refused_and_stays():
    jitted = mp.jit(shift)
    jitted(np.arange(6.0), np.arange(6.0))
    a = np.arange(6.0)
    a.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            jitted(a, np.arange(6.0))
    np.testing.assert_array_equal(a, np.arange(6.0))


def test_an_error_leaves_what_numpy_leaves():
    jitted = mp.jit(halfway)
    jitted(np.arange(4.0), np.array([1, 2]))
    mine, theirs, at = np.arange(4.0), np.arange(4.0), np.array([1, 9])
    for array, function in ((theirs, halfway), (mine, jitted)):
        with pytest.raises(IndexError):
            function(array, at)
    np.testing.assert_array_equal(mine, theirs)


def test_the_old_value_that_is_still_needed_is_kept():
    def swap(a, b):
        a[:], b[:] = b.copy(), a.copy()

    def back(a):
        old = a.copy()
        a[1:] = a[:-1] * 2
        return old + a

    x, y = np.arange(4.0), np.arange(4.0) + 10
    for _ in range(2):
        mp.jit(swap)(x, y)
    np.testing.assert_array_equal(x, np.arange(4.0))
    u, v = np.arange(5.0), np.arange(5.0)
    np.testing.assert_array_equal(mp.jit(back)(u), back(v))
    np.testing.assert_array_equal(u, v)


def test_a_compiled_function_leaves_other_arguments_alone():
    a, b = np.arange(5.0), np.arange(5.0)
    compiled = mp.jit(shift).lower(a, b).compile()
    c, d = a.copy(), b.copy()
    assert compiled(a, b) == shift(c, d)
    np.testing.assert_array_equal(a, c)
    np.testing.assert_array_equal(b, d)
