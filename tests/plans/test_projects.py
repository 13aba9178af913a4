"""Projects whose wheels hold compiled modules: built by setuptools, used by a Python that has NumPy alone.

In: a project with `[tool.metaphrase]`, or a setup.py that names `metaphrase.build.extensions`. Out: from its wheel the
numbers that the source gives; installed for editing, the source itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from plans.project import ORBITS, USE, assert_alike, given, installed, module_of, wanted

pytestmark = pytest.mark.turns(6)

HEAD = """[build-system]
requires = ["setuptools", "metaphrase"]
build-backend = "setuptools.build_meta"

[project]
name = "celestial"
version = "2.0"
dependencies = ["numpy"]
"""
NAMED = HEAD + '\n[tool.metaphrase]\nmodules = ["celestial.orbits"]\n'
SETUP = "import metaphrase.build\nfrom setuptools import setup\n\nsetup(ext_modules={})\n"


def project(place: Path, pyproject: str, setup: str = "", source: str = "src") -> Path:
    """A project of a package with a module that exports, one that uses it, and one that does not know metaphrase."""
    package = place / source / "celestial"
    package.mkdir(parents=True)
    (place / "pyproject.toml").write_text(pyproject)
    if setup:
        (place / "setup.py").write_text(setup)
    (package / "__init__.py").write_text("from .orbits import period\nfrom .plain import double\n")
    (package / "orbits.py").write_text(ORBITS.replace("RATE = 0.5", "from .plain import RATE"))
    (package / "plain.py").write_text("RATE = 0.5\n\n\ndef double(x):\n    return 2 * x\n")
    return place


def built(place: Path) -> subprocess.CompletedProcess:
    options = ["--no-build-isolation", "--no-deps", "--disable-pip-version-check", "--quiet", "--wheel-dir", "dist"]
    command = [sys.executable, "-m", "pip", "wheel", ".", *options]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300)


def wheel_of(place: Path) -> Path:
    done = built(place)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (place / "dist").glob("celestial-2.0-*.whl")
    return wheel


@pytest.fixture(scope="module")
def want(tmp_path_factory: pytest.TempPathFactory) -> list:
    """What the module gives as it is."""
    place = tmp_path_factory.mktemp("source")
    (place / "orbits.py").write_text(ORBITS)
    return wanted(module_of(place / "orbits.py"))


def test_a_wheel_by_pyproject_alone(tmp_path, want):
    wheel = wheel_of(project(tmp_path, NAMED))
    assert wheel.name.startswith("celestial-2.0-cp311-abi3-") and "none-any" not in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert "celestial/plain.py" in names and "celestial/orbits.py" not in names
    assert {"celestial/orbits/__init__.py", "celestial/orbits/__init__.pyi"} <= {*names}
    site = str(installed(wheel, tmp_path / "site"))
    got, modules = given(USE, "celestial.orbits", site)
    assert_alike(got, want)
    assert "celestial.orbits._metaphrase.runtime.dispatch" in modules
    assert not {m for m in modules if m.split(".")[0] in ("metaphrase", "Cython", "setuptools")}
    got, _ = given("from {module} import period, double; got = [period(0.3, 1.0), double(2)]", "celestial", site)
    assert got == [want[0], 4]


def test_a_wheel_by_setup_py_for_all_modules_that_export(tmp_path, want):
    setup = SETUP.format('metaphrase.build.extensions("celestial", cpu=["x86-64"])')
    site = tmp_path / "site"
    wheel = wheel_of(project(tmp_path / "project", HEAD, setup, source="."))
    installed(wheel, site)
    assert_alike(given(USE, "celestial.orbits", str(site))[0], want)
    kernels = {path.name.partition(".")[2] for path in (site / "celestial" / "orbits" / "kernels").glob("period*.so")}
    assert kernels == {"0.x86-64.so"} and "none-any" not in wheel.name


def test_a_wheel_of_numpy_source_is_for_all(tmp_path, want):
    wheel = wheel_of(project(tmp_path, NAMED + 'to = "numpy"\n'))
    assert wheel.name == "celestial-2.0-py3-none-any.whl"
    site = installed(wheel, tmp_path / "site")
    got, modules = given(USE, "celestial.orbits", str(site))
    assert_alike(got[:-2], want[:-2])
    assert "celestial.orbits.source.period" in modules and "metaphrase" not in modules


EDITABLE = """
import site, sys
site.addsitedir({site!r})
import celestial, celestial.orbits as m
import json
print(json.dumps([m.__file__, celestial.__file__, "metaphrase" in sys.modules, m.period(0.3, 1.0)]))
"""


def test_installed_for_editing_the_source_runs(tmp_path, want):
    place = project(tmp_path / "project", NAMED)
    make = "from setuptools import build_meta; print(build_meta.build_editable('dist'))"
    done = subprocess.run([sys.executable, "-c", make], cwd=place, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (place / "dist").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    text = EDITABLE.format(site=str(tmp_path / "site"))
    done = subprocess.run([sys.executable, "-P", "-c", text], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    file, package, is_there, E = json.loads(done.stdout.splitlines()[-1])
    assert Path(file) == place / "src" / "celestial" / "orbits.py" and is_there and E == want[0]
    assert not [path for path in place.rglob("*") if path.name in ("kernels", "_metaphrase")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('modules = ["celestial.orbits"]', 'modules = ["celestial.none"]'), "setuptools finds no such module"),
        (('modules = ["celestial.orbits"]', 'modules = "celestial"'), "names modules: modules ="),
        (('modules = ["celestial.orbits"]', 'moduls = ["a"]'), "has modules, to and cpu, and not moduls"),
        (
            ('"celestial.orbits"]', '"celestial.orbits"]\nto = "fortran"'),
            "compiles to native or numpy, not to 'fortran'",
        ),
        (('"celestial.orbits"]', '"celestial.orbits"]\ncpu = "z80"'), "no level of the processor is called 'z80'"),
    ],
)
def test_a_table_that_is_wrong_is_one_error(tmp_path, change, message):
    done = built(project(tmp_path, NAMED.replace(*change)))
    assert done.returncode != 0 and message in done.stdout + done.stderr


def test_an_error_of_the_module_names_its_line(tmp_path):
    place = project(tmp_path, NAMED)
    path = place / "src" / "celestial" / "orbits.py"
    path.write_text(path.read_text() + "\n\n@mp.export('f64')\ndef f(x):\n    return open('x')\n")
    done = built(place)
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "metaphrase did not compile celestial.orbits" in said
    assert os.path.join("src", "celestial", "orbits.py") in said and "return open('x')" in said


def test_projects_without_a_table_are_left_alone(tmp_path):
    wheel = wheel_of(project(tmp_path, HEAD))
    assert wheel.name == "celestial-2.0-py3-none-any.whl"
    assert "celestial/orbits.py" in zipfile.ZipFile(wheel).namelist()
