"""The elementary functions of runtime/maths.h: their errors over the whole domain, for each kind of machine that code
is made for, and that compilers make vectors of them.

What is exact is told by NumPy in more bits (benchmarks/accuracy.py, which writes docs/accuracy.md).
"""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import metaphrase as mp
import metaphrase.ops  # noqa: F401  (declares the functions)
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.scalars import facts
from metaphrase.runtime.abi import HEADER_DIRECTORY
from metaphrase.runtime.compiler import find_compiler, flags

pytestmark = pytest.mark.turns(3)

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "accuracy.py"
spec = importlib.util.spec_from_file_location("accuracy_benchmark", PATH)
accuracy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(accuracy)

OURS = sorted(name for name in accuracy.RANGES if facts(name).ours)
CIRCULAR = ("cos", "sin", "tan")
TYPES = {"f64": np.dtype(np.float64), "f32": np.dtype(np.float32)}
INTEL = platform.machine() in ("x86_64", "AMD64")
# Units in the last place; the second number is for machines that have no fused multiply-add.
LIMITS = {name: (2.4, 2.7) for name in (*OURS, *CIRCULAR)}
LIMITS |= dict.fromkeys(("exp", "log", "log2", "log10", "arccos", "cbrt", "sin", "cos"), (1.05, 1.5))
LIMITS |= dict.fromkeys(("exp2", "arcsin", "hypot"), (1.25, 1.5)) | {"log1p": (1.5, 1.6), "cosh": (1.4, 1.5)}


def is_gcc() -> bool:
    said = subprocess.run([*find_compiler().command, "--version"], capture_output=True, text=True).stdout
    return "Free Software Foundation" in said


def fused() -> bool:
    return not INTEL or "fma" in Path("/proc/cpuinfo").read_text()


def module_text(names: Sequence[str]) -> str:
    rows = ['#include "maths.h"']
    for name in names:
        for kind, c_type in (("f64", "double"), ("f32", "float")):
            two = len(accuracy.RANGES[name]) == 2
            if name in CIRCULAR:
                declared = f'MP_CIRCULAR {c_type} {kind}_{name}({c_type}) MP_LIBRARY("{name}{"f" * (kind == "f32")}");'
                rows.append(f"{declared} MP_VECTORS({kind}, {name})")
            rows.append(
                f"void {kind}_{name}_of(const {c_type} *restrict x, const {c_type} *restrict y, {c_type} *restrict z,"
                f" long n) {{ for (long i = 0; i < n; i++) z[i] = {kind}_{name}(x[i]{', y[i]' if two else ''}); }}"
            )
    return "\n".join(rows) + "\n"


