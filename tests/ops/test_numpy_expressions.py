"""NumPy as people call it: each line of expressions.txt, translated, gives what NumPy gives.

A line is the body of a function whose arguments are the names of OPERANDS that it uses. A line that begins
with `!` is refused, with an error that names its place. Lines are compared in structure, dtype and values.
"""

import ast
import functools
import importlib.util
import pathlib
import sys
import warnings

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.config import config
from metaphrase.source import SourceError

from .library_cases import OPERANDS as LIBRARY_OPERANDS

pytestmark = pytest.mark.turns(6)

LINES = [
    line
    for line in pathlib.Path(__file__).with_name("expressions.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
]
_H = LIBRARY_OPERANDS["h"]
OPERANDS = LIBRARY_OPERANDS | {"g": _H @ _H.T + np.eye(3), "s": 0.75, "k": 2}
IMPORTS = "import cmath, functools, itertools, math, operator\n\nimport numpy as np\n\n"


def names_in(line):
    tree = ast.parse(line.removeprefix("!").strip())
    return sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in OPERANDS})


@functools.cache
def module(folder):
    """A module with one function a line; errors then name a file and a line."""
    path = pathlib.Path(folder) / "expressions_as_functions.py"
    rows = [
        f"def line_{k}({', '.join(names_in(line))}):\n    return {line.removeprefix('!').strip()}\n\n"
        for k, line in enumerate(LINES)
    ]
    path.write_text(IMPORTS + "\n".join(rows))
    spec = importlib.util.spec_from_file_location("expressions_as_functions", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="session")
def functions(tmp_path_factory):
    return module(str(tmp_path_factory.mktemp("expressions")))


def arguments(line):
    values = [OPERANDS[n] for n in names_in(line)]
    return [np.copy(v) if isinstance(v, np.ndarray) else v for v in values]


def alike(got, want):
    if isinstance(want, (list, tuple)):
        named = type(got).__name__ == type(want).__name__
        return named and len(got) == len(want) and all(map(alike, got, want))
    if isinstance(want, dict):
        return got.keys() == want.keys() and all(alike(got[k], want[k]) for k in want)
    if isinstance(want, (bool, int, float, complex)) and not isinstance(want, np.generic):
        return type(got) is type(want) and bool(np.isclose(got, want, rtol=1e-12, atol=1e-13, equal_nan=True))
    if not isinstance(want, (np.ndarray, np.generic)):
        return type(got) is type(want) and got == want
    x, y = np.asarray(got), np.asarray(want)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    single = x.dtype in (np.float32, np.complex64, np.float16)
    tolerance = 1e-5 if single else 1e-10
    return bool(np.allclose(x, y, rtol=tolerance, atol=tolerance / 10, equal_nan=True))


@pytest.mark.parametrize("line", LINES)
def test_expression(line, functions):
    function = getattr(functions, f"line_{LINES.index(line)}")
    if line.startswith("!"):
        with config(native=False), pytest.raises(SourceError) as caught:
            mp.jit(function)(*arguments(line))
        assert caught.value.span.file == functions.__file__ and caught.value.remedy
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = function(*arguments(line))
        with config(native=False):
            got = mp.jit(function)(*arguments(line))
    assert alike(got, want), f"{got!r} for {want!r}"


def test_every_line_stands_once():
    assert len(set(LINES)) == len(LINES) > 700
