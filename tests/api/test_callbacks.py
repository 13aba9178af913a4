"""Python functions called back: what they get and give, how often and in which order, in native code and NumPy source.

In: functions that call pure_callback, io_callback, debug.callback, debug.print and debug.breakpoint. Out: what Python
does.
"""

from __future__ import annotations

import bdb
import io
import re
import runpy
import types
from pathlib import Path

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import ShapeDtypeStruct, config
from metaphrase.aot import compile_module
from metaphrase.experimental import io_callback
from metaphrase.source import SourceError

X = np.array([0.5, 1.5, 2.5, 3.5])
F64 = ShapeDtypeStruct((), np.float64)


@pytest.fixture(params=[False, True], ids=["numpy source", "native"])
def native(request):
    with config(native=request.param):
        yield request.param


def recorded():
    """A function that keeps what it is given, and the list."""
    seen: list = []

    def record(*args, **kwargs):
        seen.append((*args, *kwargs.values()))

    return record, seen


# ---- what a callback gets and gives ----------------------------------------------------------------------------------


def host(tree, power, k=1):
    assert type(tree["x"]) is np.ndarray and k == 3
    return {"y": tree["x"] ** power, "sum": tree["x"].sum()}


def test_pytrees_and_sizes_that_change(native):
    @mp.jit
    def f(x):
        made = mp.pure_callback(host, {"y": x, "sum": F64}, {"x": x}, 2.0, k=3)
        return made["y"] * 2.0 + made["sum"], x + 1.0

    for n in (3, 4, 5, 7):
        x = np.arange(float(n))
        y, z = f(x)
        np.testing.assert_array_equal(y, 2 * x**2 + x.sum())
        np.testing.assert_array_equal(z, x + 1.0)


def test_outside_of_translated_functions_it_is_called_at_once():
    record, seen = recorded()
    mp.debug.callback(record, 1, k=X)
    assert seen == [(1, X)]
    assert mp.pure_callback(lambda x: x + 1, F64, 2.0) == 3.0
    made = mp.io_callback(lambda x: {"a": x}, {"a": ShapeDtypeStruct((4,), np.float32)}, X)
    assert made["a"].dtype == np.float32
    with pytest.raises(ValueError, match=r"shape \(4,\) where \(\) was promised"):
        mp.pure_callback(lambda x: x, F64, X)


@pytest.mark.parametrize(
    ("gives", "error", "text"),
    [
        (lambda x: x, ValueError, r"the shape \(4,\) where \(2,\) was promised"),
        (lambda x: x[:2] + 1j, TypeError, "complex128 where float64 was promised"),
        (lambda x: (x[:2], x), TypeError, "where PyTreeDef"),
        (lambda x: 1 // 0, ZeroDivisionError, "division"),
    ],
)
def test_what_breaks_the_promise_and_what_raises(native, gives, error, text):
    f = mp.jit(lambda x: mp.pure_callback(gives, ShapeDtypeStruct((2,), float), x).sum())
    for _ in range(2):
        with pytest.raises(error, match=text):
            f(X)


def test_a_callback_may_keep_what_it_is_given(native):
    record, seen = recorded()

    @mp.jit
    def f(x):
        y = x * 2.0
        mp.debug.callback(record, y)
        y[0] = -1.0
        mp.debug.callback(record, y)
        return y.sum()

    f(X)
    np.testing.assert_array_equal([row[0] for row in seen], [2 * X, [-1.0, *2 * X[1:]]])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool, np.complex128])
def test_dtypes(native, dtype):
    x = np.array([[0, 1, 2], [3, 0, 5]]).astype(dtype)
    f = mp.jit(lambda x: mp.pure_callback(lambda v: v.T.copy(), ShapeDtypeStruct((3, 2), dtype), x))
    np.testing.assert_array_equal(f(x), x.T)
    assert f(x).dtype == dtype


# ---- order, branches and loops ---------------------------------------------------------------------------------------


def test_effects_keep_program_order(native, capsys):
    @mp.jit
    def f(x):
        mp.debug.print("first {x:.1f} {}", x.size, x=x[0])
        total = 0.0
        for i in range(len(x)):
            if x[i] > 1.0:
                mp.debug.callback(lambda i, v: print("row", i, v), i, x[i], ordered=True)
                total = total + io_callback(lambda v: print("io", v) or v * 10, F64, x[i])
            else:
                print("small", x[i])
        mp.debug.print("last {}", total, ordered=True)
        return total

    assert f(X) == 75.0
    assert capsys.readouterr().out.splitlines() == [
        "first 0.5 4",
        "small 0.5",
        *(line for i, v in enumerate(X) if v > 1 for line in (f"row {i} {v}", f"io {v}")),
        "last 75.0",
    ]


def test_a_while_loop_whose_condition_python_decides(native):
    @mp.jit
    def f(x):
        while mp.pure_callback(lambda v: np.bool_(v < 100.0), ShapeDtypeStruct((), bool), x):
            x = x * 3.0
        return x

    assert f(1.0) == 243.0


