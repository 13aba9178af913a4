"""Calls whose answer hangs on the values, dtypes or names of their arguments: what Python and NumPy give.

A line of answers.txt is an expression and its arguments, which are staged; a heading is one native program, of which
each day has a fourth.
Types, dtypes and shapes are compared, too; of what raises, whether it is a TypeError, a ValueError, an
IndexError, an OverflowError or a ZeroDivisionError.
"""

import copy
import importlib.util
import pathlib
import sys
import warnings

import numpy as np
import pytest
from turns import turn

import metaphrase as mp
from metaphrase.config import config

NAMES = {"np": np, "nan": np.nan, "inf": np.inf}
RAISED = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError)


def read():
    """Headings, with pairs of an expression and its arguments."""
    found = {}
    for line in pathlib.Path(__file__).with_name("answers.txt").read_text().splitlines():
        if line.startswith("#"):
            rows = found.setdefault(line[1:].strip(), [])
        elif line.strip():
            expression, _, given = line.partition(" | ")
            rows.append((expression.strip(), eval(f"dict({given})", NAMES)))
    return found


THEMES = read()
LINES = {f"{theme}: {e} | {given}": (e, given) for theme, rows in THEMES.items() for e, given in rows}


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """A function for each line, and one for each theme, which calls those of its lines that raise nothing."""
    path = tmp_path_factory.mktemp("answers") / "answers_as_functions.py"
    rows = ["import math\n\nimport numpy as np\n\n"]
    for k, (expression, given) in enumerate(LINES.values()):
        *before, last = expression.split(";")
        body = "".join(f"    {part.strip()}\n" for part in before)
        rows.append(f"def line_{k}({', '.join(given)}):\n{body}    return {last.strip()}\n\n")
    rows.append("def all_of(calls, arguments):\n    return [f(*a) for f, a in zip(calls, arguments)]\n")
    path.write_text("\n".join(rows))
    spec = importlib.util.spec_from_file_location("answers_as_functions", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def outcome(function, given):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*copy.deepcopy(list(given)))
        except RAISED as error:
            return next(kind for kind in RAISED if isinstance(error, kind))


def alike(got, want):
    if isinstance(want, (list, tuple)):
        return type(got) is type(want) and len(got) == len(want) and all(map(alike, got, want))
    if type(got) is not type(want):
        return False
    if isinstance(want, (np.ndarray, np.generic)) and (got.dtype != want.dtype or got.shape != want.shape):
        return False
    if np.asarray(want).dtype.kind not in "fc":
        return bool(np.all(got == want))
    tolerance = 1e-5 if np.asarray(want).dtype in (np.float32, np.complex64, np.float16) else 1e-12
    return bool(np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True))


@pytest.mark.parametrize("line", LINES)
def test_line(line, functions):
    function, given = getattr(functions, f"line_{list(LINES).index(line)}"), LINES[line][1].values()
    want = outcome(function, given)
    with config(native=False):
        got = outcome(mp.jit(function), given)
    assert alike(got, want), f"{got!r} for {want!r}"


@pytest.mark.parametrize("theme", turn(THEMES, 4))
def test_native(theme, functions):
    calls, arguments, wants = [], [], []
    for k, (name, (_, given)) in enumerate(LINES.items()):
        function = getattr(functions, f"line_{k}")
        if name.startswith(f"{theme}: ") and not isinstance(want := outcome(function, given.values()), type):
            calls, arguments, wants = [*calls, function], [*arguments, list(given.values())], [*wants, want]
    made = mp.jit(lambda *given: functions.all_of(calls, given))(*copy.deepcopy(arguments))
    for function, got, want in zip(calls, made, wants, strict=True):
        assert alike(got, want), f"{function.__name__}: {got!r} for {want!r}"


SIZES = [2**62, 2**60 + 1, 2**63 - 2]


def counted(n):
    return np.arange(n)


def spaced(n):
    return np.linspace(0, 1, n)


def tiled(n):
    return np.tile(np.arange(4.0) + n, n)


def repeated(n):
    return np.repeat(np.arange(4.0) + n, n)


def squared(n):
    return np.zeros((n, n))


def ordered(n):
    return np.sort(np.arange(n) * 0.5)


def in_bins(n):
    return np.bincount(np.array([n]))


@pytest.mark.parametrize(
    "function", [counted, spaced, tiled, repeated, squared, ordered, in_bins], ids=lambda f: f.__name__
)
def test_what_no_memory_holds(function):
    """The bytes, or the elements, are more than 64 bits hold."""
    jitted = mp.jit(function)
    for n in SIZES:
        with pytest.raises((MemoryError, ValueError)):
            jitted(n)
    assert alike(jitted(3), function(3))
