"""Modules compiled into packages: built here, used by a Python that has NumPy and nothing else.

In: a module of functions with gradients and a batch (a `while`, dicts, lists that grow, stores, an exception). Out: the
numbers that the module itself gives, from a wheel that is unpacked beside NumPy.
"""

from __future__ import annotations

import inspect
import pickle
import shutil
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import Cython
import numpy as np
import pytest
from plans.project import ORBITS, USE, assert_alike, given, installed, module_of, wanted
from plans.pythons import library, others, unpacked

import metaphrase as mp
from metaphrase.aot import compile_module, exported
from metaphrase.cli.main import main
from metaphrase.runtime import module as compiled
from metaphrase.source import SourceError

pytestmark = pytest.mark.turns(3, together=True)

MATRICES = """
import numpy as np

import metaphrase as mp


@mp.export("f64[n, n]")
def square(a):
    return a @ a


slope = mp.export("f64[n, n]")(mp.grad(lambda a: np.sum(a @ a)))
"""
PRODUCT = """
import numpy as np
import {module} as m

a = np.arange(1.0, 5.0).reshape(2, 2)
got = [m.square(a).tolist(), m.slope(a).tolist()]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module's folder, with a wheel of it in out/dist and that unpacked in site, beside NumPy."""
    place = tmp_path_factory.mktemp("project")
    (place / "orbits.py").write_text(ORBITS)
    assert main(["compile", str(place / "orbits.py"), "--out", str(place / "out"), "--wheel", "--version", "1.2"]) == 0
    (wheel,) = (place / "out" / "dist").glob("orbits-1.2-*.whl")
    assert wheel.name.startswith("orbits-1.2-cp311-abi3-") and "any" not in wheel.name
    installed(wheel, place / "site")
    return place


def test_the_wheel_gives_the_same_numbers_with_numpy_alone(project):
    got, modules = given(USE, "orbits", str(project / "site"))
    assert_alike(got, wanted(module_of(project / "orbits.py")))
    assert not {m for m in modules if m.split(".")[0] in ("metaphrase", "scipy", "Cython", "gast", "ml_dtypes")}