def test_a_pure_callback_that_nobody_reads_is_left_out_and_effects_are_not(native):
    record, seen = recorded()

    def noted(x):
        record(x)
        return x

    @mp.jit
    def f(x):
        mp.pure_callback(noted, F64, x)
        io_callback(noted, F64, x + 1.0)
        return x

    f(2.0)
    assert seen == [(3.0,)]


def test_in_a_function_that_is_called_from_many_places(native):
    def layer(x):
        x = mp.pure_callback(np.tanh, ShapeDtypeStruct(x.shape, x.dtype), x)
        for _ in range(12):
            x = np.sin(x) + x * 0.5 - np.cos(x)
        return x

    def plain(x, tanh):
        for _ in range(6):
            x = tanh(x)
            for _ in range(12):
                x = np.sin(x) + x * 0.5 - np.cos(x)
        return x

    def many(x):
        for _ in range(6):
            x = layer(x)
        return x

    np.testing.assert_allclose(mp.jit(many)(X), plain(X, np.tanh), rtol=1e-9)


# ---- lanes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "shapes"),
    [("sequential", [((), ())] * 4), ("expand_dims", [((4,), (1,))]), ("broadcast_all", [((4,), (4,))])],
)
def test_methods_of_vmap(native, method, shapes):
    record, seen = recorded()

    def add(x, y):
        record(np.shape(x), np.shape(y))
        return x + y

    def f(x, y):
        return mp.pure_callback(add, F64, x, y, vmap_method=method) * 2.0

    np.testing.assert_array_equal(mp.jit(mp.vmap(f, (0, None)))(X, 1.0), 2 * (X + 1.0))
    assert seen == shapes
    grid = np.add.outer(X, X)
    np.testing.assert_array_equal(mp.jit(mp.vmap(mp.vmap(f, (0, None)), (0, 0)))(grid, X), 2 * (grid + X[:, None]))


def test_lanes_of_effects_come_one_after_the_other(native):
    record, seen = recorded()

    def f(x):
        mp.debug.callback(record, "a", x)
        y = io_callback(lambda v: record("b", v) or v + 1.0, F64, x)
        return y * 2.0

    np.testing.assert_array_equal(mp.jit(mp.vmap(f))(X), 2 * (X + 1))
    assert seen == [row for x in X for row in (("a", x), ("b", x))]


def test_vmap_without_a_method_is_refused():
    with pytest.raises(TypeError, match="vmap_method="):
        mp.vmap(lambda x: mp.pure_callback(np.sin, F64, x))(X)
    with pytest.raises(Exception, match="vmap_method is 'legacy'"):
        mp.pure_callback(np.sin, F64, 1.0, vmap_method="legacy")


# ---- derivatives -----------------------------------------------------------------------------------------------------


def test_effects_run_once_under_derivatives(native):
    record, seen = recorded()

    def f(x):
        for i in range(len(x)):
            mp.debug.callback(record, x[i])
        return (x * x).sum()

    np.testing.assert_array_equal(mp.jit(mp.grad(f))(X), 2 * X)
    assert seen == [(x,) for x in X]


@pytest.mark.parametrize("call", [mp.pure_callback, mp.io_callback])
@pytest.mark.parametrize("transform", [mp.grad, mp.jacfwd])
def test_a_callback_has_no_derivative(call, transform):
    with pytest.raises(TypeError, match="has no derivative: it calls Python code; give the function that calls it a"):
        transform(lambda x: call(np.sin, F64, x))(1.0)


def test_but_by_a_rule(native):
    @mp.custom_jvp
    def sine(x):
        return mp.pure_callback(np.sin, ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="expand_dims")

    @sine.defjvp
    def sine_jvp(primals, tangents):
        (x,), (dot,) = primals, tangents
        return sine(x), mp.pure_callback(np.cos, ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="expand_dims") * dot

    def loss(x):
        return (sine(x) * x).sum()

    want = np.cos(X) * X + np.sin(X)
    np.testing.assert_allclose(mp.jit(mp.grad(loss))(X), want, rtol=1e-14)
    np.testing.assert_allclose(mp.jit(mp.vmap(mp.grad(loss)))(X[None]), want[None], rtol=1e-14)


def test_of_a_constant_it_needs_none(native):
    f = mp.grad(lambda x: x * mp.pure_callback(np.sin, F64, 2.0))
    assert f(3.0) == np.sin(2.0)


# ---- the debugger ----------------------------------------------------------------------------------------------------


def script(*lines: str) -> dict:
    return {"stdin": io.StringIO("\n".join([*lines, ""])), "stdout": io.StringIO()}


