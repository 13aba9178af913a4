"""Modules written as packages of NumPy source: what they give, what they refuse, and how they read.

In: the module of `project.py`. Out: the numbers that the module itself gives, in a Python that has NumPy alone.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from plans.project import ORBITS, USE, assert_alike, given, installed, module_of, wanted

import metaphrase as mp
from metaphrase.aot import compile_module
from metaphrase.cli.main import main
from metaphrase.runtime.accepted import Accepted, Mismatch, number
from metaphrase.runtime.module import levels_here
from metaphrase.source import SourceError

pytestmark = pytest.mark.turns(3, together=True)


LEVELS: dict[str, list[str] | None] = {"native": levels_here()[:1], "numpy": None}  # what is enough here
KINDS = """
import metaphrase as mp


@mp.export("f64, f64")
def before(x, /, k):
    return x - k


@mp.export("f64, f64, f64")
def both(x, /, y=2.0, *, k):
    return x - y * k


@mp.export("f64, k=f64")
def named(x, *, k):
    return x - k


@mp.export("f64, f64")
def in_order(x, *, k):
    return x - k
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module's folder, with a wheel of NumPy source in out/dist and that unpacked in site, beside NumPy."""
    place = tmp_path_factory.mktemp("project")
    (place / "orbits.py").write_text(ORBITS)
    command = ["compile", str(place / "orbits.py"), "--to", "numpy", "--out", str(place / "out"), "--wheel"]
    assert main(command) == 0
    installed(place / "out" / "dist" / "orbits-0.1-py3-none-any.whl", place / "site")
    return place


@pytest.fixture
def imported() -> Iterator[Callable]:
    """imported(folder, name): a package, which is forgotten at the end."""
    names: list[str] = []

    def get(place: Path, name: str):
        names.append(name)
        sys.path.insert(0, str(place))
        try:
            return importlib.import_module(name)
        finally:
            sys.path.pop(0)

    yield get
    for known in [known for known in sys.modules if known.partition(".")[0] in names]:
        del sys.modules[known]


@pytest.fixture
def package_of(tmp_path: Path, imported: Callable) -> Callable:
    """package_of(text): the package of a module's text."""

    def get(text: str):
        (tmp_path / "made.py").write_text(f"import numpy as np\nimport metaphrase as mp\n\n\n{text}\n")
        compile_module(module_of(tmp_path / "made.py"), tmp_path / "out", to="numpy")
        return imported(tmp_path / "out", "made")

    return get


def test_the_wheel_gives_the_same_numbers_with_numpy_alone(project):
    got, modules = given(USE, "orbits", str(project / "site"))
    want = wanted(module_of(project / "orbits.py"))
    assert_alike(got[:-2], want[:-2])
    assert got[-2][1].startswith("period() missing 1 required positional argument: 'M'")
    assert got[-1][0] == want[-1][0] == "TypeError"
    assert not {m for m in modules if m.split(".")[0] in ("metaphrase", "scipy", "Cython", "gast", "ml_dtypes")}


def test_results_are_of_the_types_that_metaphrase_gives(project, imported):
    orbits, own = imported(project / "site", "orbits"), module_of(project / "orbits.py")
    x = np.arange(4.0)
    calls = [
        lambda m: m.period(0.3, 1.0),
        lambda m: m.slope(np.float64(0.3), 1),
        lambda m: m.gradient({"b": 1.0, "w": x}, x),
        lambda m: m.collatz(27.0),
        lambda m: m.collatz(0.5),
        lambda m: m.reduced(x, "sum"),
        lambda m: m.weigh(np.ones((2, 3), "f4"), np.ones(3, "f4")),
    ]
    for call in calls:
        got, want = mp.tree_util.tree_flatten(call(orbits)), mp.tree_util.tree_flatten(call(own))
        assert got[1] == want[1]
        assert [(type(a), a.dtype, a.shape) for a in got[0]] == [(type(a), a.dtype, a.shape) for a in want[0]]


