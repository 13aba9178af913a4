"""Libraries of C that `metaphrase compile --to c` makes: their numbers, errors, memory and texts.

In: modules that export. Out: what ctypes, and programs of C that include the header, get from the library.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from plans.project import ORBITS, module_of

from metaphrase.aot import compile_module
from metaphrase.aot.c_messages import printf_of
from metaphrase.cli.main import main
from metaphrase.runtime.abi import HEADER_DIRECTORY
from metaphrase.runtime.compiler import find_compiler
from metaphrase.source import SourceError

pytestmark = pytest.mark.turns(3, together=True)

MORE = '''"""What else a function may do."""

import warnings

import numpy as np

import metaphrase as mp


class Diverged(ValueError):
    pass


@mp.export("f64[n], i64")
def pick(x, i):
    """An element, which is printed."""
    y = x[i]
    print(f"x[{i}] is {y:.3f}, of", len(x), "numbers:", y > 0, np.float32(y), 100 * y)
    if y < 0:
        raise Diverged(f"negative: {y} at {i:4d}")
    return y


@mp.export("f64[n]")
def positive(x):
    return x[x > 0], np.nonzero(x > 0)[0], (x > 0).sum()


@mp.export("i64")
def queue(n):
    """Breadth first over a binary tree of n nodes."""
    todo, order = [0], []
    while todo:
        k = todo.pop()
        order.append(k)
        if 2 * k + 1 < n:
            todo.append(2 * k + 1)
        if 2 * k + 2 < n:
            todo.append(2 * k + 2)
    return np.array(order).sum()


@mp.export("c128[n], f32[n]")
def turned(z, w):
    return z * np.exp(1j * w), np.abs(z).astype(np.float32)


@mp.export("f64[n], u8")
def shifted(x, double):
    if len(x) > 3:
        warnings.warn("many numbers")
    x[::2] += 1.0
    x[:] = x[::-1].copy()
    return x.sum() + double


@mp.export("f64[2*n], f64[n, 3]")
def halves(x, y):
    return x[: len(y)] + x[len(y) :] * y[:, 0]


@mp.export("f64[n]")
def product(x):
    return np.outer(x, x) @ x
'''
D, I, N = ctypes.c_double, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)
A = np.ctypeslib.ndpointer(np.float64)
# The two routines of BLAS that a compiler's own machine may not have, for row-major callers of column-major code.
BLAS = """
void dgemv_(char *t, int *m, int *n, double *alpha, const double *a, int *lda, const double *x, int *incx, double *beta,
            double *y, int *incy) {
    int rows = *t == 'N' ? *m : *n, columns = *t == 'N' ? *n : *m;
    for (int i = 0; i < rows; i++) {
        double s = 0;
        for (int j = 0; j < columns; j++) s += (*t == 'N' ? a[i + j * *lda] : a[j + i * *lda]) * x[j * *incx];
        y[i * *incy] = *alpha * s + (*beta ? *beta * y[i * *incy] : 0);
    }
}
"""


class Error(ctypes.Structure):
    _fields_ = [
        ("exception", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_int),
        ("message", ctypes.c_char * 244),
    ]


def of(error: Error) -> tuple:
    return error.exception.decode(), error.message.decode(), error.file.decode(), error.line


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both modules and their libraries, for one level of the processor and for two."""
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "orbits.py").write_text(ORBITS)
    (folder / "more.py").write_text(MORE)
    assert main(["compile", str(folder / "orbits.py"), "--to", "c", "--out", str(folder), "--quiet"]) == 0
    more = ["compile", str(folder / "more.py"), "--to", "c", "--out", str(folder), "--quiet", "--cpu", "x86-64"]
    assert main(more) == 0
    return folder


def orbits(place: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(place / "orbits" / "liborbits.so"))


@pytest.fixture(scope="module")
def more(place: Path) -> ctypes.CDLL:
    """The second library, which needs BLAS: linked with ours."""
    folder = place / "more"
    (folder / "blas.c").write_text(BLAS)
    command = [*find_compiler().command, "-shared", "-fPIC", "-o", "linked.so", "blas.c"]
    subprocess.run(
        [*command, "-Wl,--whole-archive", "libmore.a", "-Wl,--no-whole-archive", "-lmvec", "-lm"],
        cwd=folder,
        check=True,
    )
    return ctypes.CDLL(str(folder / "linked.so"))


