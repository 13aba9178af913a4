"""What a second process gives, in which nothing was edited: what Python gives, whatever the first one was told.

In: small programs, run twice with one cache, the second time with another VALUE in the environment and another order of
sets. Out: the results of the same program under METAPHRASE_DISABLE_JIT.
"""

from __future__ import annotations

import pytest
from plans.process import report

pytestmark = pytest.mark.turns(8)

HEAD = """
import dataclasses, enum, importlib.util, json, os, sys, warnings
import numpy as np
import metaphrase as mp

x = np.arange(3.0)
"""
TAIL = """
got = json.loads(json.dumps(got, default=lambda v: np.asarray(v).tolist()))
print(json.dumps({"got": got, "translated": "metaphrase.astpasses.frontend.staging.stage" in sys.modules}))
"""

PROGRAMS = {
    "pinned arguments": """
@mp.jit
def f(a, n): return a.sum(axis=n)
got = [f(np.arange(6.0).reshape(2, 3), n) for n in (0, 1, -1)]
""",
    "which arguments are one object": """
class B: k = 2.0
@mp.jit
def f(v, a, b): return v * (2.0 if a is b else 3.0)
a, b = B(), B()
got = [f(x, a, a), f(x, a, b), f(x, *((a, b) if os.environ["VALUE"] == "2" else (a, a)))]
""",
    "which globals are one function": """
def scaled(k):
    def scale(v): return v * k
    return scale
op = scaled(2.0)
twice = op if os.environ["VALUE"] == "1" else scaled(3.0)
@mp.jit
def f(v): return op(v) - 10 * twice(v)
got = f(x)
""",
    "the order of a set": """
NAMES = {"alpha", "beta", "gamma", "delta"}
@mp.jit
def f(v): return [v * len(name) for name in NAMES]
got = [a.tolist() == (x * len(name)).tolist() for a, name in zip(f(x), NAMES)]
""",
    "the order of a set in the code": """
@mp.jit
def f(v): return "".join([name for name in {"alpha", "beta", "gamma"}])
got = f(x) == "".join([name for name in {"alpha", "beta", "gamma"}])
""",
    "what an enum's member holds": """
M = enum.Enum("M", {"A": 1.0, "B": float(os.environ["VALUE"])})
@mp.jit
def f(v): return v * M.B.value
got = f(x)
""",
    "an object that is compared": """
@dataclasses.dataclass
class C: k: float
LIMIT = C(float(os.environ["VALUE"]))
@mp.jit
def f(v): return v * 2.0 if LIMIT == C(1.0) else v * 3.0
got = f(x)
""",
    "text of a tuple": """
T = ("a", os.environ["VALUE"])
@mp.jit
def f(v):
    if v[0] > -1.0:
        raise ValueError("%s %s" % T)
    return v
try:
    got = f(x)
except ValueError as error:
    got = str(error)
""",
    "attributes that any name has": """
class AttrDict(dict): __getattr__ = dict.__getitem__
C = AttrDict(scale=float(os.environ["VALUE"]))
@mp.jit
def f(v, c): return v * c.scale
got = f(x, C)
""",
    "a number of many digits": """
BIG = 10 ** 5000
@mp.jit
def f(v): return v * (BIG % 7)
got = f(x)
""",
    "settings of NumPy": """
np.seterr(all="raise" if os.environ["VALUE"] == "2" else "ignore")
@mp.jit
def f(v): return v * 2.0
got = f(x)
""",
}


def run_of(tmp_path, program, **environment):
    path = tmp_path / "main.py"
    path.write_text(HEAD + program + TAIL)
    return report(path, METAPHRASE_CACHE_DIR=str(tmp_path / "cache"), **environment)


@pytest.mark.parametrize("what", PROGRAMS)
def test_it_gives_what_python_gives(tmp_path, what):
    for value in ("1", "2"):
        environment = {"VALUE": value, "PYTHONHASHSEED": value}
        got = run_of(tmp_path, PROGRAMS[what], **environment)["got"]
        assert got == run_of(tmp_path, PROGRAMS[what], METAPHRASE_DISABLE_JIT="1", **environment)["got"]


def test_names_of_another_module_of_the_same_name_are_not_read(tmp_path):
    (tmp_path / "plug.py").write_text(
        "import metaphrase as mp\nSCALE = 2.0\ndef helper(v): return v * SCALE\n"
        "@mp.jit\ndef f(v): return helper(v) + SCALE\n"
    )
    program = f"""
def load(register):
    spec = importlib.util.spec_from_file_location("plug", {str(tmp_path / "plug.py")!r})
    module = importlib.util.module_from_spec(spec)
    if register:
        sys.modules["plug"] = module
    spec.loader.exec_module(module)
    return module
first, other = load(True), load(False)
other.SCALE = 5.0
got = [first.f(x), other.f(x)]
"""
    for _ in range(2):
        assert run_of(tmp_path, program)["got"] == [[2, 4, 6], [5, 10, 15]]


def test_a_project_that_was_moved_warns_at_its_own_lines(tmp_path):
    program = """
import helper
@mp.jit
def f(v): return helper.told(v) * 2.0
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    f(x)
got = [[str(w.message), w.filename] for w in caught]
"""
    for name in ("one", "two"):
        place = tmp_path / name
        place.mkdir()
        (place / "helper.py").write_text(
            "import warnings\ndef told(v):\n    if v[0] < 1.0:\n        warnings.warn('small')\n    return v\n"
        )
        (place / "main.py").write_text(HEAD + program + TAIL)
        told = report(place / "main.py", METAPHRASE_CACHE_DIR=str(tmp_path / "cache"))
        assert told["got"] == [["small", str(place / "helper.py")]] and told["translated"] == (name == "one")


def test_a_program_from_disk_keeps_no_argument_alive(tmp_path):
    program = """
@mp.jit
def f(v): return v * 2.0
before = sys.getrefcount(x)
f(x)
got = sys.getrefcount(x) - before
"""
    for translated in (True, False):
        assert run_of(tmp_path, program) == {"got": 0, "translated": translated}


def test_decorated_solvers_and_constants_for_derivatives_are_kept(tmp_path):
    program = """
import scipy.optimize
from metaphrase.implicit_diff import custom_root

@custom_root(lambda x, a: x**2 - a)
def heron(x, a):
    for _ in range(12):
        x = (x + a / x) / 2
    return x

@mp.jit
def f(v):
    x = scipy.optimize.brentq(lambda x: x**2 - v[2], 0.0, 3.0)
    return x - heron(1.0, v[2]) + mp.nn.softmax(v)

got = np.round(f(x), 9)
"""
    first, second = run_of(tmp_path, program), run_of(tmp_path, program)
    assert first["got"] == second["got"] == [0.090030573, 0.244728471, 0.665240956]
    assert first["translated"] and not second["translated"]