def test_pythons_numbers_are_results_where_native_code_gives_them(package_of, tmp_path):
    made = package_of(
        "@mp.export('float, int, f64[n, m]')\ndef f(a, k, x):\n"
        "    return [a / k, (k, x.shape), {'r': x.sum(), 'b': a > 1.0}], np.array(x[0, 0]), complex(a, 1.0), a\n\n\n"
        "@mp.export('int')\ndef grown(n):\n    out = []\n    while n > 0:\n        out.append(n)\n        n = n // 2\n"
        "    return out, (len(out),)"
    )
    own = module_of(tmp_path / "made.py")
    for call in (lambda m: m.f(1.5, 3, np.ones((2, 3))), lambda m: m.grown(9)):
        got, want = mp.tree_util.tree_flatten(call(made)), mp.tree_util.tree_flatten(call(own))
        assert got[1] == want[1] and got[0] == want[0] and [*map(type, got[0])] == [*map(type, want[0])]


def test_the_files_are_what_source_prints(project):
    own, names = (
        module_of(project / "orbits.py"),
        zipfile.ZipFile(next((project / "out" / "dist").glob("*"))).namelist(),
    )
    for public in ("period", "slope", "collatz", "loss"):
        assert f"orbits/source/{public}.py" in names
        text = (project / "site" / "orbits" / "source" / f"{public}.py").read_text()
        printed = mp.source(getattr(own, public), *getattr(own, public).exports, stage="numpy")
        assert text == printed.removeprefix("# For sizes from 2 on: n.\n")
    assert not [name for name in names if name.endswith((".so", ".pyx"))]
    head = (project / "site" / "orbits" / "__init__.py").read_text()
    assert '_period = _Signatures("period", ("e", "M"), {"f64, f64": _source.period.period})' in head
    assert "def weigh(points, w, power=2):\n    return _weigh(points, w, power)\n" in head


def test_functions_are_plain_ones(project, imported):
    orbits = imported(project / "site", "orbits")
    assert inspect.isfunction(orbits.weigh) and str(inspect.signature(orbits.weigh)) == "(points, w, power=2)"
    assert pickle.loads(pickle.dumps(orbits.period)) is orbits.period
    assert orbits.slope.__doc__ == "grad of period: Kepler's equation: the eccentric anomaly."
    assert "NumPy source, written by metaphrase" in orbits.__doc__ and "Orbits" in orbits.__doc__
    stub = (project / "site" / "orbits" / "__init__.pyi").read_text()
    assert "def slopes(e: NDArray[np.float64], M: float | np.float64) -> NDArray[np.float64]: ..." in stub


WRONG = {
    "another dtype": (
        lambda m: m.slopes(np.ones(2, "f4"), 1.0),
        r"with \(f32\[2\], float\): e is f32\[2\], not f64\[n\]",
    ),
    "no number": (lambda m: m.period("a", 1), r"for \(f64, f64\), and is called with \('a', int\): e is 'a', not f64"),
    "a number that is another": (lambda m: m.period(2**53 + 1, 0.5), "e is 9007199254740993, not f64"),
    "a complex one": (lambda m: m.period(0.5, 1j), "M is 1j, not f64"),
    "another word": (lambda m: m.reduced(np.ones(2), "max"), "how is 'max', not 'mean' or 'sum'"),
    "another size": (
        lambda m: m.loss({"w": np.ones(2), "b": 1.0}, np.ones(3)),
        r"x is f64\[3\], not f64\[n\] with n = 2",
    ),
    "inside": (
        lambda m: m.loss({"w": np.ones((2, 2)), "b": 1.0}, np.ones(2)),
        r"params\['w'\] is f64\[2, 2\], not f64\[n\]",
    ),
    "other keys": (
        lambda m: m.loss({"w": np.ones(2)}, np.ones(2)),
        r"params is {'w': f64\[2\]}, not {'w': f64\[n\], 'b': f64}",
    ),
    "a list": (lambda m: m.running([1.0, 2.0]), r"x is \[float, float\], not f64\[n\]"),
}


@pytest.mark.parametrize("what", WRONG)
def test_other_types_are_refused_by_the_argument(project, imported, what):
    call, message = WRONG[what]
    error = {"another size": ValueError, "other keys": KeyError}.get(what, TypeError)  # the source's
    with pytest.raises(error, match=message):
        call(imported(project / "site", "orbits"))