def test_numbers_dicts_and_gradients(place):
    library, module = orbits(place), module_of(place / "orbits.py")
    out, x = D(), np.arange(4.0)
    for name, function in (("period", module.period), ("slope", module.slope)):
        assert getattr(library, f"orbits_{name}")(D(0.3), D(1.0), ctypes.byref(out), None) == 0
        assert np.isclose(out.value, function(0.3, 1.0), rtol=1e-14)
    for n in (0, 1, 5):
        es, got = np.linspace(0.1, 0.5, n), np.empty(n)
        assert library.orbits_slopes(A.from_param(es), I(n), D(1.0), A.from_param(got), None) == 0
        np.testing.assert_allclose(got, module.slopes(es, 1.0), rtol=1e-14)
    value, w_bar, b_bar = D(), np.empty(4), D()
    given = [A.from_param(x + 1), I(4), D(1.0), A.from_param(x)]
    assert library.orbits_gradient(*given, ctypes.byref(value), A.from_param(w_bar), ctypes.byref(b_bar), None) == 0
    want, slope = module.gradient({"w": x + 1, "b": 1.0}, x)
    np.testing.assert_allclose([value.value, b_bar.value, *w_bar], [want, slope["b"], *slope["w"]], rtol=1e-14)


def test_constants_static_choices_and_stores(place):
    library, module = orbits(place), module_of(place / "orbits.py")
    points, w, all_0, out = np.arange(6.0).reshape(2, 3), np.arange(3.0), np.empty((2, 3)), np.empty(2)
    all_1 = D()
    given = [A.from_param(points), I(2), A.from_param(w), I(3)]
    results = [A.from_param(out), A.from_param(all_0), ctypes.byref(all_1)]
    assert library.orbits_weigh_f64(*given, *results, None) == 0
    want = module.weigh(points, w, power=3)
    assert np.allclose(out, want["sum"]) and np.array_equal(all_0, want["all"][0]) and all_1.value == want["all"][1]
    mean, total = D(), D()
    assert library.orbits_reduced_mean(A.from_param(out), I(2), ctypes.byref(mean), None) == 0
    assert library.orbits_reduced_sum(A.from_param(out), I(2), ctypes.byref(total), None) == 0
    assert mean.value == out.mean() and total.value == out.sum()
    x = np.arange(5.0)
    assert library.orbits_running(A.from_param(x), I(5), None) == 0
    assert np.array_equal(x, [0, 1, 3, 6, 10])


def test_errors_say_what_python_says(place, more):
    library, error = orbits(place), Error()
    x, out = np.arange(3.0), D(7.0)
    call = [A.from_param(x), I(3), D(-2.0), A.from_param(x), ctypes.byref(out)]
    assert library.orbits_loss(*call, ctypes.byref(error)) == 1 == library.orbits_loss(*call, None)
    assert of(error) == (
        "ValueError",
        "b is -2.0",
        "orbits.py",
        1 + ORBITS[: ORBITS.index("raise ValueError")].count("\n"),
    )
    assert library.orbits_running(A.from_param(x), I(-1), ctypes.byref(error)) == 2
    assert of(error)[:2] == ("TypeError", "it is compiled for sizes with n >= 0")
    x[1] = -1e-7
    assert more.more_pick(A.from_param(x), I(3), I(5), ctypes.byref(out), ctypes.byref(error)) == 1
    assert of(error)[:2] == ("IndexError", "index 5 is out of bounds for axis 0 with size 3")
    assert more.more_pick(A.from_param(x), I(3), I(1), ctypes.byref(out), ctypes.byref(error)) == 1
    assert of(error)[:2] == ("Diverged", "negative: -1e-07 at    1")


def test_results_that_the_run_measures(place, more):
    steps, dims = ctypes.POINTER(D)(), (I * 1)()
    assert orbits(place).orbits_collatz(D(27.0), ctypes.byref(steps), dims, None) == 0
    want = module_of(place / "orbits.py").collatz(27.0)
    assert dims[0] == len(want) > 100 and np.array_equal(np.ctypeslib.as_array(steps, (dims[0],)), want)
    x = np.array([1.0, -2.0, 0.0, 3.0])
    places, rows, count = N(), (I * 1)(), I()
    results = [ctypes.byref(steps), dims, ctypes.byref(places), rows, ctypes.byref(count)]
    assert more.more_positive(A.from_param(x), I(4), *results, None) == 0
    assert steps[: dims[0]] == [1.0, 3.0] and places[: rows[0]] == [0, 3] and count.value == 2


def test_lists_grow_as_far_as_they_must(more):
    out = I()
    for n in (1, 60, 5000):
        assert more.more_queue(I(n), ctypes.byref(out), None) == 0 and out.value == n * (n - 1) // 2