def test_the_same_wheel_is_for_other_versions_of_python(project, tmp_path):
    """abi3audit knows what the stable ABI of each version has; other Pythons, where there are any, run the wheel."""
    (wheel,) = (project / "out" / "dist").glob("*.whl")
    (tmp_path / "matrices.py").write_text(MATRICES)
    package = compile_module(module_of(tmp_path / "matrices.py"), tmp_path / "blas")
    assert package.needs_scipy
    command = [sys.executable, "-m", "abi3audit", "--strict", "--report", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "dispatch.abi3.so" in done.stdout, done.stdout + done.stderr
    found = others()
    if not found:
        warnings.warn("no other Python is here, from 3.11 on: that wheels run there was not seen", stacklevel=1)
    for version, python in found.items():
        numpy, scipy = library("numpy", version), library("scipy", version)
        site = unpacked(str(wheel), version, tmp_path / version)
        got, modules = given(USE, "orbits", site, numpy, python=python)
        assert_alike(got, wanted(module_of(project / "orbits.py")))
        assert not {m for m in modules if m.split(".")[0] in ("metaphrase", "scipy", "Cython", "gast", "ml_dtypes")}
        got, _ = given(PRODUCT, "matrices", package.folder.parent, numpy, scipy, python=python)
        assert got == [[[7.0, 10.0], [15.0, 22.0]], [[7.0, 11.0], [9.0, 13.0]]]


def test_the_wheel_says_what_it_needs(project):
    names = zipfile.ZipFile(next((project / "out" / "dist").glob("*.whl"))).namelist()
    metadata = next((project / "site").glob("orbits-1.2.dist-info")) / "METADATA"
    assert "Requires-Dist: numpy>=2.0" in metadata.read_text() and "scipy" not in metadata.read_text()
    files = ("__init__.pyi", "py.typed", "constants.npz", "plans/period.0.py")
    files += ("kernels/period.0.pyx", "kernels/Makefile", "kernels/translate.py")
    assert {f"orbits/{name}" for name in files} <= {*names}
    assert "cdef int entry(" in (project / "site" / "orbits" / "kernels" / "period.0.pyx").read_text()


def test_kernels_are_built_from_their_cython_text_without_metaphrase(project, tmp_path):
    """The package's own Makefile, by a Python that finds Cython and not us."""
    site = shutil.copytree(project / "site", tmp_path / "site", symlinks=True)
    folder = site / "orbits" / "kernels"
    there = {path.name: path.read_bytes() for path in folder.glob("*.so")}
    kernels = ("period.0", "running.0")
    for path in [path for path in folder.glob("*.so") if path.name.startswith(kernels)]:
        path.unlink()
    for path in (Path(Cython.__file__).parent, Path(Cython.__file__).parent.with_name("cython.py")):
        (tmp_path / path.name).symlink_to(path)
    python = f"PYTHONPATH={tmp_path} {sys.executable} -S"
    done = subprocess.run(
        ["make", "-C", str(folder), f"PYTHON={python}", f"KERNELS={' '.join(kernels)}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in folder.glob("*.so")} == there.keys()
    got, _ = given(USE, "orbits", str(site))
    assert_alike(got, wanted(module_of(project / "orbits.py")))


def test_a_package_lives_beside_metaphrase(project, monkeypatch):
    monkeypatch.syspath_prepend(str(project / "site"))
    import orbits

    E = orbits.period(0.3, 1.0)
    assert E == mp.jit(lambda M: M)(E) and abs(E - 0.3 * np.sin(E) - 1.0) < 1e-12
    assert orbits.period.__doc__ == "Kepler's equation: the eccentric anomaly." and "Orbits" in orbits.__doc__
    assert sys.modules["metaphrase.runtime.dispatch"] is not sys.modules["orbits._metaphrase.runtime.dispatch"]
    with pytest.raises(TypeError, match=r"slopes was compiled for \(f64\[n\], f64\), .* with \(f32\[2\], float\)"):
        orbits.slopes(np.ones(2, np.float32), 1.0)
    with pytest.raises(TypeError, match=r"period was compiled for \(f64, f64\), and is called with \('a', int\)"):
        orbits.period("a", 1)
    with pytest.raises(TypeError, match=r"for \(f64\[n\], 'mean'\) and \(f64\[n\], 'sum'\)"):
        orbits.reduced(np.ones(2), "max")
    with pytest.raises(TypeError, match="is called with"):
        orbits.period(1j, 0.5)


def test_functions_are_functions_to_python(project, monkeypatch):
    monkeypatch.syspath_prepend(str(project / "site"))
    import orbits

    assert pickle.loads(pickle.dumps(orbits.period)) is orbits.period
    assert repr(orbits.slope) == "<compiled slope of orbits>"
    assert str(inspect.signature(orbits.weigh)) == "(points, w, power=2)"
    with pytest.raises(TypeError, match="period of orbits is compiled: it has no source"):
        mp.jit(lambda e: orbits.period(e, 1.0))(0.5)
    hits = orbits.slope.hits
    assert orbits.slope(0.3, 1.0) == orbits.slope(np.float64(0.3), np.float64(1.0)) == orbits.slope(0.3, 1)
    assert orbits.slope(0.3, 1.0) and orbits.slope.hits >= hits + 2  # Python's floats are no detour
    with pytest.raises(TypeError, match="is called with"):
        orbits.period(2**53 + 1, 0.5)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        orbits.running(frozen)


@pytest.mark.parametrize("level", compiled.levels_here())
def test_each_level_of_the_processor(project, level):
    module = compiled.Module("orbits", project / "site" / "orbits")
    module.levels = [level]
    period = module.function("period", ("e", "M"))
    E = period(0.3, 1.0)
    assert abs(E - 0.3 * np.sin(E) - 1.0) < 1e-12
    module.levels = ["no-such-level"]
    with pytest.raises(ImportError, match="was not compiled for this processor"):
        module.function("slope", ("e", "M"))(0.3, 1.0)


def test_types_for_editors(project):
    text = (project / "site" / "orbits" / "__init__.pyi").read_text()
    compile(text, "orbits.pyi", "exec")
    assert "def slopes(e: NDArray[np.float64], M: float | np.float64) -> NDArray[np.float64]: ..." in text
    assert text.count("@overload") == 4 and "def running(x: NDArray[np.float64]) -> None: ..." in text


def test_exports_are_checked_where_they_are_written():
    with pytest.raises(ValueError, match="f6 is not a dtype"):
        mp.export("f6[n]")
    with pytest.raises(SourceError, match=r"<lambda> can't be exported for \(f64, f64\)|function can't be exported"):
        mp.export("f64, f64")(lambda x: x)
    with pytest.raises(SourceError, match="export says no types"):
        mp.export()
    with pytest.raises(SourceError, match="export takes text of types, before it takes a function"):
        mp.export(lambda x: x)
    twice = mp.export("f32")(mp.export("f64")(lambda x: 2 * x))
    assert twice.exports == ("f64", "f32") and twice(1.5) == 3.0


REFUSED = {
    "a class of one's own": (
        "class P(tuple): pass\nimport typing\nclass Q(typing.NamedTuple):\n    a: float\n"
        "@mp.export('f64')\ndef f(x): return Q(x)",
        "f can't be compiled into a package: a package would have to name",
    ),
    "a store into a list": (
        "@mp.export('[f64, f64]')\ndef f(x):\n    x[0] = 1.0",
        "it stores into a list, a dict or an object",
    ),
    "nothing": ("def f(x): return x", "exports no function"),
    "a default value": (
        "@mp.export('f64')\ndef f(x, y=np.ones(2)): return x * y",
        "the default value of y is no literal",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_package_can_not_hold_is_refused(tmp_path, what):
    text, message = REFUSED[what]
    (tmp_path / "refused.py").write_text(f"import numpy as np\nimport metaphrase as mp\n\n{text}\n")
    with pytest.raises(SourceError, match=message):
        compile_module(module_of(tmp_path / "refused.py"), tmp_path / "out")


def test_a_folder_that_is_not_ours_stays(tmp_path):
    (tmp_path / "one.py").write_text("import metaphrase as mp\n\n\n@mp.export('f64')\ndef f(x):\n    return x\n")
    module = module_of(tmp_path / "one.py")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "precious.txt").write_text("kept")
    with pytest.raises(FileExistsError, match="is there, and is no package that was compiled"):
        compile_module(module, tmp_path)
    assert (tmp_path / "one" / "precious.txt").read_text() == "kept"
    for _ in range(2):  # one of ours is replaced
        assert compile_module(module, tmp_path / "out").functions == {"f": ["(f64)"]}
    (tmp_path / "one.py").write_text(
        "import metaphrase as mp\n\n\n@mp.export('f64')\ndef f(x):\n    return open('x')\n"
    )
    with pytest.raises(SourceError):
        compile_module(module_of(tmp_path / "one.py"), tmp_path / "out")
    assert (tmp_path / "out" / "one" / "__init__.py").exists()  # what was there stays
    with pytest.raises(ValueError, match="a package can't be called 'numpy'"):
        compile_module(module, tmp_path / "out", "numpy")


def test_levels_that_do_not_exist_are_refused(tmp_path, capsys):
    (tmp_path / "one.py").write_text("import metaphrase as mp\n\n\n@mp.export('f64')\ndef f(x):\n    return x\n")
    assert main(["compile", str(tmp_path / "one.py"), "--out", str(tmp_path / "out"), "--cpu", "z80"]) == 2
    assert "no level of the processor is called 'z80'" in capsys.readouterr().err
    assert main(["compile", str(tmp_path / "none.py"), "--out", str(tmp_path / "out")]) == 2
    assert "there is no file" in capsys.readouterr().err
    assert [*exported(module_of(tmp_path / "one.py"))] == ["f"]


RAISES = """
class Failure(Exception):
    pass


class Negative(Failure, ValueError):
    \"\"\"Below zero.\"\"\"


class Told(Exception):
    def __init__(self, what):
        super().__init__(what)


BOOK = np.arange(3000.0)


@mp.export("f64")
def root(x):
    if x < 0.0:
        raise Negative(f"x is {x}")
    if x > 3000.0:
        raise Told("large")
    return np.sqrt(BOOK[3]) * x
"""
CAUGHT = """
import {module} as m
got = [m.root(2.0), m.__all__, m.Negative.__doc__]
for x, kind in ((-1.0, m.Negative), (-2.0, m.Failure), (4000.0, m.Told)):
    try:
        m.root(x)
    except kind as error:
        got.append([type(error).__qualname__, str(error)])
"""


@pytest.mark.parametrize("to", ["native", "numpy"])
def test_exceptions_of_the_module_are_in_its_package(tmp_path, to):
    (tmp_path / f"roots_{to}.py").write_text("import numpy as np\nimport metaphrase as mp\n" + RAISES)
    command = ["compile", str(tmp_path / f"roots_{to}.py"), "--to", to, "--out", str(tmp_path / "out"), "--wheel"]
    assert main(command) == 0
    (wheel,) = (tmp_path / "out" / "dist").glob("*.whl")
    site = installed(wheel, tmp_path / "site")
    value, names, doc, *caught = given(CAUGHT, f"roots_{to}", str(site))[0]
    assert value == 2 * 3.0**0.5 and names == ["Failure", "Negative", "Told", "root"] and doc == "Below zero."
    assert caught[:2] == [["Negative", "x is -1.0"], ["Negative", "x is -2.0"]] and caught[2] == ["Told", "large"]
    stub = (site / f"roots_{to}" / "__init__.pyi").read_text()
    compile(stub, "roots.pyi", "exec")
    assert "class Negative(Failure, ValueError):" in stub
    if to == "numpy":
        assert (
            'BOOK = np.load(__file__.removesuffix(".py") + ".npz")["BOOK"]'
            in (site / f"roots_{to}" / "source" / "root.py").read_text()
        )
