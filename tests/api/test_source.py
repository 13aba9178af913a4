"""The text of stages: it runs, where NumPy stage needs NumPy only, and has the user's parameters."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest
from corpus import alike, cases, fresh
from scipy import special

import metaphrase as mp
from metaphrase import tree
from metaphrase.config import config
from metaphrase.explanation import explain
from metaphrase.source import SourceError

# Blocks every import but NumPy's (and what NumPy itself imports), then runs the file given and prints a call.
RUNNER = """
import sys, numpy as np
class Only:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("metaphrase", "scipy", "gast", "jax"):
            raise ImportError("not here: " + name)
sys.meta_path.insert(0, Only())
namespace = {"__name__": "saved"}
exec(open(sys.argv[1]).read(), namespace)
print(repr(eval(sys.argv[2], namespace)))
"""


class Pair(NamedTuple):
    a: object
    b: object


WEIGHTS = np.array([1.0, 2.0, 3.0])


def period(e, M):
    E = M
    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


def mse(params, x, y):
    return np.mean((x @ params["w"] + params["b"] - y) ** 2)


def captures(x):
    return np.sum(x * WEIGHTS)


def containers(pair, flag, items):
    if flag:
        return Pair(pair.a + items[0], OrderedDict(z=items[1], y=pair.b)), None, "done"
    return pair, None, "not"


CALLS = {
    "loop": (lambda: period, (0.3, 1.0), "(0.3, 1.0)"),
    "derivative of a loop": (lambda: mp.grad(period), (0.3, 1.0), "(0.3, 1.0)"),
    "second derivative": (lambda: mp.grad(mp.grad(period)), (0.3, 1.0), "(0.3, 1.0)"),
    "lanes": (lambda: mp.vmap(mp.grad(period), (0, None)), (np.array([0.1, 0.8]), 1.0), "(np.array([0.1, 0.8]), 1.0)"),
    "tree": (
        lambda: mp.value_and_grad(mse),
        ({"w": np.ones(2), "b": 1.0}, np.eye(2), np.ones(2)),
        "({'w': np.ones(2), 'b': 1.0}, np.eye(2), np.ones(2))",
    ),
    "captured": (lambda: mp.grad(captures), (np.ones(3),), "(np.ones(3),)"),
    "forward": (lambda: mp.jacfwd(lambda x: x * x), (np.arange(3.0),), "(np.arange(3.0),)"),
}


def run_alone(tmp_path, text, name, arguments):
    path = tmp_path / "saved.py"
    path.write_text(text)
    out = subprocess.run(
        [sys.executable, "-c", RUNNER, str(path), f"{name}(*{arguments})"], capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    return out.stdout


@pytest.mark.parametrize("case", CALLS)
def test_numpy_source_runs_where_only_numpy_is(case, tmp_path):
    make, args, arguments = CALLS[case]
    function = make()
    text = mp.source(function, *args)
    last = [line[4 : line.index("(")] for line in text.splitlines() if line.startswith("def ")][-1]
    printed = run_alone(tmp_path, text, last, arguments)
    want = function(*args)
    got = eval(printed.replace("np.float64", "float"), {"array": np.array, "np": np})
    assert tree.structure(got) == tree.structure(want)
    for a, b in zip(tree.leaves(got), tree.leaves(want)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("stage", ["normal", "control"])
def test_normal_and_control_are_modules_that_run(stage):
    namespace = {"__name__": "saved"}
    exec(mp.source(period, 0.3, 1.0, stage=stage), namespace)
    assert namespace["period"](0.3, 1.0) == period(0.3, 1.0)


def test_containers_keep_their_form(tmp_path):
    text = mp.source(containers, Pair(1.0, 2.0), True, [3.0, 4.0])
    assert "def containers(pair, flag, items):" in text and "Pair = namedtuple('Pair', ['a', 'b'])" in text
    printed = run_alone(tmp_path, text, "containers", "(Pair(1.0, 2.0), True, [3.0, 4.0])")
    assert "Pair(a=" in printed and "OrderedDict" in printed and "'done'" in printed


def test_every_stage_has_text():
    stages = ("source", "normal", "control", "core", "transformed", "numpy", "loops", "cython", "cuda")
    assert mp.stages() == stages
    for stage in mp.stages():
        assert "period" in mp.source(period, 0.3, 1.0, stage=stage) or stage == "cython"
    with pytest.raises(SourceError, match="there is no stage 'c'"):
        mp.source(period, 0.3, 1.0, stage="c")


def test_core_reads_back():
    from metaphrase.core.read import read

    for stage in ("core", "transformed"):
        text = mp.source(mp.grad(period), 0.3, 1.0, stage=stage)
        again = str(read(text))  # without the remarks, which name the user's lines
        assert [line.split("  #")[0].rstrip() for line in text.splitlines()] == [
            line.split("  #")[0].rstrip() for line in again.splitlines()
        ]


def test_made_twice_it_is_the_same():
    for stage in mp.stages():
        assert mp.source(mp.grad(period), 0.3, 1.0, stage=stage) == mp.source(mp.grad(period), 0.3, 1.0, stage=stage)


def test_explain_names_arguments_and_loops():
    from metaphrase.explanation import explain

    report = explain(captures, np.ones(3))
    assert "x: f64[3]" in report and "WEIGHTS: f64[3]" in report and "1 reduce_sum" in report
    assert "1 while" in explain(period, 0.3, 1.0)


def _writes(function, args) -> bool:
    given = fresh(args)
    faults = (ArithmeticError, ValueError, IndexError, AssertionError)
    with np.errstate(all="ignore"), contextlib.suppress(*faults):
        function(*given)
    return not alike(given, fresh(args))


WRITERS = [c for c in cases("stores", "trees", "kernels") if _writes(*c[1:])]


@pytest.mark.parametrize("function, args", [c[1:] for c in WRITERS], ids=[c[0] for c in WRITERS])
def test_the_text_writes_what_the_function_writes(function, args):
    scope: dict = {}
    exec(mp.source(function, *fresh(args)), scope)
    expected, found = fresh(args), fresh(args)
    assert alike(scope[function.__name__](*found), function(*expected), 1e-9)
    assert alike(found, expected, 1e-9) and not alike(found, fresh(args), 1e-9)


def test_what_a_narrow_dtype_drops_stays_dropped():
    def function(v):
        out = np.zeros(3)
        out[:] = v.astype(np.float32)
        out[1:] += v[1:].astype(np.int8).astype(float)
        return out, v.astype(np.float32).astype(float) * 3.0

    v = np.array([2.7, -1.3, 1e-9 + 3.3])
    names = {}
    exec(mp.source(function, v), names)
    for want, got in zip(function(v), names["function"](v)):
        np.testing.assert_array_equal(got, want)


def test_arguments_may_be_text_of_types():
    struct = mp.ShapeDtypeStruct
    like = mp.source(period, struct((), float), struct((), float), stage="core")
    assert mp.source(period, "f64, f64", stage="core") == like
    assert mp.source(period, "f64", "f64", stage="core") == like
    assert mp.source(period, "f64", M="f64", stage="core") == like
    text = mp.source(mse, "{'w': f64[n], 'b': f64}, f64[m, n], f64[m]")
    assert text.startswith("# For sizes from 2 on: m, n.")
    assert mp.source(mse, "{'w': f64[n], 'b': f64}", "f64[m, n], f64[m]") == text
    jitted = mp.jit(lambda x, kind: np.sin(x) if kind == "bool" else np.cos(x))
    assert "sin" in mp.source(jitted, "f32[n]", "bool") and "sin" in jitted.source("numpy", "f32[n]", "bool")
    out = jitted.lower("f32[4]", "other").out_info
    assert (out.shape, out.dtype) == ((4,), np.float32)
    assert jitted.lower("f32[4]", "bool").compile()(np.zeros(4, np.float32), "bool").sum() == 0
    assert mp.eval_shape(np.add, "f64[n, 3], f32[3]").shape == struct(("n", 3), float).shape
    assert explain(period, "f64", "f64").startswith("period\narguments:\n  e: f64\n")


def test_text_that_is_no_types_says_where():
    with pytest.raises(ValueError, match=r"do not read as Python\n  f64\[n\n") as caught:
        mp.source(np.sin, "f64[n")
    assert "TypeError" not in str(caught.value)
    with pytest.raises(ValueError, match="float64 is not a dtype; the dtypes are f64, f32"):
        mp.source(np.sin, "float64[n]")
    with pytest.raises(ValueError, match="M is one argument, not 2"):
        mp.source(period, "f64", M="f64, f64")


def parameters_called_as_functions(erf, gamma):
    total = 0.0
    for k in range(len(erf)):
        digamma = special.digamma(erf[k])
        total = total + special.erf(erf[k]) * special.gamma(gamma[k]) * digamma
    return total


def test_functions_of_scipy_are_not_hidden_by_names():
    x = np.array([0.3, 0.7, 1.9])
    scope = {}
    exec(mp.source(parameters_called_as_functions, x, x), scope)
    want = parameters_called_as_functions(x, x)
    assert scope["parameters_called_as_functions"](x, x) == pytest.approx(want)


@pytest.mark.parametrize(
    "function",
    [special.erf, special.erfc, special.erfinv, special.gammaln, special.gamma, special.digamma],
    ids=lambda f: f.__name__,
)
def test_functions_of_scipy_are_not_hidden_by_what_they_give(function):
    slope = mp.grad(lambda x: function(x))
    with config(native=False):
        twice = mp.grad(mp.grad(lambda x: function(x)))(0.4)
    assert twice == pytest.approx((slope(0.4 + 1e-6) - slope(0.4 - 1e-6)) / 2e-6, rel=1e-7)
