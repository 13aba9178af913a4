"""What Python's tools make of decorated functions: help, signatures, pickles, doctests, pdb, coverage, IPython.

In: small modules in files of their own, run by the tools. Out: what the tools say of them.
"""

import inspect
import io
import json
import os
import pickle
import pydoc
import subprocess
import sys
import typing

import numpy as np
import pytest

import metaphrase as mp

pytestmark = pytest.mark.turns(3)


@mp.jit
def area(radius: float, *, half: bool = False) -> float:
    """The area of a circle, about.

    >>> float(area(2.0))
    12.0
    """
    return 1.5 * radius * radius if half else 3.0 * radius * radius


slope = mp.grad(area)


class Model:
    @mp.jit
    def step(self, x):
        """One step."""
        return x * 2.0


def helped(function) -> str:
    return pydoc.plain(pydoc.render_doc(function))


def test_help_of_a_jitted_function_is_that_of_the_function():
    assert "area(radius: float, *, half: bool = False) -> float\n    The area of a circle, about." in helped(area)
    assert "step(self, x)\n |      One step." in helped(Model)
    assert "step(x) method of" in helped(Model().step)
    assert "translates when it is called" in type(area).__doc__


@pytest.mark.parametrize(
    ("made", "line", "said"),
    [
        (
            slope,
            "grad_area(radius: float, *, half: bool = False)\n",
            "The gradient of area with respect to argument 0.",
        ),
        (
            mp.value_and_grad(area, (0,)),
            "value_and_grad_area(radius: float, *, half: bool = False)\n",
            "The value and the gradient of area with respect to arguments 0.",
        ),
        (
            mp.jacrev(area),
            "jacrev_area(radius: float, *, half: bool = False)\n",
            "The Jacobian of area with respect to argument 0, by reverse mode.",
        ),
        (mp.vmap(area), "vmap_area(radius, *, half=False)\n", "area for each of a batch"),
        (mp.jit(mp.vmap(area)), "vmap_area(radius, *, half=False)\n", "area for each of a batch"),
        (mp.checkpoint(area), "area(radius: float, *, half: bool = False) -> float\n", "The area of a circle"),
    ],
    ids=["grad", "value_and_grad", "jacrev", "vmap", "jit of vmap", "checkpoint"],
)
def test_help_of_a_transformed_function_says_what_it_is(made, line, said):
    text = helped(made)
    assert line in text and said in text and "The area of a circle, about." in text


def test_types_that_are_not_those_of_the_function_are_not_told():
    assert typing.get_type_hints(area) == {"radius": float, "half": bool, "return": float}
    assert typing.get_type_hints(slope) == {"radius": float, "half": bool}
    assert typing.get_type_hints(mp.vmap(area)) == {}
    assert inspect.signature(slope).return_annotation is inspect.Signature.empty
    assert "@mp.jit" in inspect.getsource(slope) and inspect.unwrap(slope) is area.py_func


def test_pickles_and_names():
    assert pickle.loads(pickle.dumps(area)) is area and pickle.loads(pickle.dumps(slope))(2.0) == slope(2.0)
    assert (area.__name__, area.__qualname__, area.__module__) == ("area", "area", __name__)
    assert repr(area) == "<jit of area>" and repr(slope) == "<grad of area>"


# ---- in processes of their own -------------------------------------------------------------------------------