def test_a_breakpoint_shows_the_users_line_and_values(native):
    said = script("p x", "p y + 1.0, k, i", "c", "p i", "l", "c", "p i, y.shape", "c")

    def f(x, k=7):
        y = np.sin(x)
        for i in range(len(x)):
            if x[i] > 1.0:
                y = y + x[i]
                mp.debug.breakpoint(**said)  # the line
        return y.sum()

    total = mp.jit(f)(X)
    np.testing.assert_allclose(total, np.sin(X).sum() + 4 * X[1:].sum())
    text = said["stdout"].getvalue()
    assert text.count("-> mp.debug.breakpoint(**said)  # the line") == 3
    assert "(Pdb) array([0.5, 1.5, 2.5, 3.5])" in text
    assert f"(Pdb) ({np.sin(X) + 2.5!r}, np.int64(7), np.int64(1))" in text
    assert re.search(r"-> *\t +mp.debug.breakpoint", text) and "test_callbacks.py(" in text
    assert text.endswith("(Pdb) (np.int64(3), (4,))\n(Pdb) ")


def test_the_page_shows_what_pdb_says(native, tmp_path, monkeypatch):
    page = (Path(__file__).resolve().parents[2] / "docs" / "debugging.md").read_text()
    said, program = re.search(r"```\n(> debugging.*?)```.*?```python\n(.*?)```", page, re.S).groups()
    file = tmp_path / "debugging.py"
    file.write_text("import numpy as np\nimport metaphrase as mp\n" + program)
    monkeypatch.setattr("sys.stdin", io.StringIO("p x, total, i\nc\nc\n"))
    monkeypatch.setattr("sys.stdout", shown := io.StringIO())
    runpy.run_path(str(file))
    typed = shown.getvalue().replace(f"{tmp_path}/", "").replace("(Pdb) ", "(Pdb) p x, total, i\n", 1)
    assert typed.startswith(said)


def test_a_breakpoint_can_be_quit_and_changes_nothing(native):
    said = script("x = 100.0", "c", "q")

    def f(x):
        mp.debug.breakpoint(**said)
        return x * 2.0

    f = mp.jit(mp.grad(f))
    assert f(1.0) == 2.0
    with pytest.raises(bdb.BdbQuit):
        f(1.0)


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_a_sharding_and_results_without_types_are_refused():
    with pytest.raises(TypeError, match="with a sharding"):
        mp.pure_callback(np.sin, F64, 1.0, sharding=0)
    with pytest.raises(TypeError, match="which has no shape and dtype"):
        mp.jit(lambda x: mp.pure_callback(np.sin, "float", x))(1.0)


def test_a_nan_is_found_behind_a_callback(native):
    def f(x):
        y = mp.pure_callback(lambda v: v - 3.0, ShapeDtypeStruct((4,), float), x)
        return np.sqrt(y).sum()

    with mp.debug_nans(), pytest.raises(FloatingPointError, match=r"sqrt\(-2.5\)"):
        mp.jit(f)(X)


def test_the_hunt_for_a_nan_calls_what_gives_something_once_more_and_what_gives_nothing_never():
    record, seen = recorded()

    def f(x):
        mp.debug.callback(record, "debug")
        y = io_callback(lambda v: record("io") or v, F64, x)
        dropped = np.where(x > 0, np.log(x), 0.0)
        return np.sqrt(y - 3.0) + np.log(y - 5.0) + dropped

    with config(native=False, debug_nans=True), pytest.raises(FloatingPointError, match=r"sqrt\(-4.0\)"):
        mp.jit(f)(-1.0)
    assert seen == [("debug",), ("io",), ("io",)]


# ---- other targets, files and processes ------------------------------------------------------------------------------


def sine(x):
    return mp.pure_callback(np.sin, F64, x) * 2.0


def test_the_numpy_source_runs_in_this_process():
    text = mp.source(sine, 1.0)
    assert "from metaphrase.effects import called_back" in text
    scope: dict = {}
    exec(text, scope)
    assert scope["sine"](1.0) == 2 * np.sin(1.0)


@pytest.mark.parametrize("to", ["native", "numpy"])
def test_a_package_can_not_hold_it(tmp_path, to):
    module = types.ModuleType("with_callback")
    module.__file__ = str(tmp_path / "with_callback.py")
    module.sine = mp.export("f64")(sine)
    with pytest.raises(SourceError, match="a package would have to name a Python function that is called back"):
        compile_module(module, tmp_path / "out", to=to)


def test_nor_can_a_file(tmp_path):
    with pytest.raises(SourceError, match="a Python function that is called back"):
        mp.jit(sine).lower(1.0).compile().save(tmp_path / "sine")


def test_the_host_of_a_gpu_calls_it():
    assert "c.effect(0, x_at, into=(" in mp.source(sine, 1.0, stage="cuda").replace("shown_at", "x_at")


def test_an_effect_that_gives_something_is_not_called_twice_for_a_derivative():
    def f(x):
        total = 0.0
        while x < 10.0:
            x = x * io_callback(lambda v: 2.0, F64, 1.0)
            total = total + np.sin(x)
        return total

    value, slope = mp.value_and_grad(f)(1.5)
    np.testing.assert_allclose([value, slope], [sum(np.sin([3, 6, 12])), np.dot([2, 4, 8], np.cos([3, 6, 12]))])
    np.testing.assert_array_equal(mp.vmap(mp.grad(f))(X), [mp.grad(f)(x) for x in X])
    with pytest.raises(TypeError, match="may have effects, a second time"):
        mp.grad(lambda x: mp.vmap(f)(x).sum())(X)