def compiled(
    folder: Path, *options: str, command: tuple[str, ...] = (), names: Sequence[str] = OURS
) -> Callable[[str, str], Callable]:
    """The functions of the headers over arrays, of (f64 or f32, name)."""
    source, library = folder / "maths.c", folder / "maths.so"
    source.write_text(module_text(names))
    command = command or find_compiler().command
    done = subprocess.run(
        [*command, *options, f"-I{HEADER_DIRECTORY}", "-o", str(library), str(source), "-lm"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    loaded = ctypes.CDLL(str(library))

    def function(kind: str, name: str) -> Callable:
        def call(*operands: np.ndarray) -> np.ndarray:
            result = np.empty_like(operands[0])
            addresses = [ctypes.c_void_p(x.ctypes.data) for x in (operands[0], operands[-1], result)]
            getattr(loaded, f"{kind}_{name}_of")(*addresses, ctypes.c_long(result.size))
            return result

        return call

    return function


def check(function: Callable[[str, str], Callable], fused: bool, points: int, names: Sequence[str] = OURS) -> None:
    for kind, dtype in TYPES.items():
        for name in names:
            found = accuracy.worst(function(kind, name), name, dtype, points)
            if found is not None:
                assert found[0] <= LIMITS[name][not fused], f"{kind} {name}: {found[0]} ulp at {found[1]}"


def test_all_that_is_ours_is_there():
    text = "".join(Path(HEADER_DIRECTORY, header).read_text() for header in ("maths.h", "maths_of.h"))
    assert len(OURS) == 19
    assert {name for name in REGISTRY if facts(name).ours} == set(OURS)
    for name in OURS:
        both = re.findall(rf"NAME\({name}\)\(|f64_{name}\(|f32_{name}\(", text)
        assert both and f"({name}, {facts(name).library})" in text, name  # the second with -ffast-math


def test_errors_on_this_machine(tmp_path):
    check(compiled(tmp_path, *flags()), fused(), 60_000)


def test_angles_without_a_vector_library(tmp_path):
    """What glibc's library does elsewhere is called under the same names, far numbers included."""
    function = compiled(tmp_path, *flags(), "-DMP_NO_VECTOR_LIBRARY", names=CIRCULAR)
    check(function, True, 60_000, CIRCULAR)
    far = np.array([1e5, 1e15, -1e22, 1e300, 2.0**46, 0.5, np.inf, 3.0] * 8)
    for name in CIRCULAR:
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(function("f64", name)(far), getattr(np, name)(far), rtol=1e-15)
    if is_gcc() and INTEL and fused():
        names = subprocess.run(["nm", str(tmp_path / "maths.so")], capture_output=True, text=True).stdout
        assert re.search(r" t _ZGVdN4v_sin$", names, re.MULTILINE) and not re.search(r" U _ZGV", names)


@pytest.mark.skipif(not INTEL, reason="the oldest processor of its kind is meant")
def test_errors_without_fused_operations(tmp_path):
    options = [flag for flag in flags(contract=False) if not flag.startswith("-march")]
    check(compiled(tmp_path, *options, "-march=x86-64"), False, 60_000)


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
def test_errors_by_clang(tmp_path):
    options = ("-O3", "-march=native", "-fno-math-errno", "-ffp-contract=fast", "-fPIC", "-shared", "-w")
    check(compiled(tmp_path, *options, command=("clang",)), True, 60_000)


def test_results_do_not_depend_on_vectors(tmp_path):
    """What is computed side by side, and what is left over behind it, is the same to the bit without contraction."""
    (tmp_path / "one").mkdir()
    vectors = compiled(tmp_path, *flags(contract=False))
    alone = compiled(tmp_path / "one", *flags(contract=False), "-fno-tree-vectorize", "-fno-tree-slp-vectorize")
    for kind, dtype in TYPES.items():
        for name in OURS:
            for operands in accuracy.samples(name, dtype, 5_000):
                left, right = vectors(kind, name)(*operands), alone(kind, name)(*operands)
                assert np.array_equal(left, right, equal_nan=True), (kind, name)


def test_fast_maths_are_the_librarys(tmp_path):
    """-ffast-math takes apart what the functions are made of: there the C library's are called."""
    function = compiled(tmp_path, *flags(fastmath=True), "-nostartfiles")  # they make small numbers 0 everywhere
    for kind, dtype in TYPES.items():
        for name in OURS:
            low, high = accuracy.RANGES[name][0]
            x = np.linspace(low + 0.1, high - 0.1, 1_000, dtype=dtype)
            operands = (x, x[::-1].copy())[: len(accuracy.RANGES[name])]
            np.testing.assert_allclose(function(kind, name)(*operands), getattr(np, name)(*operands), rtol=1e-5)


def test_compilers_make_vectors_of_them(tmp_path):
    if not is_gcc():
        pytest.skip("what gcc says is read")
    source = tmp_path / "maths.c"
    source.write_text(module_text(OURS))
    options = [flag for flag in flags() if flag != "-shared"]
    command = [*find_compiler().command, *options, "-c", "-fopt-info-vec-optimized", f"-I{HEADER_DIRECTORY}"]
    report = subprocess.run([*command, str(source), "-o", str(tmp_path / "maths.o")], capture_output=True, text=True)
    lines = {int(line) for line in re.findall(r"maths\.c:(\d+):\d+: optimized: loop vectorized", report.stderr)}
    rows = source.read_text().splitlines()
    assert [row.partition("(")[0] for k, row in enumerate(rows, 1) if row.startswith("void") and k not in lines] == []


def test_emitted_text_calls_them():
    text = mp.source(lambda x: np.tanh(np.exp(x)) + np.sin(x), "f32[n]", stage="cython")
    assert '#include "maths.h"' in text and "f32 f32_tanh(f32 x)" in text
    assert re.findall(r"MP_LIBRARY\(\"(\w+)\"\)", text) == ["sinf"]


def test_loops_around_them_use_the_longest_vectors():
    """As many iterations as fill 64 bytes; not where a sum would leave many behind its last vector."""

    def lanes(function, *types):
        return set(re.findall(r"mp_simd_lanes(\d+)\(\w+\)\n", mp.source(function, *types, stage="cython")))

    assert lanes(lambda x: np.tanh(x), "f32[n]") == {"16"} and lanes(lambda x: np.exp(x) * 2, "f64[1000]") == {"8"}
    assert lanes(lambda x: np.exp(x).sum(axis=1), "f64[16, 200]") == {"8"}
    assert lanes(lambda x: np.exp(x).sum(axis=1), "f32[16, 200]") == lanes(lambda x: x * x, "f32[n]") == set()
    assert lanes(lambda x: np.exp(x), "f64[20]") == set()
    x = np.linspace(-3, 3, 1003, dtype=np.float32)
    np.testing.assert_allclose(mp.jit(lambda x: np.exp(x) * np.log1p(x * x))(x), np.exp(x) * np.log1p(x * x), rtol=1e-6)
