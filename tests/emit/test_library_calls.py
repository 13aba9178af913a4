"""Calls of BLAS, LAPACK, sorting and the Fourier transform: sizes that do not fit the libraries' ints,
arguments that LAPACK refuses, and memory that runs out, seen through a table and a context of stand-ins."""

from __future__ import annotations

import ctypes
import functools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metaphrase.astpasses.emit.cython_text import emit
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.lower import size_symbols
from metaphrase.astpasses.schedule.target import ONE_THREAD
from metaphrase.core.build import trace
from metaphrase.core.dims import Sym, substitute
from metaphrase.core.types import Array, c128, f32, f64
from metaphrase.ops import dot, fourier, linear_algebra, sorting
from metaphrase.ops.reduce import reduce_sum
from metaphrase.runtime import abi, cython_build

m, n, k = Sym("m"), Sym("n"), Sym("k")
MOST = 2**31 - 1

# A routine's arguments: how many, where its ints are, and where its status is.
ROUTINES = {
    "gemm": (13, (2, 3, 4, 7, 9, 12), None),
    "trsm": (11, (4, 5, 8, 10), None),
    "getrf": (6, (0, 1, 3), 5),
    "getrs": (9, (1, 2, 4, 7), 8),
    "potrf": (5, (1, 3), 4),
    "geqrf": (8, (0, 1, 3, 6), 7),
    "orgqr": (9, (0, 1, 2, 4, 7), 8),
    "syevd": (11, (2, 4, 7, 9), 10),
    "gesdd": (14, (1, 2, 4, 7, 9, 11), 13),
    "geev": (14, (2, 4, 8, 10, 12), 13),
}


def context_fields():
    """The members of `mp_ctx`, as runtime/abi.h has them."""
    header = Path(abi.HEADER_DIRECTORY, "abi.h").read_text()
    body = re.search(r"struct mp_ctx \{(.*?)\n\};", header, re.DOTALL)[1]
    for member in re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL).split(";")[:-1]:
        if "*" in member:  # a pointer, or one to a function
            yield re.search(r"\(\*(\w+)\)|(\w+)$", member.strip()).expand(r"\1\2"), ctypes.c_void_p
        else:
            name, count = re.search(r"(\w+)(?:\[(\d+)\])?$", member.strip()).groups()
            yield name, ctypes.c_int64 * int(count) if count else ctypes.c_int64


class Context(ctypes.Structure):
    """`mp_ctx`."""

    _fields_ = list(context_fields())


class Run:
    """One call of an entry: what it returned, the ints it gave to libraries, the memory it asked for."""

    def __init__(self, emitted, buffers, sizes, info=0, pieces=None):
        self.calls: list[tuple[str, list[int]]] = []
        self.asked: list[int] = []
        self.memory: list[object] = []
        library = cython_build.build(emitted.text, name="library calls")
        context = Context(abi=abi.ABI_VERSION, fuel=2**60)
        table = (ctypes.c_void_p * len(abi.BLAS_ROUTINES))()
        held: list[object] = [self.stand_in(table, place, info) for place in range(len(table))]
        context.blas = ctypes.addressof(table)

        def scratch(_, nbytes):
            self.asked.append(nbytes)
            if pieces is not None and len(self.asked) > pieces:
                return None
            self.memory.append(ctypes.create_string_buffer(nbytes + 64))
            return ctypes.addressof(self.memory[-1])

        held.append(ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(scratch))
        context.scratch = ctypes.cast(held[-1], ctypes.c_void_p)
        held.append(ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: None))
        context.release = ctypes.cast(held[-1], ctypes.c_void_p)
        held.append(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0))
        context.poll = ctypes.cast(held[-1], ctypes.c_void_p)
        places = [None if b is None else b.ctypes.data for b in buffers]
        pointers = (ctypes.c_void_p * len(places))(*places)
        of_entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        entry = of_entry(library.address)
        self.status = entry(ctypes.addressof(context), pointers, (ctypes.c_int64 * 8)(*sizes))
        self.values = list(context.error_values)
        if self.status > 0:
            site = emitted.sites[self.status - 1]
            self.exception, self.message = site.exception, site.message.format(*self.values)

    def stand_in(self, table, place, info):
        name = abi.BLAS_ROUTINES[place]
        count, ints, status = ROUTINES.get(name[1:], (0, (), None))

        def routine(*arguments):
            given = [ctypes.cast(arguments[i], ctypes.POINTER(ctypes.c_int))[0] for i in ints]
            self.calls.append((name, given))
            if status is not None:
                ctypes.cast(arguments[status], ctypes.POINTER(ctypes.c_int))[0] = info

        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(routine)
        table[place] = ctypes.cast(function, ctypes.c_void_p)
        return function


