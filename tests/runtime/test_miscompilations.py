"""Faults of C compilers that give wrong numbers: which compilers have them, and that none gets through.

Each fault is a C function that says whether it was compiled wrongly, beside the same function as the emitted
text has it. `SHOWN` is what was seen of versions; a version that is not listed may do either.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.runtime import compiler, miscompilations
from metaphrase.runtime.miscompilations import DIVIDED, NARROWED, Fault, remedies, shows

COMPILERS = [c for c in ("gcc", "clang", *(f"gcc-{k}" for k in range(10, 18))) if shutil.which(c)] or ["cc"]

ROWS = """\
typedef double* __restrict__ rows;
static double x[15], y[15], out[15], other[15];
static inline double chosen(unsigned char c, double a, double b) { return c ? a : b; }
__attribute__((noinline)) static void choose(rows x, rows y, double a, rows out, rows other) {
    unsigned char m;
    for (long i = 0; i < 3; i++)
        ROLLED
        for (long j = 0; j < 5; j++) {
            m = x[i*5 + j] > a;
            out[i*5 + j] = chosen(m, 100.0, x[i*5 + j]);
            other[i*5 + j] = chosen(m, 200.0, y[i*5 + j]);
        }
}
__attribute__((visibility("default"))) int metaphrase_probe(void) {
    int wrong = 0;
    volatile double a = 0.0;
    for (int k = 0; k < 11; k++) {
        for (int i = 0; i < 15; i++) { x[i] = ((i*7 + k*5) % 11 - 5)/4.0; y[i] = i + 1; }
        choose(x, y, a, out, other);
        for (int i = 0; i < 15; i++) {
            volatile double at = x[i];
            wrong |= out[i] != (at > a ? 100.0 : at) || other[i] != (at > a ? 200.0 : y[i]);
        }
    }
    return wrong;
}
"""
ZERO = """\
__attribute__((noinline)) static double minus(long number) { return DIFFERENCE; }
__attribute__((visibility("default"))) int metaphrase_probe(void) {
    volatile long zero = 0;
    return __builtin_signbit(minus(zero)) != 0;
}
"""
FAULTS = {
    "narrowed": (NARROWED, NARROWED.c, NARROWED.flags),
    "divided": (DIVIDED, DIVIDED.c, DIVIDED.flags),
    "rows": (
        Fault("rows of chosen elements", ROWS.replace("ROLLED", ""), (), ()),
        ROWS.replace("ROLLED", '_Pragma("GCC unroll 1")'),
        (),
    ),
    "zero": (
        Fault("zero minus an integer", ZERO.replace("DIFFERENCE", "0.0 - (double)number"), (), ()),
        ZERO.replace("DIFFERENCE", "(double)(0 - number)"),
        (),
    ),
}
AVX2 = "avx2" in (open("/proc/cpuinfo").read() if os.path.exists("/proc/cpuinfo") else "")
SHOWN = {
    ("gcc", 12): {"narrowed": AVX2, "divided": True, "rows": AVX2, "zero": True},
    ("clang", 14): {"narrowed": False, "divided": False, "rows": False, "zero": False},
}


def version_of(command):
    said = subprocess.run([command, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    number = re.search(r"(\d+)\.\d+\.\d+", said)
    return "clang" if "clang" in said else "gcc", int(number[1]) if number else 0


def toolchain_of(command):
    return compiler._find_compiler(command, os.environ["PATH"])


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", COMPILERS)
def test_what_is_emitted_is_right_and_what_is_known_is_so(command, fault):
    plain, emitted, more = FAULTS[fault]
    toolchain = toolchain_of(command)
    seen = shows(plain, toolchain, None)
    assert not shows(Fault(plain.name, emitted, (), ()), toolchain, None, more if seen else ())
    assert SHOWN.get(version_of(command), {}).get(fault, seen) == seen


def narrowed(y):
    return (y * 2)[::-1].astype(np.float32).astype(np.float64)


def narrowed_pairs(z):
    return (z + z)[::-1].astype(np.complex64).astype(np.complex128)


def narrowed_in_a_loop(y):
    out = np.zeros(4)
    for i in range(4):
        out[i] = np.float32(y[3 - i] * 2)
    return out


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("function", [narrowed, narrowed_pairs, narrowed_in_a_loop])
@pytest.mark.parametrize("command", COMPILERS)
def test_a_rounding_to_float_is_kept(command, function, size, monkeypatch):
    monkeypatch.setenv("METAPHRASE_CC", command)
    y = np.resize([0.05, 0.1, 0.15, 1 / 6], max(size, 4) if function is narrowed_in_a_loop else size)
    np.testing.assert_array_equal(mp.jit(function)(y), function(y))


def test_only_texts_that_mix_the_types_pay(monkeypatch):
    monkeypatch.setattr(miscompilations, "shows", lambda *_: True)
    toolchain = compiler.find_compiler()
    assert remedies(toolchain, "cdef f64 x = <f64>(<f32>y)", None) == NARROWED.flags
    assert remedies(toolchain, "cdef c128 x = c128_of(c64_real(y))", None) == NARROWED.flags
    assert remedies(toolchain, "cdef f64 x", None) == remedies(toolchain, "cdef f32 x", None) == ()


@pytest.fixture
def counted(monkeypatch):
    """How often a compiler was asked."""
    asked = []
    monkeypatch.setattr(miscompilations, "_known", {})
    monkeypatch.setattr(miscompilations, "_probed", lambda *_: bool(asked.append(1)) or True)
    return asked


def test_a_compiler_is_asked_once(counted, tmp_path, monkeypatch):
    toolchain = compiler.find_compiler()
    assert shows(NARROWED, toolchain, tmp_path) and shows(NARROWED, toolchain, tmp_path)
    monkeypatch.setattr(miscompilations, "_known", {})  # as in another process
    assert shows(NARROWED, toolchain, tmp_path) and len(counted) == 1
    assert shows(NARROWED, compiler.Toolchain(toolchain.command, "another"), tmp_path) and len(counted) == 2


def test_what_was_kept_and_can_not_be_read_is_asked_again(counted, tmp_path):
    toolchain = compiler.find_compiler()
    shows(NARROWED, toolchain, tmp_path)
    (kept,) = tmp_path.iterdir()
    for content in (b"", b"\xff\xfe", b"maybe"):
        miscompilations._known.clear()
        kept.write_bytes(content)
        assert shows(NARROWED, toolchain, tmp_path) and kept.read_text() == "wrong"
    assert len(counted) == 4


def test_a_compiler_that_can_not_be_asked_is_taken_to_be_wrong(monkeypatch, tmp_path):
    def fails(*_):
        raise OSError("no room")

    monkeypatch.setattr(miscompilations, "_known", {})
    monkeypatch.setattr(miscompilations, "_probed", fails)
    assert shows(NARROWED, compiler.find_compiler(), tmp_path) and not list(tmp_path.iterdir())
