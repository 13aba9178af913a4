"""What gcc says of loops is read right: each loop of the text has its own report, and what is unknown is said."""

from __future__ import annotations

import stat
import subprocess

import pytest

import metaphrase as mp
from metaphrase.runtime import cython_build, vectors
from metaphrase.runtime.compiler import find_compiler
from metaphrase.runtime.vectors import vector_report


def scaled(x):
    return 2.0 * x + 1.0


def walked(x):
    s = 0.0
    for i in range(len(x)):
        s = s * 0.5 + x[i]
    while s > 1.0:
        s = s * 0.5
    return s


def both(x):
    return scaled(x), walked(x)


def text_of(function):
    return mp.source(function, "f64[n]", stage="cython")


def is_gcc() -> bool:
    said = subprocess.run([*find_compiler().command, "--version"], capture_output=True, text=True).stdout
    return "Free Software Foundation" in said


def test_each_loop_has_its_report():
    report = vector_report(text_of(both))
    if not is_gcc():
        assert report.why and report.loops == {}
        return
    assert "gcc" in report.compiler.lower() and report.why == ""
    (part,) = report.loops["part_0"]
    assert part.vectors >= 16
    loop, wait = report.loops["entry"]
    assert loop.vectors == wait.vectors == 0 and loop.reasons != []


def test_a_report_is_of_the_code_that_is_built():
    """The function is the same to the byte as the one that the library was made of."""
    text = text_of(walked)
    library = cython_build.build(text, name="walked")
    assert library.path.with_name("kernel.c").read_text() == cython_build.translate(text, "walked")["c"]


def test_the_report_is_sorted_by_loops_of_c():
    c_text = """static int mp_py_function_first(int n) {
  for (i = 0; i < n; i+=1) {
    while (1) {
      a = b;
    }
  }
  _Pragma("omp simd")
  for (i = 0; i < n; i+=1) {
    c = d;
  }
}
static void mp_py_function_other(int n) {
  while (1) {
  }
}
"""
    text = """cdef int first(i64 n) noexcept nogil:
    for i in range(n):
        while 1:
            pass
    for i in range(n):
        pass


cdef void other(i64 n) noexcept nogil:
    pass
"""
    said = """k.c:2:10: missed: couldn't vectorize loop
k.c:4:7: missed: not vectorized: control flow in loop.
k.c:3:10: missed: couldn't vectorize loop
k.c:9:7: missed: not vectorized: unsupported use in stmt.
k.c:7:3: optimized: loop vectorized using 32 byte vectors
k.c:9:5: optimized: loop vectorized using 16 byte vectors
k.c:3:10: optimized: loop with 3 iterations completely unrolled (header execution count 9)
k.c:4:10: optimized: basic block part vectorized using 32 byte vectors
"""
    found = vectors._by_function(text, c_text, said)
    assert list(found) == ["first"]  # the loops of `other` are not those of the text
    outer, inner, last = found["first"]
    assert outer.reasons == ["control flow in loop"] and outer.vectors == 0
    assert inner.reasons == ["unsupported use in stmt"] and inner.is_unrolled and inner.packed == 32
    assert last.vectors == 32 and last.reasons == []


@pytest.mark.parametrize("script, why", [("echo clang version 99", "the C compiler is another"), ("exit 3", "another")])
def test_another_compiler_is_not_asked(monkeypatch, tmp_path, script, why):
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("METAPHRASE_CC", str(compiler))
    report = vector_report(text_of(scaled))
    assert report.loops == {} and why in report.why