def run(tmp_path, *command: str, stdin: str = "", **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-P", *command],
        cwd=tmp_path,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "METAPHRASE_NATIVE": "0", **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


PROGRAM = '''\
import numpy as np
import metaphrase as mp


@mp.jit
def f(x):
    """
    >>> f(2.0)
    7.0
    """
    if x > 0:
        y = x * 2
    else:
        y = x * 3
    for i in range(3):
        y = y + 1
        if y > 1000:
            y = 0.0
    return y


def g(x):
    if x > 0:
        return x * x
    return x * 3


def never(x):
    return x


print(f(2.0), mp.grad(g)(2.0))
'''


def test_doctests_of_jitted_functions_are_found(tmp_path):
    (tmp_path / "circle.py").write_text(PROGRAM)
    said = run(tmp_path, "-m", "pytest", "-p", "no:cacheprovider", "--doctest-modules", "-v", "circle.py")
    assert "circle.py::circle.f PASSED" in said and "1 passed" in said


def test_lines_that_did_not_run_are_not_covered_without_jit(tmp_path):
    """Of what only a transformation calls every line that was translated counts."""
    (tmp_path / "covered.py").write_text(PROGRAM)
    measured = ["-m", "coverage", "run", "--include=covered.py", "covered.py"]
    run(tmp_path, *measured, METAPHRASE_DISABLE_JIT="1")
    run(tmp_path, "-m", "coverage", "json", "-q", "-o", "lines.json")
    report = json.loads((tmp_path / "lines.json").read_text())["files"]["covered.py"]
    lines = PROGRAM.splitlines()
    assert [lines[k - 1].strip() for k in report["missing_lines"]] == ["y = x * 3", "y = 0.0", "return x"]


STOPS = """\
import pdb

import numpy as np
import metaphrase as mp


@mp.jit
def f(x):
    y = x * 2
    breakpoint()
    return y + 1


@mp.jit
def g(x):
    z = x * 3
    pdb.set_trace()
    return z


print(f(np.ones(2)), g(np.ones(2)))
"""


@pytest.mark.parametrize("native", ["0", "1"])
def test_breakpoint_and_set_trace_stop_at_their_lines(tmp_path, native):
    (tmp_path / "stops.py").write_text(STOPS)
    said = run(tmp_path, "stops.py", stdin="p y\nc\np z\nc\n", METAPHRASE_NATIVE=native)
    assert "stops.py(10)f()\n-> breakpoint()\n(Pdb) array([2., 2.])" in said
    assert "stops.py(17)g()\n-> pdb.set_trace()\n(Pdb) array([3., 3.])" in said
    assert said.endswith("[3. 3.] [3. 3.]\n")
    assert run(tmp_path, "stops.py", PYTHONBREAKPOINT="0") == "[3. 3.] [3. 3.]\n"


FAILS = """\
import pdb

import numpy as np
import metaphrase as mp


@mp.jit
def g(x, k):
    return x[k]


a = np.ones(2)

try:
    g(a, 7)
except IndexError:
    pdb.post_mortem()
"""


def test_post_mortem_stands_at_the_users_line(tmp_path):
    (tmp_path / "fails.py").write_text(FAILS)
    said = run(tmp_path, "fails.py", stdin="w\nup\np a\nq\n")
    assert "fails.py(9)g()\n-> return x[k]" in said and "fails.py(15)<module>()" in said
    assert "(Pdb) array([1., 1.])" in said


CELLS = [
    "import numpy as np\nimport metaphrase as mp",
    "@mp.jit\ndef f(x):\n    '''Doubles.'''\n    return np.sum(x * 2)",
    "print(f(np.ones(3)))",
    "@mp.jit\ndef f(x):\n    '''Triples.'''\n    return np.sum(x * 3)",
    "print(f(np.ones(3)))",
    "k = 2.0\ndef helper(x):\n    return x * k\n@mp.jit\ndef h(x):\n    return helper(x) + 1\nprint(h(3.0))",
    "k = 5.0\nprint(h(3.0))",
    "def helper(x):\n    return x - k\nprint(h(3.0))",
    "print(mp.source(mp.grad(f), np.ones(3)))",
    "%prun -q f(np.ones(3))",
    "f?",
    "f??",
    "@mp.jit\ndef g(x, k):\n    y = x * 2\n    return y[k]\ng(np.ones(3), 7)",
    "@mp.jit\ndef bad(x):\n    return eval('x')\nbad(1.0)",
]


def test_functions_of_cells(tmp_path):
    session = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
for number, cell in enumerate({CELLS!r}, 1):
    print(f"-- {{number}}")
    shell.run_cell(cell, store_history=True)
"""
    (tmp_path / "session.py").write_text(session)
    said = run(tmp_path, "session.py", IPYTHONDIR=str(tmp_path / "ipython"), METAPHRASE_NATIVE="1")
    parts = dict(enumerate(said.split("-- ")[1:], 1))
    shown = [parts[k].splitlines()[1] for k in (3, 5, 6, 7, 8)]
    assert shown == ["6.0", "9.0", "7.0", "16.0", "-1.0"]
    assert "np.full(3, 3.0)" in parts[9] and "def grad_f(x):" in parts[9]
    assert "f(x)" in parts[11] and "Triples." in parts[11] and "translates when it is called" in parts[11]
    assert "return np.sum(x * 3)" in parts[12]
    assert "----> 4     return y[k]" in parts[13] and "index 7 is out of bounds" in parts[13]
    assert "return eval('x')\n         ^^^^^^^^^" in parts[14]


def test_streams_are_given_to_pdb(monkeypatch):
    said = {"stdin": io.StringIO("p y\nc\n"), "stdout": io.StringIO()}

    @mp.jit
    def f(x):
        y = x + 1.0
        mp.debug.breakpoint(**said)
        return y

    assert f(np.float64(1.0)) == 2.0 and "np.float64(2.0)" in said["stdout"].getvalue()