def test_arguments_that_are_written(package_of):
    made = package_of(
        "@mp.export('f64[n], f64[n]')\ndef shifted(x, y):\n    x[1:] = y[:-1]\n    y *= 2.0\n    return x, y[1:]"
    )
    x, y = np.arange(4.0), np.arange(4.0) + 10
    first, rest = made.shifted(x, y)
    assert first is x and x.tolist() == [0.0, 10.0, 11.0, 12.0] and y.tolist() == [20.0, 22.0, 24.0, 26.0]
    assert rest.tolist() == [22.0, 24.0, 26.0] and not np.shares_memory(rest, y)
    with pytest.raises(TypeError, match="the memory of an array that is stored into is shared with another argument"):
        made.shifted(x, x)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        made.shifted(frozen, np.ones(3))


def test_any_kind_of_parameters(package_of):
    made = package_of(
        "@mp.export('f64[n], f64')\ndef total(*args, **more):\n    return args[0].sum() * args[1]\n\n\n"
        "@mp.export('f64[n]')\ndef mean(x, *, zero=0.0, axis=0):\n    return x.sum(axis=axis) / len(x) + zero\n\n\n"
        "@mp.export('f64[2*n], f64[n]')\ndef source(np, _source):\n    return np[::2] + _source\n\n\n"
        "@mp.export('f64')\ndef _source(x):\n    return (x,), [None, 'text', 1]"
    )
    x = np.arange(4.0)
    assert made.total(x, 2) == 12.0 and made.mean(x) == 1.5 and made.mean(x, zero=1.0) == 2.5
    assert made.source(x, x[:2]).tolist() == [0.0, 3.0] and made._source(1) == ((1.0,), [None, "text", 1])
    assert str(inspect.signature(made.mean)) == "(x, *, zero=0.0, axis=0)"
    with pytest.raises(TypeError, match="takes 1 positional argument"):
        made.mean(x, 1.0)
    with pytest.raises(ValueError, match=r"np is f64\[3\], not f64\[2 \* n\]"):
        made.source(x[:3], x[:1])
    with pytest.raises(TypeError, match=r"args is \(f64\[4\],\), not \(f64\[n\], f64\)"):
        made.total(x)


@pytest.mark.parametrize("to", ["native", "numpy"])
def test_functions_may_have_the_names_that_a_package_uses(tmp_path, imported, to):
    names = ["_module", "_Module", "_source", "_Signatures", "source", "_metaphrase", "kernels", "np", "last", "_last"]
    text = "".join(f"@mp.export('f64')\ndef {name}(x):\n    return x + {k}\n\n\n" for k, name in enumerate(names))
    (tmp_path / f"taken_{to}.py").write_text(f"import metaphrase as mp\n\n\n{text}")
    compile_module(module_of(tmp_path / f"taken_{to}.py"), tmp_path / "out", to=to, levels=LEVELS[to])
    made = imported(tmp_path / "out", f"taken_{to}")
    assert [getattr(made, name)(0.5) for name in names] == [0.5 + k for k in range(len(names))]


@pytest.mark.parametrize("to", ["native", "numpy"])
def test_parameters_that_are_positional_or_keyword_only(tmp_path, imported, to):
    name = f"kinds_{to}"
    (tmp_path / f"{name}.py").write_text(KINDS)
    own = module_of(tmp_path / f"{name}.py")
    compile_module(own, tmp_path / "out", to=to, levels=LEVELS[to])
    made = imported(tmp_path / "out", name)
    assert made.before(1.0, k=2.0) == made.before(1.0, 2.0) == own.before(1.0, k=2.0) == -1.0
    assert made.both(1.0, k=3.0) == own.both(1.0, k=3.0) == -5.0 and made.both(1.0, 1.0, k=3.0) == -2.0
    for function in ("named", "in_order"):
        assert getattr(made, function)(1.0, k=2.0) == getattr(own, function)(1.0, k=2.0) == -1.0
    for call in (lambda: made.before(x=1.0, k=2.0), lambda: made.both(1.0, 1.0, 3.0), lambda: made.named(1.0, 2.0)):
        with pytest.raises(TypeError, match="positional"):
            call()
    for public in ("before", "both", "named", "in_order"):
        assert inspect.signature(getattr(made, public)) == inspect.signature(getattr(own, public))
    types = (tmp_path / "out" / name / "__init__.pyi").read_text()
    assert "def before(x: float | np.float64, /, k: float | np.float64) -> np.float64: ..." in types
    assert "def both(x: float | np.float64, /, y: float | np.float64 = ..., *, k: float | np.float64)" in types
    assert "def named(x: float | np.float64, *, k: float | np.float64)" in types