def product(a, b):
    return dot.dot_general(a, b, contract=((1,), (0,)), batch=((), ()))


SQUARE, TALL = ("a", Array(f32, (n, n))), ("a", Array(f32, (m, n)))
LINE, LINES = ("a", Array(f64, (n,))), ("a", Array(f64, (n, k)))
FUNCTIONS = {
    "product": (product, [TALL, ("b", Array(f32, (n, k)))]),
    "solve": (functools.partial(linear_algebra.solve, transposed=False), [SQUARE, ("b", Array(f32, (n, k)))]),
    "triangular": (
        functools.partial(linear_algebra.triangular_solve, lower=True, transposed=False),
        [SQUARE, ("b", Array(f32, (n, k)))],
    ),
    "slogdet": (linear_algebra.slogdet, [SQUARE]),
    "cholesky": (linear_algebra.cholesky, [SQUARE]),
    "qr": (functools.partial(linear_algebra.qr, full=False), [TALL]),
    "eigh": (linear_algebra.eigh, [SQUARE]),
    "svd": (functools.partial(linear_algebra.svd, full=False), [TALL]),
    "svd whole": (functools.partial(linear_algebra.svd, full=True), [TALL]),
    "eig": (linear_algebra.eig, [SQUARE]),
    "sort": (functools.partial(sorting.sort, axis=0), [LINE]),
    "sort lines": (functools.partial(sorting.sort, axis=0), [LINES]),
    "argsort": (functools.partial(sorting.argsort, axis=0), [LINE]),
    "fft": (functools.partial(fourier.fft, axis=0, inverse=False), [("a", Array(c128, (n,)))]),
}


KNOWN = ("qr", "svd", "svd whole")  # programs of these have their sizes in them


def core(name, sizes):
    function, parameters = FUNCTIONS[name]
    if name in KNOWN:
        parameters = [(p, Array(t.dtype, tuple(substitute(d, sizes) for d in t.dims))) for p, t in parameters]
    return trace("f", function, parameters)


def run(name, sizes, arrays=True, **options):
    """The entry, called with arrays of zeros of these sizes, or without arrays."""
    function = core(name, sizes)
    types = [*function.param_types, *function.result_types]
    made = [np.zeros([substitute(d, sizes) for d in t.dims], t.dtype) if arrays else None for t in types]
    return Run(emit(schedule(function, ONE_THREAD)), made, [sizes[s] for s in size_symbols(function)], **options)


TOO_LARGE = [
    ("product", {"m": 2**31, "n": 4, "k": 4}),
    ("product", {"m": 4, "n": 2**31, "k": 4}),
    ("product", {"m": 4, "n": 4, "k": 2**40}),
    ("solve", {"n": 2**31, "k": 1}),
    ("solve", {"n": 40, "k": 2**32}),
    ("triangular", {"n": 2**31, "k": 1}),
    ("slogdet", {"n": 2**31}),
    ("cholesky", {"n": 2**33}),
    ("qr", {"m": 2**31, "n": 1}),
    ("qr", {"m": 3, "n": 2**31}),
    ("eigh", {"n": 32767}),
    ("eigh", {"n": 2**31}),
    ("svd", {"m": 23171, "n": 23171}),
    ("svd whole", {"m": 2**31, "n": 1}),
    ("eig", {"n": 2**29}),
]


@pytest.mark.parametrize("name, sizes", TOO_LARGE, ids=[f"{f} {s}" for f, s in TOO_LARGE])
def test_sizes_that_do_not_fit_fail_before_anything_is_called(name, sizes):
    done = run(name, sizes, arrays=False)
    assert done.calls == [] and done.asked == []
    assert done.exception == "OverflowError" and "count in 32 bits" in done.message
    assert str(sizes["m" if "m" in sizes else "n"]) in done.message.split(":")[0]


FITTING = [
    ("eigh", {"n": 32766}),
    ("svd", {"m": 23168, "n": 23168}),
    ("eig", {"n": 2**29 - 1}),
    ("slogdet", {"n": MOST}),
]


@pytest.mark.parametrize("name, sizes", FITTING, ids=[f"{f} {s}" for f, s in FITTING])
def test_sizes_that_just_fit_are_a_matter_of_memory(name, sizes):
    done = run(name, sizes, arrays=False, pieces=0)
    assert done.status == abi.NO_MEMORY and done.calls == [] and min(done.asked) >= 0


