"""Packages and C libraries for any size: calls of the usual sizes, from 2 on, have native code of their own where it is
other code.

In: loops whose iterations wait for each other, slices, and what is the same at all sizes, in a module. Out: NumPy's
numbers at sizes 0, 1, 2 and more, and how many kernels there are.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np
import pytest
from plans.project import module_of

import metaphrase as mp
from metaphrase.aot import compile_module
from metaphrase.runtime.module import levels_here
from metaphrase.source import SourceError

pytestmark = pytest.mark.turns(3)

SOURCE = '''
import numpy as np

import metaphrase as mp


@mp.export("i64, f64[n, m]")
def relax(steps, a):
    """Sweeps of Gauss and Seidel's method."""
    for _ in range(steps):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]) / 4
    return a.sum()


@mp.export("f64[n]", "f32[n]")
def bends(x):
    if len(x) and x[0] < 0:
        raise ValueError(f"the first is {x[0]}")
    return x[2:] - 2 * x[1:-1] + x[:-2]


@mp.export("f64[n]")
def alone(x):
    if len(x) > 1:
        raise ValueError(f"{len(x)} are too many")
    return x.sum()


@mp.export("f64[n, m]")
def doubled(a):
    return a * 2
'''
SIZES = [(0, 0), (0, 5), (1, 1), (1, 4), (2, 1), (2, 2), (3, 2), (3, 3), (9, 14)]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The module, and where it is compiled to: as a package, and as a C library."""
    place = tmp_path_factory.mktemp("sizes")
    (place / "sweeps.py").write_text(SOURCE)
    module = module_of(place / "sweeps.py")
    for to in ("native", "c"):
        compile_module(module, str(place / to), levels=levels_here()[:1], to=to)
    return module, place


def test_each_size_gives_what_numpy_gives(compiled, monkeypatch):
    module, place = compiled
    monkeypatch.syspath_prepend(str(place / "native"))
    monkeypatch.delitem(sys.modules, "sweeps", raising=False)
    import sweeps as package

    rng = np.random.default_rng(3)
    for n, m in SIZES:
        a = rng.normal(size=(n, m))
        mine, theirs = a.copy(), a.copy()
        assert package.relax(3, mine) == pytest.approx(module.relax.py_func(3, theirs), rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
        np.testing.assert_array_equal(package.doubled(a), 2 * a)
        x = np.abs(rng.normal(size=n)).astype(np.float32 if m % 2 else np.float64)
        got = package.bends(x)
        np.testing.assert_allclose(got, module.bends.py_func(x), rtol=1e-5)
        assert got.dtype == x.dtype
    with pytest.raises(ValueError, match="the first is -1"):
        package.bends(np.array([-1.0]))
    with pytest.raises(ValueError, match="the first is -2"):
        package.bends(np.array([-2.0, 1.0, 3.0]))
    assert package.alone(np.array([3.0])) == 3.0 and package.alone(np.zeros(0)) == 0.0
    with pytest.raises(ValueError, match="4 are too many"):  # as all calls of the usual sizes do
        package.alone(np.zeros(4))
    with pytest.raises(TypeError, match=r"compiled for \(f64\[n\]\) and \(f32\[n\]\), and is called with \(i64\[3\]\)"):
        package.bends(np.arange(3))
    with pytest.raises(ValueError, match="the first is -1"):
        package.bends(np.array([-1.0]))


def test_usual_sizes_have_their_own_kernels_where_these_differ(compiled):
    _, place = compiled
    texts = {path.stem: path.read_text() for path in (place / "native/sweeps/kernels").glob("*.pyx")}
    assert {name.partition(".")[0] for name in texts} == {"relax", "bends", "alone", "doubled"}
    assert len(set(texts.values())) == len(texts)
    counts = {name: sum(stem.startswith(name) for stem in texts) for name in ("relax", "bends", "doubled")}
    assert counts == {"relax": 2, "bends": 4, "doubled": 1}


def test_c_hands_usual_sizes_on(compiled):
    module, place = compiled
    library = ctypes.CDLL(str(place / "c/sweeps/libsweeps.so"))
    rng = np.random.default_rng(4)
    pointer = ctypes.c_void_p
    for n, m in SIZES:
        a = rng.normal(size=(n, m))
        mine, theirs, total = a.copy(), a.copy(), ctypes.c_double()
        status = library.sweeps_relax(
            ctypes.c_int64(2),
            mine.ctypes.data_as(pointer),
            ctypes.c_int64(n),
            ctypes.c_int64(m),
            ctypes.byref(total),
            None,
        )
        assert status == 0
        assert total.value == pytest.approx(module.relax.py_func(2, theirs), rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    assert library.sweeps_relax(
        ctypes.c_int64(2), None, ctypes.c_int64(-1), ctypes.c_int64(3), ctypes.byref(total), None
    )
    header = (place / "c/sweeps/sweeps.h").read_text()
    assert "usual" not in header and "sweeps_bends_f32" in header


SOLVED = """
import metaphrase as mp


@mp.export("f64[2*n], f64[n+1]")
def halves(x, y):
    return x.sum() + len(y)


@mp.export("f64[n+1, 2*m], f64[n+m]")
def chained(x, y):
    return x.sum() + 10 * x.shape[1] + y.size


@mp.export("f64[n+m, n]")
def difference(x):
    return x[x.shape[1] :].sum()
"""


@pytest.mark.parametrize("to", ["native", "numpy"])
def test_sizes_follow_from_expressions_of_them(to, tmp_path, monkeypatch):
    (tmp_path / f"solved_{to}.py").write_text(SOLVED)
    compile_module(module_of(tmp_path / f"solved_{to}.py"), tmp_path / "out", to=to)
    monkeypatch.syspath_prepend(str(tmp_path / "out"))
    made, own = __import__(f"solved_{to}"), module_of(tmp_path / f"solved_{to}.py")
    calls = {
        "halves": [((4,), (3,)), ((2,), (2,)), ((0,), (1,))],
        "chained": [((3, 4), (4,)), ((1, 0), (0,)), ((1, 2), (1,))],
        "difference": [((5, 2),), ((2, 2),), ((1, 0),)],
    }
    for name, each in calls.items():
        for shapes in each:
            given = [np.ones(shape) for shape in shapes]
            assert getattr(made, name)(*given) == getattr(own, name)(*given), (name, shapes)
    for name, shapes, message in (
        ("halves", ((5,), (3,)), r"x is f64\[5\], not f64\[2 \* n\]"),
        ("halves", ((4,), (4,)), r"y is f64\[4\], not f64\[n \+ 1\]"),
        ("halves", ((0,), (0,)), r"y is f64\[0\], not f64\[n \+ 1\]"),
        ("chained", ((3, 5), (4,)), r"x is f64\[3, 5\], not f64\[n \+ 1, 2 \* m\]"),
        ("difference", ((1, 2),), r"x is f64\[1, 2\], not f64\[m \+ n, n\]"),
    ):
        with pytest.raises(ValueError, match=message):
            getattr(made, name)(*map(np.ones, shapes))


@pytest.mark.parametrize("to", ["native", "numpy"])
def test_sizes_that_no_call_tells_are_refused(to, tmp_path):
    (tmp_path / "untold.py").write_text(
        "import metaphrase as mp\n\n\n@mp.export('f64[n*m], f64[n]')\ndef f(x, y):\n    return x.sum() + y.sum()\n"
    )
    with pytest.raises(
        SourceError, match=r"f can't be compiled: .* don't tell the size m, which is in m\*n"
    ) as refused:
        compile_module(module_of(tmp_path / "untold.py"), tmp_path / "out", to=to)
    assert refused.value.span.line == 4 and "let an array have the size m" in str(refused.value)


def test_lowered_functions_and_source_solve_sizes_too():
    def f(x, y):
        return x.sum() + len(y)

    compiled = mp.jit(f).lower("f64[2*n], f64[n+1]").compile()
    assert compiled(np.ones(6), np.ones(4)) == 10.0
    with pytest.raises(SourceError, match="was compiled for"):
        compiled(np.ones(7), np.ones(4))
    assert "n = len(x) // 2" in mp.source(f, "f64[2*n], f64[n+1]")
    for told in (lambda: mp.jit(f).lower("f64[n*m], f64[n]").compile(), lambda: mp.source(f, "f64[n*m], f64[n]")):
        with pytest.raises(SourceError, match="don't tell the size m"):
            told()
