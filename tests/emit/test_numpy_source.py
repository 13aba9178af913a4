"""The emitted module does what the program does, in a process that can import nothing of ours; and it reads
well.

In: the programs of `numpy_programs` and their derivatives. Out: texts, run; the goldens hold what a person
reads.
"""

from __future__ import annotations

import importlib.util
import linecache
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.emit.numpy_source import Signature, compile_numpy, numpy_source
from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.transforms.reverse import vjp
from metaphrase.core.build import Builder, literal, trace
from metaphrase.core.check import check
from metaphrase.core.dims import Sym
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.core.types import Array, f64
from metaphrase.ops.arithmetic import mul
from metaphrase.ops.families import like

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("numpy_programs", HERE / "numpy_programs.py")
assert _spec is not None and _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
PROGRAMS = _module.PROGRAMS


def gradient(function: Function, wrt: tuple[int, ...]) -> Function:
    """Gradients of the first result; of an array, of the sum of its elements."""
    backward = vjp(function, [j in wrt for j in range(len(function.params))])
    with Builder(f"grad_{function.name}") as builder:
        params = [builder.parameter(p.name, p.type) for p in function.params]
        bars = []
        for k, p in enumerate(backward.params[len(params) :]):
            one = literal(1.0 if k == 0 else 0.0, p.type.dtype)
            bars.append(one if not p.type.dims else like(p.type, one.value))
        outs = builder.replay(backward, [*params, *bars])
        return builder.function(outs[len(function.results) :])


CASES: dict[str, tuple[Function, tuple]] = {}
for _name, (_function, _args, _wrt) in PROGRAMS.items():
    CASES[_name] = (optimize(_function, before_transform=False), _args)
    CASES[f"{_name} as traced"] = (_function, _args)
    if _wrt:
        _gradient = gradient(_function, _wrt)
        CASES[f"grad {_name}"] = (optimize(_gradient, before_transform=False), _args)
        CASES[f"grad {_name} as made"] = (_gradient, _args)


def results(value, count: int) -> tuple:
    return (value,) if count == 1 else value


def assert_equal_bits(got, want, text: str) -> None:
    got_, want_ = np.asarray(got), np.asarray(want)
    assert got_.dtype == want_.dtype and got_.shape == want_.shape, f"{text}\n{got!r}\n{want!r}"
    assert np.array_equal(got_, want_, equal_nan=want_.dtype.kind == "f"), f"{text}\n{got!r}\n{want!r}"
    assert np.ndim(want) or isinstance(got, np.generic), f"{text}\n{type(got)}"


@pytest.mark.parametrize("name", CASES)
def test_the_text_gives_what_the_program_gives(name):
    function, args = CASES[name]
    check(function)
    want = evaluate(function, *args)
    text = numpy_source(function)
    before = [np.copy(a) for a in args]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = results(compile_numpy(text)(*args), len(want))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert_equal_bits(g, w, text)
    for a, b in zip(args, before):
        assert np.array_equal(a, b), f"an argument was written to\n{text}"
    assert text == numpy_source(function)


RUNNER = """
import pickle, sys
sys.modules["metaphrase"] = None  # importing it would raise
sys.path[:] = [p for p in sys.path if "metaphrase" not in p]
cases = pickle.load(sys.stdin.buffer)
found = {}
for name, (text, last, args) in cases.items():
    module = {"__name__": "saved"}
    exec(compile(text, name, "exec"), module)
    found[name] = module[last](*args)
foreign = [m for m in sys.modules if m.split(".")[0] in ("scipy", "ml_dtypes", "gast", "astor", "Cython")]
assert not foreign, foreign
sys.stdout.buffer.write(b"RESULT" + pickle.dumps(found))
"""


def test_saved_modules_run_where_only_numpy_is():
    """All texts in one process that has NumPy and nothing of ours."""
    cases = {n: (numpy_source(f), f.name, a) for n, (f, a) in CASES.items()}
    run = subprocess.run(
        [sys.executable, "-I", "-c", RUNNER], input=pickle.dumps(cases), capture_output=True, timeout=120
    )
    assert run.returncode == 0, run.stderr.decode()
    found = pickle.loads(run.stdout.split(b"RESULT", 1)[1])
    for name, (function, args) in CASES.items():
        want = evaluate(function, *args)
        for g, w in zip(results(found[name], len(want)), want, strict=True):
            assert_equal_bits(g, w, cases[name][0])


@pytest.mark.parametrize(
    "name",
    [
        "period",
        "grad period",
        "grad powers",
        "rnn",
        "grad rnn",
        "matvec",
        "grad matvec",
        "branchy",
        "grad branchy",
        "loss",
        "grad loss",
        "switch",
        "checked",
        "slices",
        "axes",
        "gcd",
        "trips_and_history",
        "swap_and_write",
        "accumulate_rows",
        "sized",
    ],
)
def test_what_a_person_reads(name, update_golden):
    """The texts themselves, so that a change of style is seen."""
    golden = HERE / "goldens" / f"numpy_{name.replace(' ', '_')}.py.txt"
    text = numpy_source(CASES[name][0])
    if update_golden:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert golden.read_text() == text, "renew with pytest --update-golden, and read the difference"


def test_kepler_reads_like_the_source():
    text = numpy_source(CASES["period"][0])
    assert "    while abs(E - e * np.sin(E) - M) > 1e-12:\n" in text
    assert "        E -= (E - e * np.sin(E) - M) / (1.0 - e * np.cos(E))\n" in text


