"""Text to library: both forms, what is refused, and what is kept of a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metaphrase.runtime import compiler, cython_build, cython_translate, dispatch

HELPERS = """
cdef extern from *:
    '''
    typedef double* restrict f64p;
    double mp_sin(double) __asm__("sin");
    '''
    ctypedef double* f64p
    double mp_sin(double) nogil

cdef struct pair:
    double first
    double second

cdef pair split(double x) noexcept nogil:
    cdef pair out
    out.first = x
    out.second = mp_sin(x)
    return out
"""
BODY = """
cdef f64p x = <f64p>buffers[0]
cdef f64p out = <f64p>buffers[1]
cdef int64_t i
cdef pair both
for i in range(sizes[0]):
    both = split(x[i])
    out[i] = both.first + both.second
return 0
"""


@pytest.mark.parametrize("whole", [False, True], ids=["kernel", "extension"])
def test_both_forms_compute_the_same(text_of, whole):
    library = cython_build.build(text_of(BODY, HELPERS), name="both", whole=whole)
    assert library.form == ("extension" if whole else "kernel")
    x = np.linspace(-3, 3, 50)
    (out,) = dispatch.run_entry(library.address, [x], [("f8", x.shape)], [50])
    np.testing.assert_allclose(out, x + np.sin(x), rtol=1e-15)


def test_the_cut_kernel_has_no_python_in_it(text_of):
    answer = cython_build.translate(text_of(BODY, HELPERS), "f")
    assert answer["form"] == "kernel"
    assert "Python.h" not in answer["c"] and "__Pyx_" not in answer["c"] and len(answer["c"].splitlines()) < 120


def test_a_null_pointer_needs_no_whole_extension(text_of):
    body = """
cdef double* x = <double*>buffers[0]
if x == NULL:
    return 1
x[0] = 3.0
return 0
"""
    assert cython_build.build(text_of(body), name="null").form == "kernel"


def test_the_c_depends_on_the_text_alone(text_of):
    text = text_of(BODY, HELPERS)
    in_this_process = cython_translate.request(text, False, "f")  # without the patches of the worker
    assert cython_build.translate(text, "f") == in_this_process


def test_what_needs_cythons_utilities_is_built_whole(text_of):
    # Python's integer power is one of Cython's own functions.
    text = text_of("(<int64_t*>buffers[1])[0] = (<int64_t*>buffers[0])[0] ** sizes[0]\nreturn 0")
    assert "__Pyx_pow" in cython_build.translate(text, "f")["note"]
    library = cython_build.build(text, name="power")
    assert library.form == "extension"
    (out,) = dispatch.run_entry(library.address, [np.int64(3)], [("i8", ())], [4])
    assert out == 81


def test_values_that_are_not_finite_keep_their_meaning(text_of):
    library = cython_build.build(
        text_of("""
        cdef double* x = <double*>buffers[0]
        cdef char* out = <char*>buffers[1]
        cdef int64_t i
        for i in range(sizes[0]):
            out[i] = x[i] != x[i]
        return 0
    """),
        name="isnan",
    )
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0] * 8)
    (out,) = dispatch.run_entry(library.address, [x], [("bool", x.shape)], [x.size])
    assert np.array_equal(out, np.isnan(x))


SUBNORMAL = """
from pathlib import Path

import numpy as np
from metaphrase.runtime import compiler, cython_build, dispatch
compiler.LINK_FLAGS = ("-lgcc-that-is-missing",)
text = open({text!r}).read()
for whole in (False, True):
    library = cython_build.build(text, name="fast", fastmath=True, whole=whole)
    (out,) = dispatch.run_entry(library.address, [], [("f8", ())])
    assert out == 2.5 and (np.array([2.3e-308]) / 4)[0] != 0.0, library.form
print("numbers near 0 are kept")
"""


def test_fast_mathematics_leaves_the_process_alone(text_of, tmp_path):
    """gcc links a start file to fast programs that makes the whole process take numbers near 0 for 0."""
    (tmp_path / "kernel.pyx").write_text(text_of("(<double*>buffers[0])[0] = 2.5\nreturn 0"))
    script = SUBNORMAL.format(text=str(tmp_path / "kernel.pyx"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "numbers near 0 are kept\n", done.stderr


def test_without_contraction_products_and_sums_are_numpys_to_the_bit(text_of):
    text = text_of("""
        cdef double* x = <double*>buffers[0]
        cdef double* y = <double*>buffers[1]
        cdef double* out = <double*>buffers[2]
        cdef int64_t i
        for i in range(sizes[0]):
            out[i] = x[i] * y[i] + x[i]
        return 0
    """)
    x, y = np.random.default_rng(0).normal(size=(2, 1000))
    library = cython_build.build(text, name="f", contract=False)
    (out,) = dispatch.run_entry(library.address, [x, y], [("f8", x.shape)], [1000])
    assert np.array_equal(out, x * y + x)
    contracted = cython_build.build(text, name="f")
    assert contracted.address != library.address
    (out,) = dispatch.run_entry(contracted.address, [x, y], [("f8", x.shape)], [1000])
    np.testing.assert_allclose(out, x * y + x, rtol=1e-13, atol=1e-16)


def test_a_text_that_cython_refuses(text_of):
    with pytest.raises(cython_build.BuildError, match="undeclared name not builtin: nonsense") as caught:
        cython_build.build(text_of("return nonsense"), name="the bad function")
    assert "the bad function" in str(caught.value) and str(caught.value.path) in str(caught.value)
    assert caught.value.path.read_text() == text_of("return nonsense")


def test_a_text_that_the_c_compiler_refuses(text_of):
    text = text_of(
        "return nowhere()",
        """
        cdef extern from *:
            "int nowhere() { return }"
            int nowhere() nogil
    """,
    )
    with pytest.raises(cython_build.BuildError, match="expected expression") as caught:
        cython_build.build(text, name="bad C")
    assert caught.value.path.name == "kernel.pyx" and "nowhere" in (caught.value.path.parent / "kernel.c").read_text()


def test_a_name_that_nothing_provides(text_of):
    text = text_of(
        "return nowhere()",
        """
        cdef extern from *:
            "int nowhere(void);"
            int nowhere() nogil
    """,
    )
    with pytest.raises(cython_build.BuildError, match="nowhere"):
        cython_build.build(text, name="unresolved")


def test_a_module_without_an_entry():
    with pytest.raises(cython_build.BuildError):
        cython_build.build("cdef int other() noexcept nogil:\n    return 0\n", name="no entry")


def test_no_compiler(monkeypatch, text_of):
    monkeypatch.setenv("METAPHRASE_CC", "no-such-compiler")
    with pytest.raises(cython_build.CompilerMissing, match="'no-such-compiler' is not on PATH"):
        cython_build.build(text_of("return 0"), name="f")
    monkeypatch.delenv("METAPHRASE_CC")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(cython_build.CompilerMissing, match="install gcc or set METAPHRASE_CC"):
        compiler.find_compiler()
    cython_build.warm()  # says nothing and starts nothing


def test_a_translator_that_dies_is_replaced(text_of):
    cython_build.translate(text_of("return 0"), "f")
    cython_build._worker.process.kill()
    assert cython_build.translate(text_of("return 5"), "f")["form"] == "kernel"


def test_without_a_translator_this_process_translates(monkeypatch, text_of):
    def refuse():
        raise OSError("no processes here")

    monkeypatch.setattr(cython_build, "_start_worker", refuse)
    assert cython_build.translate(text_of("return 6"), "f")["form"] == "kernel"


def test_the_translator_ends_with_its_parent(tmp_path):
    script = (
        "import metaphrase.runtime.cython_build as b; b.warm(); "
        "b.translate('cdef int entry() noexcept nogil:\\n    return 0\\n', 'f'); print(b._worker.process.pid)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    pid = int(done.stdout)
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")")[1].split()[0] == "Z":
                    break
        except (FileNotFoundError, ProcessLookupError):
            break
        import time

        time.sleep(0.05)
    else:
        os.kill(pid, 9)
        pytest.fail("the translating process outlived its parent")


@pytest.mark.parametrize("whole", [False, True], ids=["kernel", "extension"])
def test_what_is_called_has_the_name_of_the_program(text_of, whole):
    """A profiler looks an address up in the library's symbols."""
    text = text_of("(<double*>buffers[0])[0] = 1.5\nreturn 0")
    library = cython_build.build(text, name="Größe <of> it.pull", whole=whole)
    listed = subprocess.run(["nm", str(library.path)], capture_output=True, text=True, check=True).stdout.split("\n")
    symbols = {name: int(place, 16) for place, _, name in map(str.split, filter(lambda row: row[:1].isdigit(), listed))}
    (base,) = [
        int(row.partition("-")[0], 16)
        for row in Path("/proc/self/maps").read_text().split("\n")
        if row.endswith(str(library.path)) and row.split()[2] == "00000000"
    ]
    assert symbols["mp_py_Gr_e_of_it_pull"] == library.address - base
    assert dispatch.run_entry(library.address, [], [("f8", ())])[0] == 1.5


def test_equal_programs_share_a_library_where_their_names_are_equal(text_of):
    text = text_of("(<double*>buffers[0])[0] = 2.5\nreturn 0")
    first, again, other = (cython_build.build(text, name=name) for name in ("first", "first", "other"))
    assert first is again and first.path != other.path


def test_parts_have_the_name_of_the_program_too(text_of):
    head = "cdef double part_0(double x) noexcept nogil:\n    return x + 1.0\n"
    answer = cython_build.translate(text_of("(<double*>buffers[0])[0] = part_0(sizes[0])\nreturn 0", head), "f")
    assert "= mp_py_f_part_0((" in answer["c"] and "int mp_py_f_entry(" in answer["c"]
    assert "__pyx_f_" not in answer["c"]


def test_a_signal_handler_that_translates_in_the_midst_of_a_translation_gets_its_own(monkeypatch):
    """The translating process answers in order: who asked first would be given the other one's text."""
    texts = [cython_translate.WARM_TEXT, cython_translate.WARM_TEXT.replace("* 2.0", "* 3.0")]
    alone = [cython_build.translate(text, "f")["c"] for text in texts]
    worker, inner = cython_build._start_worker(), []
    read = worker._read

    def interrupted():
        if not inner:
            inner.append(cython_build.translate(texts[1], "f")["c"])
        return read()

    monkeypatch.setattr(worker, "_read", interrupted)
    assert cython_build.translate(texts[0], "f")["c"] == alone[0] and inner == [alone[1]] and alone[0] != alone[1]
    assert worker.alive() and cython_build.translate(texts[1], "f")["c"] == alone[1]


def test_long_functions_are_compiled_in_time():
    """gcc's last search for what is computed twice takes time with the square of a function's length."""
    short, long = "\ncdef int f():\n" + "    x = 1\n" * 500, "\ncdef int g():\n" + "    x = 1\n" * 3000
    assert compiler.for_long_functions(short * 10) == ()
    assert compiler.for_long_functions(short + long) == ("-fno-gcse", "-fno-gcse-after-reload")