def test_a_tall_matrix_has_a_small_work_space():
    """The sum of its sides, times the 64 columns of a block, is above 2^31."""
    sizes = {"m": 2**25, "n": 1}
    done = run("qr", sizes)
    assert done.status == 0
    assert done.calls == [("sgeqrf", [2**25, 1, 2**25, 128]), ("sorgqr", [2**25, 1, 1, 2**25, 128])]


SIZES = {"m": 40, "n": 36, "k": 5}
CALLING = [name for name in FUNCTIONS if name not in ("sort", "sort lines", "argsort", "fft")]


@pytest.mark.parametrize("name", CALLING)
def test_every_int_is_a_size_or_a_work_space(name):
    done = run(name, SIZES)
    assert done.status == 0 and done.calls
    for _, ints in done.calls:
        assert all(-1 <= given < 10**5 for given in ints), done.calls


@pytest.mark.parametrize("name", ["product", "triangular"])
def test_a_row_of_no_columns_is_one_apart(name):
    """BLAS refuses a distance of 0 between rows, even where there are none."""
    for _, ints in run(name, {"m": 2, "n": 0, "k": 2}).calls:
        assert all(distance >= 1 for distance in ints[3:])


@pytest.mark.parametrize("name", [name for name in CALLING if name not in ("product", "triangular")])
def test_an_argument_that_lapack_refuses(name):
    done = run(name, SIZES, info=-3)
    assert done.exception == "RuntimeError" and done.message.startswith("LAPACK refused argument 3 of ")
    assert len(done.calls) == 1


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - {"product", "triangular", "cholesky"}))
def test_every_piece_of_memory_may_be_missing(name):
    pieces = len(run(name, SIZES).asked)
    assert pieces > 0
    for given in range(pieces):
        done = run(name, SIZES, pieces=given)
        assert done.status == abi.NO_MEMORY and len(done.asked) > given


@pytest.mark.parametrize("size", [2**28 + 5, 2**31, 2**57, 2**61, 2**62])
def test_temporaries_of_two_gibibytes_and_more_are_a_matter_of_memory(size):
    """Numbers in the text from 2^31 on, where Cython takes plain ones for Python's."""

    def total(a):
        return reduce_sum(sorting.sort(a, axis=0), axes=(0,))

    function = trace("f", total, [("a", Array(f64, (size,)))])
    done = Run(emit(schedule(function, ONE_THREAD)), [None, None], [], pieces=0)
    assert done.status == abi.NO_MEMORY and min(done.asked) > 2**31


OUT_OF_MEMORY = """
import resource
import numpy as np
import metaphrase as mp

def eigenvalues(a): return np.linalg.eigh(a)[0]
def singular(a): return np.linalg.svd(a, full_matrices=False)[1]
def corner(a): return np.linalg.qr(a)[1][0, 0]
def general(a): return np.linalg.eig(a)[0]
def place(a): return np.argsort(a[:, 0])[0]
def columns(a): return np.sort(a, axis=0)[0, 0]
def spectrum(a): return abs(np.fft.fft(a[:, 0] + 0j)[1])
def primes(a): return abs(np.fft.fft(a[:-3, 0] + 0j)[1])
def solved(a): return np.linalg.solve(a, a)[0, 0]

square = (np.linalg.det, np.linalg.slogdet, eigenvalues, singular, corner, general, columns, solved)
functions = {mp.jit(f): (8000, 8000) for f in square}
functions |= {mp.jit(f): (1 << 26, 1) for f in (place, spectrum, primes)}
for f in functions:
    for n in (40, 44):
        f(np.random.rand(n, n) + n*np.eye(n))
arrays = {shape: np.zeros(shape) for shape in set(functions.values())}  # of which no page is ever there
size = int(open("/proc/self/statm").read().split()[0])*resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (24 << 20), resource.RLIM_INFINITY))
missing = []
for f, shape in functions.items():
    try:
        f(arrays[shape])
    except MemoryError:
        missing.append(f.__name__)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,)*2)
assert len(missing) == len(functions), missing
for f in functions:
    a = np.random.rand(48, 48) + 48*np.eye(48)
    np.testing.assert_allclose(f(a), f.__wrapped__(a), rtol=1e-6)
print("went on")
"""


def test_running_out_of_memory_is_a_memory_error():
    done = subprocess.run([sys.executable, "-c", OUT_OF_MEMORY], capture_output=True, text=True, timeout=300)
    assert done.stdout == "went on\n", done.stderr