def test_lines_are_short_and_names_are_no_builtins():
    for name, (function, _) in CASES.items():
        for line in numpy_source(function).splitlines():
            assert len(line) <= 120, f"{name}: {line}"


def test_errors_show_the_generated_line():
    """Tracebacks through an emitted function have its text."""
    import traceback

    run = compile_numpy(numpy_source(CASES["checked"][0]))
    with pytest.raises(ValueError, match="-2.0 is negative") as caught:
        run(np.float64(-2.0))
    assert "raise ValueError" in "".join(traceback.format_exception(caught.value))
    with pytest.raises(IndexError, match=r"log 1000000.0 = 13.816, which is too large"):
        run(np.float64(1e6))


def test_python_numbers_are_taken_for_scalars():
    """`period(0.3, 1.0)`, as a person calls it, gives the same as with NumPy scalars."""
    for name, args in {"period": (0.3, 1.0), "grad period": (0.3, 1.0), "branchy": (0.3,), "gcd": (252, 105)}.items():
        function, exact = CASES[name]
        run = compile_numpy(numpy_source(function))
        want = results(run(*exact), len(function.results))
        assert all(a == b for a, b in zip(results(run(*args), len(function.results)), want))


def test_a_loop_of_stores_costs_what_its_stores_cost():
    """No copy of the array inside the loop, forward or backward."""
    for name in ("powers", "grad powers", "matvec", "grad matvec"):
        text = numpy_source(CASES[name][0])
        inside = [line for line in text.splitlines() if line.startswith("        ")]
        assert not any(".copy()" in line for line in inside), text


def test_signature_unpacks_and_packs():
    n = Sym("n")
    function = trace("scale", lambda w, x: (mul(w, x), w), [("w", Array(f64, (n,))), ("x", Array(f64, (n,)))])
    signature = Signature(
        ("params", "x", "factor=2"), ("params['w']", "x"), lambda t: f"{{'y': {t[0]}, 'w': [{t[1]}]}}"
    )
    text = numpy_source(function, name="scale", signature=signature)
    out = compile_numpy(text)({"w": np.arange(3.0)}, np.ones(3))
    assert np.array_equal(out["y"], np.arange(3.0)) and np.array_equal(out["w"][0], np.arange(3.0))
    assert "def scale(params, x, factor=2):\n    w = params['w']\n" in text


def test_module_constants_are_not_assigned_to():
    n = Sym("n")
    function = trace(
        "f", lambda table, x: mul(mul(table, x), x), [("table", Array(f64, (n,))), ("x", Array(f64, (n,)))]
    )
    signature = Signature(("x",), ("table", "x"), lambda t: t[0], rows=("table = np.array([1.0, 2.0])",))
    run = compile_numpy(numpy_source(function, signature=signature))
    assert np.array_equal(run(np.array([3.0, 4.0])), [9.0, 32.0])


def test_the_time_to_write_a_program_grows_with_its_length():
    """Unrolled stores: four times the program takes about four times as long, not sixteen."""

    from metaphrase.ops.arithmetic import add
    from metaphrase.ops.elementary import sin

    n = Sym("n")

    def unrolled(count: int) -> Function:
        def body(x, s):
            for k in range(count):
                s = add(mul(s, _module.element(x, literal(k))), sin(s))
                x = _module.put(x, s, literal(k))
            return x, s

        return trace("unrolled", body, [("x", Array(f64, (n,))), ("s", Array(f64))])

    def calls(count: int) -> int:
        """How many functions are called: what a clock would say, without the clock."""
        function, made = unrolled(count), 0

        def one_more(frame, event, argument):
            nonlocal made
            made += event == "call"

        sys.setprofile(one_more)
        try:
            text = numpy_source(optimize(function, before_transform=False))
        finally:
            sys.setprofile(None)
        assert text.count("\n") >= 2 * count
        return made

    calls(50)  # what is made once
    assert calls(800) < 5 * calls(200)


def test_scalars_put_together_keep_a_narrow_dtype():
    """np.array([f32 scalar, 0.5]) would be f64."""
    from metaphrase.core.types import f32
    from metaphrase.ops.shape import reshape
    from metaphrase.ops.structure import concatenate

    def body(x):
        return concatenate(reshape(x, shape=(1,)), reshape(literal(0.5, f32), shape=(1,)), axis=0)

    function = trace("pair", body, [("x", Array(f32))])
    got = compile_numpy(numpy_source(function))(np.float32(0.1))
    assert got.dtype == np.float32 and np.array_equal(got, np.array([0.1, 0.5], np.float32))


@pytest.mark.parametrize("place", ["[0]", "[:2]", "[[0, 2]]"])
def test_a_number_is_narrowed_before_it_is_added(place):
    """The text makes `a` a float64, which it returns: added as such to float32, it would round otherwise."""
    scope: dict = {}
    text = f"def program(p, a):\n    p{place} += a\n    return p, a\n"
    linecache.cache["<narrowed>"] = (len(text), None, text.splitlines(True), "<narrowed>")
    exec(compile(text, "<narrowed>", "exec"), scope)
    p = np.array([0.26193985, 0.1, 1 / 3], np.float32)
    for a in (0.4575504043192402, 0.1, 1e-9):
        want, saved = p.copy(), {}
        exec(mp.source(scope["program"], p, a), saved)
        scope["program"](want, a)
        np.testing.assert_array_equal(saved["program"](p.copy(), a)[0], want, strict=True)
