"""Users' names that the generated source needs itself: builtins, helpers, imported functions and classes.

In: a function whose parameter, local, global or own name is such a one. Out: what Python gives, by the text
of `source`, by the NumPy stage and by the loops stage.
"""

from __future__ import annotations

import array
import itertools
import linecache

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.emit.numpy_source_names import RESERVED
from metaphrase.astpasses.emit.numpy_source_spellings import scipy_name
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.astpasses.schedule import python_loops, schedule
from metaphrase.config import config
from metaphrase.core.evaluate import evaluate
from metaphrase.core.primitive import REGISTRY
from metaphrase.pipeline import finished

pytestmark = pytest.mark.turns(8)

files = itertools.count()

HEAD = """
import array
import collections
import types
import numpy as np
from scipy import special
Pair = collections.namedtuple("Pair", "a b")
"""
BODY = """
    out = []
    for i, v in enumerate(x):
        if v > 0.6:
            out.append(v * i)
    y = np.sort(x) @ np.sort(x * scale) + special.digamma(x)[0] ** 2 + special.erf(y)
    results = y, out, {{"a": y}}, (np.array([3, 4]) ** k).sum(), bytearray(b"a"), Pair(y, k)
    return results, array.array("d", [1.0]), types.SimpleNamespace(b=y), collections.OrderedDict(c=y)
"""
WAYS = {
    "local": f"""
def helper(x, k, y, scale):{BODY}

def program(x, k):
    {{name}} = x[0] * 2
    {{name}} = {{name}} + special.erf(x[1]) ** {{name}}
    return helper(x, k, {{name}}, 2.0), {{name}}
""",
    "parameter": f"""
def helper(x, k, y, scale):{BODY}

def program(x, {{name}}):
    return helper(x, {{name}}, 0.5, 2.0), {{name}}
""",
    "global": f"""
{{name}} = np.array([0.25, 0.5, 1.0])

def helper(x, k, y, scale):{BODY}

def program(x, k):
    return helper(x, k, 0.5, {{name}})
""",
    "function": f"""
def helper(x, k, y, scale):{BODY}

def {{name}}(x, k):
    return helper(x, k, 0.5, 2.0)
""",
}
IN_PYTHON = {"np", "enumerate", "bytearray", "set", "dict", "True", "False", "None"}  # the helper needs them
FOREIGN = {name for p in REGISTRY.values() if (name := scipy_name(p)) is not None}
NAMES = sorted(n for n in {*RESERVED, *FOREIGN, "Pair", "array"} - IN_PYTHON if n.isidentifier())


def made(way: str, name: str):
    """The function of a module's text, with its source where `inspect` finds it."""
    text = HEAD + WAYS[way].format(name=name)
    file = f"<names {next(files)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: dict = {"__name__": "users"}
    exec(compile(text, file, "exec"), scope)
    return scope[name if way == "function" else "program"]


def saved(function, args):
    """What the text of `source` gives."""
    scope: dict = {"__name__": "saved"}
    text = mp.source(function, *args)
    exec(text, scope)
    last = [line[4 : line.index("(")] for line in text.splitlines() if line.startswith("def ")][-1]
    return scope[last](*args)


def parts(value):
    value = vars(value) if hasattr(value, "__dict__") else value
    value = tuple(value.values()) if isinstance(value, dict) else value
    if isinstance(value, (tuple, list)):
        return [p for part in value for p in parts(part)]
    return [value]


def agree(got, want):
    pairs = list(zip(parts(got), parts(want), strict=True))
    return all(g == w if isinstance(w, (bytearray, array.array)) else np.allclose(g, w) for g, w in pairs)


@pytest.mark.parametrize("way", WAYS)
def test_a_name_that_the_source_needs_itself(way):
    args = np.array([0.5, 1.25, 0.75]), 2
    wrong = []
    with config(native=False):
        for name in NAMES:
            try:
                function = made(way, name)
            except SyntaxError:  # a keyword
                continue
            if way in ("global", "function") and name in ("Pair", "array"):
                continue
            want = function(*args)
            for stage_, run in (("source", saved), ("jit", lambda f, a: mp.jit(f)(*a))):
                try:
                    if not agree(run(function, args), want):
                        wrong.append((stage_, name, "other values"))
                except (TypeError, NameError, AttributeError) as error:
                    wrong.append((stage_, name, f"{type(error).__name__}: {error}"))
    assert wrong == []


LOOPS = """
import numpy as np
from scipy import special


def program(x, {name}):
    {name} = {name} * 2.0
    y = np.sort(x) @ np.sort(x * {name}) + special.digamma(x)[0] ** 2
    for v in x:
        if v > 0.6:
            {name} = {name} + np.floor(v) * special.erf({name} / 100)
    {name} = {name} + np.linalg.solve(np.outer(x, x) + np.eye(len(x)), x)[0] + np.fft.fft(x).real.sum()
    return {name}, np.cumsum(x[x > 0.7]) * y
"""


@pytest.mark.parametrize("name", "empty grow view convert gemm lanes Failed effect f64".split())
def test_a_name_that_the_loops_need_themselves(monkeypatch, name):
    monkeypatch.setitem(WAYS, "loops", LOOPS)
    args = np.array([0.5, 1.25, 0.75]), 0.5
    staged = stage(made("loops", name), args)
    function, arrays = finished(staged.function), staged.arguments(args)
    got, want = python_loops.run(schedule(function), *arrays), evaluate(function, *arrays)
    assert agree(list(got), list(want))