def test_other_types_and_sizes_in_expressions(place, more):
    module, n = module_of(place / "more.py"), 3
    z, w, turned, size = (
        np.array([1, 2j, -3 + 1j]),
        np.float32([0, 1, 2]),
        np.empty(3, complex),
        np.empty(3, np.float32),
    )
    C, S = np.ctypeslib.ndpointer(complex), np.ctypeslib.ndpointer(np.float32)
    results = [C.from_param(turned), S.from_param(size)]
    assert more.more_turned(C.from_param(z), I(n), S.from_param(w), *results, None) == 0
    want = module.turned(z, w)
    np.testing.assert_allclose(turned, want[0], rtol=1e-14)
    np.testing.assert_array_equal(size, want[1])
    x, y, out = np.arange(6.0), np.arange(9.0).reshape(3, 3), np.empty(3)
    assert more.more_halves(A.from_param(x), I(3), A.from_param(y), A.from_param(out), None) == 0
    assert np.array_equal(out, module.halves(x, y))
    total, want_x = D(), x.copy()
    assert more.more_shifted(A.from_param(x), I(6), ctypes.c_uint8(2), ctypes.byref(total), None) == 0
    with pytest.warns(UserWarning, match="many numbers"):
        assert module.shifted(want_x, np.uint8(2)) == total.value
    assert np.array_equal(x, want_x)
    assert more.more_product(A.from_param(y[0]), I(3), A.from_param(out), None) == 0
    assert np.allclose(out, module.product(y[0]))