def test_no_warnings_of_floating_point(package_of, recwarn):
    made = package_of("@mp.export('f64')\ndef inverse(x):\n    return 1 / x")
    assert made.inverse(0.0) == np.inf and len(recwarn) == 0


def test_what_a_package_can_not_hold_is_refused_here_too(tmp_path):
    (tmp_path / "refused.py").write_text(
        "import typing\n\nimport metaphrase as mp\n\n\nclass Q(typing.NamedTuple):\n    a: float\n\n\n"
        "@mp.export('f64')\ndef f(x):\n    return Q(x)\n"
    )
    with pytest.raises(SourceError, match="f can't be compiled into a package: a package would have to name"):
        compile_module(module_of(tmp_path / "refused.py"), tmp_path / "out", to="numpy")
    with pytest.raises(ValueError, match="a module is compiled to native, numpy or c, not to 'fortran'"):
        compile_module(_small(tmp_path), tmp_path / "out", to="fortran")
    with pytest.raises(ValueError, match="NumPy source is for every processor"):
        compile_module(_small(tmp_path), tmp_path / "out", levels=["x86-64"], to="numpy")
    assert not [*(tmp_path / "out").iterdir()]


def _small(place: Path):
    (place / "small.py").write_text("import metaphrase as mp\n\n\n@mp.export('f64')\ndef f(x):\n    return x\n")
    return module_of(place / "small.py")


def test_one_form_replaces_the_other(tmp_path):
    for to in ("numpy", "native", "numpy"):
        assert compile_module(_small(tmp_path), tmp_path / "out", to=to).pure == (to == "numpy")
        assert (tmp_path / "out" / "small" / "source").is_dir() == (to == "numpy")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["small"]


def test_texts_of_types():
    taken = Accepted("f64[n], Size(n), Where(n >= 2), float, [i32, None]")
    assert taken.fitted([np.ones(3), 3, 1, [2, None]], "abcd")[0][1:] == [3, 1.0, [np.int32(2), None]]
    for wrong, message in (
        ([np.ones(3), 4, 1.0, [2, None]], "'b'"),
        ([np.ones(1), 1, 1.0, [2, None]], "n >= 2"),
        ([np.ones(3), 3, 1.0, [2**40, None]], r"'d\[0\]'"),
        ([np.ones(3), 3, 1.0, [2, 0]], r"'d\[1\]'"),
    ):
        with pytest.raises(Mismatch, match=message):
            taken.fitted(wrong, "abcd")
    assert number(np.float32(1.5), np.dtype("f8"), np.float64) == 1.5
    with pytest.raises(Mismatch):
        number(1.5, np.dtype("i8"), np.int64)


def test_source_that_calls_scipy_needs_it(tmp_path):
    (tmp_path / "errors.py").write_text(
        "from scipy.special import erf\n\nimport metaphrase as mp\n\n\n"
        "@mp.export('f64[n]')\ndef f(x):\n    return erf(x)\n"
    )
    package = compile_module(module_of(tmp_path / "errors.py"), tmp_path / "out", to="numpy")
    assert package.needs_scipy and "from scipy.special import erf" in (package.folder / "source" / "f.py").read_text()
    names = zipfile.ZipFile(package.wheel("0.3"))
    metadata = names.read("errors-0.3.dist-info/METADATA").decode()
    assert "Requires-Dist: scipy>=1.13" in metadata and "Requires-Dist: numpy>=2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata
