"""Every scalar operation of the registry at every dtype that it takes, in Cython, C and CUDA C.

The C runs and gives NumPy's results; the Cython text is compiled and gives those of the C, bit for bit; the CUDA
text is compiled where there is `nvcc`, and elsewhere every text is still printed in it.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import shutil
import subprocess
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from metaphrase.astpasses.emit.cython_prelude import prelude
from metaphrase.astpasses.emit.cython_text import DIRECTIVES
from metaphrase.astpasses.emit.dialects import CUDA, CYTHON, C, Dialect
from metaphrase.astpasses.emit.helpers import helper, with_needs
from metaphrase.astpasses.emit.spell import Printer, c_name
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.nest import Buf, Const, E, Load, Op, Store, local, walk
from metaphrase.core.build import trace
from metaphrase.core.native import Point
from metaphrase.core.primitive import REGISTRY, Primitive
from metaphrase.core.types import SHORT, Array, CoreTypeError
from metaphrase.ops.samples import EDGES, values
from metaphrase.runtime import cython_build
from metaphrase.runtime.compiler import compile_shared, find_compiler, flags

pytestmark = pytest.mark.turns(3, together=True)

COUNT = 24
ATTRIBUTES = {
    "integer_pow": [{"exponent": n} for n in (2, 5, 11)],
    "polygamma": [{"order": 2}],
    "convert": [{"dtype": dtype} for dtype in SHORT.values()],
    "bitcast": [{"dtype": dtype} for dtype in SHORT.values()],
}
COUNTS = {"shift_left": (0, 7), "shift_right": (0, 7), "pow": (0, 4), "integer_pow": (0, 3)}  # of integers


@dataclass
class Case:
    """One operation on operands of certain dtypes, and the statement that computes it at `i`."""

    name: str
    primitive: Primitive
    attributes: dict
    dtypes: tuple[np.dtype, ...]
    operands: tuple[Buf, ...]
    result: Buf
    value: E

    @functools.cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Operands in the domain of the operation; of real floats also what breaks rules."""
        last = self.dtypes[-1]
        small = COUNTS.get(self.primitive.name)
        rows = []
        for k, dtype in enumerate(self.dtypes):
            low, high = (self.primitive.domain or ((-3, 3),) * 3)[k % 3 if self.primitive.domain is None else k]
            if self.result.dtype.kind == "u":
                low = max(low, 0)  # C has no result for others
            if dtype.kind in "iu":
                low, high = (
                    small if small and (k or "pow" in self.primitive.name) else (0 if dtype.kind == "u" else -9, 9)
                )
            rows.append(values(low, high, (COUNT,), dtype, k))
        if last.kind in "fV" and self.primitive.name not in ("convert", "polygamma"):
            with np.errstate(all="ignore"):
                grid = list(itertools.product(EDGES.astype(last), repeat=len(rows)))
                edges = [np.asarray(column).astype(dtype) for column, dtype in zip(zip(*grid), self.dtypes)]
            rows = [np.concatenate(pair) for pair in zip(rows, edges)]
        return tuple(rows)

    @functools.cached_property
    def wanted(self) -> np.ndarray:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self.primitive.numpy(*self.arrays, **self.attributes)).astype(self.result.dtype)


def scheduled(primitive: Primitive, dtypes: tuple[np.dtype, ...], attributes: dict) -> Case | None:
    """The operation as the tree has it; None where it does not take these dtypes."""
    parameters = [(f"x{k}", Array(dtype, (COUNT,))) for k, dtype in enumerate(dtypes)]
    try:
        function = trace("f", lambda *xs: primitive(*xs, **attributes), parameters)
    except CoreTypeError:
        return None
    program = schedule(function)
    (store,) = [s for s in walk(program.entry.body) if isinstance(s, Store)]
    label = "_".join(map(str, (primitive.name, *(c_name(d) for d in dtypes), *map(str, attributes.values()))))
    return Case(label, primitive, attributes, dtypes, program.params, store.buf, store.value)


@functools.cache
def cases() -> tuple[Case, ...]:
    rows = []
    for primitive in REGISTRY.values():
        if not isinstance(primitive.native, Point) or primitive.native.expression == "identity":
            continue
        operands = 3 if primitive.name == "select" else len(primitive.jvp)
        for dtype in SHORT.values():
            dtypes = (np.dtype(bool), dtype, dtype) if primitive.name == "select" else (dtype,) * operands
            for attributes in ATTRIBUTES.get(primitive.name, [{}]):
                if (case := scheduled(primitive, dtypes, attributes)) is not None:
                    rows.append(case)
    return tuple(rows)


def c_module(dialect: Dialect = C, before: str = "void ") -> str:
    """One function a case: a loop over its operands."""
    printer, bodies = Printer(dialect), []
    for k, case in enumerate(cases()):
        parameters = [f"const {c_name(b.dtype)}* {b.name}" for b in case.operands]
        parameters += [f"{c_name(case.result.dtype)}* {case.result.name}", "i64 n"]
        bodies.append(
            f"{before}case_{k}({', '.join(parameters)}) {{\n"
            f"    for (i64 i = 0; i < n; i++) {case.result.name}[i] = {printer.text(case.value)};\n}}"
        )
    made = [h.text for h in with_needs(printer.helpers, dialect)]
    return "\n".join([*dialect.typedefs({*dialect.types, *dialect.definitions}), *made, *bodies]) + "\n"


def cython_module() -> str:
    """The same in Cython; the entry writes the functions' addresses into its first buffer."""
    printer, bodies = Printer(CYTHON), []
    for k, case in enumerate(cases()):
        parameters = [f"{c_name(b.dtype)}* {b.name}" for b in case.operands]
        parameters += [f"{c_name(case.result.dtype)}* {case.result.name}", "i64 n"]
        bodies.append(
            f"cdef void case_{k}({', '.join(parameters)}) noexcept nogil:\n    cdef i64 i\n    for i in range(n):\n"
            f"        {case.result.name}[i] = {printer.text(case.value)}\n"
        )
    table = [f"    (<void**>buffers[0])[{k}] = <void*>case_{k}" for k in range(len(cases()))]
    entry = "cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:"
    bodies.append("\n".join([entry, *table, "    return 0"]) + "\n")
    return DIRECTIVES + prelude(bodies, printer.helpers, set(), []) + "\n\n" + "\n\n".join(bodies)


def call(function, case: Case) -> np.ndarray:
    result = np.zeros(case.arrays[0].shape, case.result.dtype)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*case.arrays, result)]
    function(*pointers, ctypes.c_int64(len(result)))
    return result


@pytest.fixture(scope="module")
def by_c(tmp_path_factory):
    """The result of each case in C, without contraction."""
    place = tmp_path_factory.mktemp("dialects")
    source, library = place / "all.c", place / "all.so"
    source.write_text('#include "abi.h"\n#include "maths.h"\n' + c_module())
    compile_shared(find_compiler(), source, library, (*flags(contract=False), "-O1"))
    loaded = ctypes.CDLL(str(library))
    return [call(getattr(loaded, f"case_{k}"), case) for k, case in enumerate(cases())]


def test_all_operations_and_dtypes_are_there():
    seen = {case.primitive.name for case in cases()}
    assert seen == {
        p.name for p in REGISTRY.values() if isinstance(p.native, Point) and p.native.expression != "identity"
    }
    assert {c_name(d) for case in cases() for d in case.dtypes} == set(C.types) == set(CUDA.types)


# NumPy's own functions of two-byte floats and of floats are off by a few units.
TOLERANCES = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 4e-6, "complex64": 1e-5}


def agrees(have: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where results are equal: whole numbers exactly, floats nearly; 0.0 and -0.0 are two, except of two-byte
    floats, of which NumPy and ml_dtypes have rules of their own."""
    if have.dtype.kind in "biu":
        return have == want
    relative = TOLERANCES.get(have.dtype.name, 1e-12)
    signed = have.dtype in (np.float32, np.float64)
    wide = np.complex128 if have.dtype.kind == "c" else np.float64
    have, want = have.astype(wide), want.astype(wide)
    near = np.isclose(have, want, rtol=relative, atol=1e-307, equal_nan=True)
    return near & ((want != 0) | (np.signbit(have) == np.signbit(want))) if signed else near


def test_c_gives_numpys_results(by_c):
    wrong = []
    for case, have in zip(cases(), by_c):
        for place in np.flatnonzero(~agrees(have, case.wanted))[:3]:
            operands = ", ".join(str(x[place]) for x in case.arrays)
            if case.primitive.name == "erfinv" and not case.wanted[place]:
                continue  # SciPy has 0.0 of -0.0, which is odd
            wrong.append(f"{case.name}({operands}) is {have[place]}, not {case.wanted[place]}")
    assert not wrong, "\n".join(wrong)


def test_cython_gives_the_results_of_c(by_c):
    library = cython_build.build(cython_module(), name="dialects", contract=False, extra_flags=("-O1",))
    table = (ctypes.c_void_p * len(cases()))()
    buffers = (ctypes.c_void_p * 1)(ctypes.addressof(table))
    entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(library.address)
    assert entry(None, buffers, None) == 0
    wrong = []
    for case, address, want in zip(cases(), table, by_c):
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(case.arrays) + 1), ctypes.c_int64)
        if call(kind(address), case).tobytes() != want.tobytes():
            wrong.append(case.name)
    assert not wrong, wrong


def test_cuda_compiles(tmp_path):
    """By nvcc, where it is installed; elsewhere it is printed, which needs a declaration for each operation."""
    text = c_module(CUDA, 'extern "C" __global__ void ')
    assert text.count("__global__") == len(cases()) and "__builtin_complex" not in text and "MP_LIBRARY" not in text
    if (nvcc := shutil.which("nvcc")) is None:
        warnings.warn(
            "nvcc is not installed: the CUDA text of scalar operations was printed, not compiled", stacklevel=1
        )
        return
    source = tmp_path / "all.cu"
    source.write_text(text)
    command = [nvcc, "--ptx", "-arch=sm_80", "-Xcicc=-O0", "-w", str(source), "-o", str(tmp_path / "all.ptx")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    assert (tmp_path / "all.ptx").read_text().count(".entry case_") == len(cases())


def test_dialects_differ_where_their_languages_do():
    x, n = Load(local("x", np.dtype("float64"))), Load(local("n", np.dtype("int32")))
    half = Op("convert", (x + Const(np.float64(np.inf)),), np.dtype("float32"))
    assert [Printer(d).text(half) for d in (CYTHON, C, CUDA)] == [
        "<f32>(x + f64_special_inf())",
        "(f32)(x + __builtin_inf())",
        "(f32)(x + mp_inf())",
    ]
    z = Const(np.complex64(complex(-0.0, 2)))
    assert [Printer(d).text(z) for d in (CYTHON, C, CUDA)] == [
        "f32_complex(<f32>-0.0, <f32>2.0)",
        "__builtin_complex(-0.0f, 2.0f)",
        "c64(-0.0f, 2.0f)",
    ]
    masked = Op("eq", (Op("and", (n, Const(np.int32(1))), n.dtype), Const(np.int32(-(2**31)))), np.dtype(bool))
    assert {Printer(d).text(masked) for d in (CYTHON, C, CUDA)} == {"(n & 1) == (-2147483647 - 1)"}
    of_bits = next(case.value for case in cases() if case.name == "signbit_bf16")
    assert Printer().text(of_bits) == "bf16_signbit(x0[i])"  # as a float gcc 12 makes vectors of it, and breaks off
    assert "MP_LIBRARY" in helper("f64_sin").text and "return sin(x);" in helper("f64_sin", CUDA).text
    assert helper("c128_sqrt", CUDA).text.endswith("return cuda::std::sqrt(x); }")