def test_the_example_and_the_header_as_c_and_as_cpp(place):
    """The Makefile's own flags; a strict compiler has nothing to say of what people include."""
    folder = place / "orbits"
    compiler = find_compiler().command
    strict = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run(
        [*compiler, "-std=c11", *strict, "-o", "example", "main.c", "liborbits.a", "-lmvec", "-lm"],
        cwd=folder,
        check=True,
    )
    said = subprocess.run(["./example"], cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[0].startswith("orbits_period: result = 0.887") and len(said) == 11
    assert said[-1] == "orbits_reduced_sum: result = 2.25"
    if shutil.which("g++"):
        subprocess.run(["g++", *strict, "-x", "c++", "-fsyntax-only", "orbits.h"], cwd=folder, check=True)
    symbols = subprocess.run(["nm", "-D", "--defined-only", "liborbits.so"], cwd=folder, capture_output=True, text=True)
    own = {"orbits_set_num_threads"}
    assert {line.split()[-1] for line in symbols.stdout.splitlines()} == {line.split(":")[0] for line in said} | own


def test_sizes_stand_in_the_order_of_the_dims_of_their_array(tmp_path):
    text = "import metaphrase as mp\n\n\n@mp.export(\"{'w': f64[n, m], 'b': f64[m]}\")\ndef dense(p):\n"
    (tmp_path / "layers.py").write_text(text + "    return p['w'].sum(1) + p['b'].sum()\n")
    compile_module(module_of(tmp_path / "layers.py"), tmp_path / "out", levels=["x86-64"], to="c")
    header = (tmp_path / "out" / "layers" / "layers.h").read_text()
    assert "layers_dense(const double *p_w, int64_t n, int64_t m, const double *p_b, double *result," in header


def test_each_signature_has_a_name_of_its_own(tmp_path):
    text = """
import metaphrase as mp


@mp.export("f64, 0", "f64, 1", "f64, -1", "f64, 'a b'", "f64, 'a_b'")
def f(x, k):
    return x + (k if isinstance(k, int) else len(k))


@mp.export("f64", "f32")
def g(x):
    return 2 * x


@mp.export("f64")
def g_f64(x):
    return 3 * x


@mp.export("f64, 0", "f64, 1")
def h(x, k):
    return x + k
"""
    (tmp_path / "named.py").write_text(text)
    compile_module(module_of(tmp_path / "named.py"), tmp_path / "out", levels=["x86-64"], to="c")
    header = (tmp_path / "out" / "named" / "named.h").read_text()
    names = re.findall(r"^int named_(\w+)\(", header, re.MULTILINE)[1:]
    assert len({*names}) == len(names) == 10 and {"h_0", "h_1", "g_f32", "g_f64"} < {*names}
    library = ctypes.CDLL(str(tmp_path / "out" / "named" / "libnamed.so"))
    for name, given, want in (("h_0", (I(0),), 1.0), ("h_1", (I(1),), 2.0), ("g_f64", (), 3.0)):
        result = D()
        assert not getattr(library, f"named_{name}")(D(1.0), *given, ctypes.byref(result), None)
        assert result.value == want, name


def test_what_is_printed_and_what_stays_free(place):
    """Under the sanitizers of addresses, leaks and undefined behaviour, from sources alone."""
    folder = place / "more"
    sources = ["main.c", "more.c", "stub.c", *(f"kernels/{path.name}" for path in (folder / "kernels").glob("*.c"))]
    (folder / "stub.c").write_text(BLAS)
    flags = ["-O1", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-I."]
    done = subprocess.run([*find_compiler().command, *flags, "-o", "sanitized", *sources, "-lmvec", "-lm"], cwd=folder)
    assert done.returncode == 0
    ran = subprocess.run(["./sanitized"], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("x[1] is 0.750, of 3 numbers: True 0.75 75.0\nmore_pick: result = 0.75\n")
    assert "more_positive: result_0 = 0.5 0.75 1 result_1 = 0 1 2 result_2 = 3" in ran.stdout


def test_the_library_is_built_anew_by_make(place, tmp_path):
    if not shutil.which("make"):
        pytest.fail("the test suite is run by make")
    shutil.copytree(place / "orbits", tmp_path / "orbits", ignore=shutil.ignore_patterns("*.so", "*.a"))
    subprocess.run(
        ["make", "-j2", "OPTIONS=-O1 -fPIC", "liborbits.so"], cwd=tmp_path / "orbits", check=True, capture_output=True
    )
    out = D()
    built = ctypes.CDLL(str(tmp_path / "orbits" / "liborbits.so"))
    assert built.orbits_period(D(0.3), D(1.0), ctypes.byref(out), None) == 0
    assert abs(out.value - 0.3 * np.sin(out.value) - 1.0) < 1e-12


REFUSED = {
    "prints an array": ("@mp.export('f64[n]')\ndef f(x): print(x)", "it prints an array"),
    "calls back": (
        "@mp.export('f64')\ndef f(x): return mp.pure_callback(abs, np.float64(0), x)",
        "it calls a Python function|a package would have to name",
    ),
    "a list": (
        "@mp.export('i64')\ndef f(n):\n    out = []\n    while n > len(out):\n        out.append(n)\n    return out",
        "f can't be compiled into a package: .* result is a list whose length the run decides",
    ),
    "a size": ("@mp.export('f64[int]')\ndef f(x): return x", "C has no variable called int"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_c_can_not_do_is_refused(tmp_path, what):
    text, message = REFUSED[what]
    (tmp_path / "refused.py").write_text(f"import numpy as np\nimport metaphrase as mp\n\n{text}\n")
    with pytest.raises(SourceError, match=message):
        compile_module(module_of(tmp_path / "refused.py"), tmp_path / "out", to="c")
    assert not (tmp_path / "out" / "refused").exists()


def test_a_library_is_no_wheel(tmp_path, capsys):
    (tmp_path / "one.py").write_text("import metaphrase as mp\n\n\n@mp.export('f64')\ndef f(x):\n    return x\n")
    assert main(["compile", str(tmp_path / "one.py"), "--to", "c", "--out", str(tmp_path), "--wheel"]) != 0
    assert "a library of C is no Python package" in capsys.readouterr().err


MESSAGES = [
    ("{}", "f8", "0.1", "0.1"),
    ("{}", "f8", "1e16", "1e+16"),
    ("{}", "f8", "123456789012345680.0", "1.2345678901234568e+17"),
    ("{}", "f8", "1e-5", "1e-05"),
    ("{}", "f8", "-0.0", "-0.0"),
    ("{}", "f8", "1e15", "1000000000000000.0"),
    ("{}", "f8", "0.0001", "0.0001"),
    ("{}", "f8", "1.0/0.0", "inf"),
    ("{}", "f8", "1/3.0", "0.3333333333333333"),
    ("{!r}", "f4", "0.1f", "np.float32(0.1)"),
    ("{:>9.2e}|", "f8", "31.4159", " 3.14e+01|"),
    ("{:.1%}", "f8", "0.256", "25.6%"),
    ("{:+d} {{}} 100%", "i8", "(int64_t)7", "+7 {} 100%"),
    ("{:<5}|", "u1", "(uint8_t)200", "200  |"),
    ("{}", "?", "1 > 2", "False"),
    ("{}", "c16", "((metaphrase_complex128){1.5, -2.0})", "(1.5-2j)"),
    ("{}", "c16", "((metaphrase_complex128){0.0, 2.0})", "2j"),
    ('say "é"\n{}', "i8", "(int64_t)1", 'say "é"\n1'),
]


def test_messages_as_c_prints_them(tmp_path):
    said = [printf_of(template, [dtype], [value]) for template, dtype, value, _ in MESSAGES]
    rows = [f"printf({', '.join([format_, *arguments])}); putchar(0);" for format_, arguments in said]
    text = '#include "library.h"\nint main(void) {\n' + "\n".join(rows) + "\n}\n"
    (tmp_path / "said.c").write_text(text)
    subprocess.run(
        [*find_compiler().command, f"-I{HEADER_DIRECTORY}", "-w", "-o", "said", "said.c"], cwd=tmp_path, check=True
    )
    printed = subprocess.run(["./said"], cwd=tmp_path, capture_output=True).stdout.decode()
    assert printed.split("\0")[:-1] == [want for *_, want in MESSAGES]
